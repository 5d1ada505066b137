"""What is wrong is told with its place, and what was meant. All of a file at once."""

import pickle

import pytest

from mutirao.errors import FlowError
from mutirao.language.pdl import PdlError, Source, examine, read_pdl
from mutirao.language.pdl.finding import MOST_FINDINGS, Finding
from mutirao.model import Application, Inventory, TaskModel

KNOWN = Inventory(
    roles=["Clerk", "Manager"],
    models={"Booking": TaskModel(name="Booking", kind="manual", role="Clerk")},
    applications={"Editor": Application(name="Editor", filename="/bin/ed")},
    tasks={"delivery": ["pack", "send"], "returns": ["check"]},
    children={"returns": ["travel"]},
)


def findings(text: str, known: Inventory | None = None) -> list[Finding]:
    return examine([Source("shop.pdl", text)], known).findings.errors


def only(text: str, known: Inventory | None = None) -> Finding:
    [found] = findings(text, known)
    return found


def in_task(clauses: str, attributes: str = "STRING Stage;") -> str:
    return f"WORKFLOW Travel {{ {attributes} TASK Book {{ }} TASK Pay {{ {clauses} }} }}"


def test_a_finding_is_a_line_with_its_place_the_source_and_a_caret() -> None:
    found = only("WORKFLOW Travel {\n  TASK Book {\n    PRIORTY 20;\n  }\n}\n")
    assert found.shown().splitlines() == [
        'shop.pdl:3:5: pdl_syntax: there is no "PRIORTY" in TASK; did you mean "PRIORITY"?',
        "        PRIORTY 20;",
        "        ^^^^^^^",
    ]


def test_what_would_steer_a_terminal_is_not_shown() -> None:
    shown = only('TASK M { ROLE "\x1b[31m" "x"; } # \x1b[0m').shown()
    assert "\x1b" not in shown


def test_without_an_engine_a_missing_model_may_be_in_another_file() -> None:
    assert "give the file that defines it as well" in only("WORKFLOW A { TASK b: Booking { } }").message


