"""Exceptions as people meet them: why, in words, and the command that gets an instance out of there."""

import shlex
from collections.abc import AsyncIterator

import pytest
from command import answer, assert_refused, mutirao

from mutirao import Change, Failed, Flow, task
from mutirao.database.engine import Engine
from mutirao.testing import run_until_quiet
from mutirao.testing.database import TestServer


class Numbers(Flow):
    """From 1 it runs into a dead end, from 2 its task fails, from 3 a condition does."""

    n: int
    half: int | None = None

    final = "n > 100"

    @task(when="n = 1")
    async def to_nine(self) -> Change:
        return {"n": 9}

    @task(when="n = 2", retries=0)
    async def refuse(self) -> Change:
        raise Failed("two is no number")

    @task(when="n = 3 and 6 / coalesce(half, 1) > 0")
    async def halve(self) -> Change:
        return {"half": 0}


@pytest.fixture
async def numbers(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """A database with one instance of each kind of exception: 1, 2 and 3."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.apply(Numbers)
            await engine.start_many(Numbers(n=n) for n in (1, 2, 3))
            await run_until_quiet(engine, [Numbers])
        yield url


def failed_job(url: str) -> int:
    [job] = answer("job", "list", "--status", "failed", "--database", url)
    return int(job["id"])


def steer(*words: object) -> str:
    said = mutirao(*words)
    assert said.returncode == 0, said
    return said.stdout


def test_reason_has_words_beside_its_code(numbers: str) -> None:
    job = failed_job(numbers)
    for instance, code, words in (
        (1, "nothing_fires", "no condition holds on n = 9, half = null"),
        (2, "task_failed", f"refuse, job {job}: Failed: two is no number"),
        (3, "condition_failed", "the condition of halve: division by zero"),
    ):
        shown = mutirao("instance", "show", instance, "--database", numbers).stdout
        assert f"{code}  {words}" in shown


def test_instance_that_is_an_exception_ends_with_what_can_be_done(numbers: str) -> None:
    job = failed_job(numbers)
    shown = mutirao("instance", "show", 2, "--database", numbers).stdout
    _, section = shown.split("What you can do\n")
    commands = ["job retry", "job skip", "instance repair", "instance cancel"]
    assert [line.split("mutirao ")[1].split(" --database")[0] for line in section.splitlines()] == [
        f"{commands[0]} {job}",
        f"{commands[1]} {job} attribute=value",
        f"{commands[2]} 2 attribute=value",
        f"{commands[3]} 2",
    ]
    assert section.count(f"--database '{numbers}'") == 4


def test_repair_that_was_not_enough_says_so_and_what_to_do(numbers: str) -> None:
    said = steer("instance", "repair", 1, "--database", numbers)
    assert said.startswith(
        "Instance 1 is still an exception: nothing_fires (no condition holds on n = 9, half = null); correct it: "
    )
    assert said.endswith(f"mutirao instance repair 1 attribute=value --database '{numbers}'\n")
    assert steer("instance", "repair", 1, "n=101", "--database", numbers) == "Instance 1 is closed.completed.\n"


def test_skip_that_leads_to_a_dead_end_says_so(numbers: str) -> None:
    job = failed_job(numbers)
    said = steer("job", "skip", job, "n=7", "--database", numbers)
    assert said.startswith(
        f"Job {job} (refuse) is skipped; instance 2 is still an exception: nothing_fires (no condition"
    )


def test_instance_that_becomes_an_exception_says_so(numbers: str) -> None:
    steer("instance", "start", "numbers", "n=1", "--database", numbers)
    steer("instance", "suspend", 4, "--database", numbers)
    [job] = answer("job", "list", "--instance", 4, "--database", numbers)
    steer("job", "skip", job["id"], "n=8", "--database", numbers)
    said = steer("instance", "resume", 4, "--database", numbers)
    assert said.startswith("Instance 4 is an exception: nothing_fires (no condition holds on n = 8")


def test_job_of_an_exception_is_for_a_person(numbers: str) -> None:
    listed = mutirao("job", "list", "--instance", 1, "--database", numbers).stdout
    [row] = [line for line in listed.splitlines() if "_EXCPT" in line]
    assert "for a person" in row
    assert "nothing_fires: no condition holds" in row
    assert "for a person" in mutirao("instance", "show", 1, "--database", numbers).stdout
    [job] = answer("job", "list", "--instance", 1, "--database", numbers)
    shown = mutirao("job", "show", job["id"], "--database", numbers).stdout
    assert "for a person" in shown
    assert "mutirao instance show 1 " in shown


def test_jobs_are_listed_page_by_page(numbers: str) -> None:
    everything = [job["id"] for job in answer("job", "list", "--database", numbers)]
    first = mutirao("job", "list", "--limit", 2, "--database", numbers).stdout.splitlines()
    assert first[-1] == f"Newer ones: --after {everything[1]}"
    rest = ("job", "list", "--after", everything[1], "--database", numbers)
    assert [job["id"] for job in answer(*rest)] == everything[2:]
    assert "--after" not in mutirao(*rest).stdout
    assert [job["id"] for job in answer(*rest, "--status", "failed")] == [
        job for job in everything[2:] if job == failed_job(numbers)
    ]


def test_long_story_says_what_it_leaves_out(numbers: str) -> None:
    rows = answer("instance", "trace", 1, "--database", numbers)
    told = mutirao("instance", "trace", 1, "--limit", 1, "--database", numbers).stdout
    assert f"{len(rows) - 1} earlier row left out; all of them: --limit {len(rows)}" in told
    assert "n = 1 → 9" in told
    assert "started" not in told.split("left out")[1]
    assert "left out" not in mutirao("instance", "trace", 1, "--database", numbers).stdout
    assert answer("instance", "trace", 1, "--limit", 1, "--database", numbers) == rows[-1:]


def test_exceptions_are_told_by_what_is_wrong_and_seen_to_by_the_command_that_is_told(numbers: str) -> None:
    """Whoever copies the commands, and says what would be right where that is asked, has none left."""
    where = ("--database", numbers)
    shown = mutirao("exceptions", *where, COLUMNS="200").stdout
    table, commands = shown.split("To see to all of a kind\n")
    assert sorted(line.split()[2] for line in table.splitlines() if " numbers " in line) == [
        "condition_failed",
        "nothing_fires",
        "task_failed",
    ]
    told = [line.split("mutirao ")[1].split(" --database")[0] for line in commands.splitlines()]
    assert sorted(told) == [
        "instance repair --flow numbers --exception nothing_fires attribute=value",
        "job retry --flow numbers --task refuse --error 'Failed: two is no number'",
        "job skip --flow numbers --exception condition_failed attribute=value",
        "why 1",
    ]
    for command in told:
        words = [word.replace("attribute=value", "n=101") for word in shlex.split(command)]
        if words[0] == "job" and words[1] == "retry":
            words[1] = "skip"
            words.append("n=101")
        if words[0] != "why":
            steer(*words, "--yes", "--reason", "seen to", *where)
    assert mutirao("exceptions", *where).stdout == "No exceptions.\n"
    for instance in (1, 2, 3):
        last = answer("instance", "trace", instance, *where)[-1]
        assert (last["status"], last["note"]["reason"]) == ("closed.completed", "seen to")


def test_exceptions_of_a_flow_that_is_not_there(numbers: str) -> None:
    assert_refused(mutirao("exceptions", "--flow", "nombers", "--database", numbers), "unknown_flow")
    said = mutirao("instance", "cancel", "--flow", "numbers", "--exception", "stuck", "--yes", "--database", numbers)
    assert_refused(said, "wrong_call")
    assert "there are task_failed" in said.stderr


def test_on_a_narrow_terminal_the_code_stays_whole(numbers: str) -> None:
    shown = mutirao("exceptions", "--database", numbers, COLUMNS="64").stdout
    assert all(f" {code} " in shown for code in ("task_failed", "condition_failed", "nothing_fires"))
