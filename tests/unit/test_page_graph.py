"""The picture of a flow: which nodes and edges it has, and what is said of them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mutirao.model import Attribute, Definition, Offer, Recovery, Task, Term
from mutirao.server.page.edge import Edge, edges, start_id
from mutirao.server.page.graph import breadth, drawing
from mutirao.server.page.reader import Reader

READER = Reader("en", ZoneInfo("UTC"), "system", True, datetime(2026, 1, 1, tzinfo=UTC))


def flow(*tasks: Task, attributes: tuple[str, ...] = (), **more: Any) -> Definition:
    ends = {} if "final" in more else {"ends": "quiet"}
    return Definition(
        name="f", attributes=tuple(Attribute(each, "text") for each in attributes), tasks=tasks, **{**ends, **more}
    )


def drawn(definition: Definition) -> dict[tuple[str, str], str]:
    return {(each.source, each.target): each.kind for each in edges(definition)}


def node(definition: Definition, name: str) -> dict[str, Any]:
    [found] = [each for each in drawing(definition, READER)["nodes"] if each["id"] == name]
    return found  # type: ignore[no-any-return]


def test_a_dependency_is_an_edge_that_names_the_state_unless_it_is_success() -> None:
    pay, ship = Task(name="pay", when="true"), Task(name="ship", depends=Term("pay"))
    sorry = Task(name="sorry", depends=Term("pay", "failed"))
    picture = drawing(flow(pay, ship, sorry), READER)
    labels = {(each["from"], each["to"]): each["label"] for each in picture["edges"]}
    assert labels == {
        ("pay", "ship"): "",
        ("pay", "sorry"): "failed",
        (":start", "pay"): "",
        ("ship", ":final"): "",
        ("sorry", ":final"): "",
    }


def test_two_states_of_one_task_are_one_edge() -> None:
    late = Task(name="late", depends=Term("pay", "failed") | Term("pay", "aborted"))
    [edge] = [each for each in edges(flow(Task(name="pay", when="true"), late)) if each.target == "late"]
    assert edge == Edge("pay", "late", "depends", ("failed", "aborted"))


def test_a_contingency_and_a_compensation_are_shown_as_such_and_begin_nowhere_else() -> None:
    definition = flow(
        Task(name="fly", when="true", recovery=Recovery(contingency="drive", compensation="cancel_flight")),
        Task(name="drive"),
        Task(name="cancel_flight"),
    )
    assert drawn(definition) == {
        ("fly", "drive"): "contingency",
        ("fly", "cancel_flight"): "compensation",
        (":start", "fly"): "order",
        ("fly", ":final"): "order",
    }
    assert node(definition, "drive")["marks"] == ["contingency"]
    assert "in place of fly" in node(definition, "drive")["notes"]
    assert node(definition, "cancel_flight")["marks"] == ["compensation"]
    assert "to undo fly" in node(definition, "cancel_flight")["notes"]
    assert {"if it fails: drive", "undone by cancel_flight"} <= set(node(definition, "fly")["notes"])


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (Task(name="t", when="true", offer=Offer(role="clerk")), "person"),
        (Task(name="t", when="true", offer=Offer(role="clerk", kind="semi_automatic"), application="editor"), "person"),
        (Task(name="t", when="true", child="shipping"), "child"),
        (Task(name="t", when="true", application="bill"), "application"),
        (Task(name="t", when="true"), "program"),
    ],
)
def test_a_task_is_of_the_kind_of_whoever_does_it(task: Task, kind: str) -> None:
    assert node(flow(task), "t")["kind"] == kind


def test_a_task_that_only_waits_comes_after_whoever_writes_the_time() -> None:
    plan = Task(name="plan", when="true", fires="once", offer=Offer(role="clerk"), outputs=("due",))
    alarm = Task(name="alarm", when="due is not null", wait="due", by_clock=True)
    definition = Definition(name="f", attributes=(Attribute("due", "timestamp"),), tasks=(plan, alarm), ends="quiet")
    assert node(definition, "alarm")["kind"] == "clock"
    assert drawn(definition)["plan", "alarm"] == "data"


def test_a_condition_is_led_to_by_whoever_writes_what_it_names() -> None:
    definition = flow(
        Task(name="ask", when="true", offer=Offer(role="clerk"), outputs=("answer", "remark")),
        Task(name="act", when="answer = 'remark' and city is not null"),
        attributes=("answer", "remark", "city"),
        final="remark is not null",
    )
    assert drawn(definition) == {
        ("ask", "act"): "data",
        (":start", "ask"): "order",
        ("ask", ":final"): "data",
    }
    [edge] = [each for each in edges(definition) if each.target == "act"]
    assert edge.about == ("answer",), "what stands between quotes is no attribute"


def test_of_workers_the_condition_tells_what_they_write() -> None:
    definition = flow(
        Task(name="book_hotel", when="stage = 'new' and hotel is null"),
        Task(name="book_flight", when="stage = 'new' and flight IS  NULL"),
        Task(name="confirm", when="hotel is not null and flight is not null"),
        attributes=("stage", "hotel", "flight"),
        final="stage = 'booked'",
    )
    assert drawn(definition) == {
        (":start", "book_hotel"): "order",
        (":start", "book_flight"): "order",
        ("book_hotel", "confirm"): "data",
        ("book_flight", "confirm"): "data",
        ("confirm", ":final"): "order",
    }


def test_the_state_of_a_task_in_a_condition_is_an_edge_from_it() -> None:
    definition = flow(Task(name="pay", when="true"), Task(name="sorry", when="task_pay = 'failed'"))
    [edge] = [each for each in edges(definition) if each.target == "sorry"]
    assert edge == Edge("pay", "sorry", "seen", ("failed",))


def test_an_attribute_that_all_tasks_write_joins_each_with_the_one_before() -> None:
    steps = [Task(name=f"t{n}", when=f"stage = '{n}'", outputs=("stage",)) for n in range(6)]
    found = drawn(flow(*steps, attributes=("stage",), final="stage = '6'"))
    assert [ends for ends, kind in found.items() if kind == "data"] == [(f"t{n}", f"t{n + 1}") for n in range(5)]
    assert (":start", "t0") in found
    assert ("t5", ":final") in found


def test_tasks_that_only_lead_to_one_another_still_begin_at_the_start() -> None:
    ping = Task(name="ping", when="b is not null", outputs=("a",))
    pong = Task(name="pong", when="a is not null", outputs=("b",))
    found = drawn(flow(ping, pong, attributes=("a", "b")))
    assert {(":start", "ping"), ("ping", "pong"), ("pong", "ping")} <= found.keys()
    assert (":start", "pong") not in found


def test_a_flow_without_a_final_condition_that_ends_by_one_has_no_end() -> None:
    definition = Definition(name="f", tasks=(Task(name="t", when="true"),))
    assert [each["id"] for each in drawing(definition, READER)["nodes"]] == [":start", "t"]


def test_what_is_special_about_a_task_is_marked_and_said() -> None:
    task = Task(
        name="t",
        when="true",
        enabled=False,
        timeout=timedelta(minutes=2),
        recovery=Recovery(safe_point=True, critical=True),
    )
    picture = drawing(flow(task), READER, href="/elsewhere#")
    [shown] = [each for each in picture["nodes"] if each["id"] == "t"]
    assert shown["marks"] == ["safe-point", "critical", "disabled"]
    assert shown["href"] == "/elsewhere#t"
    assert "timeout 2 min" in shown["notes"]
    assert picture["marks"].keys() == {"safe-point", "critical", "disabled"}


def test_no_edge_leads_to_what_is_not_there() -> None:
    definition = flow(
        Task(name="a", when="x is null and task_b = 'succeeded'", outputs=("x",)),
        Task(name="b", depends=Term("a"), recovery=Recovery(contingency="c")),
        Task(name="c"),
        attributes=("x",),
    )
    picture = drawing(definition, READER)
    known = {each["id"] for each in picture["nodes"]}
    assert all({each["from"], each["to"]} <= known for each in picture["edges"])


def test_a_page_knows_how_many_tasks_stand_side_by_side() -> None:
    links = [("start", each) for each in "abc"] + [(each, "d") for each in "abc"] + [("d", "a"), ("d", "end")]
    found = [Edge(start_id() if source == "start" else source, target, "depends") for source, target in links]
    assert breadth(found) == 3
    assert breadth([]) == 1
