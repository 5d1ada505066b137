"""`mutirao worker --applications`: runs the programs of tasks, and says for which machine."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from command import answer, assert_refused, mutirao, running

from mutirao.database.engine import Engine
from mutirao.model import Application, Attribute, Definition, Task
from mutirao.testing.database import TestServer

FLOW = Definition(
    name="printing",
    attributes=(Attribute("done", "boolean", default=False),),
    tasks=(Task(name="print", when="not done", application="Printer"),),
    final="done",
)


@pytest.fixture
async def database(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """One flow, and one application that runs on the host `press` alone."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.library.put(Application(name="Printer", filename="printer", hosts=("press",)))
            await engine.apply(FLOW)
        yield url


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    program = tmp_path / "printer"
    program.write_text("#!/bin/sh\necho printed\necho '{\"done\": true}' > output.json\n")
    program.chmod(0o755)
    return tmp_path


def test_a_worker_runs_the_applications_of_its_host(database: str, programs: Path) -> None:
    words = ("worker", "--applications", "--host", "press", "--programs", programs, "--database", database)
    with running(*words) as worker:
        assert "is ready for applications of press" in worker.wait_for("is ready")
        [number] = answer("instance", "start", "printing", "--database", database)["instances"]
        while answer("instance", "show", number, "--database", database)["instance"]["status"] != "closed.completed":
            pass
        worker.signal(signal.SIGTERM)
        assert worker.ends_with() == 0
    told = answer("instance", "trace", number, "--database", database)
    assert [row["kind"] for row in told] == ["start", "output", "finish"]
    assert told[1]["note"] == {"stdout": "printed\n"}
    assert "print said something" in mutirao("instance", "trace", number, "--database", database).stdout


def test_up_runs_applications_too(database: str, programs: Path) -> None:
    [number] = answer("instance", "start", "printing", "--database", database)["instances"]
    words = ("up", "--applications", "--host", "press", "--programs", programs, "--for", "20", "--database", database)
    with running(*words) as up:
        while answer("instance", "show", number, "--database", database)["instance"]["status"] != "closed.completed":
            pass
        up.signal(signal.SIGTERM)
        assert up.ends_with() == 0


def test_a_worker_needs_something_to_do(database: str) -> None:
    said = mutirao("worker", "--database", database)
    assert_refused(said, "usage", exit_code=2)
    assert "--applications" in said.stderr
