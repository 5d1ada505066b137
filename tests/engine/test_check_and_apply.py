"""What `pdl check` accepts without an engine, an engine accepts too: but for what only it can know."""

import asyncio
from dataclasses import replace

from flow_strategies import bundles
from hypothesis import HealthCheck, given, settings

from mutirao.database.engine import Engine
from mutirao.language.pdl import Source, examine, to_pdl
from mutirao.model import Bundle, Definition

EXAMPLES = 40


def without_what_the_engine_judges(flow: Definition) -> Definition:
    """Conditions are PostgreSQL's, and children may be elsewhere."""
    tasks = tuple(replace(task, child=None, when=task.when and "true") for task in flow.tasks)
    return replace(flow, final=None, ends="quiet", tasks=tasks)


async def try_out(database_url: str, bundle: Bundle) -> None:
    async with Engine(database_url, upgrade=False, name="operator") as engine:
        there = (await engine.library.inventory()).roles
        named = {flow.creator for flow in bundle.flows} | {
            task.offer.role for flow in bundle.flows for task in flow.tasks if task.offer is not None
        }
        for role in sorted(named - {None, *there}):  # type: ignore[type-var]
            await engine.roles.add(None, role)  # type: ignore[arg-type]
        for database in {each.query.database for flow in bundle.flows for each in flow.attributes if each.query}:
            await engine.sources.put(database, database_url)
        for name in {task.task_class for flow in bundle.flows for task in flow.tasks} - {None}:
            async with engine.connection() as connection:
                await connection.execute("select mutirao.put_class(%s, '{}')", [name])
        await engine.library.try_out(bundle)


def test_what_is_checked_alone_is_accepted_by_an_engine(database_url: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(bundles())
    def is_accepted(made: Bundle) -> None:
        flows = tuple(map(without_what_the_engine_judges, made.flows))
        text = to_pdl(replace(made, flows=flows, orderings=()))
        reading = examine([Source("made.pdl", text)])
        if not reading.findings.errors:
            asyncio.run(try_out(database_url, reading.bundle))

    is_accepted()
