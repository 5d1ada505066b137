"""What all pages have around them; how one is answered, refused, or sent to sign in first."""

import logging
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from mutirao.errors import MutiraoError, RequestError
from mutirao.server.openapi import PAGE
from mutirao.server.page.catalogue import LANGUAGES, marked
from mutirao.server.page.environment import environment
from mutirao.server.page.problem import ENOUGH, PROBLEMS
from mutirao.server.page.reader import THEMES, Reader
from mutirao.server.page.saying import SAID
from mutirao.server.problem import refusal_status, unforeseen
from mutirao.server.routing import Handler, bounded
from mutirao.server.who import Who, who_asks

log = logging.getLogger(__name__)

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Vary": "HX-Request",
}


@dataclass(frozen=True)
class Place:
    """One line of the navigation."""

    path: str
    label: str
    icon: str
    badge: str | None = None
    for_administrators: bool = False


PLACES = (
    Place("/", marked("Overview"), "first"),
    Place("/work", marked("My work"), "work", badge="work"),
    Place("/flows", marked("Flows"), "flow"),
    Place("/schedules", marked("Schedules"), "schedule", for_administrators=True),
    Place("/instances", marked("Instances"), "instance"),
    Place("/exceptions", marked("Exceptions"), "exception", badge="exceptions"),
    Place("/waiting", marked("Waiting"), "waiting"),
    Place("/messages", marked("Messages"), "message", badge="messages"),
    Place("/people", marked("People and roles"), "people"),
    Place("/databases", marked("Databases and applications"), "database", for_administrators=True),
    Place("/workers", marked("Workers and health"), "worker", for_administrators=True),
)


def pages() -> APIRouter:
    return APIRouter(tags=[PAGE], include_in_schema=False, route_class=PageRoute)


class PageRoute(APIRoute):
    """A route whose refusals are pages, too; whoever is not signed in is asked to."""

    def get_route_handler(self) -> Handler:
        inner = bounded(super().get_route_handler())

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError as error:
                wrong = error.errors()[0]
                if wrong["loc"][0] == "path":
                    return await missing(request)
                where = ".".join(str(part) for part in wrong["loc"])
                return refused(request, RequestError("wrong_call", f"{where}: {wrong['msg']}"))
            except MutiraoError as error:
                return refused(request, error)
            except Exception:
                extra = {"request": request.state.request}
                log.exception("%s %s failed", request.method, request.url.path, extra=extra)
                return _failed(request)

        return handle


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """The page of a template."""
    reader = Reader.of(request)
    who: Who | None = getattr(request.state, "who", None)
    known = {
        "me": who,
        "reader": reader,
        "path": request.url.path,
        "query": request.query_params,
        "places": [each for each in PLACES if who and (who.is_administrator or not each.for_administrators)],
        "languages": LANGUAGES,
        "themes": THEMES,
        "said": SAID,
        "problems": PROBLEMS,
        "enough": ENOUGH,
        "problem": None,
        "events": "/api/events",
        "now": reader.now,
    }
    text = environment(reader.language).get_template(template).render({**known, **values})
    return Response(text, status, _HEADERS, "text/html; charset=utf-8")


def refused(request: Request, error: MutiraoError) -> Response:
    """A refusal, as a page."""
    status = refusal_status(request, error)
    is_part = request.headers.get("hx-request") == "true"
    if status == HTTPStatus.UNAUTHORIZED and not is_part:
        came_for = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        target = "/sign-in" if came_for == "/" else f"/sign-in?next={quote(came_for, safe='')}"
        return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": target})
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _failed(request)
    return render(request, "refused.html", status=status, refusal=error)


def _failed(request: Request) -> Response:
    found = unforeseen(request.state.request)
    return render(request, "refused.html", status=HTTPStatus.INTERNAL_SERVER_ERROR, refusal=found)


async def missing(request: Request) -> Response:
    """For an address where there is nothing, when a browser asks."""
    with suppress(MutiraoError):  # whoever is signed in finds the way from here
        await who_asks(request)
    found = RequestError("unknown_path", f"there is nothing at {request.url.path[:300]}")
    return render(request, "refused.html", status=HTTPStatus.NOT_FOUND, refusal=found)
