"""The worklist: what a person may do and holds."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from pydantic import AwareDatetime, ConfigDict, Field

from mutirao.database.item import Item, ItemCount, ItemFilter, SavedFilter, Taken
from mutirao.errors import RequestError
from mutirao.server.answer import BIGGEST, Cursor, Page, PageSize, answer, done, next_link
from mutirao.server.need import SignedIn
from mutirao.server.route.parts import Body, Text, routes

router = routes("item", "/worklist")

Sort = Literal["arrival", "priority", "deadline", "size", "hand"]
Status = Literal["ready", "running", "all"]
Word = Annotated[Text | None, Field(max_length=100)]
FilterName = Annotated[Text, Path(min_length=1, max_length=100, examples=["urgent"])]


class Chosen(Body):
    """Which items, and in which order."""

    model_config = ConfigDict(extra="ignore")  # beside it in the address are the page's limit and cursor

    sort: Sort = "arrival"
    descending: bool = False
    status: Annotated[Status, Field(description="ready: nobody holds it; running: you do.")] = "all"
    flow: Word = None
    task: Word = None
    role: Word = None
    instance: Annotated[int | None, Field(ge=1, le=BIGGEST)] = None
    priority: Annotated[int | None, Field(ge=-(2**31), le=2**31 - 1, description="The least.")] = None
    due_before: AwareDatetime | None = None
    overdue: bool = False
    text: Annotated[
        Text | None, Field(max_length=200, description="In the name or description of task or flow, or in the key.")
    ] = None

    def filter(self, attributes: dict[str, Any] | None = None) -> ItemFilter:
        said = self.model_dump(exclude={"attributes"})
        return ItemFilter(**said, attributes=attributes or {})


class Saved(Chosen):
    model_config = ConfigDict(extra="forbid")

    attributes: Annotated[
        dict[str, Text | int | float | bool],
        Field(max_length=20, description="Values of attributes that are searchable.", examples=[{"city": "Recife"}]),
    ] = {}


class Next(Body):
    chosen: Saved = Saved()
    lock: Annotated[bool, Field(description="To do it away from the engine.")] = False


class Rename(Body):
    name: Annotated[Text, Field(min_length=1, max_length=100)]


@router.get("", response_model=Page[Item])
async def page_of_items(
    request: Request,
    who: SignedIn,
    chosen: Annotated[Chosen, Query()],
    attribute: Annotated[
        list[Text] | None, Query(max_length=20, description="name=value, of attributes that are searchable.")
    ] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> Response:
    """What you may do, and what you hold."""
    wanted = chosen.filter(dict(_attribute(each) for each in attribute or ()))
    found = await who.engine.worklists.page(who.id, wanted, after=cursor, limit=limit)
    return answer(found, headers=next_link(request, found.next))


@router.get("/counts", response_model=list[ItemCount])
async def counts(who: SignedIn) -> Response:
    """How many items there are for you, by role and flow."""
    return answer(await who.engine.worklists.counts(who.id))


@router.post("/next", response_model=Taken | None)
async def take_next(who: SignedIn, body: Next) -> Response:
    """Take the first item that nobody else is taking at this moment; null where there is none."""
    chosen = body.chosen.filter(dict(body.chosen.attributes))
    return answer(await who.engine.worklists.next(who.id, chosen, lock=body.lock))


@router.get("/filters", response_model=list[SavedFilter])
async def filters(who: SignedIn) -> Response:
    """The filters that you have saved."""
    return answer(await who.engine.worklists.filters(who.id))


@router.put("/filters/{name}", status_code=204)
async def save_filter(who: SignedIn, name: FilterName, body: Saved) -> Response:
    """Keep a filter under a name; the same name again replaces it."""
    await who.engine.worklists.save_filter(who.id, name, body.filter(dict(body.attributes)))
    return done()


@router.post("/filters/{name}/rename", status_code=204)
async def rename_filter(who: SignedIn, name: FilterName, body: Rename) -> Response:
    """Call a filter otherwise."""
    await who.engine.worklists.rename_filter(who.id, name, body.name)
    return done()


@router.delete("/filters/{name}", status_code=204)
async def drop_filter(who: SignedIn, name: FilterName) -> Response:
    """Forget a filter."""
    await who.engine.worklists.drop_filter(who.id, name)
    return done()


def _attribute(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals:
        raise RequestError("wrong_call", "attribute is name=value, such as city=Recife")
    return name, value