def test_a_refusal_is_one_line_with_a_code_and_keeps_its_findings() -> None:
    with pytest.raises(PdlError, match=r"pdl_syntax: pdl:1:1: .* \(and 1 more\)") as refused:
        read_pdl("WORKFLO A { } TASKS B { }")
    again = pickle.loads(pickle.dumps(refused.value))
    assert again.findings == refused.value.findings
    assert isinstance(again, FlowError)
    assert "\n" not in str(again)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("WORKFLOW Travel {\n TASK Book {\n DEPENDS\n }\n}", 3, 9, '";" is missing here, before "}"'),
        ("TASK M {\n  PRIORITY 5 # five\n}", 2, 13, '";" is missing here, before "}"'),
        ("TASK M {\n  DEADLINE 48 HOURS\n  PRIORITY 5;\n}", 2, 20, '";" is missing here, before PRIORITY'),
        ("TASK M {\n  PRIORITY 5;\n", 2, 14, '"}" is missing'),
        ('TASK M {\n  DESCRIPTION "no end;\n}', 2, 15, "no closing quote"),
        ("TASK M { /* no end }", 1, 10, "no closing */"),
        ("TASK M { ROLE a@b; }", 1, 16, "@ does not belong here"),
        ("TASK { }", 1, 1, "TASK takes one name"),
        ("TASK M: { }", 1, 9, "expected a word or a text in quotes"),
        ("WORKFLOW A { TASK b { TASK c { } } }", 1, 23, 'is a "}" missing before it?'),
        ("A { B { C { D { } } } }", 1, 1, 'is a "}" missing'),
        ("PROCESS A { }", 1, 1, "WORKFLOW"),
        ("TASK A: B { }", 1, 1, "stands in a WORKFLOW"),
        ("TASK M { PRIORITY 5; PRIORITY 6; }", 1, 22, "twice"),
        ("TASK M { PRIORITY; }", 1, 10, "PRIORITY takes a whole number"),
        ("TASK M { PRIORITY high; }", 1, 19, "PRIORITY takes a whole number"),
        ("TASK M { PRIORITY 99999999999999999999999999; }", 1, 19, "PRIORITY takes a whole number"),
        ("TASK M { DEADLINE 5; }", 1, 19, "a number and a unit"),
        ("TASK M { DEADLINE 5 HOUSR; }", 1, 21, 'did you mean "HOURS"?'),
        ("TASK M { DEADLINE -5 HOURS; }", 1, 19, "nothing takes so long"),
        ("TASK M { DEADLINE 1e999999999999 DAYS; }", 1, 19, "a number and a unit"),
        ("TASK M { TIMEOUT 0.1234567 SECONDS; }", 1, 18, "finer than a microsecond"),
        ("TASK M { TYPE Semiautomatic; }", 1, 15, 'did you mean "SEMI_AUTOMATIC"?'),
        ("TASK M { DISCONNECTED_OPERATION maybe; }", 1, 33, "TRUE or FALSE"),
        ("TASK M { POLICY LEST_LOADED; }", 1, 17, 'did you mean "LEAST_LOADED"?'),
        ("TASK M { POLICY SAME_AS; }", 1, 17, "SAME_AS task"),
        (r'TASK M { DESCRIPTION "C:\path"; }', 1, 22, r"a backslash itself is written \\"),
        (in_task("DEPENDS Book -> SUCCEDED;"), 1, 74, 'did you mean "SUCCEEDED"?'),
        (in_task("DEPENDS Book -> NOT_READY;"), 1, 74, "no rule can wait for that"),
        (in_task("DEPENDS not(Book -> FAILED);"), 1, 66, "write and(…) or or(…)"),
        (in_task("DEPENDS Book;"), 1, 66, "DEPENDS takes a rule"),
        (in_task("LIMIT 5;"), 1, 64, "5 AT_ONCE"),
        (in_task("LIMIT 5 PER a -> b;"), 1, 64, "5 AT_ONCE"),
        (in_task("FLOW B;").replace("Pay {", "Pay: FLOW A {"), 1, 66, "already"),
        ("WORKFLOW_DEFINITIONS A: B;", 1, 1, "RELATIVE_ORDER { … } is missing"),
        ("WORKFLOW_DEFINITIONS A; TASK M { }", 1, 1, "takes two flows"),
        ("RELATIVE_ORDER { a: b; }", 1, 1, "is missing before it"),
        ("APPLICATION E { OS Linux; }", 1, 13, "FILENAME"),
        ("WORKFLOW A { QUERY Q { DATABASE d; } TASK b { } }", 1, 14, "EXPRESSION"),
    ],
)  # fmt: skip
def test_form_is_refused_where_it_is_wrong(text: str, line: int, column: int, said: str) -> None:
    found = only(text)
    assert (found.code, found.place.line, found.place.column) == ("pdl_syntax", line, column), found.shown()
    assert said in found.message


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("WORKFLOW A { TASK b: Boking { } }", "unknown_model", 'there is no task model "Boking"; did you mean "Booking"?'),
        (in_task("TYPE MANUAL; ROLE Clrk;"), "unknown_role", 'did you mean "Clerk"?'),
        ("WORKFLOW A { CREATOR Boss; TASK b { } }", "unknown_role", 'there is no role "Boss"; there is Clerk, Manager'),
        (in_task("APPLICATION Editr;"), "unknown_application", 'did you mean "Editor"?'),
        ("TASK M { APPLICATION Editr; }", "unknown_application", 'did you mean "Editor"?'),
        (in_task("IN_CONTEXT Stag;"), "unknown_attribute", 'there is no attribute "Stag" in this flow; did you mean "stage"?'),
        (in_task("OUT_CONTEXT Stage, Price;"), "unknown_attribute", '"Price"'),
        (in_task("WAIT Due;"), "unknown_attribute", '"Due"'),
        (in_task("LIMIT 1 PER Customer;"), "unknown_attribute", '"Customer"'),
        (in_task("DEPENDS and(Book -> FAILED, Bok -> FAILED);"), "unknown_task", 'did you mean "book"?'),
        (in_task("ROLE Clerk; POLICY SAME_AS Bok;"), "unknown_task", 'did you mean "book"?'),
        ("WORKFLOW A { TASK b: FLOW Delivry { } }", "unknown_flow", 'did you mean "delivery"?'),
        ("WORKFLOW_DEFINITIONS Delivery: Nothing; RELATIVE_ORDER { pack: pack; }", "unknown_flow", '"nothing"'),
        ("WORKFLOW_DEFINITIONS Delivery: Returns; RELATIVE_ORDER { pack: check; sent: check; }", "unknown_task", '"send"'),
        (in_task('DEPENDS Book -> FAILED; WHEN "true";'), "flow_invalid", "not by both"),
        (in_task("TYPE MANUAL;"), "flow_invalid", "needs a ROLE"),
        (in_task("TYPE MANUAL; ROLE Clerk; APPLICATION Editor;"), "flow_invalid", "a manual task is done without an application"),
        ("TASK M { TYPE MANUAL; ROLE Clerk; APPLICATION Editor; }", "flow_invalid", "a manual task is done without an application"),
        (in_task("ROLE Clerk;").replace("Pay {", "Pay: FLOW Delivery {"), "flow_invalid", "one thing does a task"),
        (in_task("WAIT Stage;"), "flow_invalid", "a wait needs a timestamp or a date"),
        (in_task("", "STRING Task_Stage;"), "attribute_reserved", "task_"),
        ("WORKFLOW A { INTEGER n { VALUE many; } TASK b { } }", "wrong_type", "VALUE of this INTEGER is written 5"),
        ("WORKFLOW A { INTEGER n { VALUE 99999999999999999999; } TASK b { } }", "wrong_type", "64 bits"),
        ('WORKFLOW A { DATE d { VALUE "tomorrow"; } TASK b { } }', "wrong_type", '"2031-12-24"'),
        ('WORKFLOW A { FILE f { VALUE "{}"; } TASK b { } }', "wrong_type", "what the file store answered"),
        (r'WORKFLOW A { FILE f { VALUE "{\"sha256\": \"x\", \"name\": \"/\", \"size\": 1}"; } TASK b { } }', "wrong_type", "file store"),
        ('WORKFLOW A { JSON j { VALUE "{"; } TASK b { } }', "wrong_type", "JSON in a text"),
        (f'WORKFLOW A {{ JSON j {{ VALUE "{"[" * 100_000}"; }} TASK b {{ }} }}', "wrong_type", "JSON in a text"),
        ("WORKFLOW Ação! { }".replace("!", "'"), "pdl_syntax", "'"),
        ('WORKFLOW "5 a day" { TASK b { } }', "flow_invalid", "a letter from a to z"),
        ("WORKFLOW A { STRING a; STRING A; TASK b { } }", "duplicate_name", '"a"'),
        ("WORKFLOW A { TASK PayBill { } TASK pay_bill { } }", "duplicate_name", "CamelCase and snake_case are one name"),
        ("WORKFLOW ToDo { TASK b { } } WORKFLOW to_do { TASK b { } }", "duplicate_name", '"to_do"'),
        ("TASK M { } TASK M { }", "duplicate_name", '"M"'),
        ('APPLICATION E { FILENAME "e"; } APPLICATION E { FILENAME "f"; }', "duplicate_name", '"E"'),
    ],
)  # fmt: skip
def test_meaning_is_refused_with_a_code(text: str, code: str, said: str) -> None:
    found = only(text, KNOWN)
    assert found.code == code, found.shown()
    assert said in found.message


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('WORKFLOW A { INTEGR Price; TASK b { WHEN "price > 3"; IN_CONTEXT Price; } }', "INTEGR"),
        ('WORKFLOW A { INTEGR Price { REQUIRED; } TASK b { WHEN "price > 3"; OUT_CONTEXT Price; } }', "INTEGR"),
        ("WORKFLOW A { INTEGER Price High; TASK b { LIMIT 1 PER Price; } }", "INTEGER"),
        ("WORKFLOW A { TASKK PayBill { } TASK b { DEPENDS PayBill -> FAILED; } }", "TASKK"),
        ("WORKFLOW A { TASK PayBill: FLO c { } TASK b { COMPENSATION PayBill; } }", "FLO"),
        ("TASK M { ROLE Clerk; POLICY SAME_AS pay; } WORKFLOW A { TASKK pay { } TASK b: M { } }", "TASKK"),
        ("WORKFLOW A { TASKK pay { } } WORKFLOW_DEFINITIONS A: Returns; RELATIVE_ORDER { pay: check; }", "TASKK"),
    ],
)
def test_what_cannot_be_read_is_not_told_to_be_missing_as_well(text: str, word: str) -> None:
    reading = examine([Source("shop.pdl", text)], KNOWN)
    [found] = reading.findings.errors
    assert under_caret(found) == word
    assert "a" not in {flow.name for flow in reading.flows}, "an engine would judge its conditions without it"


