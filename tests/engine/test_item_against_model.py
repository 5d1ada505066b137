"""Random acts of several persons on a few work items: who sees and may do what, in SQL and in a model of ten lines."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from driver import Engine, document, fresh_engine  # noqa: F401 gives the fixture `engine`
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from psycopg.types.json import Jsonb

EXAMPLES = int(os.environ.get("MUTIRAO_MODEL_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 30,
    derandomize=not EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)
PERSONS = ("manager", "administrator", "clerk_1", "clerk_2", "clerk_3", "stranger")

persons = st.sampled_from(PERSONS)
numbers = st.integers(0, 3)


class Refused(Exception):
    pass


@dataclass
class Item:
    job: int
    instance: int
    status: str = "ready"  # running, held (its instance is suspended), gone
    hold: str | None = None
    holder: str | None = None
    offered_to: str | None = None
    invited: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    attempts: dict[str, int] = field(default_factory=dict)  # of those who held it once
    finished: str | None = None


@dataclass
class Office:
    role: set[str]
    away: dict[str, str] = field(default_factory=dict)

    def stands_for(self, person: str) -> set[str]:
        return {person} | {who for who, substitute in self.away.items() if substitute == person}

    def steers(self, person: str) -> bool:
        return person == "administrator" or "manager" in self.stands_for(person)

    def may_do(self, person: str, item: Item) -> bool:
        def offered(who: str) -> bool:
            return who == item.offered_to or who in item.invited or (item.offered_to is None and who in self.role)

        return person not in item.barred and any(
            offered(who) and who not in item.barred for who in self.stands_for(person)
        )

    def sees(self, person: str, item: Item) -> bool:
        if item.status == "running":
            return item.holder in self.stands_for(person)
        return item.status == "ready" and self.may_do(person, item)

    def check_known(self, person: str, item: Item) -> None:
        known = self.steers(person) or person in item.attempts or self.may_do(person, item)
        if item.status == "gone" or not known:
            raise Refused("unknown_job")

    def check_steers(self, person: str, item: Item) -> None:
        self.check_known(person, item)
        if not self.steers(person):
            raise Refused("forbidden")

    def let_go(self, item: Item, offered_to: str | None) -> None:
        if item.status == "running":
            item.status = {"cancelled": "gone", "suspended": "held"}.get(item.hold or "", "ready")
        item.holder, item.offered_to = None, offered_to

    def select(self, person: str, item: Item) -> None:
        self.check_known(person, item)
        if item.status == "held":
            raise Refused("instance_suspended")
        if item.status == "running" and item.holder != person:
            raise Refused("item_taken")
        if item.status == "ready" and not self.may_do(person, item):
            raise Refused("forbidden")
        item.status, item.holder = "running", person

    def give_back(self, person: str, item: Item) -> None:
        self.check_known(person, item)
        if item.status != "running" or (item.holder not in self.stands_for(person) and not self.steers(person)):
            raise Refused("item_not_held")
        self.let_go(item, None)

    def finish(self, person: str, item: Item) -> None:
        if item.status == "running" and item.holder == person:
            item.status, item.finished = "gone", person
        elif person not in item.attempts:
            raise Refused("item_not_held")
        else:
            raise Refused("item_finished" if item.finished == person else "item_moved")

    def delegate(self, person: str, item: Item, recipient: str) -> None:
        self.check_known(person, item)
        steers = self.steers(person)
        has = item.holder if item.status == "running" else item.offered_to
        if not steers and (has is None or has not in self.stands_for(person)):
            raise Refused("forbidden")
        if item.status == "held":
            raise Refused("instance_suspended")
        if (not steers and recipient not in self.role) or recipient in item.barred:
            raise Refused("forbidden")
        self.let_go(item, recipient)

    def insert(self, person: str, item: Item, recipient: str) -> None:
        self.check_steers(person, item)
        item.barred.discard(recipient)
        item.invited.add(recipient)

    def remove(self, person: str, item: Item, recipient: str) -> None:
        self.check_steers(person, item)
        item.invited.discard(recipient)
        item.barred.add(recipient)
        offered_to = None if item.offered_to == recipient else item.offered_to
        if item.status == "running" and item.holder != recipient:
            item.offered_to = offered_to
        elif recipient in (item.holder, item.offered_to):
            self.let_go(item, offered_to)


class Items(RuleBasedStateMachine):
    """What the engine does, beside what the model says."""

    connection: psycopg.Connection[Any]
    ids: dict[str, int]

    def one(self, statement: str, *values: Any) -> Any:
        row = self.connection.execute(statement.encode(), values).fetchone()
        return row and row[0]

    @initialize()
    def open(self) -> None:
        self.connection.execute("update mutirao.person set away_from = null, substitute = null")
        self.connection.execute(
            "delete from mutirao.member where role = (select id from mutirao.role where name = 'clerk')"
        )
        self.office = Office({"clerk_1", "clerk_2"})
        for name in self.office.role:
            self.change_member(name, is_in=True)
        self.items: list[Item] = []
        for _ in range(4):
            instance = self.one("select mutirao.create_instance(%s, 'letter')", self.ids["manager"])
            self.items.append(Item(self.one("select id from mutirao.job where instance = %s", instance), instance))

    def change_member(self, person: str, *, is_in: bool) -> None:
        statement = "insert into mutirao.member (role, person) select id, %s from mutirao.role where name = 'clerk' on conflict do nothing"
        if not is_in:
            statement = "delete from mutirao.member m using mutirao.role r where m.person = %s and r.id = m.role and r.name = 'clerk'"
        self.connection.execute(statement.encode(), [self.ids[person]])

    def both(self, name: str, person: str, item: Item, *more: str) -> None:
        """The model decides what the engine must answer."""
        try:
            getattr(self.office, name)(person, item, *more)
            expected = "done"
        except Refused as refusal:
            expected = str(refusal)
        assert self.act(name, person, item, *more) == expected, (name, person, item, more)
        self.compare()

    def act(self, name: str, person: str, item: Item, *more: str) -> str:
        actor, others = self.ids[person], [self.ids[each] for each in more]
        try:
            if name == "finish":
                change = Jsonb({"answer": "yes"})
                statement = "select coalesce(code, outcome) from mutirao.finish_item(%s, %s, %s, %s)"
                return str(self.one(statement, actor, item.job, item.attempts.get(person, 0), change))
            function = {"give_back": "return"}.get(name, name) + "_item"
            answer = self.one(
                f"select mutirao.{function}({', '.join(['%s'] * (2 + len(others)))})", actor, item.job, *others
            )
        except psycopg.Error as error:
            return (error.diag.message_primary or "").partition(":")[0]
        if name == "select":
            item.attempts[person] = answer
        return "done"

    def compare(self) -> None:
        for name, number in self.ids.items():
            found = self.connection.execute(
                "select (item).job, (item).attempt, (item).holder from mutirao.worklist(%s, '{}', null, 1000)", [number]
            ).fetchall()
            ours = {each.job for each in self.items}
            shown = {job: (attempt, holder) for job, attempt, holder in found if job in ours}
            expected = {
                each.job: (each.attempts[name] if each.holder == name else None, each.holder)
                for each in self.items
                if self.office.sees(name, each)
            }
            assert shown == expected, name
            counted = self.one("select coalesce(sum(ready + running), 0) from mutirao.worklist_counts(%s)", number)
            assert self.one("select size from mutirao.worklist_size(%s, 2)", number) == min(2, counted)
            assert counted == len(found)

    @rule(person=persons, number=numbers)
    def select(self, person: str, number: int) -> None:
        self.both("select", person, self.items[number])

    @rule(person=persons, number=numbers)
    def give_back(self, person: str, number: int) -> None:
        self.both("give_back", person, self.items[number])

    @rule(person=persons, number=numbers)
    def finish(self, person: str, number: int) -> None:
        self.both("finish", person, self.items[number])

    @rule(person=persons, number=numbers, recipient=persons)
    def delegate(self, person: str, number: int, recipient: str) -> None:
        self.both("delegate", person, self.items[number], recipient)

    @rule(person=persons, number=numbers, recipient=persons)
    def insert(self, person: str, number: int, recipient: str) -> None:
        self.both("insert", person, self.items[number], recipient)

    @rule(person=persons, number=numbers, recipient=persons)
    def remove(self, person: str, number: int, recipient: str) -> None:
        self.both("remove", person, self.items[number], recipient)

    @rule(person=persons)
    def join_or_leave(self, person: str) -> None:
        self.office.role ^= {person}
        self.change_member(person, is_in=person in self.office.role)
        self.compare()

    @rule(person=persons, substitute=persons)
    def go_away_or_come_back(self, person: str, substitute: str) -> None:
        if person == substitute:
            self.office.away.pop(person, None)
        else:
            self.office.away[person] = substitute
        number = self.ids[substitute] if person != substitute else None
        self.connection.execute(
            "update mutirao.person set away_from = case when %(to)s::int is not null then mutirao.now() end, substitute = %(to)s where id = %(who)s",
            {"to": number, "who": self.ids[person]},
        )
        self.compare()

    @rule(number=numbers)
    def suspend_or_resume(self, number: int) -> None:
        item = self.items[number]
        if item.status == "gone" or item.hold == "cancelled":
            return
        act = "resume" if item.hold else "suspend"
        self.one("select mutirao.steer_instance(%s, %s, %s)", self.ids["manager"], item.instance, act)
        item.hold = None if item.hold else "suspended"
        if item.status != "running":
            item.status = "held" if item.hold else "ready"
        self.compare()

    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        item = self.items[number]
        if item.status == "gone" or item.hold == "cancelled":
            return
        self.one("select mutirao.steer_instance(%s, %s, 'cancel')", self.ids["manager"], item.instance)
        item.hold = "cancelled"
        if item.status != "running":
            item.status = "gone"
        self.compare()


@pytest.mark.timeout(600)
async def test_lists_and_refusals_are_what_the_model_says(engine: Engine) -> None:
    for role in ("clerk", "manager"):
        await engine.one("select mutirao.add_role(null, %s)", role)
    of = {"manager": ["manager"], "administrator": ["administrator"]}
    ids = {
        name: await engine.one("select mutirao.add_person(null, %s, roles => %s)", name, of.get(name, []))
        for name in PERSONS
    }
    task = {"when": "answer is null", "offer": {"role": "clerk"}, "outputs": ["answer"]}
    flow = document("letter", {"answer": None}, {"answer": task}, creator="manager", final="answer is not null")
    await engine.one("select mutirao.apply_flow(%s)", Jsonb(flow))
    with psycopg.connect(engine.url, autocommit=True) as connection:
        machine = type("Machine", (Items,), {"connection": connection, "ids": ids})
        run_state_machine_as_test(machine, settings=PROFILE)
