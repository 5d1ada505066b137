"""The flows that are measured, the states they start with, and the process that works on them."""

import asyncio
import random
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any

from mutirao import Change, Flow, FlowBuilder, Job, Limit, handles
from mutirao.database.engine import Engine
from mutirao.worker import Worker

STEPS = 5
LETTER_SIZE = 4000

_CONDITIONS = 200
_TOGETHER, _LONG = 10, 100  # conditions and steps of each flow, where conditions are spread over many
_SUBJECTS = ("order", "claim", "visit", "repair", "loan", "survey", "parcel", "permit", "audit", "lease")
_TURN = 50  # how many instances of one flow are submitted before those of the next, when flows are mixed


@dataclass(frozen=True)
class Work:
    """One kind of work. `states` gives so many states, in the order in which they are submitted."""

    name: str
    title: str
    flows: tuple[Any, ...]
    states: Callable[[int], Iterable[Flow]]
    steps: int = STEPS
    is_sequential: bool = True


async def _step(state: Any) -> Change:
    return {"k": state.k + 1, "v": state.k * 2}


def _blocking_step(state: Any) -> Change:
    return {"k": state.k + 1, "v": state.k * 2}


async def _step_that_fails_once(state: Any, job: Job) -> Change:
    """One in ten fails at its first try, whichever step it is."""
    if job.retries_used == 0 and (state.inst * 7 + state.k * 3) % 10 == 0:
        raise ConnectionError("the other side did not answer")
    return {"k": state.k + 1, "v": state.k * 2}


def _five_steps(name: str, step: Callable[..., Any] = _step) -> FlowBuilder:
    """The state is that of the yardstick: the number of the instance, of the step, and a value."""
    builder = FlowBuilder(name).attribute("inst", "integer").attribute("k", "integer", default=0)
    builder.attribute("v", "integer", default=0).final(f"k = {STEPS}")
    for k in range(STEPS):
        builder.task(f"step_{k}", step, when=f"k = {k}")
    return builder


def _limited() -> FlowBuilder:
    """Five steps, each with a limit that is never reached: what is measured is the cost of watching it."""
    builder = FlowBuilder("limited").attribute("inst", "integer").attribute("k", "integer", default=0)
    builder.attribute("v", "integer", default=0).final(f"k = {STEPS}")
    for k in range(STEPS):
        builder.task(f"step_{k}", _step, when=f"k = {k}", limit=Limit(at_once=1_000_000, per_second=1_000_000))
    return builder


def _limited_each() -> FlowBuilder:
    """Five steps, each with a limit for each of fifty customers that is never reached."""
    builder = FlowBuilder("limited_each").attribute("inst", "integer").attribute("k", "integer", default=0)
    builder.attribute("v", "integer", default=0).attribute("customer", "integer").final(f"k = {STEPS}")
    for k in range(STEPS):
        builder.task(f"step_{k}", _step, when=f"k = {k}", limit=Limit(per="customer", each=1_000_000))
    return builder


def _sleeper() -> FlowBuilder:
    builder = FlowBuilder("sleeper").attribute("due", "timestamp")
    return builder.task("sleep", when="due is not null", wait="due", by_clock=True)


def _many_conditions() -> FlowBuilder:
    builder = _five_steps("many_conditions")
    for n in range(_CONDITIONS - STEPS):
        builder.task(f"never_{n}", _step, when=f"k = {1000 + n} and v < {n}")
    return builder


def _branches() -> FlowBuilder:
    builder = FlowBuilder("branches").attribute("inst", "integer").final("total is not null")
    for name in ("a", "b", "c"):
        builder.attribute(name, "integer").task(f"branch_{name}", _fill(name), when=f"{name} is null")
    return builder.attribute("total", "integer").task(
        "join", _fill("total"), when="a is not null and b is not null and c is not null and total is null"
    )


