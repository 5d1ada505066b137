"""Random flows and random interleavings of workers, people and the clock: the engine and the model tell the same story."""

from __future__ import annotations

import copy
import os
from typing import Any

import psycopg
import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from model import (
    Both,
    Compare,
    Condition,
    Depends,
    Divide,
    Either,
    Flow,
    Instance,
    IsNull,
    Model,
    Reason,
    Refused,
    State,
    Step,
    Task,
    TaskIs,
    Term,
)
from psycopg.types.json import Jsonb

ATTRIBUTES = ("a", "b", "c")
NAMES = ("t0", "t1", "t2", "t3", "t4")
STATES = ("succeeded", "failed", "ready", "running")
TERMS = {1: "ready", 2: "running", 3: "succeeded", 4: "failed"}  # as the function mutirao.term counts them

# Continuous integration repeats itself; whoever looks for more runs it with MUTIRAO_MODEL_EXAMPLES=5000.
EXAMPLES = int(os.environ.get("MUTIRAO_MODEL_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 100,
    derandomize=not EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)

values = st.sampled_from([0, 0, 1, 2, 3, None])  # zero is what a division cannot bear
changes = st.dictionaries(st.sampled_from(ATTRIBUTES), values, max_size=2)
numbers = st.integers(0, 9)


def conditions(tasks: tuple[str, ...]) -> st.SearchStrategy[Condition]:
    attribute = st.sampled_from(ATTRIBUTES)
    simple: st.SearchStrategy[Condition] = st.one_of(
        st.builds(Compare, attribute, st.sampled_from(["=", "<", "<>"]), st.integers(0, 3)),
        st.builds(IsNull, attribute),
        st.builds(TaskIs, st.sampled_from(tasks), st.sampled_from([*STATES, "not_ready"])),
        st.builds(TaskIs, st.sampled_from(tasks), st.sampled_from(["ready", "running"])),
        st.builds(Divide, attribute),
        st.builds(Divide, attribute),
    )
    return st.one_of(simple, st.builds(Both, simple, simple), st.builds(Either, simple, simple))


# Every attribute is 1 at the start. Then the first task fires, and the flow is not final yet, or nothing would be seen.
at_start = st.one_of(
    st.builds(Compare, st.sampled_from(ATTRIBUTES), st.just("<"), st.integers(2, 3)),
    st.builds(Compare, st.sampled_from(ATTRIBUTES), st.just("<>"), st.sampled_from([0, 2, 3])),
)
not_at_start = st.one_of(
    st.builds(Compare, st.sampled_from(ATTRIBUTES), st.just("="), st.sampled_from([0, 2, 3])),
    st.builds(IsNull, st.sampled_from(ATTRIBUTES)),
)


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    names = NAMES[: draw(st.integers(1, 5))]
    tasks = []
    for n, name in enumerate(names):
        if n > 0 and draw(st.booleans()):
            term = st.builds(Term, st.sampled_from(names[:n]), st.sampled_from(STATES))
            rule: Condition | Depends = draw(
                st.builds(Depends, st.sampled_from(["all", "any"]), st.lists(term, min_size=1, max_size=2).map(tuple))
            )
        else:
            early = st.one_of(at_start, st.builds(Either, at_start, conditions(names)))
            rule = draw(st.one_of(early, conditions(names)) if n else early)
        once = draw(st.booleans())
        tasks.append(Task(name, rule, once, draw(st.integers(0, 2)), draw(st.booleans())))
    final = draw(st.one_of(st.none(), not_at_start, st.builds(Both, not_at_start, conditions(names))))
    return Flow(
        ATTRIBUTES, tuple(tasks), final, quiet=draw(st.booleans()), firing_limit=draw(st.sampled_from([10000, 6]))
    )


class Comparison(RuleBasedStateMachine):
    """Each rule does one thing to the engine and to the model; then all that can be seen of both is compared."""

    connection: psycopg.Connection[Any]
    flows_made = 0

    def __init__(self) -> None:
        super().__init__()
        self.instances: dict[int, Instance] = {}
        self.leased: list[tuple[int, str, int, int]] = []  # instance, task, job, attempt; some of them lost by now

    # ---------------------------------------------------------------------------------------------------------- engine

    def rows(self, query: str, *parameters: Any) -> list[Any]:
        return self.connection.execute(query.encode(), parameters).fetchall()

    def both(self, ask_engine: str, parameters: list[Any], ask_model: Any) -> Any:
        """Does the same on both sides; where the engine refuses, the model must refuse with the same code."""
        by_engine, by_model, answer = None, None, None
        before = copy.deepcopy(self.instances)
        try:
            answer = self.rows(ask_engine, *parameters)
        except psycopg.DatabaseError as error:
            by_engine = str(error).split(":", 1)[0]
        try:
            ask_model()
        except Refused as refusal:
            by_model = refusal.code
            self.instances = before
        assert by_engine == by_model
        return answer

    def compare(self) -> None:
        ours = {key: self._told_by_model(instance) for key, instance in self.instances.items()}
        assert self._told_by_engine() == ours

    def _told_by_model(self, i: Instance) -> dict[str, Any]:
        return {
            "status": i.status,
            "state": i.state,
            "jobs": {name: (job.status, job.failures) for name, job in i.jobs.items()},
            "pending": i.pending(),
            "failed": set(i.failed) if i.is_open else set(),
            "fired": i.fired,
            "reached": i.reached & self.model.terms,
            "latest": {task: state for task, state in i.latest.items() if task in self.model.named},
            "firings": i.firings,
            "reasons": sorted(map(str, i.reasons)) if i.is_open else [],
            "trace": i.trace,
        }

    def _told_by_engine(self) -> dict[int, dict[str, Any]]:
        told: dict[int, dict[str, Any]] = {}
        names = dict(self.rows("select id, name from mutirao.task"))
        for key, status, state, pending, failed, fired, reached, latest, firings, reasons in self.rows(
            "select id, status::text, state, pending, failed, fired, reached, coalesce(latest, '{}'), firings, coalesce(reasons, '[]')"
            " from mutirao.instance union all"
            " select id, status::text, state, '{}', '{}', fired, reached, coalesce(latest, '{}'), firings, '[]' from mutirao.closed"
        ):
            told[key] = {
                "status": status,
                "state": state,
                "jobs": {},
                "pending": {names[task] for task in pending},
                "failed": {names[task] for task in failed},
                "fired": {names[task] for task in fired},
                "reached": {(names[term // 8], TERMS[term % 8]) for term in reached},
                "latest": latest,
                "firings": firings,
                "reasons": reasons,
                "trace": [],
            }
        tasks = {}
        for job, key, task, status, failures in self.rows(
            "select id, instance, task, status::text, failures from mutirao.job"
        ):
            told[key]["jobs"][names[task]] = (status, failures)
            tasks[job] = names[task]
        for each in told.values():
            each["reasons"] = sorted(
                str(Reason(r["code"], r.get("task"), tasks.get(r.get("job")))) for r in each["reasons"]
            )
        for key, kind, task, fired, status, state in self.rows(
            "select instance, kind, task, fired, status::text, state from mutirao.trace order by instance, id"
        ):
            step = Step(
                kind,
                names.get(task),
                tuple(names[f] for f in fired),
                status,
                tuple(sorted(state.items())) if state else None,
            )
            told[key]["trace"].append(step)
        return told

    def pick(self, number: int) -> int:
        """Some instance that is open, or else any."""
        keys = [key for key, i in self.instances.items() if i.is_open] or list(self.instances)
        return keys[number % len(keys)]

    def pick_job(self, number: int) -> tuple[int, str, int] | None:
        jobs = self.rows(
            "select j.instance, t.name, j.id from mutirao.job j join mutirao.task t on t.id = j.task order by j.id"
        )
        return jobs[number % len(jobs)] if jobs else None

    def current(self) -> list[int]:
        """The leases that are not lost."""
        attempts = {attempt for (attempt,) in self.rows("select attempt from mutirao.job where status = 'running'")}
        return [n for n, (*_, attempt) in enumerate(self.leased) if attempt in attempts]

    # ----------------------------------------------------------------------------------------------------------- rules

    @initialize(flow=flows())
    def define(self, flow: Flow) -> None:
        type(self).flows_made += 1
        self.name = f"f{self.flows_made}"
        for table in ("job", "instance", "closed", "trace"):
            self.connection.execute(f"delete from mutirao.{table}".encode())
        self.rows("select setval('mutirao.instance_id', 1, false), setval('mutirao.job_id', 1, false)")
        self.rows("select mutirao.apply_flow(%s)", Jsonb(flow.document(self.name)))
        self.model = Model(flow)
        self.begin({})
        self.begin({})

    @rule(state=changes)
    def start(self, state: State) -> None:
        self.begin(state)

    def begin(self, state: State) -> None:
        made: list[Instance] = []
        answer = self.both(
            "select mutirao.start(%s, %s)", [self.name, Jsonb(state)], lambda: made.append(self.model.start(state))
        )
        if answer:
            self.instances[answer[0][0]] = made[0]
        self.compare()

    @precondition(lambda self: self.ready())
    @rule(number=numbers, room=st.integers(1, 3))
    def claim(self, number: int, room: int) -> None:
        self.take(number, room)

    @precondition(lambda self: self.ready())
    @rule(number=numbers, change=changes)
    def do(self, number: int, change: State) -> None:
        """Claim one job and complete it."""
        before = len(self.leased)
        self.take(number, 1)
        self.give([(before, change)])

    @precondition(lambda self: self.ready())
    @rule(number=numbers, final=st.booleans())
    def try_in_vain(self, number: int, final: bool) -> None:
        before = len(self.leased)
        self.take(number, 1)
        self.give([(before, final)])

    @precondition(lambda self: self.current())
    @rule(given=st.lists(st.tuples(numbers, st.one_of(changes, changes, st.booleans())), min_size=1, max_size=4))
    def give_back(self, given: list[tuple[int, State | bool]]) -> None:
        current = self.current()
        self.give([(current[number % len(current)], how) for number, how in given])

    def ready(self) -> list[str]:
        return sorted({name for i in self.instances.values() for name, job in i.jobs.items() if job.status == "ready"})

    def take(self, number: int, room: int) -> None:
        names = self.ready()
        task = names[number % len(names)]
        got = self.rows(
            "select instance, job, attempt from mutirao.claim('w', array(select id from mutirao.task_ids(%s, array[%s])), %s)",
            self.name, task, room,
        )  # fmt: skip
        ready = [key for key, i in self.instances.items() if task in i.jobs and i.jobs[task].status == "ready"]
        assert len(got) == min(room, len(ready))
        for key, job, attempt in sorted(got, key=lambda row: int(row[1])):
            assert self.instances[key].jobs[task].status == "ready"
            self.model.claim(self.instances[key], task, job)
            self.leased.append((key, task, job, attempt))
        self.compare()

    def give(self, given: list[tuple[int, State | bool]]) -> None:
        """In one call: some with a change, some with an error, which may be said to be final."""
        entries: list[tuple[Instance, str, State | None, bool]] = []
        jobs: list[tuple[int, int, Any, Any]] = []
        for lease, how in given:
            key, task, job, attempt = self.leased[lease]
            if all(job != other[0] for other in jobs):
                change = None if isinstance(how, bool) else how
                error = None if change is not None else Jsonb({"error": "no", "final": how})
                entries.append((self.instances[key], task, change, how is True))
                jobs.append((job, attempt, None if change is None else Jsonb(change), error))
        told = self.rows(
            "select kind from mutirao.turn('w', %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], '{}', 0)",
            *(list(column) for column in zip(*jobs, strict=True)),
        )
        assert sorted(kind for (kind,) in told) == sorted(self.model.turn(entries))
        self.compare()

    @precondition(lambda self: self.leased)
    @rule(number=numbers)
    def come_back_too_late(self, number: int) -> None:
        lease = number % len(self.leased)
        _, _, job, attempt = self.leased[lease]
        if lease not in self.current():
            told = self.rows(
                "select kind from mutirao.turn('w', array[%s::bigint], array[%s::bigint], array['{}'::jsonb], array[null::jsonb], '{}', 0)",
                job, attempt,
            )  # fmt: skip
            assert told == [("lost",)]
            self.compare()

    @precondition(lambda self: self.current())
    @rule(number=numbers)
    def release(self, number: int) -> None:
        current = self.current()
        key, task, job, attempt = self.leased[current[number % len(current)]]
        self.rows("select mutirao.release(array[%s::bigint], array[%s::bigint])", job, attempt)
        self.model.release(self.instances[key], task)
        self.compare()

    @precondition(lambda self: self.instances)
    @rule(number=numbers, change=changes, order=st.sampled_from(["set", "repair"]))
    def correct(self, number: int, change: State, order: str) -> None:
        self.order(number, order, change)

    @precondition(lambda self: self.instances)
    @rule(number=numbers, order=st.sampled_from(["suspend", "resume", "resume", "resume", "cancel"]))
    def steer(self, number: int, order: str) -> None:
        self.order(number, order)

    def order(self, number: int, order: str, *change: State) -> None:
        key = self.pick(number)

        def ask_model() -> None:
            instance = self.instances[key]
            if not instance.is_open:
                raise Refused("instance_closed")
            if instance.hold == "cancelled":
                raise Refused("instance_cancelled")
            getattr(self.model, order)(instance, *change)

        marks = "".join(", %s" for _ in change)
        self.both(f"select mutirao.{order}(%s{marks})", [key, *map(Jsonb, change)], ask_model)
        self.compare()

    @precondition(lambda self: self.instances)
    @rule(number=numbers, change=changes, order=st.sampled_from(["retry", "skip"]))
    def attend_to_job(self, number: int, change: State, order: str) -> None:
        found = self.pick_job(number)
        if not found:
            return
        key, task, job = found
        more = [change] if order == "skip" else []

        def ask_model() -> None:
            instance = self.instances[key]
            if instance.hold == "cancelled":
                raise Refused("instance_cancelled")
            instance.jobs[task].id = job
            getattr(self.model, order)(instance, task, *more)

        self.both(f"select mutirao.{order}(%s{', %s' * len(more)})", [job, *map(Jsonb, more)], ask_model)
        self.compare()

    @precondition(lambda self: self.instances)
    @rule()
    def pass_time(self) -> None:
        self.connection.execute("update mutirao.test_clock set ahead = ahead + interval '10 minutes'")
        self.rows("select * from mutirao.turn_clock()")
        self.model.pass_time(list(self.instances.values()))
        self.compare()


@pytest.mark.timeout(0 if EXAMPLES else 600)
def test_the_engine_does_what_the_model_does(engine: Engine) -> None:
    with psycopg.connect(engine.url, autocommit=True) as connection:
        machine = type("Machine", (Comparison,), {"connection": connection, "flows_made": 0})
        run_state_machine_as_test(machine, settings=PROFILE)
