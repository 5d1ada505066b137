"""Random flows are done, fail, crash, are undone and gone back over: the engine does what the model does, and the trace tells of right rollbacks."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest
from driver import Engine, Job
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recovery_model import Flow, Instance, Refused

# Continuous integration repeats itself; whoever looks for more runs it with MUTIRAO_MODEL_EXAMPLES=5000.
EXAMPLES = int(os.environ.get("MUTIRAO_MODEL_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 120,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
STEPS = 40

TRACE = "select t.id, kind, n.name, cause, (note ->> 'undoes')::bigint from mutirao.trace t left join mutirao.task n on n.id = t.task where instance = %s order by t.id"

ACTS = {
    "claim": 5, "complete": 9, "fail": 5, "crash": 1, "release": 1, "suspend": 1, "resume": 2, "roll_back": 1, "roll_back_to": 2, "cancel": 1,
    "retry": 2, "skip": 2, "set": 1, "start_task": 1, "go_back": 2,
}  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------- flows


def recoverable(draw: st.DrawFn, n: int) -> dict[str, Any]:
    """How a task is undone, if it is."""
    match draw(st.sampled_from(["none", "own", "own", "shared", "shared", "critical"])):
        case "own":
            return {"compensation": f"undo{n}"}
        case "shared":
            return {"compensation": "undo_shared"}
        case "critical":
            return {"critical": True} if draw(st.integers(0, 3)) == 0 else {}
    return {}


def starting(draw: st.DrawFn, n: int) -> dict[str, Any]:
    before = draw(st.lists(st.integers(0, n - 1), max_size=2, unique=True)) if n else []
    if not before:
        other = st.sampled_from([("n = 1", "each"), ("n >= 2", "once"), ("true", "once")])
        when, fires = draw(other) if n else ("true", "once")
        return {"when": when, "fires": fires}
    states = st.sampled_from(["succeeded", "succeeded", "succeeded", "failed"])
    return {
        "depends": {draw(st.sampled_from(["all", "any"])): [{"task": f"t{m}", "state": draw(states)} for m in before]}
    }


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Each task waits for some of those before it, or for the state; it may have contingencies, one after another."""
    tasks: dict[str, Any] = {}
    for n in range(draw(st.integers(3, 6))):
        chain = [f"t{n}", *(f"t{n}_{m}" for m in range(draw(st.sampled_from([0, 0, 0, 1, 2, 3]))))]
        for name, then in zip(chain, [*chain[1:], None], strict=True):
            ends = draw(st.sampled_from(["block", "block", "release", "roll_back", "safe_point", "force"]))
            last = {"force": True} if ends == "force" else {"on_failure": ends}
            tasks[name] = {
                **(starting(draw, n) if name == chain[0] else {}),
                **(last if then is None else {"contingency": then}),
                **recoverable(draw, n),
                "safe_point": draw(st.integers(0, 2)) == 0,
                "retries": 0,
            }
    for undo in {task["compensation"] for task in tasks.values() if "compensation" in task}:
        tasks[undo] = {"retries": 0, "force": draw(st.integers(0, 3)) == 0}
    return Flow(tasks, quiet=draw(st.booleans()))


changes: st.SearchStrategy[dict[str, int]] = st.sampled_from([{}, {}, {"n": 0}, {"n": 1}, {"n": 2}])
acts = st.lists(
    st.tuples(
        st.sampled_from([act for act, weight in ACTS.items() for _ in range(weight)]), st.integers(0, 11), changes
    ),
    min_size=STEPS // 2,
    max_size=STEPS,
)

# -------------------------------------------------------------------------------------------------------------- stories


