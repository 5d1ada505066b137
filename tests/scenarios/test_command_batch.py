"""Many instances at once, and a flow's instances to another version, as an operator meets it."""

import io
import signal
from pathlib import Path

import psycopg
import pytest
from command import FLOWS, answer, assert_refused, mutirao, running
from rich.console import Console

from mutirao.cli.batch import _refused
from mutirao.database.batch import BatchRefusal

FIRST = """
from mutirao import Change, Flow, task

class Parcel(Flow):
    stage: str = "new"
    weight: int = 1
    final = "stage = 'sent'"

    @task(when="stage = 'new'")
    async def pack(self) -> Change: return {"stage": "packed"}

    @task(when="stage = 'packed'")
    async def send(self) -> Change: return {"stage": "sent"}
"""
SECOND = FIRST.replace("pack(", "wrap(").replace("stage = 'new'", "stage = 'new' and weight < 5")


def start(database_url: str, count: int = 3, **state: object) -> tuple[str, str]:
    where = ("--database", database_url)
    mutirao("flow", "apply", f"{FLOWS}:Order", *where)
    values = [f"{name}={value}" for name, value in state.items()]
    assert mutirao("instance", "start", "order", *values, "--count", count, *where).returncode == 0
    return where


def statuses(where: tuple[str, str]) -> list[str]:
    return [each["status"] for each in answer("instance", "list", *where)]


def test_instances_are_cancelled_by_a_condition(database_url: str) -> None:
    where = start(database_url, 4, pieces=1)
    start(database_url, 2, pieces=7)
    said = mutirao(
        "instance", "cancel", "--flow", "order", "--where", "pieces > 3", "--yes", "--reason", "too many", *where
    )
    assert said.stdout == "Batch 1 finished: 2 instances cancelled\n", said
    assert statuses(where) == ["closed.aborted"] * 2 + ["open.running"] * 4
    [batch] = answer("batch", "list", *where)
    assert (batch["kind"], batch["status"], batch["done"], batch["reason"]) == ("cancel", "finished", 2, "too many")
    assert batch["filter"] == {"flow": "order", "where": "pieces > 3"}
    shown = mutirao("batch", "show", 1, *where).stdout
    assert all(word in shown for word in ("pieces > 3", "2 of 2", "too many", "finished"))


def test_nobody_is_asked_in_the_dark(database_url: str) -> None:
    where = start(database_url)
    said = mutirao("instance", "cancel", "--flow", "order", *where)
    assert_refused(said, "wrong_call")
    assert "3 instances will be cancelled" in said.stderr
    assert "--yes" in said.stderr
    assert answer("batch", "list", *where) == []
    assert (
        mutirao("instance", "cancel", "--flow", "order", "--status", "closed", "--yes", *where).stdout
        == "No instances fit.\n"
    )


def test_several_numbers_are_a_batch_and_one_is_not(database_url: str) -> None:
    where = start(database_url)
    assert mutirao("instance", "suspend", 1, *where).stdout.startswith("Instance 1 is open.notrunning.suspended")
    assert "2 instances changed" in mutirao("instance", "set", 1, 2, "pieces=5", "--yes", *where).stdout
    assert [each["state"]["pieces"] for each in answer("instance", "list", *where)] == [1, 5, 5]
    assert "1 instance resumed" in mutirao("instance", "resume", "--flow", "order", "--yes", *where).stdout


def test_what_was_refused_is_told_and_the_command_fails(database_url: str) -> None:
    where = start(database_url)
    said = mutirao("instance", "set", "--flow", "order", "stage=shipped", "--yes", *where)
    assert said.returncode == 1
    assert said.stdout.startswith("Batch 1 finished: 0 instances changed, 3 refused\nMore about it: ")
    assert answer("batch", "show", 1, *where)["refusals"][0]["code"] == "final_blocked"
    told = mutirao("batch", "show", 1, *where).stdout.partition("Refused")[2]
    assert told.count("final_blocked") == 1
    assert "1, 2, 3" in told


def test_refusals_that_differ_only_by_the_instance_are_told_as_one() -> None:
    says = 'task "send" of instance {0} is critical and cannot be undone: nothing was'
    lines = io.StringIO()
    Console(file=lines, width=120).print(
        _refused([BatchRefusal(number, "critical_task", says.format(number)) for number in (1, 12)])
    )
    [row] = [line for line in lines.getvalue().splitlines() if "critical_task" in line]
    assert " ".join(row.split()) == f"2 critical_task {says.replace(' of instance {0}', '')} 1, 12"


