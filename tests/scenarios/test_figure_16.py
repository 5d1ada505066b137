"""The workflow of figure 16: eleven tasks, J with an emergency trigger; and the firemen, who are G and J of it."""

from datetime import timedelta

from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg.types.json import Jsonb

from mutirao.language.pdl import read_pdl
from mutirao.model import to_document

ARROWS = ("ab", "ac", "bd", "cd", "ec", "ef", "eg", "dh", "hi", "gj", "ik", "jk")
DAY = timedelta(days=1)


def workflow() -> str:
    """As its author would write it down."""
    tasks = []
    for name in "abcdefghijk":
        before = ", ".join(f"{arrow[0]} -> SUCCEEDED" for arrow in ARROWS if arrow[1] == name)
        rule = f"and({before})" if "," in before else before
        tasks.append(f"TASK {name} {{ DEPENDS {rule}; {'TIME_TO_WAIT 1 HOUR;' if name == 'j' else ''} }}")
    return f"WORKFLOW Figure {{ {' '.join(tasks)} }}"


async def begun(engine: Engine) -> int:
    [flow] = read_pdl(workflow()).flows
    await engine.rows("select mutirao.apply_flow(%s)", Jsonb(to_document(flow)))
    return await engine.start("figure")


async def test_everyone_waits_for_those_before_them(engine: Engine) -> None:
    instance = await begun(engine)
    order = []
    while await engine.status(instance) != "closed.completed":
        [job] = await engine.claim("figure", room=1)
        order.append(job.task)
        await engine.complete(job)
    assert sorted(order) == list("abcdefghijk")
    assert all(order.index(arrow[0]) < order.index(arrow[1]) for arrow in ARROWS)


async def test_the_contingency_team_goes_in_time_though_nobody_calls(engine: Engine) -> None:
    """G, procedure 1, neither ends nor calls: an hour after it began J, procedure 2, begins."""
    instance = await begun(engine)
    await engine.do("figure", "e")
    procedure_1 = await engine.take("figure", "g", lease=DAY)
    for task in "abcdhif":
        await engine.do("figure", task)
    assert await engine.jobs(instance) == {"g": "running"}
    await engine.advance(minutes=59)
    await engine.tick()
    assert await engine.jobs(instance) == {"g": "running"}
    await engine.advance(minutes=1)
    await engine.tick()
    assert await engine.jobs(instance) == {"g": "running", "j": "ready"}
    await engine.do("figure", "j")
    await engine.do("figure", "k")
    await engine.complete(procedure_1)
    assert await engine.status(instance) == "closed.completed"
    assert [step.task for step in await engine.trace(instance) if step.kind == "finish"].count("j") == 1
