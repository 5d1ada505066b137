"""Flows and their limits, over HTTP."""

from typing import Any
from urllib.parse import quote

import msgspec

from mutirao.database.record import Event, FlowRecord, LimitRecord, RetentionRecord, Sent, VersionRecord
from mutirao.database.sight import SeenFlow
from mutirao.database.start import HasDefinition
from mutirao.model import Definition, Limit, encode_document, from_document
from mutirao.server.client.noun import Noun


class Applied(msgspec.Struct):
    flow: str
    version: int


class Flows(Noun):
    async def startable(self) -> list[SeenFlow]:
        """The flows that you may start."""
        return await self._http.get(list[SeenFlow], "/api/flows")

    async def overview(self) -> list[FlowRecord]:
        return await self._http.get(list[FlowRecord], "/api/overview")

    async def apply(
        self, flow: Definition | type[HasDefinition] | dict[str, Any], *, keep: bool = False, key: str | None = None
    ) -> int:
        """Put a flow in place; answers its version."""
        body = {"document": _document(flow), "keep": keep}
        return (await self._http.send(Applied, "POST", "/api/flows", body, key=key)).version

    async def check(self, flow: Definition | type[HasDefinition] | dict[str, Any]) -> None:
        """Find out whether `apply` would be accepted; nothing changes."""
        await self._http.do("POST", "/api/flows/check", {"document": _document(flow)})

    async def definition(self, flow: str, version: int | None = None) -> Definition:
        found = await self._http.get(dict[str, Any], _path(flow), version=version)
        return from_document(found["document"])

    async def versions(self, flow: str, *, limit: int = 10) -> list[VersionRecord]:
        return await self._http.get(list[VersionRecord], f"{_path(flow)}/versions", limit=limit)

    async def retention(self) -> list[RetentionRecord]:
        return await self._http.get(list[RetentionRecord], "/api/retention")

    async def limits(self, flow: str | None = None) -> list[LimitRecord]:
        return await self._http.get(list[LimitRecord], "/api/limits", flow=flow)

    async def limit(self, flow: str, task: str, limit: Limit | None) -> None:
        """Limit the jobs of a task; None frees them."""
        path = f"{_path(flow)}/tasks/{quote(task, safe='')}/limit"
        if limit is None:
            await self._http.do("DELETE", path)
        else:
            body = {"at_once": limit.at_once, "per_second": limit.per_second, "per": limit.per, "each": limit.each}
            await self._http.do("PUT", path, body)

    async def send(
        self,
        flow: str,
        events: list[Event],
        *,
        only_if: str | None = None,
        reason: str | None = None,
        key: str | None = None,
    ) -> list[Sent]:
        """Set attributes of the instances that have the events' keys; answers what became of each."""
        body = {"events": events, "only_if": only_if, "reason": reason}
        return await self._http.send(list[Sent], "POST", f"{_path(flow)}/events", body, key=key)


def _path(flow: str) -> str:
    return f"/api/flows/{quote(flow, safe='')}"


def _document(flow: Definition | type[HasDefinition] | dict[str, Any]) -> Any:
    if isinstance(flow, dict):
        return flow
    definition = flow if isinstance(flow, Definition) else flow.definition
    return msgspec.Raw(encode_document(definition))
