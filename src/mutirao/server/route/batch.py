"""Batches: one thing done to all instances that a filter chooses; and migrations, which are batches too."""

from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import AwareDatetime, BaseModel, Field

from mutirao.database.batch import Batch, BatchRefusal, Filter, Migration
from mutirao.server.answer import BIGGEST, answer, done
from mutirao.server.need import Administrator
from mutirao.server.route.parts import Because, Body, Number, State, Text, routes
from mutirao.server.routing import creates

router = routes("batch", "/batches")

Kind = Literal["cancel", "suspend", "resume", "set", "repair", "retry", "skip", "roll_back", "start_task", "go_back"]
Version = Annotated[int | None, Field(ge=1, le=2**31 - 1)]
Word = Annotated[Text | None, Field(max_length=100)]
Renamed = Annotated[dict[str, Text], Field(max_length=1000, examples=[{"book_hotel": "book_room"}])]


class ChosenInstances(Body):
    """Which instances: all that is said must hold."""

    flow: Word = None
    key: Annotated[Text | None, Field(max_length=1000, description="The key it was started with.")] = None
    ids: Annotated[list[Annotated[int, Field(ge=1, le=BIGGEST)]] | None, Field(max_length=10_000)] = None
    status: Annotated[Word, Field(description="Or the beginning of one.", examples=["open.exception"])] = None
    version: Version = None
    started_before: AwareDatetime | None = None
    started_after: AwareDatetime | None = None
    task: Annotated[Word, Field(description="Of a failed job.")] = None
    error: Annotated[Text | None, Field(max_length=1000, description="Its code, or how it begins.")] = None
    exception: Annotated[Word, Field(description="The code of a reason why it is one.", examples=["task_failed"])] = (
        None
    )
    where: Annotated[Text | None, Field(max_length=10_000, description="A condition.", examples=["amount > 100"])] = (
        None
    )

    def filter(self) -> Filter:
        said = self.model_dump(exclude_none=True)
        return Filter(**{**said, "ids": tuple(said["ids"])} if "ids" in said else said)


class MakeBatch(Because):
    kind: Kind
    chosen: ChosenInstances
    change: State | None = None
    task: Annotated[Word, Field(description="The one to start or to go back to.")] = None
    safe_point: Annotated[Word, Field(description="Where to roll back to. Nothing: all of it.")] = None

    def arguments(self) -> dict[str, Any]:
        return {"change": self.change, "task": self.task, "safe_point": self.safe_point}


class Migrate(Because):
    flow: Annotated[Text, Field(max_length=100, examples=["travel"])]
    to: Annotated[Version, Field(description="Nothing: the newest.")] = None
    leaving: Annotated[Version, Field(description="Only instances of this version.")] = None
    tasks: Annotated[Renamed, Field(description="Tasks that are called otherwise now.")] = {}
    attributes: Annotated[Renamed, Field(description="Attributes that are called otherwise now.")] = {}
    chosen: ChosenInstances = ChosenInstances()


class BatchCount(BaseModel):
    count: int


@router.get("", response_model=list[Batch])
async def newest(who: Administrator, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Response:
    """The newest batches."""
    return answer(await who.engine.batches(limit=limit))


@router.post("", status_code=201, response_model=Batch)
@creates
async def make(who: Administrator, body: MakeBatch) -> Response:
    """Have something done to all instances that are chosen. Clocks drive it, step by step."""
    made = await who.engine.make_batch(body.kind, body.chosen.filter(), **body.arguments(), reason=body.reason)
    return answer(made, status=201, headers={"Location": f"/api/batches/{made.id}"})


@router.post("/count", response_model=BatchCount)
async def count(who: Administrator, body: MakeBatch) -> Response:
    """To how many instances it would be done now; nothing changes."""
    return answer({"count": await who.engine.count_batch(body.kind, body.chosen.filter(), **body.arguments())})


@router.post("/migrate", status_code=201, response_model=Batch)
@creates
async def migrate(who: Administrator, body: Migrate) -> Response:
    """Move instances of a flow to another of its versions."""
    names = {"tasks": body.tasks, "attributes": body.attributes}
    asked = Migration(flow=body.flow, to=body.to, leaving=body.leaving, filter=body.chosen.filter(), **names)
    made = await who.engine.migrate(asked, reason=body.reason)
    return answer(made, status=201, headers={"Location": f"/api/batches/{made.id}"})


@router.get("/{batch}", response_model=Batch)
async def show(who: Administrator, batch: Number) -> Response:
    """How a batch stands."""
    return answer(await who.engine.batch(batch))


@router.get("/{batch}/refusals", response_model=list[BatchRefusal])
async def refusals(who: Administrator, batch: Number) -> Response:
    """To which instances it could not be done, and why; the first thousand are kept."""
    await who.engine.batch(batch)
    return answer(await who.engine.batch_refusals(batch))


@router.post("/{batch}/stop", status_code=204)
async def stop(who: Administrator, batch: Number) -> Response:
    """Stop it where it is."""
    await who.engine.stop_batch(batch)
    return done()


@router.post("/{batch}/resume", status_code=204)
async def resume(who: Administrator, batch: Number) -> Response:
    """Take up a batch that was stopped or has failed, where it was left."""
    await who.engine.resume_batch(batch)
    return done()