def under_caret(found: Finding) -> str:
    _, line, caret = found.shown().split("\n")
    return line[caret.index("^") : len(caret)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (in_task("ROLE Clrk;"), "Clrk"),
        ("WORKFLOW A { CREATOR Boss; TASK b { } }", "Boss"),
        ("TASK M { ROLE Clrk; } WORKFLOW A { TASK b: M { } }", "Clrk"),
        (in_task("APPLICATION Editr;"), "Editr"),
        ("TASK M { APPLICATION Editr; }", "Editr"),
        (in_task("FLOW Delivry;"), "Delivry"),
        ("WORKFLOW A { TASK b: FLOW Delivry { } }", "Delivry"),
        ("WORKFLOW Travel { TASK x: FLOW Returns { } }", "Returns"),
        (in_task("IN_CONTEXT Stage, Stage;").replace(" Stage, ", " stage, "), "Stage"),
        (in_task("PRIORITY 1000001;"), "1000001"),
        (in_task("RETRIES -1;"), "-1"),
        (in_task("TIMEOUT 0 HOURS;"), "0"),
        (in_task("WAIT Stage;"), "Stage"),
        (in_task("LIMIT 0 AT_ONCE;"), "0"),
        (in_task("LIMIT 5 AT_ONE;"), "AT_ONE"),
        (in_task('WHEN " ";'), '" "'),
        (in_task("DEPENDS Pay -> FAILED;"), "Pay"),
        (in_task('ROLE " Clerk";'), '" Clerk"'),
        (in_task("TYPE MANUAL; ROLE Clerk; APPLICATION Editor;"), "Editor"),
        (in_task("", "STRING Order;"), "Order"),
        (in_task("", "STRING ctid;"), "ctid"),
        (in_task("", "STRING Größe;"), "Größe"),
        (in_task("", f"STRING {'x' * 49};"), "x" * 49),
        (in_task("", "INTEGER n { VALUE many; }"), "many"),
        (in_task("", "FILE f { SEARCHABLE; }"), "SEARCHABLE"),
        ("WORKFLOW A { FIRING_LIMIT 0; TASK b { } }", "0"),
        ('WORKFLOW A { FINAL ""; TASK b { } }', '""'),
        ("TASK M { PRIORITY 1000001; }", "1000001"),
        ('APPLICATION E { FILENAME "e"; SIZE -5; }', "-5"),
        ("APPLICATION E { FILENAM e; }", "FILENAM"),
        ("WORKFLOW_DEFINITIONS Delivery: Retuns; RELATIVE_ORDER { pack: check; }", "Retuns"),
        ("WORKFLOW_DEFINITIONS Delivery: Returns; RELATIVE_ORDER { pack: chek; }", "chek"),
        ("WORKFLOW_DEFINITIONS Delivery: Returns; RELATIVE_ORDER { pack: check; Pack: check; }", "Pack"),
        ("WORKFLOW_DEFINITIONS Delivery: Returns; RELATIVE_ORDER { }", "RELATIVE_ORDER"),
        ("WORKFLOW A { TASK b { DEPENDS; \nTASK c { DEPENDS; } }", "TASK"),
        (in_task("ROLE: Clerk;"), "ROLE"),
    ],
)  # fmt: skip
def test_the_caret_stands_under_the_word_that_is_wrong(text: str, word: str) -> None:
    assert under_caret(findings(text, KNOWN)[-1]) == word


