"""Batches: one thing done to many instances. What is going to happen is told, and counted, before it does."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, get_args

from fastapi import Query, Request, Response

from mutirao.database.batch import Batch, BatchCount, Filter
from mutirao.errors import MutiraoError, RequestError
from mutirao.model import Definition
from mutirao.model.value import ENCODER
from mutirao.server.answer import BIGGEST
from mutirao.server.need import Administrator
from mutirao.server.page.batch_order import chosen_by, order_of
from mutirao.server.page.catalogue import marked
from mutirao.server.page.form import Field, field_for
from mutirao.server.page.instance_filter import Looked, batch_filter
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.batch import Kind
from mutirao.server.route.parts import Number, Text
from mutirao.server.who import Who

router = pages()

KINDS = {
    "suspend": (marked("Suspend"), marked("What runs may finish. Nothing else starts until they are resumed.")),
    "resume": (marked("Resume"), marked("Those that are suspended go on where they were.")),
    "cancel": (
        marked("Cancel"),
        marked("They are stopped for good: what runs may finish, nothing else starts. What was done is not undone."),
    ),
    "roll_back": (
        marked("Roll back"),
        marked("What they have done is undone, the last first, by the compensations of their tasks. Then they end."),
    ),
    "retry": (marked("Retry what failed"), marked("Their failed jobs are done once more, with all their retries.")),
    "skip": (
        marked("Skip what failed"),
        marked("Their failed jobs end as if they had succeeded, and what depends on them goes on."),
    ),
    "repair": (
        marked("Repair"),
        marked("Those that are exceptions are corrected. Failed jobs go, and fire again where their conditions hold."),
    ),
    "set": (marked("Set attributes"), marked("Attributes get these values, and conditions are looked at again.")),
    "start_task": (marked("Start a task"), marked("The task is started in each, whether or not its condition holds.")),
    "go_back": (
        marked("Go back to a task"),
        marked("The task starts once more in each, as if nothing had followed it. Nothing is undone."),
    ),
}
_OTHER_KINDS = {
    "migrate": marked("Move to another version"),
    "look": marked("Look again at closed ones"),
    "drop": marked("Drop closed ones"),
}
_STATUSES = {
    "running": marked("running"),
    "finished": marked("finished"),
    "stopped": marked("stopped"),
    "failed": marked("failed"),
}
_OF_TASKS = ("start_task", "go_back")
_WITH_CHANGE = ("set", "repair", "skip")
_MOST = 10_000
_PATIENCE = timedelta(milliseconds=15)
"""So long they are counted before somebody has ordered it."""
_LISTED = 50
_REFUSALS = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to be done: to which instances, with which task, and to how many now; None: that is not known yet."""

    kind: str
    chosen: Filter
    task: str
    count: BatchCount | None
    problem: str = ""

    @property
    def may_be_done(self) -> bool:
        return self.count is not None and (self.count.total > 0 or not self.count.is_exact)


@router.get("/batches")
async def batches(request: Request, who: Administrator) -> Response:
    """The newest ones."""
    found = await who.engine.batches(limit=_LISTED)
    return render(request, "batches.html", batches=found, title_of=_title, words_of=_words)


@router.get("/batches/new")
async def plan(
    request: Request,
    who: Administrator,
    kind: Annotated[Text, Query(max_length=100)] = "suspend",
    instance: Annotated[list[Annotated[int, Query(ge=1, le=BIGGEST)]] | None, Query(max_length=_MOST)] = None,
    task: Annotated[Text, Query(max_length=100)] = "",
) -> Response:
    """What would happen, before it does."""
    if kind not in get_args(Kind):
        raise RequestError("wrong_call", f'there is no batch of kind "{kind}"; there are {", ".join(KINDS)}')
    reader = Reader.of(request)
    looked = Looked.of(dict(request.query_params))
    takes_all = request.query_params.get("all") == "true"
    definition = await who.engine.definition(looked.flow) if looked.flow else None
    chosen = batch_filter(looked.filter(reader), definition) if takes_all else Filter(ids=tuple(instance or ()))
    if chosen is None or chosen == Filter(ids=()):
        raise RequestError("wrong_call", "no instances are chosen: choose some in the list, or a flow and all that fit")
    if definition is None:
        definition = await _common(who, instance or [])
    planned = await _plan(who, kind, chosen, task)
    return render(
        request,
        "batch_new.html",
        kinds=KINDS,
        plan=planned,
        hidden=_hidden(planned),
        chosen=chosen_by(chosen.said(), reader),
        pairs=[
            *looked.pairs(),
            *(("instance", str(each)) for each in instance or ()),
            *([("all", "true")] if takes_all else []),
        ],
        fields=_fields(planned, definition, reader),
        tasks=[each.name for each in definition.tasks] if definition and kind in _OF_TASKS else [],
        safe_points=_safe_points(definition) if kind == "roll_back" else [],
        is_of_task=kind in _OF_TASKS,
        back=looked.address(),
    )


@router.get("/batches/{batch}")
async def one(request: Request, who: Administrator, batch: Number) -> Response:
    """How far it has come, and whom it could not be done to."""
    found = await who.engine.batch(batch)
    refusals = await who.engine.batch_refusals(batch, limit=_REFUSALS + 1)
    return render(
        request,
        "batch.html",
        batch=found,
        title=_title(found),
        words_of=_words,
        order=order_of(found, Reader.of(request)),
        refusals=refusals[:_REFUSALS],
        is_cut=len(refusals) > _REFUSALS,
    )


async def _plan(who: Who, kind: str, chosen: Filter, task: str) -> Plan:
    """To how many it would be done. What is wrong with it is told here, not when it is too late."""
    if kind in _OF_TASKS and not task:
        return Plan(kind, chosen, task, None)
    # Whatever is set, it is set to the same ones; what cannot be set is refused when it is asked for.
    asked = "suspend" if kind == "set" else kind
    try:
        named = task if kind in _OF_TASKS else None
        count = await who.engine.count_batch_within(_PATIENCE, asked, chosen, task=named)
    except MutiraoError as error:
        return Plan(kind, chosen, task, None, error.message)
    return Plan(kind, chosen, task, count)


async def _common(who: Who, instances: list[int]) -> Definition | None:
    """The definition of the flow that all chosen ones are of, if it is one."""
    flows = await who.engine.flows_of_instances(instances)
    return await who.engine.definition(flows[0]) if len(flows) == 1 else None


def _hidden(planned: Plan) -> dict[str, str]:
    """The filter as hidden fields: each as JSON."""
    return {f"chosen.{name}": ENCODER.encode(value).decode() for name, value in planned.chosen.said().items()}


def _fields(planned: Plan, definition: Definition | None, reader: Reader) -> list[Field]:
    if definition is None or planned.kind not in _WITH_CHANGE:
        return []
    return [field_for(each.name, each.type, within="change", zone=reader.zone) for each in definition.attributes]


def _safe_points(definition: Definition | None) -> list[str]:
    return [each.name for each in definition.tasks if each.recovery.safe_point] if definition else []


def _title(batch: Batch) -> str:
    if batch.kind in KINDS:
        return KINDS[batch.kind][0]
    return _OTHER_KINDS.get(batch.kind, batch.kind)


def _words(batch: Batch) -> str:
    return _STATUSES.get(batch.status, batch.status)
