"""Messages: what a person was told, and where it is sent on to."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from mutirao.database.message import KINDS, MessageRecord
from mutirao.database.webhook import DeliveryRecord, WebhookAddress, WebhookRecord
from mutirao.errors import RequestError
from mutirao.server.answer import BIGGEST, Cursor, decode_cursor, encode_cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.notice import KIND_WORDS, Notice, notice_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import Text
from mutirao.server.who import Who

router = pages()

_PAGE = 50


@dataclass(frozen=True, slots=True)
class Row:
    message: MessageRecord
    notice: Notice


@router.get("/messages")
async def messages(
    request: Request,
    who: SignedIn,
    kind: Annotated[Text, Query(max_length=100)] = "",
    unread: bool = False,
    cursor: Cursor = None,
) -> Response:
    """One's own, newest first."""
    if kind and kind not in KINDS:
        raise RequestError("wrong_call", f'there is no kind "{kind}" of message; they are {", ".join(KINDS)}')
    reader, before = Reader.of(request), decode_cursor(cursor, int)
    kinds = [kind] if kind else None
    found = await who.engine.messages.page(who.id, unread=unread, kinds=kinds, before=before, limit=_PAGE + 1)
    shown = found[:_PAGE]
    return render(
        request,
        "message.html",
        rows=[Row(each, notice_of(reader, each)) for each in shown],
        unread_count=await who.engine.messages.unread(who.id),
        kind=kind,
        unread=unread,
        kinds=KIND_WORDS,
        cursor=cursor,
        first=_address(kind, unread),
        following=_address(kind, unread, encode_cursor(shown[-1].id)) if len(found) > _PAGE else None,
    )


def _address(kind: str, unread: bool, cursor: str | None = None) -> str:
    said: dict[str, Any] = {"kind": kind, "unread": "true" if unread else "", "cursor": cursor}
    known = {name: value for name, value in said.items() if value}
    return f"/messages?{urlencode(known)}" if known else "/messages"


@dataclass(frozen=True, slots=True)
class Opened:
    """One webhook with all that its owner may know."""

    webhook: WebhookRecord
    address: WebhookAddress
    deliveries: list[DeliveryRecord]


@router.get("/messages/webhooks")
async def webhooks(
    request: Request, who: SignedIn, webhook: Annotated[int | None, Query(ge=1, le=BIGGEST)] = None
) -> Response:
    """Where one's messages are sent on to; an administrator sees to those of all."""
    return render(
        request,
        "message_webhook.html",
        webhooks=await who.engine.webhooks.all(who.id),
        opened=None if webhook is None else await _opened(who, webhook),
        kinds=KIND_WORDS,
    )


async def _opened(who: Who, number: int) -> Opened:
    hooks = who.engine.webhooks
    return Opened(
        await hooks.get(who.id, number),
        await hooks.address(who.id, number),
        await hooks.deliveries(who.id, number, limit=_PAGE),
    )
