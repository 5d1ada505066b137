"""How each task of an instance is said to stand, and what a rollback waits for."""

from datetime import UTC, datetime
from typing import Any

from mutirao.database.record import JobRecord, TaskStanding
from mutirao.database.sight import SeenInstance
from mutirao.model import AnyOf, Definition, Task, Term
from mutirao.server.page.edge import edges
from mutirao.server.page.instance_task import in_hand, lines_of

AT = datetime(2026, 1, 1, tzinfo=UTC)


def seen(**more: Any) -> SeenInstance:
    about: dict[str, Any] = {
        "flow": "f",
        "version": 1,
        "status": "open.running",
        "state": {},
        "reasons": None,
        "priority": 0,
    }
    return SeenInstance(id=1, started_at=AT, closed_at=None, **about, **more)


def job(number: int, task: str, **more: Any) -> JobRecord:
    about: dict[str, Any] = {"priority": 0, "worker": None, "attempt": 1, "failures": 0, "lease_until": None}
    return JobRecord(
        number,
        1,
        "f",
        task,
        more.pop("status", "running"),
        **about,
        due_at=None,
        error=None,
        since=AT,
        created_at=AT,
        **more,
    )


def said(definition: Definition, **states: Any) -> dict[str, str]:
    """Of each task, where others are ended or in work as given."""
    standings = [
        TaskStanding(task.name, state, 7 if state in ("ready", "running") else None, None, int(state == "succeeded"))
        for task in definition.tasks
        for state in [states.get(task.name, "not_ready")]
    ]
    lines = lines_of(seen(), definition, edges(definition), standings)
    return {each.standing.task: each.word for each in lines}


EITHER = Definition(
    name="f",
    tasks=(
        Task(name="ask", when="true"),
        Task(name="check", depends=Term("ask")),
        Task(name="know", when="true"),
        Task(name="decide", depends=AnyOf((Term("check"), Term("know")))),
    ),
    ends="quiet",
)


def test_a_task_is_passed_over_when_what_it_leads_to_has_begun_without_it() -> None:
    assert said(EITHER, know="succeeded", decide="ready") == {
        "ask": "passed_over",
        "check": "passed_over",
        "know": "succeeded",
        "decide": "ready",
    }
    assert said(EITHER, know="ready")["check"] == "not_ready"


def test_a_task_is_to_come_though_another_way_was_faster_while_what_leads_to_it_is_under_way() -> None:
    assert said(EITHER, ask="running", know="succeeded", decide="succeeded")["check"] == "not_ready"


def test_a_rollback_waits_for_what_runs_and_not_for_what_undoes() -> None:
    """Whatever their tasks: one that undoes another may as well run for itself."""
    jobs = [job(1, "free_room"), job(2, "free_room", undoes=17), job(3, "pay", status="ready")]
    assert [each.id for each in in_hand(seen(hold="undoing"), jobs)] == [1]
    assert [each.id for each in in_hand(seen(hold="cancelled"), jobs)] == [1, 2], "that one has to end as well"
    assert in_hand(seen(hold="suspended"), jobs) == []
