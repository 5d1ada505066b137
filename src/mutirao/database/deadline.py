"""Deadlines of work items. The engine has them as `engine.deadlines`; clocks see to them."""

from collections.abc import Sequence
from datetime import datetime

from mutirao.database.caller import Face
from mutirao.errors import RequestError


class Deadlines(Face):
    """When work items should be done, and who is told of it when."""

    async def extend(self, actor: int, item: int, finish_by: datetime, *, reason: str | None = None) -> None:
        """Give a work item another deadline: the person in charge may, and administrators."""
        if finish_by.tzinfo is None:
            raise RequestError("wrong_call", f"a time needs its zone: {finish_by} could be anywhere")
        await self._call("extend_deadline", actor, item, finish_by, reason)

    async def remind(
        self, actor: int | None, hours: Sequence[float], transfer: float, *, reason: str | None = None
    ) -> None:
        """Tell of deadlines so many hours before them; at one of these, `transfer`, items move to whoever is in charge.

        Only administrators and the operator (None) may. Open items follow within moments.
        """
        await self._call("set_reminders", actor, list(map(float, hours)), float(transfer), reason, self.name)
