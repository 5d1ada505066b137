"""My work: the worklist of whoever reads it."""

from dataclasses import dataclass, replace
from http import HTTPStatus

from fastapi import Request, Response

from mutirao.database.item import ALL_ITEMS, ItemFilter, ItemPage
from mutirao.errors import RequestError
from mutirao.model.value import ENCODER
from mutirao.server.answer import Cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.catalogue import marked
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.page.wanted import address, remember, remembered, taking, wanted
from mutirao.server.who import Who

router = pages()

SORTS = {
    "arrival": marked("Arrival"),
    "priority": marked("Priority"),
    "deadline": marked("Deadline"),
    "size": marked("Size"),
    "hand": marked("By hand"),
}
_PAGE = 50
_FORM = "filters"
"""The id of the form: htmx tells who asks."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a worklist, which began after `cursor`; or what is `wrong` with the filter that it was asked for by."""

    chosen: ItemFilter
    page: ItemPage
    cursor: str | None = None
    wrong: RequestError | None = None


@router.get("/work")
async def work(request: Request, who: SignedIn, cursor: Cursor = None) -> Response:
    """One's worklist. The filter stands in the address; those that are kept have a name."""
    reader = Reader.of(request)
    if not request.query_params:
        last = remembered(request, who, reader)
        if last != ALL_ITEMS:
            return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": address(last)})
    try:
        chosen = wanted([pair for pair in request.query_params.multi_items() if pair[0] != "cursor"], reader)
        page = await who.engine.worklists.page(who.id, chosen, after=cursor, limit=_PAGE)
    except RequestError as error:
        return await _shown(request, who, Listed(ALL_ITEMS, ItemPage([], None), wrong=error))
    response = await _shown(request, who, Listed(chosen, page, cursor))
    remember(response, who, chosen)
    return response


@router.get("/work/next")
async def following(request: Request, who: SignedIn) -> Response:  # noqa: ARG001 a page has it
    """After an item is done: to the next that one holds, or else to the list."""
    held = await who.engine.worklists.page(who.id, ItemFilter(status="running"), limit=_PAGE)
    target = next((f"/items/{item.job}#fill" for item in held.items if item.attempt), "/work")
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": target})


@router.get("/work/counts")
async def counts(request: Request, who: SignedIn) -> Response:
    """How much there is by role and flow, as a part of the page; nothing where less is wanted than all of a role and flow."""
    try:
        chosen = wanted(request.query_params.multi_items(), Reader.of(request))
    except RequestError:  # the page says what is wrong
        chosen = ALL_ITEMS
    found = await who.engine.worklists.counts(who.id)
    is_whole = _is_everything(replace(chosen, role=None, flow=None))
    return render(
        request,
        "work_counts.html",
        counts=[(each, address(replace(chosen, role=each.role, flow=each.flow))) for each in found if is_whole],
        flows=sorted({each.flow for each in found}),
        is_everything=_is_everything(chosen),
    )


async def _shown(request: Request, who: Who, listed: Listed) -> Response:
    chosen, page, wrong = listed.chosen, listed.page, listed.wrong
    is_part = request.headers.get("hx-request") == "true"
    response = render(
        request,
        "work.html",
        status=HTTPStatus.OK if wrong is None or is_part else HTTPStatus.UNPROCESSABLE_ENTITY,
        chosen=chosen,
        wrong=wrong,
        page=page,
        roles=sorted({*who.identity.roles, *([chosen.role] if chosen.role else [])}),
        kept=[(each, address(each.filter)) for each in await who.engine.worklists.filters(who.id)],
        place=ENCODER.encode({"cursor": listed.cursor} if listed.cursor else {}).decode(),
        everything=address(ALL_ITEMS),
        is_everything=_is_everything(chosen),
        document=ENCODER.encode(chosen.document()).decode(),
        next_body=taking(chosen),
        sorts=SORTS,
        label_of=label_of,
        begins=address(chosen) if listed.cursor else None,
        goes_on=page.next and address(chosen, cursor=page.next),
    )
    if request.headers.get("hx-trigger") == _FORM and wrong is None:
        response.headers["HX-Push-Url"] = address(chosen)
    return response


def _is_everything(chosen: ItemFilter) -> bool:
    """In whatever order."""
    return replace(chosen, sort="arrival", descending=False) == ALL_ITEMS
