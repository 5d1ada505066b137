"""Batches, as the stories about them make, drive and read them."""

from typing import Any, NamedTuple

from driver import Engine
from psycopg.types.json import Jsonb


class Count(NamedTuple):
    """How a batch stands."""

    status: str
    total: int | None
    done: int
    skipped: int
    refused: int


async def make_batch(engine: Engine, kind: str, *, change: dict[str, Any] | None = None, **chosen_by: Any) -> int:
    arguments = {} if change is None else {"change": change}
    return int(
        await engine.one("select mutirao.make_batch(%s, %s, %s, 'a test')", kind, Jsonb(chosen_by), Jsonb(arguments))
    )


async def step(engine: Engine, batch: int, room: int = 200) -> int | None:
    answer: int | None = await engine.one("select mutirao.step_batch(%s, %s)", batch, room)
    return answer


async def drive(engine: Engine, batch: int, room: int = 200) -> Count:
    """Step until it does not run any more."""
    while (await count(engine, batch)).status == "running":
        await step(engine, batch, room)
    return await count(engine, batch)


async def run_batch(engine: Engine, kind: str, *, room: int = 200, **how: Any) -> Count:
    return await drive(engine, await make_batch(engine, kind, **how), room)


async def count(engine: Engine, batch: int) -> Count:
    [row] = await engine.rows("select status, total, done, skipped, refused from mutirao.batch where id = %s", batch)
    return Count(*row)


async def refusals(engine: Engine, batch: int) -> list[tuple[int, str]]:
    query = "select instance, code from mutirao.batch_refusal where batch = %s order by 1"
    return await engine.rows(query, batch)