def _fill(name: str) -> Callable[[Any], Any]:
    async def fill(state: Any) -> Change:
        return {name: state.inst}

    return fill


# Flows as different people would write them: by a counter, by the name of a stage, by what is still missing, by order.


def _by_stage(name: str) -> FlowBuilder:
    stages = ("new", "checked", "agreed", "paid", "sent", "done")
    builder = FlowBuilder(name).attribute("inst", "integer").attribute("stage", default=stages[0])
    for stage, following in pairwise(stages):
        builder.task(f"from_{stage}", _enter(following), when=f"stage = '{stage}'")
    return builder.final(f"stage = '{stages[-1]}'")


def _enter(stage: str) -> Callable[[Any], Any]:
    async def enter(_state: Any) -> Change:
        return {"stage": stage}

    return enter


def _by_what_is_missing(name: str) -> FlowBuilder:
    builder = FlowBuilder(name).attribute("inst", "integer")
    so_far = ""
    for part in ("name", "address", "price", "invoice", "receipt"):
        builder.attribute(part, "integer").task(f"find_{part}", _fill(part), when=f"{so_far}{part} is null")
        so_far = f"{part} is not null and "
    return builder.final("receipt is not null")


def _by_order(name: str) -> FlowBuilder:
    builder = FlowBuilder(name).attribute("inst", "integer").attribute("last", "integer")
    builder.task("step_0", _fill("last"), when="inst is not null", fires="once")
    for k in range(1, STEPS):
        builder.task(f"step_{k}", _fill("last"), depends=f"step_{k - 1}")
    return builder


def _ten_flows() -> tuple[type[Flow], ...]:
    shapes = (_five_steps, _by_stage, _by_what_is_missing, _by_order)
    return tuple(shapes[n % len(shapes)](subject).build() for n, subject in enumerate(_SUBJECTS))


def _letters() -> Callable[[], str]:
    """4 KB of text that compresses as prose does: words of a made-up language, drawn unevenly, always the same ones."""
    chance = random.Random(4096)  # noqa: S311 not for secrets
    syllables = ("ka", "lo", "mi", "ren", "tas", "vu", "sho", "pel", "in", "dar", "e", "go", "bri", "um")
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(1500)]
    frequency = [1 / rank for rank in range(1, len(words) + 1)]
    drawn = chance.choices(words, frequency, k=200_000)
    text = " ".join(drawn)

    def letter() -> str:
        start = chance.randrange(len(text) - LETTER_SIZE)
        return text[start : start + LETTER_SIZE]

    return letter


def _numbered(flow: type[Flow]) -> Callable[[int], Iterable[Flow]]:
    return lambda count: (flow(inst=n) for n in range(count))


def _of_customers(flow: type[Flow]) -> Callable[[int], Iterable[Flow]]:
    return lambda count: (flow(inst=n, customer=n % 50) for n in range(count))


def _with_letter(flow: type[Flow]) -> Callable[[int], Iterable[Flow]]:
    letter = _letters()
    return lambda count: (flow(inst=n, letter=letter()) for n in range(count))


