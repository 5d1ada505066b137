"""What needs no installing: Mutirão itself, and the yardstick, which is no engine."""

import asyncio
import multiprocessing
import time
from importlib.metadata import version
from multiprocessing.process import BaseProcess
from typing import Any

import psycopg

from benchmarks import pool
from benchmarks.history import make_history
from benchmarks.measure import BrokenRunError, instance_times, one, submit, verify
from benchmarks.others.contender import Crew, OnPostgres, Say
from benchmarks.server import BenchServer
from benchmarks.work import WORKS, serve

_WORK = "five"
_WARM_UP = 10


class Forked(Crew):
    """Workers that are copies of this process, which has imported everything."""

    def __init__(self, workers: int, target: Any, *arguments: Any, may_end: bool = False) -> None:
        make = multiprocessing.Process
        self._processes: list[BaseProcess] = [make(target=target, args=arguments, daemon=True) for _ in range(workers)]
        self._may_end = may_end

    def go(self) -> None:
        for process in self._processes:
            process.start()

    def check(self) -> None:
        if not self._may_end and not all(process.is_alive() for process in self._processes):
            raise BrokenRunError("a worker ended before its work was done")

    def stop(self) -> None:
        begun = [process for process in self._processes if process.pid]
        for process in begun:
            process.terminate()
        for process in begun:
            process.join(10)
            process.kill()
            process.join()


class Mutirao(OnPostgres):
    name = "mutirao"
    title = "Mutirão"
    promise = "each step committed before the next, with its trace; steps of many instances share a commit"
    open_work = "select exists (select from mutirao.instance)"
    tally_query = """
        select (select count(*) from mutirao.closed where status = 'closed.completed'),
          (select count(*) from mutirao.trace where kind = 'finish')"""

    def version(self) -> str:
        return version("mutirao")

    def prepare(self, server: BenchServer, past: int, say: Say) -> None:
        server.fresh(_WORK, self.template)
        if past:
            make_history(server, past, say)
            server.clone("history", self.past_template)
            server.drop("history")
            self.past_made = past

    def crew(self, place: str, workers: int) -> Crew:
        return Forked(workers, serve, place, _WORK)

    def submit(self, place: str, instances: int, _workers: int) -> None:
        self._ids = asyncio.run(submit(place, WORKS[_WORK].states(instances)))

    def check(self, place: str, _instances: int) -> None:
        """Two steps of one instance may not share a commit."""
        verify(place, WORKS[_WORK], self._ids)

    def times(self, place: str, rounds: int) -> list[float]:
        return asyncio.run(instance_times(place, rounds))


class Yardstick(OnPostgres):
    """`benchmarks.pool` as it is. Alone, its instances are asked for and seen as it does that by itself."""

    is_engine = False
    times_need_crew = False
    promise = "no engine: no conditions, leases or retries; a step is committed"
    open_work = "select exists (select from yardstick.inst where not fin)"
    tally_query = """
        select (select count(*) from yardstick.inst where fin), (select count(*) from yardstick.hist)"""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self.name = f"pool_{batch}"
        self.title = f"yardstick, {batch} a transaction"

    def prepare(self, server: BenchServer, past: int, _say: Say) -> None:
        with psycopg.connect(server.make(self.template), autocommit=True) as connection:
            connection.execute(pool.SCHEMA)
        if past:
            with psycopg.connect(server.clone(self.template, self.past_template), autocommit=True) as connection:
                connection.execute(_PAST_INSTANCES, [past])
                connection.execute(_PAST_STEPS, [past, pool.STEPS])
                connection.execute("vacuum (analyze)")
            self.past_made = past

    def crew(self, place: str, workers: int) -> Crew:
        return Forked(workers, pool.work, place, self._batch, True, may_end=True)

    def submit(self, place: str, instances: int, _workers: int) -> None:
        with psycopg.connect(place) as connection:
            for each in range(instances):
                connection.execute(pool.SUBMIT, [each])

    def times(self, place: str, rounds: int) -> list[float]:
        crew = Forked(1, pool.work, place, self._batch, False)
        crew.go()
        try:
            return self._times(place, rounds)
        finally:
            crew.stop()

    def _times(self, place: str, rounds: int) -> list[float]:
        times = []
        with psycopg.connect(place) as connection, psycopg.connect(place, autocommit=True) as probe:
            for number in range(rounds + _WARM_UP):
                began = time.perf_counter()
                connection.execute(pool.SUBMIT, [number])
                connection.execute("notify yardstick")
                connection.commit()
                while not one(probe, "select fin from yardstick.inst where id = %s", number):
                    pass
                times.append((time.perf_counter() - began) * 1000)
        return sorted(times[_WARM_UP:])


# Their numbers are negative, so those of a run are free.
_PAST_INSTANCES = """
    insert into yardstick.inst select -n, jsonb_build_object('inst', -n, 'k', 4, 'v', 8), true from generate_series(1, %s) n"""
_PAST_STEPS = """
    insert into yardstick.hist (inst, k, state) select -n, k, jsonb_build_object('inst', -n, 'k', k, 'v', k * 2)
    from generate_series(1, %s) n, generate_series(0, %s - 1) k"""
