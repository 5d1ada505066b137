"""Instances as persons have to do with them: they create, steer and hand them over. `engine.charges`.

Every call names its actor first, the number of the person who acts. Creating needs the flow's creator role, steering
the charge of the instance; administrators may do both. Whatever is done is in the trace, with who and why. What a person
sees of instances is `engine.seen_by(person)`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from mutirao.database.caller import Caller, Face
from mutirao.database.person import Persons, checked_text
from mutirao.database.record import Instance
from mutirao.model import Change
from mutirao.model.offer import Policy
from mutirao.model.plain import encode_plain

PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """An instance that a person starts. They are in charge of it, unless somebody else is named.

    `policies` say for single tasks whom their items are offered to, whatever the flow says. A key that the flow has an
    instance for starts none. With a time to come, a clock starts it then.
    """

    flow: str
    state: Change = field(default_factory=dict)
    key: str | None = None
    policies: Mapping[str, Policy] = field(default_factory=dict)
    in_charge: int | str | None = None
    priority: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """A task that a rollback would undo: by its compensation, or `by_child`, by the instance that did it; with neither, nothing undoes it.

    `times` is how often it was done. Where one `is_critical`, the rollback is refused; what `is_running` ends first.
    """

    task: str
    times: int
    compensation: str | None
    is_critical: bool
    by_child: bool
    is_running: bool


class Charges(Face):
    """What persons do with instances. A recipient is named by number or by name."""

    def __init__(self, engine: Caller, persons: Persons) -> None:
        super().__init__(engine)
        self._persons = persons

    async def in_charge(
        self, actor: int, *, is_open: bool | None = None, before: int | None = None, limit: int = PAGE
    ) -> list[Instance]:
        """The instances that the actor is in charge of, newest first: those before a number."""
        asked = {"actor": actor, "is_open": is_open, "before": before, "limit": limit}
        return await self._rows(Instance, "charged_instances", asked)

    async def create(self, actor: int, new: Creation, *, reason: str | None = None) -> int:
        """Start an instance; answers its number."""
        charged = None if new.in_charge is None else await self._persons.number(new.in_charge)
        policies = {task: _policy(each) for task, each in new.policies.items()}
        values = (new.flow, _plain(new.state), new.key, _plain(policies) if policies else None, charged)
        return int(await self._call("create_instance", actor, *values, new.priority, new.at, reason))

    async def suspend(self, actor: int, instance: int, *, reason: str | None = None) -> None:
        """Interrupt it: what runs may finish, nothing else is done until it is resumed."""
        await self._steer(actor, instance, "suspend", reason)

    async def resume(self, actor: int, instance: int, *, reason: str | None = None) -> None:
        await self._steer(actor, instance, "resume", reason)

    async def cancel(self, actor: int, instance: int, *, undo: bool = False, reason: str | None = None) -> None:
        """Stop it: what runs may finish, nothing else is done; or stop it and undo what it has done."""
        await self._steer(actor, instance, "roll_back" if undo else "cancel", reason)

    async def roll_back(
        self, actor: int, instance: int, safe_point: str | None = None, *, reason: str | None = None
    ) -> None:
        """Undo what it has done, the whole of it or back to a safe-point."""
        await self._steer(actor, instance, "roll_back", reason, task=safe_point)

    async def preview_roll_back(self, actor: int, instance: int, safe_point: str | None = None) -> list[Undone]:
        """What that would undo, the last first. Nothing is changed."""
        return await self._rows(Undone, "preview_undo", [actor, instance, safe_point])

    async def start_task(self, actor: int, instance: int, task: str, *, reason: str | None = None) -> None:
        """Start a task by hand, whether or not its condition holds."""
        await self._steer(actor, instance, "start_task", reason, task=task)

    async def go_back(self, actor: int, instance: int, task: str, *, reason: str | None = None) -> None:
        """Start a task again that has ended, as if nothing had followed it."""
        await self._steer(actor, instance, "go_back", reason, task=task)

    async def set(self, actor: int, instance: int, change: Change, *, reason: str | None = None) -> None:
        """Correct attributes of an open instance."""
        await self._steer(actor, instance, "set", reason, change=change)

    async def repair(
        self, actor: int, instance: int, change: Change | None = None, *, reason: str | None = None
    ) -> None:
        """Correct an instance that is an exception, and let its failed tasks fire again."""
        await self._steer(actor, instance, "repair", reason, change=change or {})

    async def retry(self, actor: int, job: int, *, reason: str | None = None) -> None:
        """Let a failed job be done again."""
        await self._call("steer_job", actor, job, "retry", None, reason)

    async def skip(self, actor: int, job: int, change: Change | None = None, *, reason: str | None = None) -> None:
        """End a job as if it had succeeded, with the change given."""
        await self._call("steer_job", actor, job, "skip", _plain(change or {}), reason)

    async def hand_over(self, actor: int, instance: int, recipient: int | str, *, reason: str | None = None) -> None:
        """Put somebody else in charge of an open instance."""
        await self._call("hand_over", actor, instance, await self._persons.number(recipient), reason)

    async def _steer(self, actor: int, instance: int, act: str, reason: str | None, **given: Any) -> None:
        """`change` is what to write, `task` the one that the act is about."""
        change, task = given.get("change"), given.get("task")
        why = checked_text("a reason", reason or "") or None
        values = (None if change is None else _plain(change), why, task)
        await self._call("steer_instance", actor, instance, act, *values)


def _plain(value: Mapping[str, object]) -> str:
    return encode_plain(dict(value)).decode()


def _policy(policy: Policy) -> dict[str, str]:
    return {name: value for name, value in asdict(policy).items() if value is not None}
