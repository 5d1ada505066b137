"""What `mutirao worker` writes to its log: JSON for programs, coloured lines for people, and whose job each is about."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import FLOWS, Background, answer, assert_refused, mutirao, running

TALKATIVE = """
import logging

from mutirao import Change, Flow, task

{set_up}
log = logging.getLogger("shop")


class Talk(Flow):
    done: bool = False
    final = "done"

    @task(when="not done")
    {kind} say(self) -> Change:
        log.info("hello from %s", "the shop")
        return {{"done": True}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return tmp_path / "shop.py"


def start(url: str, flow: str, *words: str) -> int:
    found: list[int] = answer("instance", "start", flow, *words, "--database", url)["instances"]
    return found[0]


def line(worker: Background, text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(worker.wait_for(text))
    return found


def test_log_is_json_where_nobody_watches(database_url: str, tmp_path: Path) -> None:
    with running("worker", f"{FLOWS}:Flaky", "--name", "packer", "--database", database_url) as worker:
        worker.wait_for("is ready")
        instance = start(database_url, "flaky", f"marker={tmp_path / 'marker'}")
        told = line(worker, "to be tried again")
    assert list(told)[:3] == ["timestamp", "level", "event"]
    assert told["level"] == "info"
    assert told["event"].endswith("ConnectionError: not yet")
    assert {name: told[name] for name in ("instance", "task", "flow", "worker", "fate", "code")} == {
        "instance": instance,
        "task": "step",
        "flow": "flaky",
        "worker": "packer",
        "fate": "retried",
        "code": "ConnectionError",
    }
    assert told["job"] > 0
    assert told["attempt"] > 0


def test_where_json_is_asked_for_each_line_is_json(database_url: str) -> None:
    where = ("--log-format", "json", "--metrics-port", 0, "--database", database_url)
    with running("clock", *where) as clock:
        assert line(clock, "is ready")["level"] == "info"
    with running("worker", f"{FLOWS}:Order", *where) as worker:
        line(worker, "is ready")
        start(database_url, "order", "customer=bankrupt")
        line(worker, "failed for good")  # so it is at work, and a signal finds it there
        worker.signal(signal.SIGTERM)
        line(worker, "Stopped.")
    assert any("Stopping" in json.loads(each)["event"] for each in worker.said)


def test_the_last_failure_is_an_error(database_url: str) -> None:
    with running("worker", f"{FLOWS}:Order", "--log-level", "error", "--database", database_url) as worker:
        worker.wait_for("is ready")
        start(database_url, "order", "customer=bankrupt")
        told = line(worker, "failed for good")
    assert (told["level"], told["fate"], told["task"]) == ("error", "given_up", "pay")


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_lines_of_user_code_are_known_to_be_of_their_job(database_url: str, shop: Path, kind: str) -> None:
    shop.write_text(TALKATIVE.format(kind=kind, set_up=""))
    with running("worker", shop, "--database", database_url) as worker:
        worker.wait_for("is ready")
        instance = start(database_url, "talk")
        told = line(worker, "hello from")
    assert (told["event"], told["logger"]) == ("hello from the shop", "shop")
    assert (told["instance"], told["task"], told["flow"]) == (instance, "say", "talk")


def test_log_as_text(database_url: str, shop: Path) -> None:
    shop.write_text(TALKATIVE.format(kind="def", set_up=""))
    with running("worker", shop, "--log-format", "text", "--database", database_url) as worker:
        worker.wait_for("is ready")
        instance = start(database_url, "talk")
        told = worker.wait_for("hello from the shop")
    assert "[info" in told
    assert f"instance={instance}" in told
    assert "\x1b" not in told


def test_logging_that_a_module_has_set_up_stands(database_url: str, shop: Path) -> None:
    own = 'logging.basicConfig(format="OWN %(levelname)s %(message)s", level="INFO")'
    shop.write_text(TALKATIVE.format(kind="def", set_up=own))
    with running("worker", shop, "--database", database_url) as worker:
        worker.wait_for("is ready")
        start(database_url, "talk")
        assert worker.wait_for("hello from") == "OWN INFO hello from the shop"


@contextmanager
def on_a_terminal(*arguments: object) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "mutirao", *map(str, arguments)]
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as child:
        os.close(theirs)
        try:
            yield child, ours
        finally:
            child.kill()
            os.close(ours)


def read_until(terminal: int, text: bytes) -> bytes:
    """What it showed up to this text; the test's own timeout is the deadline."""
    seen = b""
    while text not in seen:
        seen += os.read(terminal, 4096)
    return seen


def test_log_is_coloured_text_on_a_terminal(database_url: str) -> None:
    with on_a_terminal("worker", f"{FLOWS}:Order", "--database", database_url) as (child, terminal):
        read_until(terminal, b"is ready")
        start(database_url, "order", "customer=bankrupt")
        shown = read_until(terminal, b"failed for good")
        child.send_signal(signal.SIGTERM)
        read_until(terminal, b"Stopped")
        assert child.wait() == 0
    assert b"{" not in shown
    assert b"error" in shown
    assert b"\x1b[3" in shown.rpartition(b"error")[0]


@pytest.mark.parametrize(("option", "value"), [("--log-format", "xml"), ("--log-level", "loud")])
def test_wrong_words_about_the_log_are_one_line(option: str, value: str) -> None:
    said = mutirao("clock", option, value)
    assert_refused(said, "usage", exit_code=2)
    assert value in said.stderr
