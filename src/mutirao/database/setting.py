"""Settings: what administrators decide for the whole engine. The engine has them as `engine.settings`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mutirao.database.caller import Face
from mutirao.model.plain import encode_plain


@dataclass(frozen=True, slots=True)
class SettingRecord:
    """A setting; `set_by` is None while it is as it came."""

    name: str
    value: Any
    set_by: str | None
    set_at: datetime | None


@dataclass(frozen=True, slots=True)
class SettingChange:
    """Who set what, and why."""

    id: int
    name: str
    before: Any
    after: Any
    reason: str | None
    writer: str
    at: datetime


class Settings(Face):
    """The settings of an engine. `actor` is the number of an administrator, or None for the operator."""

    async def all(self) -> list[SettingRecord]:
        return await self._rows(SettingRecord, "settings", [])

    async def set(self, actor: int | None, changes: Mapping[str, Any], *, reason: str | None = None) -> None:
        """Set some of them: all, or none if one value is wrong."""
        await self._call("set_settings", actor, encode_plain(dict(changes)).decode(), reason, self.name)

    async def changes(self, *, before: int | None = None, limit: int = 50) -> list[SettingChange]:
        """Who set what, newest first; the next page is `before` the number of the last."""
        return await self._rows(SettingChange, "setting_changes", [2**62 if before is None else before, limit])
