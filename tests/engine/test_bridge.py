from concurrent.futures import ThreadPoolExecutor

import pytest

from mutirao import Change, Flow, RequestError, blocking_engine, task


class Visit(Flow):
    city: str
    booked: bool = False
    final = "booked"

    @task(when="not booked")
    def book(self) -> Change:
        return {"booked": True}


def test_a_program_without_a_loop_uses_the_engine(database_url: str) -> None:
    with blocking_engine(database_url) as (engine, wait):
        wait(engine.apply(Visit))
        number = wait(engine.start(Visit(city="Recife")))
        assert wait(engine.instance(number)).state == {"city": "Recife", "booked": False}


def test_many_threads_share_one_engine(database_url: str) -> None:
    with blocking_engine(database_url) as (engine, wait), ThreadPoolExecutor(8) as threads:
        wait(engine.apply(Visit))
        started = list(threads.map(lambda _: wait(engine.start(Visit(city="Belém"))), range(40)))
        assert len(set(started)) == 40


def test_a_refusal_comes_through(database_url: str) -> None:
    with blocking_engine(database_url) as (engine, wait), pytest.raises(RequestError) as refused:
        wait(engine.instance(999))
    assert refused.value.code == "unknown_instance"