class Story:
    """One instance in the engine and in the model, and what is done to both."""

    def __init__(self, engine: Engine, flow: Flow) -> None:
        self._engine = engine
        self.flow = flow
        self.instance = 0
        self.model = Instance(flow)
        self._running: list[Job] = []
        self.told: list[str] = []

    async def begins(self) -> None:
        await self._engine.apply(
            "f",
            {"n": 0},
            self.flow.tasks,
            **({"ends": "quiet"} if self.flow.quiet else {"ends": "final", "final": "false"}),
        )
        self.instance = await self._engine.start("f")
        self.model.start()
        await self.compare()

    async def compare(self) -> None:
        found = await self._engine.rows(
            "select status::text, state, coalesce(reasons, '[]') from mutirao.instance where id = %s"
            " union all select status::text, state, '[]' from mutirao.closed where id = %s",
            self.instance, self.instance,
        )  # fmt: skip
        [(status, state, reasons)] = found
        jobs = {name: job for name, job in (await self._engine.jobs(self.instance)).items() if name != "_EXCPT"}
        told = {
            "status": status,
            "n": state["n"],
            "jobs": jobs,
            "reasons": sorted(reason["code"] for reason in reasons),
        }
        assert told == self.model.told(), "\n".join([str(self.flow), *self.told])

    async def _both(self, ask: Awaitable[Any], ask_model: Callable[[], None]) -> None:
        """Does the same on both sides; where the engine refuses, the model must refuse with the same code."""
        by_engine = by_model = None
        try:
            await ask
        except psycopg.DatabaseError as error:
            by_engine = (error.diag.message_primary or "").split(":", 1)[0]
        try:
            ask_model()
        except Refused as refusal:
            by_model = refusal.code
        assert by_engine == by_model, "\n".join([str(self.flow), *self.told])

    async def step(self, act: str, number: int, change: dict[str, int]) -> None:
        self.told.append(f"{act} {number} {change}")
        if act in ("complete", "fail") and not self._running:
            await self._claim()
        await self._work(act, number, change)
        await self._steer(act, number)
        await self._mend(act, number, change)
        await self.compare()

    async def _work(self, act: str, number: int, change: dict[str, int]) -> None:
        match act:
            case "claim":
                await self._claim()
            case "complete" if self._running:
                job = self._running.pop(number % len(self._running))
                await self._engine.turn([(job, change)])
                self.model.finish(job.task, change)
            case "fail" if self._running:
                job = self._running.pop(number % len(self._running))
                await self._engine.turn([], [(job, "no")])
                self.model.fail(job.task)
            case "release" if self._running:
                job = self._running.pop(number % len(self._running))
                await self._engine.release(job)
                self.model.lose(job.task)
            case "crash":
                await self._crash()

    async def _steer(self, act: str, number: int) -> None:
        model, of = self.model, self.instance
        match act:
            case "suspend" if model.hold != "suspended":
                await self._both(self._engine.suspend(of), model.suspend)
            case "resume":
                await self._both(self._engine.resume(of), model.resume)
            case "cancel" if number == 0:
                await self._both(self._engine.cancel(of), model.cancel)
            case "roll_back" if number < 4:
                await self._both(self._engine.rows("select mutirao.roll_back(%s)", of), lambda: model.roll_back(None))
            case "roll_back_to":
                points = sorted({end.task for end in model.ends if model.is_safe_point(end)}) or sorted(self.flow.tasks)
                to = points[number % len(points)]
                ask = self._engine.rows("select mutirao.roll_back(%s, %s)", of, to)
                await self._both(ask, lambda: model.roll_back(to))

    async def _mend(self, act: str, number: int, change: dict[str, int]) -> None:
        model, of = self.model, self.instance
        failed = sorted(name for name, job in model.jobs.items() if job.status == "failed")
        names = failed if act in ("retry", "skip") else sorted(self.flow.tasks)
        if not names:
            return
        name = names[number % len(names)]
        match act:
            case "retry":
                await self._both(self._engine.retry(await self._engine.job(of, name)), lambda: model.retry(name))
            case "skip":
                job = await self._engine.job(of, name)
                await self._both(self._engine.skip(job, **change), lambda: model.skip(name, change))
            case "set":
                await self._both(self._engine.set(of, **change), lambda: model.set(change))
            case "start_task" | "go_back":
                ask = self._engine.rows(f"select mutirao.{act}(%s, %s)", of, name)
                await self._both(ask, lambda: getattr(model, act)(name))

    async def _claim(self) -> None:
        got = await self._engine.claim("f", room=1)
        ready = {name for name, job in self.model.jobs.items() if job.status == "ready"}
        assert {job.task for job in got} <= ready
        assert bool(got) == bool(ready)
        for job in got:
            self.model.jobs[job.task].status = "running"
        self._running += got

    async def _crash(self) -> None:
        """The worker has died. Every lease runs out, and whatever waits for another try is due."""
        await self._engine.advance(minutes=10)
        await self._engine.tick()
        self.model.wake()
        for job in sorted(self._running):
            self.model.lose(job.task)
        self._running.clear()

    @property
    def is_open(self) -> bool:
        return self.model.status.startswith("open.")

    async def ends(self) -> None:
        """It is rolled back, whatever happened before. All that still runs succeeds, and whatever failed is tried again."""
        if self.model.hold == "suspended":
            await self.step("resume", 0, {})
        if self.model.hold != "cancelled":
            await self.step("roll_back", 0, {})
        for _ in range(100):
            if not self.is_open:
                return
            if self.model.hold is None:
                await self.step("cancel", 0, {})  # something in it is critical
            for act in ("retry", "crash", "claim", "complete"):
                if self.is_open:
                    await self.step(act, 0, {})
        raise AssertionError(await self._engine.jobs(self.instance))


# -------------------------------------------------------------------------------------------------------------- trace


def wrongs(trace: list[Any], tasks: dict[str, Any], *, is_whole: bool) -> Iterator[str]:
    """What an independent reader of the trace objects to."""
    finished = {row[0]: row for row in trace if row[1] == "finish"}
    undoing = [row for row in trace if row[1] in ("compensate", "skip") and row[4] is not None]
    undone = {row[4]: row for row in undoing}
    to_undo = {at for at, row in finished.items() if "compensation" in tasks[row[2]]}
    if undone.keys() != to_undo if is_whole else not undone.keys() <= to_undo:
        yield f"undone are {sorted(undone)} and not {sorted(to_undo)}"
    if len(undone) < len(undoing):
        yield "something was undone twice"
    for at, row in undone.items():
        if row[2] != tasks[finished[at][2]]["compensation"]:
            yield f"{finished[at]} was undone by {row}"
        for later in to_undo:
            # The one that follows has been undone before the other's compensation was even made. What came after that does not count.
            if finished[later][3] >= at and later < row[0] and (later not in undone or undone[later][0] > row[3]):
                yield f"{finished[later]} follows {finished[at]} and was undone after it"


@pytest.mark.timeout(0 if EXAMPLES else 600)
def test_whatever_happens_a_rollback_is_right(database_url: str) -> None:
    @PROFILE
    @given(flows(), acts)
    def is_right(flow: Flow, done: list[tuple[str, int, dict[str, int]]]) -> None:
        asyncio.run(told(flow, done))

    async def told(flow: Flow, done: list[tuple[str, int, dict[str, int]]]) -> None:
        async with Engine(database_url) as engine:
            story = Story(engine, flow)
            await story.begins()
            for step in done:
                if story.is_open:
                    await story.step(*step)
            if story.is_open:
                await story.ends()
            trace = await engine.rows(TRACE, story.instance)
            is_whole = story.model.status == "closed.terminated"
            assert not list(wrongs(trace, flow.tasks, is_whole=is_whole)), trace

    is_right()