def _mixed(flows: Sequence[type[Flow]]) -> Callable[[int], Iterable[Flow]]:
    def states(count: int) -> Iterable[Flow]:
        waiting = [iter([flow(inst=n) for n in range(count // len(flows))]) for flow in flows]
        rounds = -(-count // (len(flows) * _TURN))
        return chain.from_iterable(list(islice(each, _TURN)) for _ in range(rounds) for each in waiting)

    return states


def _make() -> Iterable[Work]:
    small = _five_steps("five_steps").build()
    large = _five_steps("large_state").attribute("letter").build()
    branches = _branches().build()
    ten = _ten_flows()
    failing = _five_steps("failing", _step_that_fails_once).build()
    blocking = _five_steps("blocking", _blocking_step).build()
    many = _many_conditions().build()
    yield Work("five", "five sequential steps, small state", (small,), _numbered(small))
    yield Work("large", "the same with 4 KB of state", (large,), _with_letter(large))
    yield Work("branches", "three parallel branches and a join", (branches,), _numbered(branches), 4, False)
    yield Work("mixed", "ten different flows mixed", ten, _mixed(ten))
    yield Work("failing", "10 % of the steps fail once", (failing,), _numbered(failing))
    yield Work("blocking", "five steps in blocking functions", (blocking,), _numbered(blocking))
    limited, limited_each = _limited().build(), _limited_each().build()
    sleeper = _sleeper().build()
    yield Work("limited", "five steps, each with a limit on all", (limited,), _numbered(limited))
    yield Work(
        "limited_each", "five steps, each with a limit for each customer", (limited_each,), _of_customers(limited_each)
    )
    yield Work("beside_limits", "five steps beside a flow with limits", (small, limited), _numbered(small))
    yield Work("beside_sleepers", "five steps beside sleeping instances", (small, sleeper), _numbered(small))
    yield Work("live", "five steps of a flow defined by SQL", _live_steps(), lambda _: ())
    yield Work("conditions", f"a flow of {_CONDITIONS} conditions", (many,), _numbered(many))


def _live_steps() -> tuple[Any, ...]:
    """Functions for the tasks of a flow that is defined by SQL."""

    async def step(state: Mapping[str, Any]) -> Change:
        return {"k": state["k"] + 1, "v": state["k"] * 2}

    for k in range(STEPS):
        step = handles("live", f"step_{k}")(step)
    return (step,)


# Flows that grow. Whatever the number of conditions, one of them makes the steps, and the others are asked in vain.


def _step_and_never(name: str, conditions: int, steps: int) -> type[Flow]:
    builder = FlowBuilder(name).attribute("inst", "integer").attribute("k", "integer", default=0)
    builder.attribute("v", "integer", default=0).final(f"k = {steps}").task("step", _step, when=f"k < {steps}")
    for n in range(conditions - 1):
        builder.task(f"never_{n}", _step, when=f"k = {1000 + n} and v < {n}")
    return builder.build()


def _in_one_flow(conditions: int) -> Work:
    flow = _step_and_never("one_flow", conditions, STEPS)
    return Work(f"one_flow_{conditions}", f"{conditions} conditions in one flow", (flow,), _numbered(flow))


def _spread(conditions: int) -> Work:
    """Ten conditions a flow, and instances of all flows in each batch.

    A claim takes one flow after another. So there are to be no more instances than a worker has in hand at once, and
    each makes many steps.
    """
    flows = tuple(
        _step_and_never(f"flow_{n}", min(_TOGETHER, conditions - n * _TOGETHER), _LONG)
        for n in range(-(-conditions // _TOGETHER))
    )
    title = f"{conditions} conditions over {len(flows)} flows"
    return Work(f"spread_{conditions}", title, flows, _evenly(flows), _LONG)


def _evenly(flows: Sequence[type[Flow]]) -> Callable[[int], Iterable[Flow]]:
    return lambda count: (flow(inst=n) for first, flow in enumerate(flows) for n in range(first, count, len(flows)))


class _Works(dict[str, Work]):
    """By name. Those that grow, `one_flow_300` or `spread_300`, are made when they are asked for."""

    def __missing__(self, name: str) -> Work:
        kind, _, conditions = name.rpartition("_")
        make = {"one_flow": _in_one_flow, "spread": _spread}.get(kind)
        if make is None:
            raise KeyError(name)
        return self.setdefault(name, make(int(conditions)))


WORKS: Mapping[str, Work] = _Works({work.name: work for work in _make()})


def serve(url: str, work: str) -> None:
    """A worker's process: works until it is told to stop."""
    asyncio.run(_serve(url, WORKS[work].flows))


async def _serve(url: str, flows: Sequence[Any]) -> None:
    async with Engine(url) as engine:
        worker = Worker(engine, flows)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()