@pytest.mark.parametrize(
    ("condition", "character", "word"),
    [
        ('"stag = 5"', 1, "stag"),
        (r'"a = \"x\" and stag"', 13, "stag"),
        ('"a\n      and\n   stag > 5"', 7, "stag"),
        ('"a = "', 5, '"'),
        ("stag", 1, "stag"),
    ],
)
def test_what_an_engine_refuses_of_a_condition_is_told_at_the_word(condition: str, character: int, word: str) -> None:
    reading = examine([Source("x", in_task(f"WHEN {condition};"))])
    message = f'flow "travel": condition of task "pay", character {character}: there is no attribute "stag"'
    reading.note(FlowError("unknown_attribute", message))
    [found] = reading.findings.errors
    assert (found.message, under_caret(found)) == ('there is no attribute "stag"', word)


def test_what_an_engine_refuses_and_is_in_none_of_the_files_is_raised() -> None:
    with pytest.raises(FlowError, match="something else"):
        examine([Source("x", in_task(""))]).note(FlowError("flow_invalid", "something else"))


@pytest.mark.parametrize(
    ("tasks", "codes"),
    [
        ("", ["never_starts"]),
        ("TASK a { ENABLED FALSE; }", ["never_starts"]),
        ("TASK a { DEPENDS a -> SUCCEEDED; }", ["never_starts", "dependency_cycle"]),
        ("TASK a { DEPENDS b -> FAILED; } TASK b { DEPENDS a -> FAILED; }", ["never_starts", "dependency_cycle"]),
        (
            "TASK s { } TASK a { DEPENDS and(s -> FAILED, b -> FAILED); } TASK b { DEPENDS a -> FAILED; }",
            ["dependency_cycle"],
        ),
        ("TASK s { } TASK a { DEPENDS or(s -> FAILED, b -> FAILED); } TASK b { DEPENDS a -> FAILED; }", []),
        (
            "DATE d; TASK s { WAIT d; BY_CLOCK; } TASK a { DEPENDS s -> RUNNING; } TASK b { DEPENDS a -> READY; }",
            ["never_runs", "never_runs"],
        ),
        ("DATE d; TASK s { WAIT d; BY_CLOCK; } TASK a { DEPENDS s -> FAILED; }", ["never_runs"]),
        ('TASK s { } TASK a { WHEN "false"; }', ["never_runs"]),
        ("TASK s { } TASK o { ENABLED FALSE; } TASK a { DEPENDS o -> SUCCEEDED; }", ["never_runs"]),
        ('TASK s { WHEN "true"; } TASK a { DEPENDS and(s -> FAILED, s -> SUCCEEDED); }', []),
    ],
)
def test_flows_that_cannot_start_and_tasks_that_cannot_run(tasks: str, codes: list[str]) -> None:
    assert [each.code for each in findings(f"WORKFLOW A {{ {tasks} }}")] == codes