def test_look_at_finished_instances_is_listed_though_nobody_counted_them(database_url: str) -> None:
    where = ("--database", database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select mutirao.create_flow('f')")
        with connection.transaction():
            connection.execute("insert into f.wed_attr (aname, adv) values ('a', 'x')")
            connection.execute("insert into f.wed_trig (trname, cpred) values ('go', $$a = 'x'$$)")
            connection.execute("insert into f.wed_trig (cpred, cfinal) values ($$a = 'done'$$, true)")
        connection.execute("insert into f.wed_flow (a) values ('done')")
        connection.execute("update f.wed_trig set cpred = $$a in ('done', 'over')$$ where cfinal")
        while connection.execute("select from mutirao.recheck").fetchall():
            connection.execute("select mutirao.turn_clock(500, 'versions')")
    [batch] = answer("batch", "list", *where)
    assert (batch["kind"], batch["total"]) == ("look", None)
    assert "look" in mutirao("batch", "list", *where).stdout
    assert "reopened 0 left alone 0" in " ".join(mutirao("batch", "show", 1, *where).stdout.split())
    assert mutirao("batch", "resume", 1, *where).stdout.startswith("Batch 1 finished: 0 instances reopened")


def test_failed_jobs_are_tried_again_by_task(database_url: str) -> None:
    where = start(database_url, 3, customer="bankrupt")
    with running("worker", f"{FLOWS}:Order", *where):
        while statuses(where) != ["open.exception"] * 3:
            pass
    said = mutirao("job", "retry", "--flow", "order", "--task", "pay", "--yes", *where)
    assert said.stdout == "Batch 1 finished: 3 instances tried again\n", said
    assert statuses(where) == ["open.running"] * 3


def test_instances_are_chosen_by_key_and_by_when_they_started(database_url: str) -> None:
    where = start(database_url, 2)
    mutirao("instance", "start", "order", "--key", "A-17", *where)
    said = mutirao("instance", "set", "--flow", "order", "--key", "A-17", "pieces=5", "--yes", *where)
    assert said.stdout == "Batch 1 finished: 1 instance changed\n", said
    assert [each["state"]["pieces"] for each in answer("instance", "list", *where)] == [5, 1, 1]
    cancel = ("instance", "cancel", "--flow", "order", "--yes")
    assert mutirao(*cancel, "--key", "A-18", *where).stdout == "No instances fit.\n"
    assert mutirao(*cancel, "--started-before", "2020-01-01", *where).stdout == "No instances fit.\n"
    assert "3 instances cancelled" in mutirao(*cancel, "--started-after", "2020-01-01", *where).stdout


def test_failed_jobs_are_skipped_by_task(database_url: str) -> None:
    where = start(database_url, 2, customer="bankrupt")
    with running("worker", f"{FLOWS}:Order", *where):
        while statuses(where) != ["open.exception"] * 2:
            pass
    skip = ("job", "skip", "--flow", "order", "pieces=3", "--yes")
    assert mutirao(*skip, "--error", "nothing like that", *where).stdout == "No instances fit.\n"
    said = mutirao(*skip, "--task", "pay", *where)
    assert said.stdout.startswith("Batch 1 finished: 2 instances skipped"), said
    assert [each["state"]["pieces"] for each in answer("instance", "list", *where)] == [3, 3]


def test_a_batch_is_stopped_and_resumed(database_url: str) -> None:
    where = start(database_url)
    mutirao("instance", "suspend", "--flow", "order", "--yes", *where)
    assert_refused(mutirao("batch", "stop", 1, *where), "wrong_call")
    assert_refused(mutirao("batch", "resume", 1, *where), "wrong_call")
    assert_refused(mutirao("batch", "show", 9, *where), "unknown_batch")


def test_ctrl_c_leaves_a_batch_running_and_says_how_to_stop_it(database_url: str) -> None:
    where = start(database_url)
    with psycopg.connect(database_url) as writing:
        writing.execute("select from mutirao.instance where id = 2 for update")
        with running("instance", "cancel", "--flow", "order", "--yes", *where) as command:
            while not [each for each in answer("batch", "list", *where) if each["done"] == 2]:
                pass
            command.signal(signal.SIGINT)
            assert "batch stop 1" in command.wait_for("Batch 1 goes on wherever a clock runs")
            assert command.ends_with() == 130
        stopped = mutirao("batch", "stop", 1, *where).stdout
        assert stopped.startswith("Batch 1 stopped (stopped by ")
    assert mutirao("batch", "resume", 1, *where).stdout == "Batch 1 finished: 3 instances cancelled\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("instance", "cancel", "--yes"), "wrong_call"),
        (("instance", "cancel", "--flow", "nope", "--yes"), "unknown_flow"),
        (("instance", "cancel", "--flow", "order", "--where", "colour = 'red'", "--yes"), "unknown_attribute"),
        (("instance", "cancel", "--flow", "order", "--status", "opne", "--yes"), "wrong_call"),
        (("instance", "set", "--flow", "order", "--yes"), "wrong_call"),
        (("instance", "set", "--flow", "order", "colour=red", "--yes"), "unknown_attribute"),
        (("instance", "cancel", "1", "99", "--yes"), "unknown_instance"),
        (("instance", "cancel", "1", "--key", "A-17", "--yes"), "wrong_call"),
        (("instance", "cancel", "--flow", "order", "--started-before", "noon", "--yes"), "wrong_call"),
        (("job", "retry", "--yes"), "wrong_call"),
        (("job", "skip", "--yes"), "wrong_call"),
        (("job", "skip", "1", "--flow", "order", "--yes"), "wrong_call"),
        (("flow", "migrate", "nope"), "unknown_flow"),
        (("flow", "migrate", "order", "--to", "9"), "unknown_version"),
        (("flow", "migrate", "order", "--map", "pay=nope", "--dry-run"), "unknown_task"),
        (("flow", "migrate", "order", "--map", "pay"), "wrong_call"),
    ],
)
def test_a_bad_choice_is_one_line(database_url: str, words: tuple[str, ...], code: str) -> None:
    where = start(database_url, 1)
    assert_refused(mutirao(*words, *where), code)
    assert answer("batch", "list", *where) == []


