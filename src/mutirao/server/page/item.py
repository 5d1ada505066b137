"""One work item: what it is about, what is to be written, what was said and done; and, once it has ended, that it has."""

from dataclasses import dataclass
from http import HTTPStatus

from fastapi import Request, Response

from mutirao.database.item import ItemFilter, ItemView
from mutirao.database.person import PersonRecord
from mutirao.database.sight import SeenInstance
from mutirao.errors import RequestError
from mutirao.server.need import SignedIn
from mutirao.server.page.catalogue import marked
from mutirao.server.page.form import Field, field_for, label_of
from mutirao.server.page.person import suggested
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.page.story import of_item, of_trace
from mutirao.server.page.value import pretty, shown_state
from mutirao.server.page.wanted import remembered, taking
from mutirao.server.route.parts import Number
from mutirao.server.who import Who

router = pages()

KINDS = {
    "manual": marked("a person does it"),
    "semi_automatic": marked("a person does it with a program"),
    "cooperative": marked("a group does it together"),
}
_LISTED = 200
_ENDED = frozenset({"item_finished", "unknown_job", "not_an_item"})


@dataclass(frozen=True, slots=True)
class Rights:
    """What the reader may do with an item, as far as can be known before they try."""

    holds: bool
    takes: bool
    delegates: bool
    steers: bool
    returns: bool
    """Gives it back: their own, or takes it from whoever holds it."""

    @classmethod
    def of(cls, view: ItemView, seen: SeenInstance, *, is_listed: bool) -> "Rights":
        item = view.item
        holds = item.attempt is not None
        stands_in = item.status == "running" and item.instead_of is not None
        is_open = item.status in ("ready", "running")
        return cls(
            holds=holds,
            takes=is_listed and item.status == "ready",
            delegates=is_open and (holds or seen.may_steer or stands_in or (item.alone and is_listed)),
            steers=seen.may_steer,
            returns=item.status == "running" and (holds or seen.may_steer or stands_in),
        )


@router.get("/items/{job}")
async def item(request: Request, who: SignedIn, job: Number) -> Response:
    try:
        view = await who.engine.worklists.show(who.id, job)
        seen = await who.sight.instance(view.item.instance)
    except RequestError as error:
        if error.code not in _ENDED | {"unknown_instance"}:
            raise
        return await _ended(request, who, job, error)
    reader = Reader.of(request)
    definition = await who.engine.definition(seen.flow, seen.version)
    rights = Rights.of(view, seen, is_listed=await _is_listed(who, view))
    return render(
        request,
        "item.html",
        events=f"/api/events?instance={seen.id}",
        view=view,
        item=view.item,
        seen=seen,
        may=rights,
        title=view.item.description or label_of(view.item.task),
        about=definition.description,
        kinds=KINDS,
        pretty=pretty,
        inputs=shown_state(reader, definition, view.inputs, seen.id),
        fields=_fields(view, reader),
        story=of_item(reader, view.item.task, view.story),
        history=of_trace(reader, await who.sight.lately(seen.id)),
        persons=await _persons(who, view) if rights.delegates or rights.steers else [],
        next_body=taking(remembered(request, who, reader)),
    )


def _fields(view: ItemView, reader: Reader) -> list[Field]:
    """What it is to write. What is known already stands there, and is only sent when it is changed."""
    return [
        field_for(
            each.name,
            each.type,
            within="change",
            required=each.required and view.inputs.get(each.name) is not None,
            value=view.inputs.get(each.name),
            zone=reader.zone,
        )
        for each in view.outputs
    ]


async def _is_listed(who: Who, view: ItemView) -> bool:
    """Whether it is in their worklist: somebody may see an item that is for others."""
    wanted = ItemFilter(instance=view.item.instance, task=view.item.task)
    page = await who.engine.worklists.page(who.id, wanted, limit=_LISTED)
    return any(each.job == view.item.job for each in page.items)


async def _persons(who: Who, view: ItemView) -> list[PersonRecord]:
    """Whom it can be given to."""
    return [each for each in await suggested(who, view.item.role) if each.name != who.name]


async def _ended(request: Request, who: Who, job: int, error: RequestError) -> Response:
    """It has ended, or is none of theirs any more. What they have typed stays where it is."""
    is_part = request.headers.get("hx-request") == "true"
    instance = await who.engine.worklists.once_held(who.id, job)
    reader = Reader.of(request)
    return render(
        request,
        "item_ended.html",
        status=HTTPStatus.OK if is_part else HTTPStatus.NOT_FOUND,
        error=error,
        job=job,
        instance=instance,
        history=of_trace(reader, await who.sight.lately(instance, limit=10)) if instance else [],
        next_body=taking(remembered(request, who, reader)),
    )
