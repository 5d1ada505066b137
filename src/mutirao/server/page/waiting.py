"""Waiting: what waits for what, by classes and orderings, and circles of waits with their repair."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Query, Request, Response

from mutirao.database.meeting import ClassRecord, Wait
from mutirao.database.sight import SeenException
from mutirao.errors import RequestError
from mutirao.model import Ordering
from mutirao.server.need import SignedIn
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.reason import reasons_of
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import Text
from mutirao.server.who import Who

router = pages()

_MOST = 200
_MOST_CIRCLES = 20
_SHOWN = 8
"""So many of a queue are drawn."""


@dataclass(slots=True)
class Lane:
    """A queue, as it is drawn: those that go first, and those behind them. An unknown one is not for the reader to see."""

    name: str
    is_ordering: bool
    ahead: list[tuple[int | None, str]] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)

    def add(self, wait: Wait) -> None:
        first = (wait.holder_instance, wait.holder_task or "")
        is_in_lane = any(each.instance == wait.holder_instance for each in self.waits)
        if first not in self.ahead and not is_in_lane:
            self.ahead.append(first)
        self.waits.append(wait)

    @property
    def shown(self) -> list[Wait]:
        return self.waits[:_SHOWN]

    @property
    def further(self) -> int:
        return len(self.waits) - len(self.shown)


@dataclass(frozen=True, slots=True)
class Circle:
    """Instances that wait for each other, told of the one that closed the circle."""

    instance: SeenException
    numbers: tuple[int | None, ...]


@router.get("/waiting")
async def waiting(
    request: Request, who: SignedIn, name: Annotated[Text, Query(alias="class", max_length=100)] = ""
) -> Response:
    """All of it, or what has to do with one class."""
    classes = await who.sight.classes()
    chosen = _named(classes, name) if name else None
    waits = await _waits(who, name or None)
    return render(
        request,
        "waiting.html",
        classes=classes,
        chosen=chosen,
        waits=waits,
        is_cut=len(waits) == _MOST,
        lanes=_lanes(waits),
        circles=[] if chosen else await _circles(who, Reader.of(request)),
        orderings=await _orderings(who) if not chosen else [],
        label_of=label_of,
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
    )


def _named(classes: list[ClassRecord], name: str) -> ClassRecord:
    for each in classes:
        if each.name == name:
            return each
    raise RequestError("unknown_class", f'there is no class "{name}"')


async def _waits(who: Who, name: str | None) -> list[Wait]:
    if who.is_administrator:
        return await who.engine.classes.waits(name, limit=_MOST)
    return await who.sight.waits(name, limit=_MOST)


def _lanes(waits: list[Wait]) -> list[Lane]:
    found: dict[tuple[str, bool], Lane] = {}
    for wait in waits:
        is_ordering = wait.kind == "ordering"
        name = (wait.ordering or "") if is_ordering else (wait.class_name or "")
        found.setdefault((name, is_ordering), Lane(name, is_ordering)).add(wait)
    return list(found.values())


async def _circles(who: Who, reader: Reader) -> list[Circle]:
    """Those that are the reader's to see to; of the others in it, only whom they may see are told."""
    found = await who.sight.exceptions(code="wait_circle", limit=_MOST_CIRCLES)
    return [
        Circle(each, reason.circle) for each in found for reason in reasons_of(reader, each.reasons) if reason.circle
    ]


async def _orderings(who: Who) -> list[Ordering]:
    return await who.engine.library.orderings() if who.is_administrator else []
