"""Five steps of an Absurd task. Runs in an environment of its own, where its SDK and absurdctl, which has its SQL, are.

A worker claims fifty tasks at a time and runs them side by side. It looks a hundred times a second for new ones, where
four times would be its habit, so that its latency is not that of its sleep.
"""

import asyncio

import psycopg
from absurd_sdk import Absurd, AsyncAbsurd
from absurdctl import BUNDLED_SCHEMA_SQL
from turn import main, tell_times, wait_for_go

_QUEUE = "bench"


def prepare(url: str, _number: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(BUNDLED_SCHEMA_SQL)
    Absurd(url, queue_name=_QUEUE).create_queue(_QUEUE)


def submit(url: str, number: int) -> None:
    app = Absurd(url, queue_name=_QUEUE)
    for each in range(number):
        app.spawn("five", {"number": each}, queue=_QUEUE)


def work(url: str, _number: int) -> None:
    wait_for_go()
    asyncio.run(_work(url))


async def _work(url: str) -> None:
    app = AsyncAbsurd(url, queue_name=_QUEUE)

    @app.register_task(name="five")
    async def five(params, context):
        for k in range(5):

            async def step(k=k):
                return k * 2

            await context.step(f"step_{k}", step)
        return params["number"]

    await app.start_worker(concurrency=50, poll_interval=0.01)


def latency(url: str, rounds: int) -> None:
    app = Absurd(url, queue_name=_QUEUE)
    with psycopg.connect(url, autocommit=True) as probe:

        def begin(number: int) -> str:
            return app.spawn("five", {"number": number}, queue=_QUEUE)["task_id"]

        def wait(task: str) -> None:
            done = "select exists (select from absurd.t_bench where task_id = %s and state = 'completed')"
            while not probe.execute(done, [task], prepare=True).fetchone()[0]:
                pass

        tell_times(rounds, begin, wait)


if __name__ == "__main__":
    main(prepare=prepare, submit=submit, work=work, latency=latency)
