"""The description of the API, as OpenAPI 3.1: what the routes say of themselves, and what is true of all of them."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from mutirao.server.example import give_examples
from mutirao.server.need import need_of
from mutirao.server.problem import MEDIA, Problem
from mutirao.server.routing import KEY, is_creation

TAGS: list[dict[str, Any]] = [
    {"name": "session", "description": "Signing in and out; who am I."},
    {"name": "token", "description": "Tokens, by which programs act as a person."},
    {"name": "person", "description": "Persons, and when they are away."},
    {"name": "role", "description": "Roles and their members."},
    {"name": "flow", "description": "Definitions of processes, with numbered versions."},
    {
        "name": "library",
        "description": "Task models, applications and orderings that flows share; the process language.",
    },
    {"name": "database", "description": "Databases that queries of flows are asked of."},
    {"name": "class", "description": "Jobs that exclude each other, and who waits for whom."},
    {"name": "instance", "description": "Runs of flows: create, look at, steer."},
    {"name": "job", "description": "Tasks under way."},
    {"name": "item", "description": "Work items: the worklist, and what people do with what is in it."},
    {"name": "message", "description": "Notices to a person."},
    {"name": "webhook", "description": "Where messages are sent on to."},
    {"name": "file", "description": "Contents of file attributes."},
    {
        "name": "event",
        "description": "What happened outside, for instances by their keys; and hints of what to read again.",
    },
    {"name": "schedule", "description": "Flows started by the clock."},
    {"name": "exception", "description": "What needs a person, by what is wrong."},
    {"name": "batch", "description": "One thing done to many instances."},
    {"name": "setting", "description": "What administrators set for the whole engine."},
    {"name": "health", "description": "Whether the server is well."},
]

PAGE = "page"
"""The tag of what is for people, and so not described here."""

_ABOUT = """\
Programs send `Authorization: Bearer <token>`. People sign in by `POST /api/session`, which sets a cookie; whatever changes
something then needs the header `X-CSRF-Token`, from the answer to it.

A refusal is `application/problem+json` with a stable `code`, and has changed nothing. Lists are pages: `next` is the `cursor`
of the page that follows. A creation with an `Idempotency-Key` is made once, however often it is asked for within a day.
"""

_SECURITY: dict[str, Any] = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token, for programs."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "mutirao_session",
        "description": "A session, for people; by https it is called __Host-mutirao_session. Unsafe methods also need X-CSRF-Token.",
    },
}

_REFUSALS: dict[int, str] = {
    400: "The request cannot be understood at all.",
    401: "Nobody is signed in, or not any more.",
    403: "Not for this person.",
    404: "It is not there, or not for this person to see.",
    405: "Not by this method.",
    409: "Not in the state that things are in.",
    412: "It is not what `If-Match` says any more: `changes` tells what was changed, by whom and when.",
    413: "It is too large.",
    416: "The file has no such part.",
    422: "The content is wrong: `errors` tells where.",
    429: "Too often: `Retry-After` tells when to ask again.",
    500: "A mistake of ours: `request`, as the header `X-Request-Id`, is what the server's log knows it by.",
    503: "The database is away, or the server stops: ask again after `Retry-After` seconds.",
}


def describe(app: FastAPI) -> None:
    """Have `app.openapi()` tell all of it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=_ABOUT,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    parts = found.setdefault("components", {})
    parts["securitySchemes"] = _SECURITY
    parts["responses"] = {f"Refusal{status}": _refusal(text) for status, text in _REFUSALS.items()}
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs"))
    schemas["Problem"] = problem
    for route, operation in _operations(app, found):
        _complete(route, operation)
    give_examples(found)
    return found


def _operations(app: FastAPI, found: dict[str, Any]) -> Iterator[tuple[APIRoute, dict[str, Any]]]:
    for route in api_routes(app):
        for method in route.methods or ():
            operation = found["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                yield route, operation


def api_routes(app: FastAPI) -> list[APIRoute]:
    """All routes for programs that the application answers."""
    return [route for route in _routes(app) if PAGE not in route.tags]


def page_routes(app: FastAPI) -> list[APIRoute]:
    """Those for people."""
    return [route for route in _routes(app) if PAGE in route.tags]


def _routes(app: FastAPI) -> list[APIRoute]:
    """Those of the routers that it includes among them."""
    found: list[APIRoute] = []
    for each in app.routes:
        inner = getattr(each, "original_router", None)
        found += [route for route in ([each] if inner is None else inner.routes) if isinstance(route, APIRoute)]
    return found


def _complete(route: APIRoute, operation: dict[str, Any]) -> None:
    """Its summary is the first sentence that it says of itself."""
    said = operation.pop("description", "").replace("\n", " ").strip()
    operation["summary"], _, rest = said.partition(". ")
    operation["summary"] = operation["summary"].rstrip(".")
    if rest:
        operation["description"] = rest.strip()
    if need_of(route).is_signed_in:
        operation["security"] = [{"session": []}]
        if not need_of(route).is_in_session:
            operation["security"].insert(0, {"token": []})
    if is_creation(route):
        operation.setdefault("parameters", []).append(_KEY)
    for status in _statuses(route):
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/Refusal{status}"}


def _statuses(route: APIRoute) -> list[int]:
    """Which refusals a route may meet."""
    changes = not set(route.methods or ()) <= {"GET", "HEAD"}
    is_signed_in = need_of(route).is_signed_in
    known = {
        400: True,
        401: is_signed_in or changes,
        403: is_signed_in or changes,
        404: is_signed_in or "{" in route.path,
        405: False,
        409: changes or is_signed_in,
        412: changes,
        413: changes,
        416: route.path.endswith("/files/{sha256}"),
        422: True,
        429: True,
        500: True,
        503: True,
    }
    return [status for status, may in known.items() if may and str(status) not in route.responses]


def _refusal(text: str) -> dict[str, Any]:
    headers = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    status = next(number for number, said in _REFUSALS.items() if said == text)
    found: dict[str, Any] = {
        "description": f"{HTTPStatus(status).phrase}. {text}",
        "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    return {**found, "headers": headers} if status in (409, 429, 503) else found


_KEY: dict[str, Any] = {
    "name": KEY,
    "in": "header",
    "required": False,
    "description": "The same again with the same key is made once, and answered the same, for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    "example": "order-4711",
}
