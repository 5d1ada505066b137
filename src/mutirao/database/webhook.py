"""Webhooks: where messages are sent on to. The engine has them as `engine.webhooks`; what sends is `people.webhook`."""

import base64
import binascii
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mutirao.database.caller import Face
from mutirao.database.person import is_number
from mutirao.database.sql import query
from mutirao.errors import RequestError

# As Standard Webhooks write a secret (https://www.standardwebhooks.com).
SECRET_PREFIX = "whsec_"  # noqa: S105 how secrets begin, not one
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class WebhookRecord:
    """A webhook: whose messages (None: everybody's), of which kinds (None: all), to which host; and how it fares."""

    id: int
    person: str | None
    target: str
    kinds: list[str] | None
    paused: bool
    made_by: str
    made_at: datetime
    waiting: int
    given_up: int
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """What only those know whose webhook it is."""

    url: str
    secret: str


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A message on its way: `waiting`, `sent` or `given_up`, after how many tries, and what the last one met."""

    id: int
    message: int | None
    kind: str | None
    status: str
    tries: int
    made_at: datetime
    due_at: datetime | None
    ended_at: datetime | None
    answer: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class TakenDelivery:
    """A delivery that is ours to send for a while."""

    delivery: int
    try_: int
    webhook: int
    url: str
    secret: bytes
    content: dict[str, Any]


def encode_secret(secret: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def decode_secret(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError("wrong_call", f"a secret is {SECRET_PREFIX} and 24 to 64 bytes in base64") from error


class Webhooks(Face):
    """The webhooks of an engine. Persons see to their own; administrators, and None for the operator, to all."""

    async def add(
        self,
        actor: int | None,
        url: str,
        *,
        person: int | None = None,
        kinds: Sequence[str] | None = None,
        secret: str | None = None,
    ) -> tuple[WebhookRecord, WebhookAddress]:
        """Send messages on: of a person or of everybody, of some kinds or of all. Without a secret one is made."""
        key = secrets.token_bytes(_SECRET_BYTES) if secret is None else decode_secret(secret)
        chosen = None if kinds is None else list(kinds)
        number = await self._call("put_webhook", actor, url.replace("\x00", " "), key, chosen, person, self.name)
        return await self.get(actor, number), WebhookAddress(url, encode_secret(key))

    async def all(self, actor: int | None) -> list[WebhookRecord]:
        return await self._rows(WebhookRecord, "webhooks", [actor, None])

    async def get(self, actor: int | None, webhook: int) -> WebhookRecord:
        found = await self._rows(WebhookRecord, "webhooks", [actor, _number(webhook)])
        if not found:
            raise _unknown(webhook)
        return found[0]

    async def address(self, actor: int | None, webhook: int) -> WebhookAddress:
        """Its whole URL, and the secret by which its messages are signed."""
        async with self.connection() as connection:
            row = await (await connection.execute(query("webhook_address"), [actor, _number(webhook)])).fetchone()
        if row is None:
            raise RuntimeError("a function answers a row")
        return WebhookAddress(row[0], encode_secret(row[1]))

    async def pause(self, actor: int | None, webhook: int) -> None:
        """Let it send nothing until it is resumed. What comes meanwhile is kept for it."""
        await self._call("pause_webhook", actor, _number(webhook), True)

    async def resume(self, actor: int | None, webhook: int) -> None:
        await self._call("pause_webhook", actor, _number(webhook), False)

    async def drop(self, actor: int | None, webhook: int) -> None:
        """Take it away, with what it has still to send."""
        await self._call("drop_webhook", actor, _number(webhook))

    async def try_out(self, actor: int | None, webhook: int) -> int:
        """Put a message on its way that says nothing; answers the delivery."""
        return int(await self._call("try_webhook", actor, _number(webhook)))

    async def retry(self, actor: int | None, webhook: int, delivery: int | None = None) -> int:
        """Send again what was given up, or one delivery; answers how many."""
        return int(await self._call("retry_deliveries", actor, _number(webhook), delivery))

    async def deliveries(
        self,
        actor: int | None,
        webhook: int,
        *,
        status: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[DeliveryRecord]:
        """What became of its messages, newest first; the next page is `before` the number of the last."""
        await self.get(actor, webhook)
        asked = {"webhook": webhook, "status": status, "limit": limit, "before": 2**62 if before is None else before}
        return await self._rows(DeliveryRecord, "deliveries", asked)

    # What a sender asks

    async def take(
        self, room: int, *, each: int, lease: timedelta, busy: Sequence[int] = (), delivery: int | None = None
    ) -> list[TakenDelivery]:
        """Up to `room` deliveries that are due, `each` of a webhook and none of those that are busy; or a given one."""
        async with self.connection() as connection:
            found = await connection.execute(query("take_deliveries"), [room, each, lease, list(busy), delivery])
            return [TakenDelivery(*row) for row in await found.fetchall()]

    async def end(self, taken: TakenDelivery, *, answer: int | None, error: str | None) -> str | None:
        """How a try went; answers what the delivery is now. None: somebody else has it."""
        found: str | None = await self._call("end_delivery", taken.delivery, taken.try_, answer, error)
        return found


def _number(webhook: int) -> int:
    if not is_number(webhook):
        raise _unknown(webhook)
    return webhook


def _unknown(webhook: int) -> RequestError:
    return RequestError("unknown_webhook", f"there is no webhook {webhook}")
