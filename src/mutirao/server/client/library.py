"""The library and the process language, over HTTP."""

from typing import Any
from urllib.parse import quote

import msgspec

from mutirao.database.library import LibraryRecord
from mutirao.server.client.noun import Noun


class Found(msgspec.Struct):
    code: str
    message: str
    line: int
    column: int
    is_warning: bool


class AppliedPdl(msgspec.Struct):
    """The version of each flow, and warnings."""

    flows: dict[str, int]
    findings: list[Found]


class Library(Noun):
    async def all(self, kind: str | None = None) -> list[LibraryRecord]:
        """All entries, or those of a kind: task_model, application or ordering."""
        return await self._http.get(list[LibraryRecord], "/api/library", kind=kind)

    async def apply(
        self, text: str, *, name: str = "pdl", creator: str | None = None, key: str | None = None
    ) -> AppliedPdl:
        """Put all that a text in the process language defines in place, or nothing of it."""
        body = {"text": text, "name": name, "creator": creator}
        return await self._http.send(AppliedPdl, "POST", "/api/pdl", body, key=key)

    async def check(self, text: str, *, name: str = "pdl") -> list[Found]:
        """What is wrong with a text, and what may be."""
        found = await self._http.send(dict[str, Any], "POST", "/api/pdl/check", {"text": text, "name": name})
        return [msgspec.convert(each, Found) for each in found["findings"]]

    async def format(self, text: str) -> str:
        return (await self._http.send(dict[str, str], "POST", "/api/pdl/format", {"text": text}))["text"]

    async def flow(self, flow: str) -> str:
        """A flow in the process language."""
        return (await self._http.get(dict[str, str], f"/api/flows/{quote(flow, safe='')}/pdl"))["text"]

    async def drop_model(self, name: str) -> None:
        await self._http.do("DELETE", f"/api/library/task_models/{quote(name, safe='')}")

    async def drop_application(self, name: str) -> None:
        await self._http.do("DELETE", f"/api/library/applications/{quote(name, safe='')}")

    async def drop_ordering(self, first: str, second: str) -> None:
        await self._http.do("DELETE", f"/api/library/orderings/{quote(first, safe='')}/{quote(second, safe='')}")
