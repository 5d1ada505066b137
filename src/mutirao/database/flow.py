"""Flows as the engine has them: put in place, looked up, version by version."""

from functools import lru_cache

from mutirao.database.caller import Caller
from mutirao.database.record import FlowHead, FlowRecord, VersionRecord
from mutirao.database.sql import query
from mutirao.database.start import HasDefinition
from mutirao.errors import RequestError
from mutirao.model import Definition, decode_document, encode_document
from mutirao.model.name import suggest

# No statement waits for somebody else's definition for longer than 150 ms, so workers that start together ask again.
_DEFINITION_TRIES = 60


class FlowCalls(Caller):
    """The part of the engine that is about definitions."""

    async def apply(self, flow: type[HasDefinition] | Definition, *, keep: bool = False) -> int:
        """Put a flow in place; answers its version. With `keep`, a version known from earlier is not made anew."""
        definition = flow if isinstance(flow, Definition) else flow.definition
        tries_left = _DEFINITION_TRIES
        while True:
            try:
                return int(await self._call("apply_flow", encode_document(definition).decode(), keep, self.name))
            except RequestError as error:
                tries_left -= 1
                if error.code != "definition_busy" or tries_left == 0:
                    raise

    async def knows(self, flow: type[HasDefinition] | Definition) -> bool:
        """Whether exactly this definition is in place, as the newest version or an earlier one."""
        definition = flow if isinstance(flow, Definition) else flow.definition
        return bool(await self._call("knows_flow", encode_document(definition).decode(), definition.name))

    async def check(self, flow: type[HasDefinition] | Definition) -> None:
        """Find out whether `apply` would be accepted; nothing changes."""
        definition = flow if isinstance(flow, Definition) else flow.definition
        async with self.connection() as connection, connection.transaction(force_rollback=True):
            await connection.execute(query("apply_flow"), (encode_document(definition).decode(), False, self.name))

    async def flows(self, flow: str | None = None) -> list[FlowRecord]:
        return await self._rows(FlowRecord, "flows", {"flow": flow})

    async def flow_heads(self, flow: str | None = None) -> list[FlowHead]:
        """The same without counting instances, which takes its time where there are many."""
        return await self._rows(FlowHead, "flow_heads", {"flow": flow})

    async def definition(self, flow: str, version: int | None = None) -> Definition:
        async with self.connection() as connection:
            found = await connection.execute(query("flow_document"), {"flow": flow, "version": version})
            row = await found.fetchone()
        if row is None:
            raise await self._unknown(flow, version)
        return _read(row[0])

    async def _unknown(self, flow: str, version: int | None) -> RequestError:
        newest = await self.versions(flow, limit=1)
        if newest:
            return RequestError(
                "unknown_version", f'flow "{flow}" has no version {version}; its newest is {newest[0].number}'
            )
        return RequestError("unknown_flow", f'there is no flow "{flow}"{suggest(flow, await self._flow_names())}')

    async def versions(self, flow: str, *, limit: int = 10) -> list[VersionRecord]:
        """The newest versions of a flow."""
        return await self._rows(VersionRecord, "versions", {"flow": flow, "limit": limit})

    async def _flow_names(self) -> list[str]:
        async with self.connection() as connection:
            return [name for (name,) in await (await connection.execute(query("flow_names"))).fetchall()]


@lru_cache(256)
def _read(document: str) -> Definition:
    """The same for the same text: to read one of two hundred tasks takes longer than to fetch it."""
    return decode_document(document)
