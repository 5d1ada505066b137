"""My work: the worklist of whoever reads it."""

from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from pydantic import ValidationError

from mutirao.database.item import ItemFilter
from mutirao.errors import RequestError
from mutirao.server.answer import Cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.catalogue import marked
from mutirao.server.page.shell import pages, render
from mutirao.server.route.worklist import Chosen

router = pages()

SORTS = {
    "arrival": marked("Arrival"),
    "priority": marked("Priority"),
    "deadline": marked("Deadline"),
    "size": marked("Size"),
    "hand": marked("By hand"),
}
_PAGE = 50


@router.get("/work")
async def work(request: Request, who: SignedIn, cursor: Cursor = None) -> Response:
    """One's worklist. The filter stands in the address; those that are kept have a name."""
    given = {name: value for name, value in request.query_params.items() if value}  # a form sends empty fields, too
    name, equals, value = given.pop("attribute", "").partition("=")
    attributes = {name: value} if equals else {}
    chosen = _chosen(given, attributes)
    worklists = who.engine.worklists
    page = await worklists.page(who.id, chosen, after=cursor, limit=_PAGE)
    kept = await worklists.filters(who.id)
    return render(
        request,
        "work.html",
        chosen=chosen,
        attribute=f"{name}={value}" if equals else "",
        page=page,
        counts=await worklists.counts(who.id),
        kept=[(each.name, address(each.filter)) for each in kept],
        here=address(chosen),
        document=chosen.document(),
        sorts=SORTS,
        is_first=cursor is None,
        following=page.next and address(chosen, cursor=page.next),
    )


def _chosen(given: dict[str, str], attributes: dict[str, str]) -> ItemFilter:
    try:
        return Chosen.model_validate(given).filter(attributes)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise RequestError("wrong_call", f"{wrong['loc'][0]}: {wrong['msg']}") from error


def address(chosen: ItemFilter, **more: Any) -> str:
    """The page with this filter."""
    said = {**chosen.document(), **more}
    attributes = said.pop("attributes", {})
    pairs = [(name, "true" if value is True else value) for name, value in said.items()]
    pairs += [("attribute", f"{name}={value}") for name, value in attributes.items()]
    pairs = [pair for pair in pairs if pair not in (("sort", "arrival"), ("status", "all"))]
    return f"/work?{urlencode(pairs)}" if pairs else "/work"
