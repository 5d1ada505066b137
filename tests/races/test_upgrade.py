"""An upgrade beside workers: the functions under their feet are written anew, and nobody notices."""

from worker_stage import Stage, fresh_stage  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, task
from mutirao.database.connection import connect
from mutirao.database.migrate import schema, upgrade

INSTANCES, STEPS = 300, 5


class Walk(Flow):
    n: int = 0
    final = f"n = {STEPS}"

    @task(when=f"n < {STEPS}")
    async def step(self) -> Change:
        return {"n": self.n + 1}


async def test_functions_are_written_anew_under_load_and_nothing_stops(stage: Stage, database_url: str) -> None:
    await stage.engine.apply(Walk)
    async with stage.working(Walk) as worker, await connect(database_url) as connection:
        for _ in range(3):
            await stage.engine.start_many([Walk() for _ in range(INSTANCES)])
            await connection.execute("update mutirao.program set checksum = 'of another program'")
            assert await upgrade(connection) == [schema().functions]
        await stage.all_close("walk", 3 * INSTANCES)
        assert worker.failed == 0
    [(written,)] = await stage.rows("select count(*) from mutirao.trace where kind = 'finish'")
    assert written == 3 * INSTANCES * STEPS
