"""Messages, webhooks and settings, over HTTP."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from mutirao.database.message import MessageRecord
from mutirao.database.setting import SettingChange, SettingRecord
from mutirao.database.webhook import DeliveryRecord, WebhookAddress, WebhookRecord
from mutirao.server.client.noun import Noun


class Messages(Noun):
    def all(
        self, *, unread: bool = False, kinds: Sequence[str] | None = None, limit: int = 50
    ) -> AsyncIterator[MessageRecord]:
        """Your messages, newest first; `limit` is how many are asked for at once."""
        return self._http.pages(MessageRecord, "/api/messages", unread=unread, kind=kinds, limit=limit)

    async def unread(self) -> int:
        return (await self._http.get(dict[str, int], "/api/messages/unread"))["count"]

    async def read(self, messages: Sequence[int]) -> int:
        """Mark these as read; answers how many were not yet."""
        return await self._read({"messages": list(messages)})

    async def read_up_to(self, message: int) -> int:
        return await self._read({"up_to": message})

    async def _read(self, body: dict[str, Any]) -> int:
        return (await self._http.send(dict[str, int], "POST", "/api/messages/read", body))["count"]


class AddedWebhook(msgspec.Struct):
    webhook: WebhookRecord
    secret: str


class Webhooks(Noun):
    async def all(self) -> list[WebhookRecord]:
        return await self._http.get(list[WebhookRecord], "/api/webhooks")

    async def add(
        self,
        url: str,
        *,
        person: str | None = None,
        everybody: bool = False,
        kinds: Sequence[str] | None = None,
        secret: str | None = None,
    ) -> AddedWebhook:
        """Have messages sent on: your own, somebody's, or everybody's."""
        body = {"url": url, "person": person, "everybody": everybody, "kinds": kinds, "secret": secret}
        return await self._http.send(AddedWebhook, "POST", "/api/webhooks", body)

    async def get(self, webhook: int) -> WebhookRecord:
        return await self._http.get(WebhookRecord, f"/api/webhooks/{webhook}")

    async def address(self, webhook: int) -> WebhookAddress:
        return await self._http.get(WebhookAddress, f"/api/webhooks/{webhook}/address")

    async def pause(self, webhook: int) -> None:
        await self._http.do("POST", f"/api/webhooks/{webhook}/pause")

    async def resume(self, webhook: int) -> None:
        await self._http.do("POST", f"/api/webhooks/{webhook}/resume")

    async def drop(self, webhook: int) -> None:
        await self._http.do("DELETE", f"/api/webhooks/{webhook}")

    async def try_out(self, webhook: int) -> int:
        """Put a message on its way that says nothing; answers the delivery."""
        return (await self._http.send(dict[str, int], "POST", f"/api/webhooks/{webhook}/try"))["delivery"]

    async def retry(self, webhook: int, delivery: int | None = None) -> int:
        body = {"delivery": delivery}
        return (await self._http.send(dict[str, int], "POST", f"/api/webhooks/{webhook}/retry", body))["count"]

    def deliveries(self, webhook: int, *, status: str | None = None, limit: int = 50) -> AsyncIterator[DeliveryRecord]:
        return self._http.pages(DeliveryRecord, f"/api/webhooks/{webhook}/deliveries", status=status, limit=limit)


class Settings(Noun):
    async def all(self) -> list[SettingRecord]:
        return await self._http.get(list[SettingRecord], "/api/settings")

    async def set(self, settings: dict[str, Any], *, reason: str | None = None) -> list[SettingRecord]:
        body = {"settings": settings, "reason": reason}
        return await self._http.send(list[SettingRecord], "PATCH", "/api/settings", body)

    def changes(self, *, limit: int = 50) -> AsyncIterator[SettingChange]:
        """Who set what, newest first."""
        return self._http.pages(SettingChange, "/api/settings/changes", limit=limit)