def test_it_is_told_why_a_task_can_never_run() -> None:
    text = "WORKFLOW A { DATE d; TASK s { WAIT d; BY_CLOCK; } TASK a { DEPENDS s -> FAILED; } TASK b { DEPENDS a -> READY; } }"
    first, second = findings(text)
    assert first.message == 'the task "a" can never run: it depends on "s" being FAILED, which that task never is'
    assert second.message == 'the task "b" can never run: it depends on "a", which can never run'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("WORKFLOW A { TASK b: FLOW A { } }", "a runs a"),
        ("WORKFLOW A { TASK x: FLOW B { } } WORKFLOW B { TASK x: FLOW C { } } WORKFLOW C { TASK x: FLOW A { } }", "a runs b runs c runs a"),
        ("WORKFLOW Travel { TASK x: FLOW Returns { } }", "returns runs travel runs returns"),
    ],
)  # fmt: skip
def test_flows_that_run_one_another_in_a_circle(text: str, said: str) -> None:
    found = only(text, KNOWN)
    assert found.code == "child_circle"
    assert said in found.message


def test_what_is_handed_to_a_child_is_checked() -> None:
    child = "WORKFLOW Child { STRING Needed { REQUIRED; } STRING Other; TASK x { } }"
    right = (
        "WORKFLOW A { STRING Needed; TASK b: FLOW Child { IN_CONTEXT Needed; } TASK c: FLOW Child { IN_CONTEXT ALL; } }"
    )
    assert findings(right + child) == []
    found = only("WORKFLOW A { STRING Othr; TASK b: FLOW Child { IN_CONTEXT Othr; } }" + child)
    assert (found.code, '"needed"' in found.message) == ("missing_attribute", True)
    [warning] = examine(
        [
            Source(
                "x",
                "WORKFLOW A { STRING Needed; STRING Othr; TASK b: FLOW Child { IN_CONTEXT Needed; OUT_CONTEXT Othr; } }"
                + child,
            )
        ]
    ).findings.warnings
    assert 'did you mean "other"?' in warning.message


def test_without_an_engine_what_is_not_in_the_files_is_a_warning() -> None:
    reading = examine([Source("x", "WORKFLOW A { TASK b: FLOW B { } TASK c { APPLICATION E; } TASK d { ROLE R; } }")])
    assert not reading.findings.errors
    assert [each.code for each in reading.findings.warnings] == ["unknown_flow", "unknown_application"]


