"""Refusals as HTTP answers: RFC 9457 `application/problem+json`, with the stable code. Never a traceback."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from mutirao.database.protocol import is_lost
from mutirao.errors import FlowError, MutiraoError, OperatorError, RequestError
from mutirao.model.value import ENCODER
from mutirao.server.status import STATUSES, retry_after, status_of
from mutirao.server.wording import told

log = logging.getLogger(__name__)

MEDIA = "application/problem+json"
_SHOWN_ERRORS = 20
_LONGEST = 300


class FieldError(BaseModel):
    where: Annotated[str, Field(examples=["body.priority"])]
    detail: Annotated[str, Field(examples=["a whole number is wanted"])]


class Problem(BaseModel):
    """Why a request was refused; nothing has changed."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(examples=["urn:mutirao:problem:item_taken"])]
    title: Annotated[str, Field(examples=["Conflict"])]
    status: Annotated[int, Field(examples=[409])]
    detail: Annotated[str, Field(description="One line for people.", examples=['"clerk_1" holds work item 17'])]
    code: Annotated[
        str, Field(description="A word that programs may rely on: see docs/errors.md.", examples=["item_taken"])
    ]
    family: Annotated[
        Literal["flow", "request", "operator"],
        Field(description="Who must act: the author of a flow, whoever asks, or whoever runs the engine."),
    ]
    errors: Annotated[list[FieldError] | None, Field(description="What is wrong with which field.")] = None
    findings: Annotated[
        list[dict[str, Any]] | None,
        Field(description="What is wrong with a text in the process language: code, message, line and column of each."),
    ] = None
    changes: Annotated[
        list[dict[str, Any]] | None, Field(description="What was changed since it was read, by whom and when.")
    ] = None


class Refused(RequestError):
    """A refusal with a status of its own."""

    def __init__(self, error: MutiraoError, status: int) -> None:
        super().__init__(error.code, error.message)
        self.details = error.details
        self.status = status


@contextmanager
def named_by_address() -> Iterator[None]:
    """Around what looks for a thing that the address names: that it is not there is no mistake of a definition."""
    try:
        yield
    except FlowError as error:
        if STATUSES.get(error.code) != HTTPStatus.NOT_FOUND:
            raise
        raise Refused(error, HTTPStatus.NOT_FOUND) from error


def problem(error: MutiraoError, *, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """The answer to a request that is refused."""
    status = _status(error)
    more = {**error.details, **more}
    body: dict[str, Any] = {
        "type": f"urn:mutirao:problem:{error.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "family": _family(error),
        **more,
    }
    wait = more.get("retry_after") or retry_after(error, status)
    known = {**({"Retry-After": str(wait)} if wait else {}), **(headers or {})}
    if status == HTTPStatus.UNAUTHORIZED:
        known["WWW-Authenticate"] = 'Bearer realm="mutirao"'
    return Response(ENCODER.encode(body), status, known, MEDIA)


def _status(error: MutiraoError) -> int:
    return error.status if isinstance(error, Refused) else status_of(error)


def _family(error: MutiraoError) -> str:
    if isinstance(error, FlowError):
        return "flow"
    return "operator" if isinstance(error, OperatorError) else "request"


def internal_error(request: str) -> Response:
    """The answer to what we did not foresee."""
    return problem(unforeseen(request), request=request)


def unforeseen(request: str) -> OperatorError:
    """Always the same words, and the log has the rest by the number of the request."""
    return OperatorError("internal_error", f"something went wrong here; the server's log tells what, by {request}")


def refusal_status(request: Request, error: MutiraoError) -> int:
    """The status of a refusal; what is our mistake, or the database's, goes into the log as well."""
    status = _status(error)
    extra = {"request": request.state.request}
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s %s: %s", request.method, request.url.path, error, exc_info=error, extra=extra)
    elif status > HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("%s %s: %s", request.method, request.url.path, error, extra=extra)
    if is_lost(error):
        request.app.state.reviver.call()
    return status


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, MutiraoError)  # noqa: S101 it is registered for these
    if refusal_status(request, error) == HTTPStatus.INTERNAL_SERVER_ERROR:
        return internal_error(request.state.request)
    return problem(error)


async def _wrong_fields(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = [
        {"where": ".".join(str(part) for part in each["loc"])[:_LONGEST], "detail": told(each)[:_LONGEST]}
        for each in error.errors()[:_SHOWN_ERRORS]
    ]
    first = found[0] if found else {"where": "body", "detail": "cannot be read"}
    return problem(RequestError("wrong_body", f"{first['where']}: {first['detail']}"), errors=found)


def _http(request: Request, error: HTTPException) -> Response:
    """What the framework refuses by itself: a path or a method that is not there."""
    path = request.url.path[:_LONGEST]
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            refused = RequestError("unknown_path", f"there is nothing at {path}; see /api/openapi.json")
        case HTTPStatus.METHOD_NOT_ALLOWED:
            refused = RequestError("wrong_method", f"{request.method} is not for {path}")
        case _:
            refused = RequestError("wrong_body", str(error.detail)[:_LONGEST])
    return problem(refused, headers=dict(error.headers or {}))


def tell_problems(app: FastAPI, missing: Callable[[Request], Awaitable[Response]]) -> None:
    """`missing` is the page for whoever comes by a browser to where there is nothing."""

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
        if wants_page and error.status_code == HTTPStatus.NOT_FOUND:
            return await missing(request)
        return _http(request, error)

    app.add_exception_handler(MutiraoError, _refusal)
    app.add_exception_handler(RequestValidationError, _wrong_fields)
    app.add_exception_handler(HTTPException, http)
