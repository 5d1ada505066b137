"""What PDL can say: the grammar of appendix A, what its examples use and it forgot, and what was added."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from mutirao.language.pdl import Source, examine, read_pdl
from mutirao.model import AllOf, AnyOf, Attribute, Definition, Limit, Offer, Policy, Query, Task, TaskModel, Term

START = "TASK a { DEPENDS; }"


def flow(inside: str, *, outside: str = "") -> Definition:
    [found] = read_pdl(f"WORKFLOW Travel {{ {inside} }} {outside}").flows
    return found


def task(clauses: str, *, head: str = "b", attributes: str = "", outside: str = "") -> Task:
    return flow(f"{attributes} {START} TASK {head} {{ {clauses} }}", outside=outside).tasks[-1]


def model(clauses: str) -> TaskModel:
    [found] = read_pdl(f"TASK Booking {{ {clauses} }}").models
    return found


def attribute(text: str) -> Attribute:
    return flow(f"{text} {START}").attributes[0]


def test_a_model_by_the_letter_of_appendix_a() -> None:
    clauses = "TYPE SEMI_AUTOMATIC; APPLICATION Editor; PRIORITY 20; DEADLINE 2 DAYS; DISCONNECTED_OPERATION TRUE; RETRIES 5; USERS Paulo, Joao;"
    assert model(clauses) == TaskModel(
        name="Booking",
        kind="semi_automatic",
        application="Editor",
        priority=20,
        deadline=timedelta(days=2),
        disconnected=True,
        retries=5,
        users=("Paulo", "Joao"),
    )


def test_clauses_stand_in_any_order_and_any_case() -> None:
    assert model("role Clerk; Priority 5; type manual;") == model("TYPE MANUAL; PRIORITY 5; ROLE Clerk;")


@pytest.mark.parametrize("said", ["Semi-automatic", "SEMI_AUTOMATIC", "semi_automatic", "SEMI-AUTOMATIC"])
def test_a_type_has_several_spellings(said: str) -> None:
    assert model(f"TYPE {said}; ROLE Clerk;").kind == "semi_automatic"


def test_names_are_quoted_or_bare() -> None:
    assert model('TYPE COOPERATIVE; USERS "Paulo", Joao;').users == ("Paulo", "Joao")
    assert model('TYPE MANUAL; ROLE "Clerk of \\"the\\" office";').role == 'Clerk of "the" office'


def test_empty_clauses_say_none() -> None:
    found = model(
        "TYPE MANUAL; ROLE; DESCRIPTION; APPLICATION; DEADLINE; DISCONNECTED_OPERATION; TIMEOUT; USERS; POLICY; TASK_CLASS;"
    )
    assert found == TaskModel(name="Booking", kind="manual")


def test_who_has_a_role_and_no_type_is_a_person() -> None:
    assert model("ROLE Clerk;").kind == "manual"
    assert model("ROLE Clerk; APPLICATION Editor;").kind == "semi_automatic"
    assert model("APPLICATION Editor;").kind == "automatic"


@pytest.mark.parametrize("arrow", ["→", "->"])
@pytest.mark.parametrize(("both", "either"), [("and", "or"), ("AND", "OR"), ("And", "oR")])
def test_rules_nest(arrow: str, both: str, either: str) -> None:
    said = task(f"DEPENDS {either}({both}(a {arrow} SUCCEEDED, a{arrow}failed), a {arrow} Running);").depends
    assert said == AnyOf((AllOf((Term("a"), Term("a", "failed"))), Term("a", "running")))


@pytest.mark.parametrize("clauses", ["", "DEPENDS;"])
def test_a_task_without_a_rule_starts_at_once_and_once(clauses: str) -> None:
    found = task(clauses)
    assert (found.when, found.depends, found.fires) == ("true", None, "once")


def test_when_is_a_condition_that_fires_each_time() -> None:
    found = task("WHEN \"stage = 'new'\";", attributes="STRING stage;")
    assert (found.when, found.fires) == ("stage = 'new'", "each")
    assert task('WHEN "true"; FIRES ONCE;').fires == "once"
    assert task("DEPENDS a -> SUCCEEDED; FIRES EACH;").fires == "each"


def test_data_is_what_is_said_or_none_or_all() -> None:
    data = "STRING Stage; NUMBER Price;"
    assert task("", attributes=data).inputs == ()
    assert task("IN_CONTEXT;", attributes=data).inputs == ()
    assert task("IN_CONTEXT ALL;", attributes=data).inputs is None
    assert task("OUT_CONTEXT Price, Stage;", attributes=data).outputs == ("price", "stage")


def test_flows_tasks_and_attributes_are_called_in_snake_case() -> None:
    found = read_pdl('WORKFLOW Viagem_Aérea { STRING "Nome do Cliente"; TASK ReservarHTTPServer { } }').flows[0]
    assert (found.name, found.attributes[0].name, found.tasks[0].name) == (
        "viagem_aerea",
        "nome_do_cliente",
        "reservar_http_server",
    )


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('FILE F { NAME "/a/b.txt"; }', Attribute("f", "file", filename="/a/b.txt")),
        ('FILE F { FILENAME "/a/b.txt"; }', Attribute("f", "file", filename="/a/b.txt")),
        ("FILE F;", Attribute("f", "file")),
        ('QUERY Q { DATABASE "stock"; EXPRESSION "select 1"; }', Attribute("q", "json", query=Query("stock", "select 1"))),
        ('STRING S { VALUE "new"; }', Attribute("s", "text", "new")),
        ("STRING S { VALUE new; SEARCHABLE; REQUIRED; }", Attribute("s", "text", "new", searchable=True, required=True)),
        ("STRING S { VALUE; SEARCHABLE FALSE; }", Attribute("s", "text")),
        ("NUMBER N { VALUE 9.90; }", Attribute("n", "number", Decimal("9.90"))),
        ("NUMBER N { VALUE -3; }", Attribute("n", "number", Decimal(-3))),
        ("INTEGER I { VALUE 007; }", Attribute("i", "integer", 7)),
        ("BOOLEAN B { VALUE true; }", Attribute("b", "boolean", True)),
        ('DATE D { VALUE "2031-12-24"; }', Attribute("d", "date", date(2031, 12, 24))),
        ('TIMESTAMP T { VALUE "2031-12-24T18:00:00Z"; }', Attribute("t", "timestamp", datetime(2031, 12, 24, 18, tzinfo=UTC))),
        (r'JSON J { VALUE "{\"size\": [1, 2]}"; }', Attribute("j", "json", {"size": [1, 2]})),
    ],
)  # fmt: skip
def test_attributes_have_types_and_values(said: str, found: Attribute) -> None:
    assert attribute(said) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("5 MINUTES", timedelta(minutes=5)),
        ("1 hour", timedelta(hours=1)),
        ("1.5 DAYS", timedelta(days=1.5)),
        ("0.000001 SECONDS", timedelta(microseconds=1)),
    ],
)
def test_durations_have_units(said: str, found: timedelta) -> None:
    assert task(f"TIMEOUT {said};").timeout == found


def test_a_task_says_other_things_than_its_model() -> None:
    outside = "TASK Booking { TYPE MANUAL; ROLE Clerk; PRIORITY 5; DEADLINE 2 DAYS; POLICY ROUND_ROBIN; }"
    found = task("PRIORITY 9; DEADLINE; POLICY NOT_AS a;", head="b: Booking", outside=outside)
    assert (found.model, found.priority) == ("Booking", 9)
    assert found.offer == Offer(role="Clerk", policy=Policy("not_as", "a"))
    assert task("TYPE AUTOMATIC;", head="b: Booking", outside=outside).offer is None


def test_a_task_runs_another_flow() -> None:
    found = task(
        "DEPENDS a -> SUCCEEDED; IN_CONTEXT Number;", head="Fulfil: FLOW Delivery", attributes="INTEGER Number;"
    )
    assert (found.child, found.inputs, found.model) == ("delivery", ("number",), None)
    assert task("FLOW Delivery;").child == "delivery"


def test_what_else_a_task_may_say() -> None:
    found = task(
        "WAIT Due; BY_CLOCK; LIMIT 5 AT_ONCE, 2.5 PER_SECOND, 1 PER Customer; BACKOFF 3 SECONDS; ENABLED FALSE;",
        attributes="DATE Due; STRING Customer;",
    )
    assert (found.wait, found.by_clock, found.backoff, found.enabled) == ("due", True, timedelta(seconds=3), False)
    assert found.limit == Limit(at_once=5, per_second=2.5, per="customer", each=1)
    assert task("TASK_CLASS Stock;").task_class == "Stock"
    assert task("TRANSACTIONAL;").transactional


@pytest.mark.parametrize(
    ("said", "ends", "final"),
    [
        ("", "quiet", None),
        ("FINAL \"stage = 'done'\";", "final", "stage = 'done'"),
        ("ENDS FINAL;", "final", None),
        ("FINAL \"stage = 'done'\"; ENDS QUIET;", "quiet", "stage = 'done'"),
    ],
)
def test_a_flow_ends_quiet_unless_it_says_when(said: str, ends: str, final: str | None) -> None:
    found = flow(f"STRING stage; {said} {START}")
    assert (found.ends, found.final) == (ends, final)


def test_a_flow_says_who_may_create_it_and_what_it_is_for() -> None:
    found = flow(f'DESCRIPTION "Trips"; CREATOR "Travel desk"; FIRING_LIMIT 50; {START}')
    assert (found.description, found.creator, found.firing_limit) == ("Trips", "Travel desk", 50)


def test_three_kinds_of_comments_and_none_in_a_text() -> None:
    found = flow(f'# one\n // two\n /* three\n lines */ DESCRIPTION "no # comment // here /* nor here */"; {START}')
    assert found.description == "no # comment // here /* nor here */"


def test_escapes_in_texts() -> None:
    assert flow(rf'DESCRIPTION "a\n\t\"b\" \\ \u00e9 \U0001F600"; {START}').description == 'a\n\t"b" \\ é \U0001f600'


def test_the_language_s_own_words_are_names_as_well() -> None:
    found = flow(
        "TASK Task { } TASK Depends { DEPENDS or(Task -> SUCCEEDED); } TASK and { DEPENDS Depends -> FAILED; }"
    )
    assert [each.name for each in found.tasks] == ["task", "depends", "and"]


def test_a_file_holds_any_number_of_everything() -> None:
    text = (
        "WORKFLOW A { TASK x: M { } } WORKFLOW B { TASK x: M { } } WORKFLOW_DEFINITIONS A: B; RELATIVE_ORDER { x: x; }"
    )
    bundle = read_pdl(
        text
        + 'TASK M { TYPE AUTOMATIC; APPLICATION E; } APPLICATION E { FILENAME "e"; } APPLICATION F { FILENAME "f"; }'
    )
    counts = (len(each) for each in (bundle.flows, bundle.models, bundle.applications, bundle.orderings))
    assert tuple(counts) == (2, 1, 2, 1)


@pytest.mark.parametrize("unused", ["ROLE Clerk;", "USERS Paulo;", "DEADLINE 3 DAYS;", "POLICY ROUND_ROBIN;"])
def test_what_an_automatic_task_does_not_use_is_a_warning(unused: str) -> None:
    reading = examine([Source("x", f"TASK M {{ TYPE AUTOMATIC; {unused} }}")])
    [warning] = reading.findings.warnings
    assert warning.code == "pdl_unused"
    assert not reading.findings.errors


def test_a_group_is_for_a_cooperative_task() -> None:
    for kind, warnings in (("COOPERATIVE", 0), ("MANUAL", 1)):
        reading = examine([Source("x", f"TASK M {{ TYPE {kind}; ROLE Clerk; USERS Paulo; }}")])
        assert len(reading.findings.warnings) == warnings
