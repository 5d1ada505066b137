"""Undoing, going back and classes, as an operator meets them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from command import answer, assert_refused, mutirao
from driver import Engine as Driver

from mutirao import Change, Flow, task
from mutirao.database.engine import Engine
from mutirao.testing.database import TestServer

PDL = """
WORKFLOW Trip {
  STRING Hotel;
  TASK Free { }
  TASK Book { DEPENDS; COMPENSATION Free; SAFE_POINT; }
  TASK Pay { DEPENDS Book -> SUCCEEDED; TASK_CLASS till; ON_FAILURE ROLL_BACK; }
}
"""


@pytest.fixture
def where(database_url: str, tmp_path: Path) -> tuple[str, ...]:
    """Two trips whose hotels are booked."""
    where = ("--database", database_url)
    file = tmp_path / "trip.pdl"
    file.write_text(PDL)
    refusal = mutirao("pdl", "apply", str(file), *where)
    assert 'trip.pdl:6:52: unknown_class: there is no class "till"' in refusal.stderr
    mutirao("class", "put", "till", *where)
    assert mutirao("class", "put", "till", "--conflicts", "till", *where).stdout == "Class till conflicts with till.\n"
    said = mutirao("pdl", "apply", str(file), *where)
    assert said.returncode == 0, said.stderr
    for instance in (1, 2):
        mutirao("instance", "start", "trip", *where)
        [job] = answer("job", "list", "--instance", str(instance), *where)
        mutirao("job", "skip", str(job["id"]), *where)
    return where


def test_who_waits_for_whom(where: tuple[str, ...]) -> None:
    shown = mutirao("class", "waits", *where).stdout
    assert "trip.pay" in shown
    assert "pay of instance 1" in shown
    [found] = answer("class", "list", *where)
    assert (found["name"], found["holding"], found["waiting"]) == ("till", 1, 1)
    assert "has been synchronizing for" in mutirao("why", "2", *where).stdout
    mutirao("class", "drop", "till", *where)
    assert mutirao("class", "waits", *where).stdout == "Nobody waits.\n"
    # What it tells to do works on the database that was asked.
    assert "class put NAME --conflicts NAME --database" in mutirao("class", "list", *where).stdout


def test_an_instance_is_undone_or_taken_back(where: tuple[str, ...]) -> None:
    said = mutirao("instance", "roll-back", "1", "--to", "book", "--reason", "again", *where)
    assert said.stdout.startswith("Instance 1 is open.running"), said.stderr
    assert_refused(mutirao("instance", "roll-back", "1", "--to", "pay", *where), "unknown_safe_point")
    mutirao("instance", "go-back", "book", "1", *where)
    assert [each["task"] for each in answer("job", "list", "--instance", "1", *where)] == ["book"]
    said = mutirao("instance", "cancel", "1", "--undo", *where)
    assert "closed.terminated" in said.stdout


def test_many_are_undone_at_once(where: tuple[str, ...]) -> None:
    said = mutirao("instance", "cancel", "--flow", "trip", "--undo", "--yes", *where)
    assert "2 instances rolled back" in said.stdout, said.stdout + said.stderr
    assert {each["status"] for each in answer("instance", "list", *where)} == {"closed.terminated"}


def test_what_an_engine_refuses_of_an_ordering_is_told_under_the_word(where: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "order.pdl"
    for text, place in (
        ("  Free: Count;\n", '5:3: flow_invalid: task "free" of flow "trip" is done by nobody or stands by'),
        ("  Book: Count;\n  ON Hotel;\n", '6:6: unknown_attribute: the flow "stock" has no attribute "hotel"'),
        ("  Book: Count;\n  ON Site;\n", '6:6: unknown_attribute: flow "trip" has no attribute "site"'),
        ("  Book: Cuont;\n", '5:9: unknown_task: the flow "stock" has no task "cuont"; did you mean "count"?'),
    ):
        stock = "WORKFLOW Stock { STRING Site;\n  TASK Count { DEPENDS; } }\n"
        file.write_text(f"{stock}WORKFLOW_DEFINITIONS Trip: Stock;\nRELATIVE_ORDER {{\n{text}}}\n")
        for command in ("check", "apply"):
            said = mutirao("pdl", command, str(file), *where)
            assert said.returncode == 1
            assert f"order.pdl:{place}" in said.stdout + said.stderr
    assert [each["name"] for each in answer("flow", "list", *where)] == ["trip"]


def test_what_cannot_be_done_is_one_line_and_nothing_changes(where: tuple[str, ...]) -> None:
    before = answer("instance", "trace", "1", *where)
    for words, code, says in (
        (("instance", "roll-back", "1", "--to", "pay"), "unknown_safe_point", "it has passed book"),
        (("instance", "go-back", "pay", "1"), "job_pending", 'task "pay" of instance 1 has a job: wait for it'),
        (("instance", "start-task", "free", "1"), "unknown_task", 'no task "free" to start; it has book, pay'),
        (("instance", "start-task", "pay", "1"), "job_pending", "wait for it"),
        (("class", "put", "crane", "--conflicts", "train"), "unknown_class", '"train"'),
        (("class", "drop", "crane"), "unknown_class", '"crane"'),
    ):
        said = mutirao(*words, *where)
        assert_refused(said, code)
        assert says in said.stderr
    assert answer("instance", "trace", "1", *where) == before
    assert [each["name"] for each in answer("class", "list", *where)] == ["till"]


def test_of_two_operators_at_one_instance_the_second_is_refused(where: tuple[str, ...]) -> None:
    seen = str(answer("instance", "show", "1", *where)["revision"])
    first = mutirao("instance", "set", "1", "hotel=Seaside", "--revision", seen, *where)
    assert first.returncode == 0, first.stderr
    second = mutirao("instance", "roll-back", "1", "--revision", seen, *where)
    assert_refused(second, "changed_meanwhile")
    assert f"was changed since revision {seen}" in second.stderr
    assert answer("instance", "show", "1", *where)["instance"]["state"]["hotel"] == "Seaside"
    assert_refused(mutirao("instance", "cancel", "1", "2", "--revision", seen, "--yes", *where), "wrong_call", 1)


def test_a_class_that_is_used_goes_and_it_is_said_whom_that_concerns(where: tuple[str, ...]) -> None:
    said = mutirao("class", "drop", "till", *where)
    assert said.stdout == "Class till is gone; jobs of trip exclude nobody by it any more.\n"


class Journey(Flow):
    """It is booked and undone again; who is not back in an hour is looked for."""

    stage: str = "planned"
    final = "stage = 'over'"

    @task(stands_by=True, retries=0)
    async def free(self) -> Change:
        return {}

    @task(when="stage = 'planned'", fires="once", compensation=free, safe_point=True)
    async def book(self) -> Change:
        return {}

    @task(depends=book)
    async def travel(self) -> Change:
        return {}

    @task(depends=travel, time_to_wait=timedelta(hours=1), task_class="patrol", retries=0)
    async def look_for(self) -> Change:
        return {}


@pytest.fixture
async def journey(servers: dict[str, TestServer]) -> AsyncIterator[tuple[Driver, tuple[str, ...]]]:
    """One that is booked."""
    async with servers["pg18"].clone() as url:
        async with Engine(url, upgrade=False) as engine:
            await engine.classes.put("patrol", description="One dog.")
            await engine.apply(Journey)
            await engine.start(Journey())
        async with Driver(url) as driver:
            await driver.do("journey", "book")
            yield driver, ("--database", url)


async def test_when_a_task_starts_that_does_not_wait_for_ever_is_seen(
    journey: tuple[Driver, tuple[str, ...]],
) -> None:
    driver, where = journey
    await driver.take("journey", "travel")
    for words in (("why", "1"), ("instance", "show", "1")):
        assert "starts in 60 min whatever they do" in mutirao(*words, *where, COLUMNS="120").stdout
    shown = mutirao("instance", "show", "1", *where).stdout
    [tasks] = [section for section in shown.split("\n\n") if section.startswith("Tasks\n")]
    assert [line.split()[:2] for line in tasks.splitlines()[3:]] == [
        ["free", "not_ready"],
        ["book", "succeeded"],
        ["travel", "running"],
        ["look_for", "not_ready"],
    ]


async def test_a_rollback_under_way_is_seen_and_what_would_help_is_told(
    journey: tuple[Driver, tuple[str, ...]],
) -> None:
    driver, where = journey
    said = mutirao("instance", "cancel", "1", "--undo", *where).stdout
    assert said == "Instance 1 is open.running, being rolled back.\n"
    assert "open.running, being rolled back" in mutirao("instance", "list", *where).stdout
    assert "open.running, being rolled back" in mutirao("instance", "show", "1", *where).stdout
    assert "only compensations change it" in mutirao("instance", "repair", "1", "stage=over", *where).stderr
    await driver.fail(await driver.take("journey", "free"), "no")
    assert "retry or skip the compensation" in mutirao("instance", "repair", "1", "stage=over", *where).stderr
    shown = mutirao("instance", "show", "1", *where).stdout
    told = [
        line.split("mutirao ")[1].split(" --database")[0] for line in shown.split("What you can do\n")[1].splitlines()
    ]
    job = await driver.job(1, "free")
    assert told == [f"job retry {job}", f"job skip {job}", "instance cancel 1"]


async def test_a_flow_shows_what_becomes_of_failures_and_what_excludes_whom(
    journey: tuple[Driver, tuple[str, ...]],
) -> None:
    _, where = journey
    shown = mutirao("flow", "show", "journey", *where, COLUMNS="160").stdout
    for said in (
        "to undo book",
        "(undone by free)  (safe-point)",
        "after travel  (starts after 1 h whatever they do)  (class patrol)",
    ):
        assert said in shown
    assert "One dog." in mutirao("class", "list", *where, COLUMNS="120").stdout
