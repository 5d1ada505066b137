"""Messages: notices to a person. Everybody reads their own."""

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field, model_validator

from mutirao.database.message import KINDS, MessageRecord
from mutirao.server.answer import BIGGEST, Cursor, Page, PageSize, answer, decode_cursor, page
from mutirao.server.need import SignedIn
from mutirao.server.route.parts import Body, Text, routes

router = routes("message", "/messages")

Kind = Annotated[Text, Field(max_length=100, description=f"One of {', '.join(KINDS)}.", examples=["deadline"])]
Message = Annotated[int, Field(ge=1, le=BIGGEST)]


class Read(Body):
    """These messages, or all up to one."""

    messages: Annotated[list[Message] | None, Field(max_length=1000)] = None
    up_to: Message | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Read":
        if (self.messages is None) == (self.up_to is None):
            raise ValueError("name the messages, or the one up to which all are read")
        return self


class Count(BaseModel):
    count: int


@router.get("", response_model=Page[MessageRecord])
async def page_of_messages(
    request: Request,
    who: SignedIn,
    unread: bool = False,
    kind: Annotated[list[Kind] | None, Query(max_length=20)] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> Response:
    """Your messages, newest first."""
    before = decode_cursor(cursor, int)
    found = await who.engine.messages.page(who.id, unread=unread, kinds=kind, before=before, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)


@router.get("/unread", response_model=Count)
async def unread(who: SignedIn) -> Response:
    """How many you have not read; 1000 stands for as many or more."""
    return answer({"count": await who.engine.messages.unread(who.id)})


@router.post("/read", response_model=Count)
async def read(who: SignedIn, body: Read) -> Response:
    """Mark as read; answers how many were not yet."""
    messages = who.engine.messages
    if body.up_to is not None:
        return answer({"count": await messages.read_up_to(who.id, body.up_to)})
    return answer({"count": await messages.read(who.id, body.messages or [])})
