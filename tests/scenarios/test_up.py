"""`mutirao up` and `mutirao demo`: what a newcomer sees first."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from command import FLOWS, Background, assert_refused, mutirao, running
from psycopg import AsyncConnection

from mutirao.database.embedded import EmbeddedServer


def test_example_moves_before_your_eyes(place: Path) -> None:
    said = mutirao("up", "--for", 3, MUTIRAO_HOME=place / "home")
    assert said.returncode == 0, said
    assert "PostgreSQL 18" in said.stdout
    assert "completed: " in said.stdout
    assert "clerk_1 (office), technician_1 (technician)" in said.stdout
    assert said.stdout.splitlines()[-1].startswith("Stopped; ")
    listed = mutirao("instance", "list", "--status", "closed.completed", MUTIRAO_HOME=place / "home")
    assert "travel_example" in listed.stdout


def test_ctrl_c_ends_it_cleanly_and_others_may_look_meanwhile(place: Path) -> None:
    home = place / "home"
    with running("up", MUTIRAO_HOME=home) as up:
        up.wait_for("completed: ")
        assert "travel_example" in mutirao("instance", "list", MUTIRAO_HOME=home).stdout
        assert "book_hotel" in mutirao("instance", "trace", 1, MUTIRAO_HOME=home).stdout
        up.signal(signal.SIGINT)
        up.wait_for("Stopped; ")
        assert up.ends_with() == 0
    assert not (home / "data/postmaster.pid").exists()


def test_own_flows_run_instead_of_the_example(database_url: str) -> None:
    with running("up", f"{FLOWS}:Order", "--database", database_url) as up:
        up.wait_for("A worker and a clock are running")
        mutirao("instance", "start", "order", "--database", database_url)
        assert "pay, ship" in up.wait_for("instance 1 completed: ")


def test_terminal_shows_a_board(database_url: str) -> None:
    """On a terminal of its own, read to the end."""
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "mutirao", "up", "--for", "3", "--database", database_url],
        stdout=its_end,
        stderr=its_end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"},
    ) as process:
        os.close(its_end)
        shown = "".join(read_all(terminal))
    assert process.returncode == 0, shown
    assert all(
        words in shown for words in ("Mutirão is up", "book_flight", "Last finished", "mutirao db shell --database")
    )


def test_own_server_that_is_killed_is_started_again_and_jobs_go_on(place: Path) -> None:
    home = place / "home"
    with running("up", f"{FLOWS}:Order", MUTIRAO_HOME=home) as up:
        up.wait_for("A worker and a clock are running")
        mutirao("instance", "start", "order", MUTIRAO_HOME=home)
        up.wait_for("instance 1 completed: ")
        killed = kill_server(home)
        while server_process(home) in (killed, None):  # nobody but `up` is there to start it
            pass
        said = mutirao("instance", "start", "order", "--json", MUTIRAO_HOME=home)
        [number] = json.loads(said.stdout)["instances"]
        assert "pay, ship" in up.wait_for(f"instance {number} completed: ")
        up.signal(signal.SIGINT)
        assert up.ends_with() == 0
        assert_no_traceback(up)


def test_own_server_that_cannot_be_started_again_is_one_line_and_exit_3(place: Path) -> None:
    home = place / "home"
    with running("up", MUTIRAO_HOME=home) as up:
        up.wait_for("completed: ")
        (home / "local.conf").write_text("no_such_setting = on\n")
        kill_server(home)
        assert up.wait_for("error: ").startswith("error: server_start_failed: ")
        assert up.ends_with() == 3
        assert_no_traceback(up)


def test_dead_server_of_somebody_else_is_one_line_and_exit_3(place: Path) -> None:
    home = place / "home"
    with EmbeddedServer(home) as server:
        server.ensure_database("mutirao")
        assert mutirao("db", "upgrade", "--database", server.url()).returncode == 0
        with running("up", "--database", server.url()) as up:
            up.wait_for("completed: ")
            kill_server(home)
            up.wait_for("has not answered for")
            assert up.wait_for("error: ").startswith("error: server_lost: no answer for ")
            assert up.ends_with() == 3
            assert_no_traceback(up)


def test_server_of_yours_is_upgraded_only_when_you_say_so(empty_database_url: str) -> None:
    assert_refused(mutirao("up", "--database", empty_database_url), "schema_too_old", exit_code=3)


def test_failed_job_is_stuck_and_its_try_counted(database_url: str) -> None:
    with running("up", f"{FLOWS}:Order", "--database", database_url) as up:
        up.wait_for("A worker and a clock are running")
        mutirao("instance", "start", "order", "customer=bankrupt", "--database", database_url)
        assert "0 running, 0 waiting, 1 stuck" in up.wait_for(" 1 stuck")
        up.signal(signal.SIGTERM)
        stopped = up.wait_for("Stopped; ")
    assert stopped.startswith("Stopped; 0 jobs done, 1 try failed. ")
    assert f"mutirao up {FLOWS}:Order --database " in stopped


async def test_full_disk_is_one_line_and_exit_3(database_url: str, connection: AsyncConnection[Any]) -> None:
    """As PostgreSQL says it when a table cannot grow."""
    await connection.execute(
        """
        create function public.fill() returns trigger language plpgsql as
          $$ begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$;
        create trigger full_disk before insert on mutirao.instance execute function public.fill()
        """
    )
    said = mutirao("up", "--database", database_url)
    assert_refused(said, "disk_full", exit_code=3)


def test_server_that_cannot_start_is_one_line_and_exit_3(place: Path) -> None:
    (place / "home").write_text("not a folder")
    assert_refused(mutirao("up", MUTIRAO_HOME=place / "home"), "home_unusable", exit_code=3)


def test_tour_tells_the_story_of_figure_2() -> None:
    said = mutirao("demo", "--pause", 0)
    assert said.returncode == 0, said
    states = ('{"a1":"ready","a2":"hotel booked","a3":null}', '{"a1":"done","a2":"hotel booked","a3":"flight booked"}')
    assert all(state in said.stdout for state in states)
    assert said.stdout.count("refused: ") == 1
    assert "refused: nothing_fires: " in said.stdout


def test_unknown_tour_is_refused() -> None:
    assert_refused(mutirao("demo", "wde"), "unknown_tour")


def read_all(terminal: int) -> Iterator[str]:
    with suppress(OSError), os.fdopen(terminal, encoding="utf-8", errors="replace") as lines:  # it ends by an error
        yield from lines


def server_process(home: Path) -> int | None:
    """Nobody has written its number while it is being started."""
    with suppress(FileNotFoundError, IndexError):
        return int((home / "data/postmaster.pid").read_text().split()[0])
    return None


def kill_server(home: Path) -> int:
    process = server_process(home)
    assert process is not None
    os.kill(process, signal.SIGKILL)
    return process


def assert_no_traceback(command: Background) -> None:
    assert not [line for line in command.said if "Traceback" in line]
