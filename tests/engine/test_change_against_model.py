"""Random changes of a definition against random running instances: the engine and the model tell the same story."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from change_model import LiveFlow, LiveInstance, LiveModel
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test
from model import Both, Compare, Condition, Depends, Divide, Either, Instance, IsNull, Refused, State, Task, TaskIs
from psycopg.types.json import Jsonb
from test_against_model import ATTRIBUTES, NAMES, PROFILE, Comparison, at_start, changes, not_at_start, numbers

EXAMPLES = int(os.environ.get("MUTIRAO_MODEL_EXAMPLES", "0"))


def conditions(flow: LiveFlow | None = None) -> st.SearchStrategy[Condition]:
    attribute = st.sampled_from(flow.attributes if flow else ATTRIBUTES)
    task = st.sampled_from([task.name for task in flow.tasks] if flow and flow.tasks else NAMES[:1])
    simple: st.SearchStrategy[Condition] = st.one_of(
        st.builds(Compare, attribute, st.sampled_from(["=", "<", "<>"]), st.integers(0, 3)),
        st.builds(IsNull, attribute),
        st.builds(TaskIs, task, st.sampled_from(["succeeded", "failed", "not_ready"])),
        st.builds(Divide, attribute),
    )
    return st.one_of(simple, st.builds(Both, simple, simple), st.builds(Either, simple, simple))


@st.composite
def flows(draw: st.DrawFn) -> LiveFlow:
    tasks = [Task(NAMES[0], draw(at_start), once=draw(st.booleans()))]
    tasks += [Task(name, draw(st.one_of(at_start, conditions())), once=draw(st.booleans())) for name in NAMES[1:3]]
    final = draw(st.one_of(st.none(), not_at_start))
    return LiveFlow(ATTRIBUTES, tuple(tasks), final, quiet=False, firing_limit=10000)


def sql_of(task: Task) -> str:
    assert not isinstance(task.rule, Depends)
    return task.rule.sql()


class Change(Comparison):
    """All that the other machine does, to a live flow, and definitions in between."""

    model: LiveModel

    # ----------------------------------------------------------------------------------------------------- definitions

    @initialize(flow=flows())
    def define(self, flow: LiveFlow) -> None:
        type(self).flows_made += 1
        self.name = f"f{self.flows_made}"
        for table in ("job", "instance", "closed", "trace", "batch_refusal", "batch", "recheck"):
            self.connection.execute(f"delete from mutirao.{table}".encode())
        self.rows("select setval('mutirao.instance_id', 1, false), setval('mutirao.job_id', 1, false)")
        with self.connection.transaction():
            self.rows("select mutirao.create_flow(%s)", self.name)
            for attribute in flow.attributes:
                self.do_sql("insert into {}.wed_attr (aname, atype, adv) values (%s, 'integer', '1')", attribute)
            for task in flow.tasks:
                self.add_task(task)
            if flow.final:
                self.do_sql("insert into {}.wed_trig (cpred, cfinal) values (%s, true)", flow.final.sql())
        self.model = LiveModel(flow)
        self.begin({})
        self.begin({})

    def do_sql(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement.format(self.name).encode(), values)

    def add_task(self, task: Task) -> None:
        how = "once" if task.once else "each"
        statement = "insert into {}.wed_trig (trname, cpred, fires, retries) values (%s, %s, %s, %s)"
        self.do_sql(statement, task.name, sql_of(task), how, task.retries)

    def redefine(self, flow: LiveFlow, statement: str, *values: Any) -> None:
        """The statement makes this flow of the one there is, or both sides refuse."""
        by_engine, by_model = None, None
        try:
            self.do_sql(statement, *values)
        except psycopg.DatabaseError as error:
            by_engine = str(error).split(":", 1)[0]
        try:
            self.model.change(flow)
        except Refused as refusal:
            by_model = refusal.code
        assert by_engine == by_model
        self.compare()

    @rule(data=st.data(), once=st.booleans())
    def add(self, data: st.DataObject, once: bool) -> None:
        flow = self.model.live
        name = next((name for name in NAMES if all(task.name != name for task in flow.tasks)), None)
        if name is None:
            return
        task = Task(name, data.draw(st.one_of(at_start_of(flow), conditions(flow))), once)
        statement = "insert into {}.wed_trig (trname, cpred, fires, retries) values (%s, %s, %s, 1)"
        self.redefine(
            replace(flow, tasks=(*flow.tasks, task)), statement, name, sql_of(task), "once" if once else "each"
        )

    @precondition(lambda self: self.model.live.tasks)
    @rule(number=numbers)
    def drop(self, number: int) -> None:
        flow = self.model.live
        dropped = flow.tasks[number % len(flow.tasks)]
        rest = tuple(task for task in flow.tasks if task is not dropped)
        self.redefine(
            replace(flow, tasks=rest, disabled=flow.disabled - {dropped.name}),
            "delete from {}.wed_trig where trname = %s", dropped.name,
        )  # fmt: skip

    @precondition(lambda self: self.model.live.tasks)
    @rule(number=numbers)
    def switch(self, number: int) -> None:
        """Disable a task, or enable it."""
        flow = self.model.live
        name = flow.tasks[number % len(flow.tasks)].name
        self.redefine(
            replace(flow, disabled=flow.disabled ^ {name}),
            "update {}.wed_trig set enabled = not enabled where trname = %s", name,
        )  # fmt: skip

    @precondition(lambda self: self.model.live.tasks)
    @rule(data=st.data(), number=numbers, once=st.booleans())
    def change_task(self, data: st.DataObject, number: int, once: bool) -> None:
        flow = self.model.live
        old = flow.tasks[number % len(flow.tasks)]
        new = replace(old, rule=data.draw(st.one_of(at_start_of(flow), conditions(flow))), once=once)
        self.redefine(
            replace(flow, tasks=tuple(new if task is old else task for task in flow.tasks)),
            "update {}.wed_trig set cpred = %s, fires = %s where trname = %s",
            sql_of(new), "once" if once else "each", old.name,
        )  # fmt: skip

    @precondition(lambda self: self.model.live.final)
    @rule(data=st.data())
    def change_final(self, data: st.DataObject) -> None:
        flow = self.model.live
        final = data.draw(conditions(flow))
        self.redefine(replace(flow, final=final), "update {}.wed_trig set cpred = %s where cfinal", final.sql())

    @rule(number=numbers)
    def change_attribute(self, number: int) -> None:
        """Drop one that is there, unless it is the last, or add one that is not."""
        flow = self.model.live
        name = ATTRIBUTES[number % len(ATTRIBUTES)]
        if name in flow.attributes and len(flow.attributes) > 1:
            rest = tuple(each for each in flow.attributes if each != name)
            self.redefine(replace(flow, attributes=rest), "delete from {}.wed_attr where aname = %s", name)
        elif name not in flow.attributes:
            self.redefine(
                replace(flow, attributes=(*flow.attributes, name)),
                "insert into {}.wed_attr (aname, atype, adv) values (%s, 'integer', '1')", name,
            )  # fmt: skip

    @rule()
    def catch_up(self) -> None:
        """Clocks come by, until everybody has followed and closed instances were looked at."""
        self.connection.execute("delete from mutirao.rest")  # one that came by a moment ago would have this one rest
        self.rows("select * from mutirao.turn_clock(500, 'versions')")
        while self.rows("select from mutirao.recheck"):
            self.rows("select * from mutirao.turn_clock(500, 'versions')")
        while self.rows("select from mutirao.batch where status = 'running'"):
            self.rows("select * from mutirao.turn_clock(500, 'batches')")
        self.model.catch_up(self.instances.values())
        self.compare()

    # ------------------------------------------------------------------------------------------------- the other rules

    def _told_by_model(self, i: Instance) -> dict[str, Any]:
        assert isinstance(i, LiveInstance)
        named = i.flow.named()
        latest = {task: state for task, state in i.latest.items() if task in named}
        return super()._told_by_model(i) | {"latest": latest}

    def known(self, change: State) -> State:
        return {name: value for name, value in change.items() if name in self.model.live.attributes}

    def begin(self, state: State) -> None:
        super().begin(self.known(state))

    def give(self, given: list[tuple[int, State | bool]]) -> None:
        super().give([(lease, how if isinstance(how, bool) else self.known(how)) for lease, how in given])

    def order(self, number: int, order: str, *change: State) -> None:
        key = self.pick(number)
        known = [self.known(each) for each in change]

        def ask_model() -> None:
            instance = self.instances[key]
            if not instance.is_open:
                raise Refused("instance_closed")
            if instance.hold == "cancelled":
                raise Refused("instance_cancelled")
            self.model.order(order, instance, *known)

        marks = "".join(", %s" for _ in change)
        self.both(f"select mutirao.{order}(%s{marks})", [key, *map(Jsonb, known)], ask_model)
        self.compare()

    @precondition(lambda self: self.leased)
    @rule(number=numbers)
    def come_back_too_late(self, number: int) -> None:
        """The answer is as ever; but whoever comes to an instance that is behind lets it follow."""
        lease = number % len(self.leased)
        key, task, job, attempt = self.leased[lease]
        if lease in self.current():
            return
        told = self.rows(
            "select kind from mutirao.turn('w', array[%s::bigint], array[%s::bigint], array['{}'::jsonb], array[null::jsonb], '{}', 0)",
            job, attempt,
        )  # fmt: skip
        assert told == [("lost",)]
        instance = self.instances[key]
        if task in instance.jobs and instance.jobs[task].id == job:
            self.model.follow_if_behind(instance)
        self.compare()

    @precondition(lambda self: self.instances)
    @rule(number=numbers, change=changes, order=st.sampled_from(["retry", "skip"]))
    def attend_to_job(self, number: int, change: State, order: str) -> None:
        found = self.pick_job(number)
        if not found:
            return
        key, task, job = found
        more = [self.known(change)] if order == "skip" else []

        def ask_model() -> None:
            instance = self.instances[key]
            if instance.hold == "cancelled":
                raise Refused("instance_cancelled")
            instance.jobs[task].id = job
            self.model.order(order, instance, task, *more)

        self.both(f"select mutirao.{order}(%s{', %s' * len(more)})", [job, *map(Jsonb, more)], ask_model)
        self.compare()

    @precondition(lambda self: self.instances)
    @rule()
    def pass_time(self) -> None:
        self.connection.execute("update mutirao.test_clock set ahead = ahead + interval '10 minutes'")
        for duty in ("retries", "leases"):
            self.rows("select * from mutirao.turn_clock(500, %s)", duty)
        self.model.end_leases(list(self.instances.values()))
        self.catch_up()


def at_start_of(flow: LiveFlow) -> st.SearchStrategy[Condition]:
    """Such as holds while nothing has been written."""
    return st.builds(Compare, st.sampled_from(flow.attributes), st.just("<"), st.integers(2, 3))


@pytest.mark.timeout(0 if EXAMPLES else 900)
def test_the_engine_does_what_the_model_does_while_definitions_change(engine: Engine) -> None:
    with psycopg.connect(engine.url, autocommit=True) as connection:
        machine = type("Machine", (Change,), {"connection": connection, "flows_made": 0})
        run_state_machine_as_test(machine, settings=settings(PROFILE, max_examples=EXAMPLES or 25))
