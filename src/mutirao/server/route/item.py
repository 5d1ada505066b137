"""Work items: jobs that people do."""

from typing import Annotated, Literal

from fastapi import Response
from pydantic import AwareDatetime, BaseModel, Field, Strict, model_validator

from mutirao.database.item import ItemView
from mutirao.server.answer import BIGGEST, answer, done
from mutirao.server.need import SignedIn
from mutirao.server.route.parts import Because, Body, Number, State, Text, routes

router = routes("item", "/items")

Job = Annotated[int, Field(ge=1, le=BIGGEST)]
Attempt = Annotated[int, Strict(), Field(ge=1, le=BIGGEST, description="What selecting it answered.", examples=[1042])]
PersonName = Annotated[Text, Field(min_length=1, max_length=100, examples=["clerk_2"])]


class Select(Body):
    lock: Annotated[bool, Field(description="To do it away from the engine.")] = False


class Selected(BaseModel):
    attempt: Annotated[int, Field(description="Finishing must name it.", examples=[1042])]


class Finish(Body):
    attempt: Attempt
    change: Annotated[State, Field(description="What it writes.", examples=[{"granted": True}])] = {}


class Fail(Body):
    attempt: Attempt
    error: Annotated[Text, Field(min_length=1, max_length=2000, examples=["the form is not signed"])]


class Finished(BaseModel):
    outcome: Annotated[
        Literal["done", "parked"],
        Field(description="parked: it is written when other jobs of the instance have ended."),
    ]


class Delegate(Because):
    to: PersonName


class Insert(Body):
    to: PersonName


class Remove(Body):
    from_: Annotated[PersonName, Field(alias="from")]


class Move(Body):
    """Before another item, or after it."""

    before: Job | None = None
    after: Job | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Move":
        if (self.before is None) == (self.after is None):
            raise ValueError("name the item to put it before, or the one to put it after")
        return self


class Exchange(Body):
    other: Job


class Extend(Because):
    finish_by: Annotated[
        AwareDatetime, Field(description="The new deadline: a time to come.", examples=["2031-12-24T18:00:00Z"])
    ]


@router.get("/{job}", response_model=ItemView)
async def show(who: SignedIn, job: Number) -> Response:
    """One item in full: what it is given and is to write, what was said and done."""
    return answer(await who.engine.worklists.show(who.id, job))


@router.post("/{job}/select", response_model=Selected)
async def select(who: SignedIn, job: Number, body: Select = Select()) -> Response:
    """Take it: it leaves everybody else's list."""
    return answer({"attempt": await who.engine.worklists.select(who.id, job, lock=body.lock)})


@router.post("/{job}/return", status_code=204)
async def give_back(who: SignedIn, job: Number, body: Because = Because()) -> Response:
    """Give it back, undone; the person in charge and administrators take it from whoever holds it."""
    await who.engine.worklists.give_back(who.id, job, reason=body.reason)
    return done()


@router.post("/{job}/finish", response_model=Finished)
async def finish(who: SignedIn, job: Number, body: Finish) -> Response:
    """Finish it with what it writes. A result that comes too late is refused, and kept as an attachment."""
    return answer({"outcome": await who.engine.worklists.finish(who.id, job, body.attempt, body.change)})


@router.post("/{job}/fail", response_model=Finished)
async def fail(who: SignedIn, job: Number, body: Fail) -> Response:
    """Finish it as failed, and say why."""
    return answer({"outcome": await who.engine.worklists.fail(who.id, job, body.attempt, body.error)})


@router.post("/{job}/delegate", status_code=204)
async def delegate(who: SignedIn, job: Number, body: Delegate) -> Response:
    """Offer it to one other person alone."""
    await who.engine.worklists.delegate(who.id, job, body.to, reason=body.reason)
    return done()


@router.post("/{job}/insert", status_code=204)
async def insert(who: SignedIn, job: Number, body: Insert) -> Response:
    """Put it into somebody's list as well: for the person in charge and administrators."""
    await who.engine.worklists.insert(who.id, job, body.to)
    return done()


@router.post("/{job}/remove", status_code=204)
async def remove(who: SignedIn, job: Number, body: Remove) -> Response:
    """Take it out of somebody's list, and out of their hands: for the person in charge and administrators."""
    await who.engine.worklists.remove(who.id, job, body.from_)
    return done()


@router.post("/{job}/move", status_code=204)
async def move(who: SignedIn, job: Number, body: Move) -> Response:
    """Put it before another one, or after it, in the order made by hand."""
    await who.engine.worklists.move(who.id, job, before=body.before, after=body.after)
    return done()


@router.post("/{job}/exchange", status_code=204)
async def exchange(who: SignedIn, job: Number, body: Exchange) -> Response:
    """Let two items change places in the order made by hand."""
    await who.engine.worklists.exchange(who.id, job, body.other)
    return done()


@router.post("/{job}/extend", status_code=204)
async def extend(who: SignedIn, job: Number, body: Extend) -> Response:
    """Give it another deadline: for the person in charge and administrators. Reminders count from now on."""
    await who.engine.deadlines.extend(who.id, job, body.finish_by, reason=body.reason)
    return done()
