"""`mutirao flow` as its users meet it, and how it refuses what is wrong with a flow."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from command import FLOWS, answer, assert_refused, mutirao
from psycopg import AsyncConnection

from mutirao.cli import render
from mutirao.testing.database import TestServer

ORDER = f"{FLOWS}:Order"


@pytest.fixture
async def any_url(servers: dict[str, TestServer]) -> AsyncIterator[str]:
    """For what is refused before PostgreSQL has a say: one version will do."""
    async with servers["pg18"].clone() as url:
        yield url


def test_applied_flow_is_listed_and_shown(database_url: str) -> None:
    assert mutirao("flow", "apply", ORDER, "--database", database_url).stdout == "order: applied, version 1\n"
    assert mutirao("flow", "apply", ORDER, "--database", database_url).stdout == "order: unchanged, version 1\n"
    [listed] = answer("flow", "list", "--database", database_url)
    assert (listed["name"], listed["version"], listed["tasks"], listed["live"]) == ("order", 1, 2, False)
    shown = answer("flow", "show", "order", "--database", database_url)
    assert [task["name"] for task in shown["tasks"]] == ["pay", "ship"]
    assert shown["final"] == "stage = 'shipped'"
    people = mutirao("flow", "show", "order", "--database", database_url).stdout
    assert all(word in people for word in ("Pay, then ship.", "customer", "stage = 'paid'", "searchable"))


SHOWN = """
from datetime import timedelta
from mutirao import Change, Flow, task

class Shown(Flow):
    given: str
    count: int = 0
    note: str | None = None

    @task(when="count = 0", timeout=timedelta(days=3, hours=18))
    def long(self) -> Change:
        return {}

    @task(when="count = 1", timeout=timedelta(seconds=90.5))
    def short(self) -> Change:
        return {}
"""


def test_shown_flow_is_exact_about_durations_and_what_must_be_given(any_url: str, tmp_path: Path) -> None:
    file = tmp_path / "shown.py"
    file.write_text(SHOWN)
    assert mutirao("flow", "apply", file, "--database", any_url).returncode == 0
    rows = [line.split() for line in mutirao("flow", "show", "shown", "--database", any_url).stdout.splitlines()]
    assert ["given", "text", "yes"] in rows
    assert ["count", "integer", "0"] in rows
    assert ["note", "text", "or", "null"] in rows
    assert ["long", "each", "3", "3", "d", "18", "h", "count", "=", "0"] in rows
    assert ["short", "each", "3", "1", "min", "30.5", "s", "count", "=", "1"] in rows


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(days=3, hours=18), "3 d 18 h"),
        (timedelta(minutes=5), "5 min"),
        (timedelta(hours=1, seconds=1), "1 h 1 s"),
        (timedelta(milliseconds=250), "0.25 s"),
        (timedelta(microseconds=1), "0.000001 s"),
        (timedelta(), "0 s"),
    ],
)
def test_duration_is_told_as_it_was_given(length: timedelta, said: str) -> None:
    assert render.duration(length) == said


def test_unknown_flow_and_version_are_refused(database_url: str) -> None:
    assert mutirao("flow", "apply", ORDER, "--database", database_url).returncode == 0
    said = mutirao("flow", "show", "oder", "--database", database_url)
    assert_refused(said, "unknown_flow")
    assert 'did you mean "order"?' in said.stderr
    assert_refused(mutirao("flow", "show", "order", "--version", 7, "--database", database_url), "unknown_version")


def test_check_of_a_broken_file_names_the_line(any_url: str, tmp_path: Path) -> None:
    for name, text in {"syntax": "x = 1\nclass Wrong(Flow:\n", "broken": "x = 1\nx / 0\n"}.items():
        file = tmp_path / f"line_2_{name}.py"
        file.write_text(text)
        [verdict] = json.loads(mutirao("flow", "check", file, "--json", "--database", any_url).stdout)
        assert (verdict["code"], verdict["file"], verdict["line"]) == ("module_broken", str(file), 2)


def test_check_says_ok_and_changes_nothing(database_url: str) -> None:
    said = mutirao("flow", "check", FLOWS, "--database", database_url)
    assert said.returncode == 0, said
    assert f"ok order ({FLOWS})" in said.stdout
    assert answer("flow", "list", "--database", database_url) == []


WRONG_CONDITIONS = {
    "unknown_attribute": ("satge = 'new'", "unknown_attribute"),
    "unknown_task": ("task_pya = 'failed'", "unknown_attribute"),
    "wrong_type": ("stage", "condition_type"),
    "incomparable": ("stage = 3 + 4", "condition_type"),
    "subquery": ("exists (select 1)", "condition_refused"),
    "second_statement": ("true; drop table mutirao.job", "condition_refused"),
    "sleeper": ("pg_sleep(9) is null", "condition_refused"),
    "unbalanced": ("(stage = 'new'", "condition_syntax"),
}

WRONG_FLOW = """
class {name}(Flow):
    name = "{name}"
    stage: str = "new"
    final = "stage = 'done'"

    @task(when={when!r})
    def pay(self) -> Change:
        return {{}}
