"""How a route answers: JSON with exact numbers, pages with a cursor, and the revision of what is read."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from mutirao.errors import RequestError
from mutirao.model.value import ENCODER

T = TypeVar("T")

BIGGEST = 2**63 - 1
Number = Annotated[int, Field(ge=1, le=BIGGEST, examples=[17])]
"""The number of an instance, a job, a batch …"""

PageSize = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=300, description="Where to go on: `next` of the page before. Nothing: from the beginning."),
]


class Page(BaseModel, Generic[T]):
    """Some of many; `next` is the cursor of those that follow, null where there are no more."""

    items: list[T]
    next: str | None


def answer(
    value: Any, *, status: int = 200, revision: int | str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    known = dict(headers or {})
    if revision is not None:
        known["ETag"] = f'"{revision}"'
    return Response(ENCODER.encode(value), status, known, "application/json")


def done() -> Response:
    """It was done, and there is nothing to tell."""
    return Response(status_code=204)


def page(
    request: Request, found: Sequence[T], limit: int, place: Callable[[T], Any], further: Any | None = None
) -> Response:
    """Of a list that was asked for `limit + 1`: whether there is more is known without a count.

    `further`: where to go on in a list in which so few fit that not all of it was looked at.
    """
    items = found[:limit]
    after = place(items[-1]) if len(found) > limit else further
    following = None if after is None else encode_cursor(after)
    return answer({"items": items, "next": following}, headers=next_link(request, following))


def next_link(request: Request, cursor: str | None) -> dict[str, str]:
    """The address of the page that follows, if one does."""
    return {} if cursor is None else {"Link": f'<{request.url.include_query_params(cursor=cursor)}>; rel="next"'}


def encode_cursor(place: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def decode_cursor(cursor: str | None, kind: type[T]) -> T | None:
    """The place that a cursor stands for."""
    if cursor is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.json.decode(raw, type=kind)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise RequestError("wrong_call", "the cursor is not one that a page of this list gave") from error
