"""An office for tests: a clerk or two, a manager who is in charge, an administrator, and what they do, by their names."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from driver import Engine
from psycopg.types.json import Jsonb


@dataclass(frozen=True)
class Message:
    person: str
    kind: str
    text: str
    sender: str
    note: dict[str, Any]


class Office:
    """Persons are named; the engine wants their numbers."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.numbers: dict[str, int] = {}

    async def hire(self, name: str, *roles: str) -> int:
        number = await self.engine.one(
            "insert into mutirao.person (name, made_by, made_at) values (%s, 'tests', mutirao.now()) returning id", name
        )
        self.numbers[name] = number
        for role in roles:
            await self.found(role)
            await self.engine.rows(
                "insert into mutirao.member (role, person) select r.id, %s from mutirao.role r where r.name = %s",
                number,
                role,
            )
        return int(number)

    async def found(self, role: str) -> None:
        await self.engine.rows(
            "insert into mutirao.role (name, made_at) values (%s, mutirao.now()) on conflict do nothing", role
        )

    async def create(self, flow: str, by: str = "manager", **state: Any) -> int:
        return int(
            await self.engine.one("select mutirao.create_instance(%s, %s, %s)", self.numbers[by], flow, Jsonb(state))
        )

    async def select(self, person: str, job: int, *, lock: bool = False) -> int:
        """With `lock`, to do it away from the engine."""
        return int(await self.engine.one("select mutirao.select_item(%s, %s, %s)", self.numbers[person], job, lock))

    async def give_back(self, person: str, job: int) -> None:
        await self.engine.rows("select mutirao.return_item(%s, %s)", self.numbers[person], job)

    async def delegate(self, person: str, job: int, to: str) -> None:
        await self.engine.rows("select mutirao.delegate_item(%s, %s, %s)", self.numbers[person], job, self.numbers[to])

    async def hand_over(self, person: str, instance: int, to: str) -> None:
        await self.engine.rows("select mutirao.hand_over(%s, %s, %s)", self.numbers[person], instance, self.numbers[to])

    async def finish(self, person: str, job: int, attempt: int, error: str | None = None, **change: Any) -> str:
        """Answers `done`, or the code of what is wrong."""
        ((outcome, code),) = await self.engine.rows(
            "select outcome, code from mutirao.finish_item(%s, %s, %s, %s, %s)",
            self.numbers[person], job, attempt, Jsonb(change), error,
        )  # fmt: skip
        return str(code or outcome)

    async def steer(self, person: str, job: int, act: str) -> None:
        await self.engine.rows("select mutirao.steer_job(%s, %s, %s)", self.numbers[person], job, act)

    async def extend(self, person: str, job: int, hours: float) -> None:
        await self.engine.rows(
            "select mutirao.extend_deadline(%s, %s, mutirao.now() + %s, 'it takes longer')",
            self.numbers[person], job, timedelta(hours=hours),
        )  # fmt: skip

    async def remind(self, person: str, hours: list[float], transfer: float) -> None:
        await self.engine.rows(
            "select mutirao.set_reminders(%s, %s::numeric[], %s::numeric)",
            self.numbers[person],
            [float(each) for each in hours],
            transfer,
        )

    async def messages(self, person: str | None = None, *kinds: str) -> list[Message]:
        """Of one person or all, of these kinds or all, in the order in which they were sent."""
        rows = await self.engine.rows(
            "select p.name, m.kind, m.text, m.sender, coalesce(m.note, '{}') from mutirao.message m join mutirao.person p on p.id = m.person"
            " where (%s::text is null or p.name = %s) and (%s::text[] = '{}' or m.kind = any (%s)) order by m.id",
            person, person, list(kinds), list(kinds),
        )  # fmt: skip
        return [Message(*row) for row in rows]

    async def heard(self, *kinds: str) -> list[tuple[str, str]]:
        """Who was told what since this was asked last."""
        found = [(each.person, each.kind) for each in await self.messages(None, *kinds)]
        await self.engine.rows("delete from mutirao.message")
        return sorted(found)

    async def tick(self, duty: str = "deadlines") -> int:
        return int(await self.engine.one("select (done ->> %s)::int from mutirao.turn_clock(duty => %s)", duty, duty))


async def furnish(engine: Engine) -> Office:
    """A manager who creates and is in charge, two clerks who do the work, an administrator."""
    office = Office(engine)
    await office.hire("manager", "manager")
    await office.hire("clerk_1", "clerk")
    await office.hire("clerk_2", "clerk")
    await office.hire("admin", "administrator")
    return office


@pytest.fixture(name="office")
async def furnished_office(engine: Engine) -> Office:
    return await furnish(engine)


def offer(deadline: timedelta | None = None, **more: Any) -> dict[str, Any]:
    """A task for clerks."""
    about: dict[str, Any] = {"role": "clerk", **more}
    if deadline is not None:
        about["deadline"] = deadline.total_seconds()
    return about