"""


def test_check_names_what_is_wrong_with_each_condition(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong_conditions.py"
    flows = [WRONG_FLOW.format(name=name, when=when) for name, (when, _) in WRONG_CONDITIONS.items()]
    file.write_text("\n".join(["from mutirao import Change, Flow, task", *flows]))
    said = mutirao("flow", "check", file, "--database", database_url)
    lines = said.stdout.splitlines()
    assert (said.returncode, said.stderr, len(lines)) == (1, "", len(WRONG_CONDITIONS))
    for line, (name, (_, code)) in zip(lines, WRONG_CONDITIONS.items(), strict=True):
        assert line.startswith(f"refused {name} ({file}): {code}: "), line
        assert '"pay"' in line


def test_check_tells_programs_where_it_is_wrong(any_url: str, tmp_path: Path) -> None:
    file = tmp_path / "two_flows.py"
    flows = [WRONG_FLOW.format(name="good", when="stage = 'new'"), WRONG_FLOW.format(name="bad", when="satge = 'new'")]
    file.write_text("".join(["from mutirao import Change, Flow, task\n", *flows]))
    said = mutirao("flow", "check", file, "nowhere:Flow", "--json", "--database", any_url)
    good, bad, missing = json.loads(said.stdout)
    assert said.returncode == 1
    nothing = {"code": None, "message": None}
    assert good == {"ok": True, "place": str(file), "flow": "good", **nothing, "file": str(file), "line": 3}
    assert bad.pop("message").startswith('condition of task "pay", character 1: there is no attribute "satge"')
    where = {"file": str(file), "line": file.read_text().splitlines().index("    @task(when=\"satge = 'new'\")") + 1}
    assert bad == {"ok": False, "place": str(file), "flow": "bad", "code": "unknown_attribute", **where}
    assert (missing["code"], missing["file"], missing["line"]) == ("module_not_found", None, None)


WRONG_FILES = {
    "keyword": ('class Wrong(Flow):\n    select: str = "x"\n', "attribute_reserved"),
    "twins": ("class A(Flow):\n    name = 'same'\n\nclass B(Flow):\n    name = 'same'\n", "duplicate_name"),
    "no_flow": ("x = 1\n", "not_a_flow"),
    "broken": ("import nowhere_to_be_found\n", "module_broken"),
    "syntax": ("class Wrong(Flow:\n", "module_broken"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_file_is_refused_by_check_and_apply(any_url: str, tmp_path: Path, name: str) -> None:
    text, code = WRONG_FILES[name]
    file = tmp_path / f"wrong_{name}.py"
    file.write_text(f"from mutirao import Change, Flow, task\n\n{text}")
    said = mutirao("flow", "check", file, "--json", "--database", any_url)
    [verdict] = json.loads(said.stdout)
    assert said.returncode == 1
    assert (verdict["ok"], verdict["code"], verdict["place"], verdict["file"]) == (False, code, str(file), str(file))
    assert_refused(mutirao("flow", "apply", file, "--database", any_url), code)


def test_flows_of_one_name_in_two_files_are_refused_by_check_and_apply(any_url: str, tmp_path: Path) -> None:
    files = [tmp_path / "first_shop.py", tmp_path / "second_shop.py"]
    for file in files:
        file.write_text("from mutirao import Flow\n\nclass Same(Flow):\n    stage: str = 'new'\n")
    said = mutirao("flow", "check", *files, files[0], "--json", "--database", any_url)
    first, second, first_again = json.loads(said.stdout)
    assert (said.returncode, first["ok"], first_again["ok"]) == (1, True, True)
    assert (second["code"], second["file"], second["line"]) == ("duplicate_name", str(files[1]), 3)
    assert second["message"].startswith('two flows have the name "same": first_shop:Same and second_shop:Same; ')
    assert 'name = "…"' in second["message"]
    assert_refused(mutirao("flow", "apply", *files, "--database", any_url), "duplicate_name")


async def test_flow_without_a_final_condition_says_that_it_never_ends(
    database_url: str, connection: AsyncConnection[Any]
) -> None:
    await connection.execute("select mutirao.create_flow('order')")
    async with connection.transaction():
        await connection.execute("insert into \"order\".wed_attr (aname, adv) values ('a', 'x')")
        await connection.execute("insert into \"order\".wed_trig (trname, cpred) values ('go', $$a = 'x'$$)")
    shown = " ".join(mutirao("flow", "show", "order", "--database", database_url).stdout.split())
    assert "ends never by itself: it has no final condition, and comes to rest in an exception" in shown


def test_words_in_brackets_stay_in_the_help() -> None:
    assert "mutirao[parquet]" in " ".join(mutirao("export", "--help", COLUMNS=200).stdout.split())
    assert "mutirao[otel]" in " ".join(mutirao("worker", "--help", COLUMNS=200).stdout.split())


async def test_flow_made_in_sql_is_not_replaced(database_url: str, connection: AsyncConnection[Any]) -> None:
    await connection.execute("select mutirao.create_flow('order')")
    said = mutirao("flow", "check", ORDER, "--database", database_url)
    assert (said.returncode, "flow_live" in said.stdout) == (1, True)


def test_database_without_our_schema_is_the_operators_business(empty_database_url: str) -> None:
    said = mutirao("flow", "list", "--database", empty_database_url)
    assert_refused(said, "schema_too_old", exit_code=3)
    assert "mutirao db upgrade" in said.stderr


async def test_program_older_than_the_schema_is_refused(database_url: str, connection: AsyncConnection[Any]) -> None:
    await connection.execute("insert into mutirao.migration (number, name, checksum) values (9999, 'later', 'x')")
    for command in (["flow", "list"], ["worker", ORDER]):
        assert_refused(mutirao(*command, "--database", database_url), "schema_too_new", exit_code=3)
