"""Pieces of what routes are sent, the same wherever they stand."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, Strict

from mutirao.server.answer import BIGGEST
from mutirao.server.guard import SLASH
from mutirao.server.routing import Route


def routes(noun: str, prefix: str) -> APIRouter:
    return APIRouter(prefix=f"/api{prefix}", tags=[noun], route_class=Route)


class Body(BaseModel):
    """What is sent: unknown fields are refused, so that a misspelt one is not lost."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _printable(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text cannot hold the character U+0000")
    return text.replace(SLASH, "/")


Text = Annotated[str, AfterValidator(_printable)]
Number = Annotated[int, Path(ge=1, le=BIGGEST, examples=[17])]
FlowName = Annotated[Text, Path(min_length=1, max_length=100, examples=["travel"])]
Reason = Annotated[
    Text | None, Field(max_length=2000, description="Why; it stands in the trace.", examples=["the customer called"])
]
Priority = Annotated[int, Strict(), Field(ge=-(2**31), le=2**31 - 1, description="Higher goes first.")]
State = Annotated[
    dict[str, Any],
    Field(
        description="Attributes and their values. Numbers are exact.", examples=[{"destination": "Recife", "days": 3}]
    ),
]
At = Annotated[AwareDatetime | None, Field(description="When to start; nothing: now.")]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=100,
        description='The `ETag` of what was read, such as "1042": refused with 412 when it was changed since.',
    ),
]


class Because(Body):
    reason: Reason = None


class Steer(Because):
    """What was seen of an instance before it is steered, and why it is."""

    revision: Annotated[
        Annotated[int, Strict()] | None,
        Field(
            ge=0,
            le=BIGGEST,
            description="The revision of the instance that was read: refused with 409 when there is a newer one.",
        ),
    ] = None
