"""`mutirao worker` and `mutirao clock`: ready, stopped by signals, and what they do with careless flows."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from command import FLOWS, Background, answer, assert_refused, mutirao, running

from mutirao.testing.database import TestServer


def start(url: str, flow: str, *words: str) -> int:
    found: list[int] = answer("instance", "start", flow, *words, "--database", url)["instances"]
    return found[0]


def wait_for_status(url: str, instance: int, status: str) -> Any:
    """How the instance stands once it is there; the test's own timeout is the deadline."""
    while (shown := answer("instance", "show", instance, "--database", url))["instance"]["status"] != status:
        pass
    return shown


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    made = tmp_path / "pipe"
    os.mkfifo(made)
    return made


def ready(worker: Background) -> None:
    worker.wait_for(" is ready for ")


def test_worker_does_jobs_until_it_is_told_to_stop(database_url: str) -> None:
    with running("worker", f"{FLOWS}:Order", "--name", "packer", "--database", database_url) as worker:
        assert "packer is ready for order (2 tasks)" in worker.wait_for("is ready")
        wait_for_status(database_url, start(database_url, "order"), "closed.completed")
        worker.signal(signal.SIGTERM)
        assert worker.wait_for("Stopped") == "Stopped. 2 done, 0 tries failed."
        assert worker.ends_with() == 0
    writers = {row["writer"] for row in answer("instance", "trace", 1, "--database", database_url)}
    assert "packer" in writers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_lets_a_running_job_finish(database_url: str, pipe: Path, number: signal.Signals) -> None:
    with running("worker", f"{FLOWS}:Gate", "--database", database_url) as worker:
        ready(worker)
        instance = start(database_url, "gate", f"pipe={pipe}")
        with pipe.open("w") as end:  # opens when the job has
            worker.signal(number)
            worker.wait_for("Stopping")
            end.write("late")
        assert worker.ends_with() == 0
    shown = answer("instance", "show", instance, "--database", database_url)["instance"]
    assert (shown["status"], shown["state"]["word"]) == ("closed.completed", "late")


def test_second_signal_stops_at_once_and_gives_the_job_back(database_url: str, pipe: Path) -> None:
    with running("worker", f"{FLOWS}:Endless", "--database", database_url) as worker:
        ready(worker)
        start(database_url, "endless", f"pipe={pipe}")
        assert pipe.read_text() == "begun"
        worker.signal(signal.SIGTERM)
        worker.wait_for("Stopping")
        worker.signal(signal.SIGTERM)
        assert worker.ends_with() == 128 + signal.SIGTERM
    [job] = answer("job", "list", "--database", database_url)
    assert (job["status"], job["worker"], job["failures"]) == ("ready", None, 0)


def test_second_signal_does_not_wait_for_a_thread(database_url: str, pipe: Path) -> None:
    with running("worker", f"{FLOWS}:Gate", "--database", database_url) as worker:
        ready(worker)
        start(database_url, "gate", f"pipe={pipe}")
        with pipe.open("w"):
            worker.signal(signal.SIGTERM)
            worker.wait_for("Stopping")
            worker.signal(signal.SIGINT)
            assert worker.ends_with() == 128 + signal.SIGINT
    [job] = answer("job", "list", "--database", database_url)
    assert job["status"] == "ready"


async def test_one_worker_serves_several_databases(server: TestServer) -> None:
    async with server.clone() as first, server.clone() as second:
        with running("worker", f"{FLOWS}:Order", "--database", first, "--database", second) as worker:
            ready(worker)
            ready(worker)
            for url in (first, second):
                wait_for_status(url, start(url, "order"), "closed.completed")


def test_clock_brings_a_failed_try_back(database_url: str, tmp_path: Path) -> None:
    with (
        running("clock", "--database", database_url) as clock,
        running("worker", f"{FLOWS}:Flaky", "--no-clock", "--database", database_url) as worker,
    ):
        clock.wait_for("The clock is ready")
        ready(worker)
        instance = start(database_url, "flaky", f"marker={tmp_path / 'marker'}")
        wait_for_status(database_url, instance, "closed.completed")
        story = mutirao("instance", "trace", instance, "--database", database_url).stdout
        assert "step failed, to be tried again" in story
        clock.signal(signal.SIGTERM)
        assert clock.ends_with() == 0


@pytest.mark.parametrize(("how", "code"), [("unknown", "unknown_attribute"), ("type", "wrong_type")])
def test_change_that_does_not_fit_becomes_an_exception(database_url: str, how: str, code: str) -> None:
    with running("worker", f"{FLOWS}:Careless", "--database", database_url) as worker:
        ready(worker)
        shown = wait_for_status(database_url, start(database_url, "careless", f"how={how}"), "open.exception")
    assert [reason["code"] for reason in shown["instance"]["reasons"]] == ["task_failed"]
    [error] = [job["error"] for job in shown["jobs"] if job["task"] == "count"]
    assert error["code"] == code


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("nowhere:Flow", "module_not_found"),
        (f"{FLOWS}:Odrer", "flow_not_found"),
        ("nowhere.py", "module_not_found"),
    ],
)
def test_worker_without_its_flow_does_not_start(address: str, code: str) -> None:
    assert_refused(mutirao("worker", address), code)


def test_worker_with_nothing_to_do_does_not_start(tmp_path: Path) -> None:
    file = tmp_path / "idle.py"
    file.write_text("from mutirao import Flow\n\nclass Idle(Flow):\n    stage: str = 'new'\n")
    assert_refused(mutirao("worker", file), "nothing_to_do")


def test_worker_without_a_server_does_not_start() -> None:
    said = mutirao("worker", f"{FLOWS}:Order", "--database", "postgresql://nobody@localhost:1/x")
    assert_refused(said, "server_unreachable", exit_code=3)
