"""What becomes of a workflow when T3 fails, figures 19, 20 and 21 of MobiWfMS: its successors are blocked, released, or wait for a contingency.

T1 → T2 → T3, T3 → T4, T3 → T5; and T6 after T4, since the text speaks of all that can be reached from there.
"""

from collections.abc import AsyncIterator

import pytest

from mutirao import Change, Failed, Flow, task
from mutirao.database.engine import Engine
from mutirao.testing import run_until_quiet


class Blocks(Flow):
    """Figure 19: T3 fails. What else it does then, the other figures say."""

    done: list[str] = []  # noqa: RUF012 a default of an attribute
    mended: bool = False
    ends = "quiet"

    @task(when="true", fires="once")
    def t1(self) -> Change:
        return {"done": [*self.done, "t1"]}

    @task(depends=t1)
    def t2(self) -> Change:
        return {"done": [*self.done, "t2"]}

    @task(depends=t2, retries=0)
    def t3(self) -> Change:
        if not self.mended:
            raise Failed("the device is out of reach")
        return {}

    @task(depends=t3)
    def t4(self) -> Change:
        return {"done": [*self.done, "t4"]}

    @task(depends=t3)
    def t5(self) -> Change:
        return {}

    @task(depends=t4)
    def t6(self) -> Change:
        return {}


class Releases(Blocks):
    """Figure 20."""

    @task(depends=Blocks.t2, retries=0, on_failure="release")
    def t3(self) -> Change:
        raise Failed("the device is out of reach")


class Replaces(Blocks):
    """Figure 21; the contingency has one of its own, as the text says it may."""

    first_helps: bool = True

    @task(stands_by=True)
    def t3_last(self) -> Change:
        return {"done": [*self.done, "t3_last"]}

    @task(stands_by=True, retries=0, contingency=t3_last)
    def t3_other(self) -> Change:
        if not self.first_helps:
            raise Failed("no battery")
        return {"done": [*self.done, "t3_other"]}

    @task(depends=Blocks.t2, retries=0, contingency=t3_other)
    def t3(self) -> Change:
        raise Failed("the device is out of reach")


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Engine]:
    async with Engine(database_url, upgrade=False, name="operator_1") as engine:
        yield engine


async def told(engine: Engine, state: Blocks) -> tuple[int, dict[str, str]]:
    await engine.apply(type(state))
    instance = await engine.start(state)
    await run_until_quiet(engine, [type(state)])
    return instance, {each.task: each.state for each in await engine.task_states(instance)}


async def test_figure_19_successors_are_blocked(engine: Engine) -> None:
    instance, states = await told(engine, Blocks())
    assert states == {
        **dict.fromkeys(("t1", "t2"), "succeeded"),
        "t3": "failed",
        **dict.fromkeys(("t4", "t5", "t6"), "blocked"),
    }
    assert (await engine.instance(instance)).status == "open.exception"
    # Nothing is lost: with what was wrong corrected, all that was blocked goes on.
    await engine.set(instance, {"mended": True}, reason="it is back")
    [job] = [each for each in await engine.jobs(instance) if each.task == "t3"]
    await engine.retry(job.id, reason="it is back")
    await run_until_quiet(engine, [Blocks])
    assert (await engine.instance(instance)).status == "closed.completed"
    assert {each.state for each in await engine.task_states(instance)} == {"succeeded"}


async def test_figure_20_successors_are_released(engine: Engine) -> None:
    instance, states = await told(engine, Releases())
    assert states == {
        **dict.fromkeys(("t1", "t2", "t4", "t5", "t6"), "succeeded"),
        "t3": "aborted",
    }
    assert (await engine.instance(instance)).status == "closed.completed"


@pytest.mark.parametrize(("first_helps", "last"), [(True, "t3_other"), (False, "t3_last")])
async def test_figure_21_successors_wait_for_the_contingency(engine: Engine, first_helps: bool, last: str) -> None:
    instance, states = await told(engine, Replaces(first_helps=first_helps))
    assert states == {
        **dict.fromkeys(("t1", "t2", "t4", "t5", "t6"), "succeeded"),
        "t3": "aborted",
        "t3_other": "succeeded" if first_helps else "aborted",
        "t3_last": "not_ready" if first_helps else "succeeded",
    }
    found = await engine.instance(instance)
    assert found.status == "closed.completed"
    assert found.state["done"] == ["t1", "t2", last, "t4"]
