"""Flows: those that one may start, and what each is: its picture, its text, its tasks, its versions."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request, Response

from mutirao.database.record import FlowHead
from mutirao.errors import RequestError
from mutirao.model import Definition, Task
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.page.graph import condition, doer, drawing, kind_of, marks_of, standing, terms
from mutirao.server.page.pdl import pdl_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import FlowName
from mutirao.server.who import Who

router = pages()

VersionNumber = Annotated[int | None, Query(ge=1, le=2**31 - 1)]
_MOST_VERSIONS = 100


@router.get("/flows")
async def flows(request: Request, who: SignedIn) -> Response:
    """Those that one may start; administrators start all."""
    found = await who.sight.flows()
    if not who.is_administrator:
        return render(request, "flows.html", flows=found, heads={}, counts={})
    heads = {each.name: each for each in await who.engine.flow_heads()}
    counts = {each.flow: each for each in await who.engine.instance_counts()}
    return render(request, "flows.html", flows=found, heads=heads, counts=counts)


@router.get("/flows/{name}")
async def flow(request: Request, who: SignedIn, name: FlowName, version: VersionNumber = None) -> Response:
    """One flow; an earlier version of it, if asked for."""
    definition = await who.sight.definition(name, version)
    reader = Reader.of(request)
    return render(
        request,
        "flow.html",
        flow=definition,
        head=await head_of(who, name),
        version=version,
        drawing=drawing(definition, reader),
        pdl=await pdl_of(definition),
        tasks=list(_lines(definition, reader)),
    )


@router.get("/flows/{name}/versions")
async def versions(
    request: Request,
    who: Administrator,
    name: FlowName,
    version: VersionNumber = None,
    against: VersionNumber = None,
) -> Response:
    """Who made which, when, and how many instances are open in each; and what differs between two of them."""
    await who.sight.definition(name)
    found = await who.engine.versions(name, limit=_MOST_VERSIONS)
    newest = found[0].number
    later = version or newest
    earlier = against or max(1, later - 1)
    changes = await _changes(who, name, earlier, later) if newest > 1 else []
    return render(
        request, "flow_versions.html", flow=name, versions=found, earlier=earlier, later=later, changes=changes
    )


async def head_of(who: Who, name: str) -> FlowHead:
    """Of a flow that is there."""
    found = await who.engine.flow_heads(name)
    if not found:
        raise RequestError("unknown_flow", f'there is no flow "{name}"')
    return found[0]


@dataclass(frozen=True, slots=True)
class TaskLine:
    """What is said of a task, in words."""

    task: Task
    kind: str
    marks: list[str]
    condition: str
    doer: str
    terms: list[str]


def _lines(definition: Definition, reader: Reader) -> Iterator[TaskLine]:
    stand_by = standing(definition)
    for task in definition.tasks:
        yield TaskLine(
            task,
            kind_of(task),
            marks_of(task, stand_by),
            condition(task, definition, reader),
            doer(task, reader),
            list(terms(task, reader)),
        )


async def _changes(who: Who, name: str, earlier: int, later: int) -> list[dict[str, Any]]:
    """The lines that differ, each with a sign: + is new, - is gone; and a few around them."""
    before = (await pdl_of(await who.engine.definition(name, earlier))).splitlines()
    after = (await pdl_of(await who.engine.definition(name, later))).splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return [{"sign": line[:1], "text": line[1:]} for line in lines]