def test_files_are_read_together_and_each_finding_names_its_own() -> None:
    first = Source("a.pdl", "WORKFLOW A { TASK b: M { IN_CONTEXT c; } }")
    second = Source("b.pdl", "TASK M { APPLICATION E; }\nTASK M { }")
    third = Source("c.pdl", "TASK")
    found = examine([first, second, third]).findings.errors
    assert [(each.place.source.name, each.code) for each in found] == [
        ("c.pdl", "pdl_syntax"),
        ("b.pdl", "duplicate_name"),
        ("a.pdl", "unknown_attribute"),
    ]


def test_what_the_model_refuses_is_told_at_its_part() -> None:
    text = 'WORKFLOW A {\n  STRING s;\n  QUERY q { DATABASE d; EXPRESSION "select :t"; }\n  TASK b { }\n}'
    found = only(text)
    assert (found.code, found.place.line, found.place.column) == ("unknown_attribute", 3, 9)


def test_what_follows_from_a_wrong_model_is_not_told_as_well() -> None:
    reading = examine(
        [Source("x", "WORKFLOW A { TASK b: M { DEADLINE 1 HOURS; } } TASK M { TYPE MANUEL; ROLE Clerk; }")]
    )
    assert [each.code for each in reading.findings.found] == ["pdl_syntax"]


def test_at_most_twenty_errors_are_told() -> None:
    text = "TASK M { " + "FOO 1; " * 50 + "}"
    assert len(findings(text)) == MOST_FINDINGS


def test_a_file_that_is_too_large_is_refused_at_once() -> None:
    with pytest.raises(FlowError, match=r"pdl_too_large: .* has 10,000,000 bytes, and a PDL file has at most 500,000"):
        examine([Source("x", "#" * 10_000_000)])


@pytest.mark.parametrize("depth", [101, 1_000, 90_000])
def test_a_rule_that_is_too_deep_is_refused(depth: int) -> None:
    found = only(in_task(f"DEPENDS {'and(' * depth}Book -> FAILED{')' * depth};"))
    assert (found.code, found.message) == ("pdl_syntax", "this rule is nested more than 100 deep")


def test_a_rule_of_a_hundred_levels_is_read() -> None:
    [flow] = read_pdl(in_task(f"DEPENDS {'and(' * 99}Book -> FAILED{')' * 99};")).flows
    assert flow.tasks[1].depends is not None


@pytest.mark.timeout(30)  # what grew with the square of the tasks took minutes
def test_a_long_chain_of_tasks_is_read() -> None:
    chain = "".join(f"TASK T{n} {{ DEPENDS T{n - 1} -> SUCCEEDED; ROLE clerk; }}\n" for n in range(1, 6_000))
    [flow] = read_pdl(f"WORKFLOW A {{ TASK T0 {{ ROLE clerk; DEPENDS; }}\n{chain} }}").flows
    assert len(flow.tasks) == 6_000


@pytest.mark.timeout(30)
def test_thousands_of_unknown_names_are_told_of_in_time() -> None:
    tasks = "".join(f"TASK T{n} {{ DEPENDS Unknown{n} -> SUCCEEDED; ROLE clerk; }}\n" for n in range(3_000))
    assert len(findings(f"WORKFLOW A {{ {tasks} }}")) == MOST_FINDINGS


@pytest.mark.timeout(30)
def test_many_ways_to_the_same_task_are_gone_along_once() -> None:
    """Forty layers of two tasks each, each waiting for both before it, above one that never starts."""
    layers = "".join(
        f"TASK {side}{n} {{ DEPENDS and(A{n - 1} -> SUCCEEDED, B{n - 1} -> SUCCEEDED); ROLE clerk; }}\n"
        for n in range(1, 40)
        for side in "AB"
    )
    bottom = 'TASK A0 { WHEN "false"; ROLE clerk; } TASK B0 { WHEN "false"; ROLE clerk; }'
    assert {each.code for each in findings(f"WORKFLOW W {{ {bottom}\n{layers} }}")} >= {"never_runs"}


@pytest.mark.parametrize("depth", [101, 100_000])
def test_blocks_without_end_are_refused(depth: int) -> None:
    assert only("A {" * depth + "}" * depth).code == "pdl_syntax"


def test_a_name_with_a_quote_is_a_name_where_names_are_free() -> None:
    text = r"""WORKFLOW A { CREATOR "O'Neil's \"office\""; TASK b { TYPE MANUAL; ROLE "x'; drop table y; --"; } }"""
    [flow] = read_pdl(text).flows
    assert flow.creator == "O'Neil's \"office\""
