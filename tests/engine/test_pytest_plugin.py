"""The pytest plugin and the kit, tried on a project of their own: tests/kit_project, run as its author would."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mutirao import Change, Engine, Flow, task
from mutirao.database.bridge import Wait
from mutirao.testing import expect, run_until_quiet
from mutirao.testing.database import TestServer, throwaway_server

PROJECT = Path(__file__).parents[1] / "kit_project"


class Errand(Flow):
    done: bool = False
    final = "done"

    @task(when="not done")
    async def do_it(self) -> Change:
        return {"done": True}


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Of a user whose test server is in a folder of its own, and runs already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", f"{os.environ['MUTIRAO_TEST_FOLDER']}/cache")
        server = throwaway_server()
        made = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "MUTIRAO"))}
    with server:
        yield made


class Project:
    """A copy of the little project, and the environment of whoever runs its tests."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment

    def pytest(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def project(tmp_path: Path, environment: dict[str, str]) -> Project:
    shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    return Project(tmp_path / "project", environment)


def outcome(ran: "subprocess.CompletedProcess[str]") -> str:
    """The last line, without the time and what was left out."""
    *_, last = ran.stdout.strip().splitlines() or [ran.stderr]
    return re.sub(r"(, )?\d+ deselected(, )?", "", last.partition(" in ")[0])


def test_project_passes(project: Project) -> None:
    ran = project.pytest("test_shipping.py", "test_shipping_blocking.py")
    assert outcome(ran) == "10 passed", ran.stdout


# Whoever runs async tests, or nobody; and several processes that share the server.
RUNNERS = {
    "xdist": ["-n", "2"],
    "none": ["-p", "no:asyncio"],
    "asyncio": ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"],
}


@pytest.mark.parametrize("runner", RUNNERS)
def test_project_passes_by_whatever_runs_it(project: Project, runner: str) -> None:
    ran = project.pytest(*RUNNERS[runner], "-k", "sent or takes_over or any_order", "--ignore=test_shipping_fails.py")
    assert outcome(ran) == "4 passed", ran.stdout


FAILURES = """\
> await expect(mutirao_engine, shipment).completed().ran("charge_card", "send")
E mutirao.testing.StoryError: instance 1 of shipment is open.exception, not closed.completed
E and did not run charge_card; it ran nothing
E
E instance 1 of shipment is open.exception
E 0 ms started, by test
E customer = nobody
E weight = 1
E packed = true
E sets off charge_card
E 0 ms charge_card failed for good, by worker
E Failed: there is no such customer
E is open.exception
E because task_failed: charge_card, job 1: Failed: there is no such customer
E why pack has not fired: not packed is false (packed = true)
E why send has not fired: payment is not null is false (payment = null)
E why the final condition does not hold: tracking is not null is false (tracking = null)
E state customer = nobody, weight = 1, packed = true, payment = null, tracking = null
test_shipping_fails.py:15: StoryError
> assert (await mutirao_engine.instance(shipment)).state["tracking"] == "by air"
E AssertionError: assert '1 kg for a library' == 'by air'
E
E - by air
E + 1 kg for a library
test_shipping_fails.py:21: AssertionError
instance 1 of shipment is closed.completed
0 ms started, by test
customer = a library
weight = 1
packed = true
sets off charge_card
0 ms charge_card done, by worker
payment = receipt 1
sets off send
0 ms send done, by worker
tracking = 1 kg for a library
is closed.completed
state customer = a library, weight = 1, packed = true, payment = receipt 1, tracking = 1 kg for a library
> async with working(mutirao_engine, [Shipment], crashes("pack")) as worker:
E mutirao.testing.StoryError: crashes("pack") never acted: the task did not run
E
E instance 1 of shipment is closed.completed
E 0 ms started, by test
E customer = a library
E weight = 1
E packed = true
E payment = cash
E sets off send
E 0 ms send done, by worker
E tracking = 1 kg for a library
E is closed.completed
E state customer = a library, weight = 1, packed = true, payment = cash, tracking = 1 kg for a library
test_shipping_fails.py:26: StoryError
> await run_until_quiet(mutirao_engine, [Shipment], crashes("charge_cart"))
E mutirao.errors.RequestError: unknown_task: no flow of this worker has a task "charge_cart"; did you mean "charge_card"?
test_shipping_fails.py:31: RequestError
"""


def told(report: str) -> str:
    """What a report tells below each line that failed: times are all the same, and indentation is left to the eye."""
    failures = report.split("short test summary", maxsplit=1)[0]
    lines = [re.sub(r"\d+(\.\d+)? (ms|s)\b", "0 ms", " ".join(line.split())) for line in failures.splitlines()]
    kept, is_telling = [], False
    for line in lines:
        is_telling = line.startswith(">") or (is_telling and not line.startswith("____"))
        if is_telling and line and not line.startswith(("----", "====")):
            kept.append(line)
    return "\n".join(kept) + "\n"


def test_failures_tell_what_their_reader_needs(project: Project) -> None:
    # What a worker logs may come a moment later than the test ends.
    ran = project.pytest("-o", "log_level=CRITICAL", "test_shipping_fails.py")
    assert outcome(ran) == "4 failed", ran.stdout
    assert told(ran.stdout).splitlines() == FAILURES.splitlines()
    assert ran.stdout.count("Mutirão: what happened") == 1  # what a failure tells itself is not told twice


def test_stories_come_through_xdist(project: Project) -> None:
    ran = project.pytest("-n", "2", "test_shipping_fails.py", "-k", "plain")
    assert "charge_card done, by worker" in ran.stdout.partition("Mutirão: what happened")[2]


def databases(server: TestServer) -> set[str]:
    with psycopg.connect(server.superuser_url("postgres")) as connection:
        return {name for (name,) in connection.execute("select datname from pg_database").fetchall()}


def test_databases_are_made_on_a_server_that_is_given(project: Project, server: TestServer, database_url: str) -> None:
    ran = project.pytest(
        f"--mutirao-database-url={database_url}", "test_shipping.py", "-k", "sent or refused or packing"
    )
    assert outcome(ran) == "4 passed", ran.stdout
    left = {name for name in databases(server) if name.startswith("mutirao_test_")}
    assert {name.rpartition("_")[0] for name in left} == {"mutirao_test_template"}


def test_server_that_is_not_there_is_one_line(project: Project) -> None:
    ran = project.pytest("--mutirao-database-url=postgresql://nobody@127.0.0.1:1/x", "test_shipping.py", "-k", "sent")
    assert outcome(ran) == "1 error", ran.stdout
    assert "--mutirao-database-url: server_unreachable: 127.0.0.1, database x does not let us in" in ran.stdout
    assert "direct cause" not in ran.stdout


def test_wrong_url_is_one_line(project: Project) -> None:
    ran = project.pytest("--mutirao-database-url=here", "test_shipping.py", "-k", "sent")
    assert "--mutirao-database-url: wrong_call: the URL of a server is postgresql://" in ran.stdout


@pytest.mark.parametrize("arguments", [[], ["-p", "no:mutirao"]], ids=["with", "without"])
def test_project_that_does_not_use_it_does_not_import_it(project: Project, arguments: list[str]) -> None:
    (project.folder / "test_other.py").write_text(
        "import sys\n\ndef test_it():\n    assert not {'mutirao', 'psycopg'} & set(sys.modules)\n"
    )
    ran = project.pytest(*arguments, "test_other.py")
    assert outcome(ran) == "1 passed", ran.stdout


# Here, where the plugin is installed as well


@pytest.mark.mutirao(flows=[Errand])
async def test_engine_of_the_plugin_works_in_a_loop_of_others(mutirao_engine: Engine) -> None:
    errand = await mutirao_engine.start(Errand())
    await run_until_quiet(mutirao_engine, [Errand])
    await expect(mutirao_engine, errand).completed()


@pytest.mark.mutirao(flows=[Errand])
def test_engine_of_the_plugin_works_without_a_loop(mutirao_engine: Engine, mutirao_wait: Wait) -> None:
    errand = mutirao_wait(mutirao_engine.start(Errand()))
    mutirao_wait(run_until_quiet(mutirao_engine, [Errand]))
    with mutirao_wait.inside(mutirao_engine.connection()) as connection:
        mutirao_wait(connection.execute("select 1"))
    mutirao_wait(expect(mutirao_engine, errand).completed())


def test_what_is_raised_inside_is_raised_outside(mutirao_engine: Engine, mutirao_wait: Wait) -> None:
    with pytest.raises(ZeroDivisionError), mutirao_wait.inside(mutirao_engine.connection()):
        raise ZeroDivisionError
