"""A process written in PDL runs, its automatic tasks by functions; and it comes back as it went in."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mutirao import Change, Engine, handles
from mutirao.language.pdl import Source, examine, read_pdl, to_pdl
from mutirao.testing import run_until_quiet

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.pdl"))

GREETING = """
WORKFLOW Greeting {
  STRING Guest { REQUIRED; }
  STRING Words;
  TASK SayHello { IN_CONTEXT Guest; OUT_CONTEXT Words; }
  TASK SayGoodbye { DEPENDS SayHello -> SUCCEEDED; IN_CONTEXT Words; OUT_CONTEXT Words; }
}
"""


@handles("greeting", "say_hello")
def hello(state: Mapping[str, Any]) -> Change:
    return {"words": f"Hello, {state['guest']}."}


@handles("greeting", "say_goodbye")
def goodbye(state: Mapping[str, Any]) -> Change:
    return {"words": f"{state['words']} Goodbye."}


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Engine]:
    async with Engine(database_url) as opened:
        yield opened


async def test_functions_do_the_automatic_tasks_of_a_flow_in_pdl(engine: Engine) -> None:
    await engine.library.apply(read_pdl(GREETING))
    [instance] = await engine.start_named("greeting", [{"guest": "clerk_1"}])
    await run_until_quiet(engine, [hello, goodbye])
    ended = await engine.instance(instance)
    assert (ended.status, ended.state["words"]) == ("closed.completed", "Hello, clerk_1. Goodbye.")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
async def test_what_the_engine_keeps_is_what_the_file_said(engine: Engine, example: Path) -> None:
    reading = examine([Source(example.name, example.read_text("utf-8"))])
    for role in {task.offer.role for flow in reading.bundle.flows for task in flow.tasks if task.offer} | {
        flow.creator for flow in reading.bundle.flows if flow.creator
    }:
        await engine.roles.add(None, role)
    for name in {task.task_class for flow in reading.bundle.flows for task in flow.tasks if task.task_class}:
        await engine.classes.put(name, [name])
    await engine.library.apply(reading.bundle, sources=reading.texts)
    for flow in reading.bundle.flows:
        assert await engine.definition(flow.name) == flow
    assert set((await engine.library.models()).values()) == set(reading.bundle.models)
    assert set((await engine.library.applications()).values()) == set(reading.bundle.applications)
    again = examine([Source("again", to_pdl(reading.bundle))], await engine.library.inventory())
    assert again.bundle == reading.bundle