def test_a_flow_is_migrated_after_a_look_at_what_would_happen(database_url: str, tmp_path: Path) -> None:
    where = ("--database", database_url)
    (tmp_path / "parcel.py").write_text(FIRST, "utf-8")
    mutirao("flow", "apply", tmp_path / "parcel.py", *where)
    mutirao("instance", "start", "parcel", "--count", 3, *where)
    mutirao("instance", "start", "parcel", "weight=9", *where)
    (tmp_path / "parcel.py").write_text(SECOND, "utf-8")
    mutirao("flow", "apply", tmp_path / "parcel.py", *where)

    foretold = answer("flow", "migrate", "parcel", "--dry-run", *where)
    assert foretold["outcomes"] == {"running": 3, "exception": 1}
    assert (foretold["fires"], foretold["removes"]) == ({"wrap": 3}, {"pack": 4})
    assert foretold["why"] == {"nothing_fires": 1}
    people = mutirao("flow", "migrate", "parcel", "--map", "pack=wrap", "--dry-run", *where).stdout
    assert people.startswith("4 instances: 4 go on.\n")
    assert "pack becomes wrap" in people

    said = mutirao("flow", "migrate", "parcel", "--map", "pack=wrap", *where)
    assert_refused(said, "wrong_call")
    assert "4 instances: 4 go on." in said.stderr
    said = mutirao("flow", "migrate", "parcel", "--map", "pack=wrap", "--yes", *where)
    assert said.stdout == "Batch 1 finished: 4 instances moved\n", said
    assert {each["version"] for each in answer("instance", "list", *where)} == {2}
    assert {each["task"] for each in answer("job", "list", *where)} == {"wrap"}
    mutirao("flow", "migrate", "parcel", "--to", "1", "--map", "wrap=pack", "--yes", *where)
    assert {each["task"] for each in answer("job", "list", *where)} == {"pack"}
    told = " ".join(mutirao("instance", "trace", 1, *where, COLUMNS=200).stdout.split())
    assert "moved from version 1 to version 2 pack became wrap" in told
    mutirao("flow", "migrate", "parcel", "--yes", *where)
    told = " ".join(mutirao("instance", "trace", 1, *where, COLUMNS=200).stdout.split())
    assert "removed: pack (job 1)" in told


def test_what_a_version_lacks_is_kept_out_of_sight(database_url: str, tmp_path: Path) -> None:
    where = ("--database", database_url)
    for text in (FIRST.replace("    weight: int = 1\n", ""), FIRST):
        (tmp_path / "parcel.py").write_text(text, "utf-8")
        mutirao("flow", "apply", tmp_path / "parcel.py", *where)
    mutirao("instance", "start", "parcel", *where)
    assert "weight" in mutirao("instance", "show", 1, *where).stdout
    mutirao("flow", "migrate", "parcel", "--to", 1, "--yes", *where)
    shown = mutirao("instance", "show", 1, *where).stdout
    assert "weight" not in shown.partition("Jobs")[0]
    assert "weight" not in mutirao("instance", "list", *where).stdout
    assert answer("instance", "show", 1, *where)["instance"]["state"]["weight"] == 1


def test_a_dry_run_begins_with_what_is_refused_and_counts_none_of_it_as_done(database_url: str, tmp_path: Path) -> None:
    where = ("--database", database_url)
    (tmp_path / "parcel.py").write_text(FIRST, "utf-8")
    mutirao("flow", "apply", tmp_path / "parcel.py", *where)
    mutirao("instance", "start", "parcel", "--count", 3, *where)
    (tmp_path / "parcel.py").write_text(
        SECOND.replace("weight: int = 1", "weight: str = 'x'").replace(" and weight < 5", ""), "utf-8"
    )
    mutirao("flow", "apply", tmp_path / "parcel.py", *where)
    told = answer("flow", "migrate", "parcel", "--dry-run", *where)
    assert (told["outcomes"], told["removes"], told["fires"]) == ({"refused": 3}, {}, {})
    people = mutirao("flow", "migrate", "parcel", "--dry-run", *where, COLUMNS=200).stdout
    assert people.split("\n\n")[1].startswith("Refusals and exceptions\n")
    assert people.count("be refused") == 2  # in the sum, and once for all three
