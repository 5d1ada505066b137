"""Five chained jobs of procrastinate, each deferring the next. Runs in an environment of its own, where it is installed.

A worker runs twenty jobs side by side, with a pool that has a connection for each. It looks a hundred times a second
for new jobs besides listening: what is announced while it is looking is forgotten, and would wait for its next look, which is
five seconds away unless said otherwise.
"""

import asyncio

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from turn import main, tell_times, wait_for_go

_CONCURRENCY = 20
_LOOK_EVERY = 0.01


def _app(connector) -> App:
    app = App(connector=connector)

    def add(k: int) -> None:
        @app.task(name=f"step_{k}")
        async def step(number: int) -> None:
            if k < 4:
                await app.configure_task(f"step_{k + 1}").defer_async(number=number)

    for k in range(5):
        add(k)
    return app


def prepare(url: str, _number: int) -> None:
    with _app(SyncPsycopgConnector(conninfo=url)).open() as app:
        app.schema_manager.apply_schema()


def submit(url: str, number: int) -> None:
    with _app(SyncPsycopgConnector(conninfo=url)).open() as app:
        app.configure_task("step_0").batch_defer(*({"number": each} for each in range(number)))


def work(url: str, _number: int) -> None:
    wait_for_go()
    asyncio.run(_work(url))


async def _work(url: str) -> None:
    connector = PsycopgConnector(conninfo=url, min_size=4, max_size=_CONCURRENCY + 4)
    async with _app(connector).open_async() as app:
        await app.run_worker_async(concurrency=_CONCURRENCY, fetch_job_polling_interval=_LOOK_EVERY)


def latency(url: str, rounds: int) -> None:
    with (
        _app(SyncPsycopgConnector(conninfo=url)).open() as app,
        psycopg.connect(url, autocommit=True) as probe,
    ):
        first = app.configure_task("step_0")

        def wait(job: int) -> None:
            going = "select exists (select from procrastinate_jobs where id >= %s and status in ('todo', 'doing'))"
            while probe.execute(going, [job], prepare=True).fetchone()[0]:
                pass

        tell_times(rounds, lambda number: first.defer(number=number), wait)


if __name__ == "__main__":
    main(prepare=prepare, submit=submit, work=work, latency=latency)
