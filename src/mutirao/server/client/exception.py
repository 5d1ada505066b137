"""What instances are exceptions for, and which, over HTTP."""

from collections.abc import AsyncIterator

from mutirao.database.exception import ExceptionKind
from mutirao.database.sight import SeenException
from mutirao.server.client.noun import Noun


class Exceptions(Noun):
    async def kinds(self, flow: str | None = None, *, limit: int = 100) -> list[ExceptionKind]:
        """The most frequent first; `batches.make(kind.repair, kind.filter())` would repair all of a kind."""
        return await self._http.get(list[ExceptionKind], "/api/exceptions", flow=flow, limit=limit)

    def instances(
        self,
        flow: str | None = None,
        *,
        code: str | None = None,
        task: str | None = None,
        error: str | None = None,
        limit: int = 50,
    ) -> AsyncIterator[SeenException]:
        """Those that are yours to see to, newest first; `limit` is how many are asked for at once."""
        kind = {"flow": flow, "code": code, "task": task, "error": error}
        return self._http.pages(SeenException, "/api/exceptions/instances", **kind, limit=limit)
