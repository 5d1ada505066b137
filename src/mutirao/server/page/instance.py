"""One instance: its graph with live states, its data, what happened and when, why it waits; and what can be done about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request, Response

from mutirao.database.item import Attachment, Comment
from mutirao.database.record import JobRecord, TaskStanding, TraceRow, TraceStep
from mutirao.database.sight import SeenInstance
from mutirao.model import Definition
from mutirao.server.answer import Cursor, decode_cursor, encode_cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.edge import edges
from mutirao.server.page.graph import STATES, drawing
from mutirao.server.page.instance_steer import acts_of, jobs_of
from mutirao.server.page.instance_story import steps_of
from mutirao.server.page.instance_task import in_hand, lines_of
from mutirao.server.page.instance_time import Timeline, timeline
from mutirao.server.page.person import suggested
from mutirao.server.page.reader import Reader
from mutirao.server.page.reason import reasons_of
from mutirao.server.page.shell import pages, render
from mutirao.server.page.value import pretty, shown_state
from mutirao.server.route.parts import Number, Text
from mutirao.server.who import Who

router = pages()

_STEPS = 40
_JOBS = 100
_TRIES = 3
_SAID = 200
_BARS = 400


@dataclass(frozen=True)
class Looked:
    """All that is read of an instance for its page."""

    definition: Definition
    standings: Sequence[TaskStanding]
    jobs: Sequence[JobRecord]
    steps: Sequence[TraceStep]
    lately: Sequence[TraceRow]
    comments: Sequence[Comment]
    attachments: Sequence[Attachment]


@router.get("/instances/{instance}")
async def instance(request: Request, who: SignedIn, instance: Number, cursor: Cursor = None) -> Response:
    """What is live in it is read again when it moves; the cursor is that of its story."""
    seen, looked = await _consistently(who, instance, decode_cursor(cursor, int))
    reader = Reader.of(request)
    acts = acts_of(seen, looked.definition, looked.standings, reader)
    steps = looked.steps[:_STEPS]
    found = edges(looked.definition)
    tasks = lines_of(seen, looked.definition, found, looked.standings)
    return render(
        request,
        "instance.html",
        seen=seen,
        here=f"/instances/{seen.id}?cursor={cursor}" if cursor else f"/instances/{seen.id}",
        drawing=drawing(looked.definition, reader, found=found),
        states={each.standing.task: each.word for each in tasks},
        tasks=tasks,
        in_hand=in_hand(seen, looked.jobs),
        words=STATES,
        sees_flow=await who.sight.sees_flow(seen.flow),
        values=shown_state(reader, looked.definition, seen.state, seen.id),
        reasons=reasons_of(reader, seen.reasons),
        acts=acts,
        jobs=jobs_of(seen, looked.definition, looked.jobs, reader),
        steps=steps_of(reader, looked.definition, steps),
        following=encode_cursor(steps[-1].id) if len(looked.steps) > _STEPS else None,
        is_first=cursor is None,
        times=_times(reader, seen, looked),
        comments=looked.comments,
        attachments=looked.attachments,
        pretty=pretty,
        persons=[each.name for each in await suggested(who)] if acts.hands_over else [],
        events=f"/api/events?instance={seen.id}",
    )


@router.get("/instances/{instance}/why/{task}")
async def why(request: Request, who: SignedIn, instance: Number, task: Text) -> Response:
    """Why a task has not started, or has: read into the page when somebody asks."""
    seen = await who.sight.instance(instance)
    found = await who.sight.why(instance, task)
    return render(request, "instance_why.html", seen=seen, task=task, found=found)


async def _consistently(who: Who, instance: int, before: int | None) -> tuple[SeenInstance, Looked]:
    """All of one revision, unless it moves all the time: who steers it names what they were shown."""
    seen = await who.sight.instance(instance)
    for _ in range(_TRIES):
        looked = await _look(who, seen, before)
        newest = await who.sight.instance(instance)
        if newest.revision == seen.revision:
            break
        seen = newest
    return seen, looked


async def _look(who: Who, seen: SeenInstance, before: int | None) -> Looked:
    talk = who.engine.worklists
    return Looked(
        definition=await who.engine.definition(seen.flow, seen.version),
        standings=await who.sight.task_states(seen.id),
        jobs=await who.sight.jobs(seen.id, limit=_JOBS),
        steps=await who.sight.steps(seen.id, before=before, limit=_STEPS + 1),
        lately=await who.sight.lately(seen.id, limit=_BARS + 1),
        comments=await talk.comments(who.id, seen.id, limit=_SAID),
        attachments=await talk.attachments(who.id, seen.id, limit=_SAID),
    )


def _times(reader: Reader, seen: SeenInstance, looked: Looked) -> Timeline | None:
    rows = looked.lately[:_BARS][::-1]
    span = (seen.started_at, seen.closed_at or max(reader.now, seen.started_at))
    return timeline(reader, rows, looked.jobs, span, is_cut=len(looked.lately) > _BARS)
