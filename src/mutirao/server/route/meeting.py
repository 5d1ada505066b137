"""Classes, whose jobs exclude each other; and who waits for whom."""

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import Field

from mutirao.database.meeting import MOST_WAITS, ClassRecord, Wait
from mutirao.server.answer import answer, done
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.route.parts import Body, Text, routes

router = routes("class", "/classes")

ClassName = Annotated[Text, Path(min_length=1, max_length=100, examples=["crane"])]


class PutClass(Body):
    conflicts: Annotated[
        list[Annotated[Text, Field(max_length=100)]],
        Field(max_length=1000, description="Itself among them: its jobs exclude each other.", examples=[["crane"]]),
    ] = []
    description: Annotated[Text | None, Field(max_length=1000)] = None


@router.get("", response_model=list[ClassRecord])
async def classes(who: SignedIn) -> Response:
    """All classes: what they conflict with, how many jobs hold them and how many wait; of their flows those that you may start."""
    return answer(await who.sight.classes())


@router.get("/waits", response_model=list[Wait])
async def waits(
    who: SignedIn,
    name: Annotated[Text | None, Query(max_length=100, description="Of this class.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_WAITS)] = 100,
) -> Response:
    """Who waits for whom, since when and at which place of the queue: of instances that you may see. For whom is told if you may see that one, too."""
    return answer(await who.sight.waits(name, limit=limit))


@router.put("/{name}", status_code=204)
async def put(who: Administrator, name: ClassName, body: PutClass) -> Response:
    """Make a class, or change it; it holds for what starts from now on."""
    await who.engine.classes.put(name, body.conflicts, description=body.description)
    return done()


@router.delete("/{name}", status_code=204)
async def drop(who: Administrator, name: ClassName) -> Response:
    """Take a class away: its jobs exclude nobody any more."""
    await who.engine.classes.drop(name)
    return done()
