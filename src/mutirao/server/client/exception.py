"""What instances are exceptions for, over HTTP."""

from mutirao.database.exception import ExceptionKind
from mutirao.server.client.noun import Noun


class Exceptions(Noun):
    async def kinds(self, flow: str | None = None, *, limit: int = 100) -> list[ExceptionKind]:
        """The most frequent first; `batches.make(kind.repair, kind.filter())` would repair all of a kind."""
        return await self._http.get(list[ExceptionKind], "/api/exceptions", flow=flow, limit=limit)
