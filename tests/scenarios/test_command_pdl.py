"""`mutirao pdl` as its users meet it: files are checked, formatted, put in place as a whole, and written again."""

import json
import shutil
from pathlib import Path

import pytest
from command import answer, assert_refused, mutirao
from psycopg import AsyncConnection

LISTINGS = Path(__file__).parents[1] / "unit" / "pdl" / "listings"
EXAMPLES = Path(__file__).parents[2] / "examples"

TRAVEL = """\
workflow Travel {   # trips
  creator office;
  string Stage { value "new"; searchable; }
  task Book: Booking { depends; out_context Stage; }
  task Pay { when "stage = 'booked'"; out_context Stage; }
}
task Booking { type manual; role office; deadline 2 days; }
"""
FORMATTED = """\
WORKFLOW Travel {  # trips
  CREATOR office;
  STRING Stage { VALUE "new"; SEARCHABLE; }
  TASK Book: Booking {
    DEPENDS;
    OUT_CONTEXT Stage;
  }
  TASK Pay {
    WHEN "stage = 'booked'";
    OUT_CONTEXT Stage;
  }
}

TASK Booking {
  TYPE MANUAL;
  ROLE office;
  DEADLINE 2 DAYS;
}
"""


@pytest.fixture
def travel(tmp_path: Path) -> Path:
    file = tmp_path / "travel.pdl"
    file.write_text(TRAVEL, "utf-8")
    return file


async def add_roles(connection: AsyncConnection[object], *names: str) -> None:
    for name in names:
        await connection.execute("select mutirao.add_role(null, %s)", [name])


def test_files_are_checked_without_an_engine(travel: Path, tmp_path: Path) -> None:
    said = mutirao("pdl", "check", travel, MUTIRAO_HOME=tmp_path / "none")
    assert (said.returncode, said.stdout) == (0, "ok 1 flow, 1 task model\n")
    assert not (tmp_path / "none").exists()


def test_all_that_is_wrong_is_told_with_line_and_caret(travel: Path) -> None:
    travel.write_text(TRAVEL.replace("deadline", "dedline").replace("out_context Stage", "out_context Stag"), "utf-8")
    said = mutirao("pdl", "check", travel)
    assert said.returncode == 1
    lines = said.stdout.splitlines()
    assert lines[0].startswith(f"{travel}:4:45: unknown_attribute: ")
    assert lines[0].endswith('did you mean "stage"?')
    assert lines[1:3] == [
        "      task Book: Booking { depends; out_context Stag; }",
        " " * 48 + "^^^^",
    ]
    assert 'did you mean "DEADLINE"?' in said.stdout
    findings = json.loads(mutirao("pdl", "check", travel, "--json").stdout)["findings"]
    assert [(each["line"], each["code"]) for each in findings] == [
        (4, "unknown_attribute"),
        (5, "unknown_attribute"),
        (7, "pdl_syntax"),
    ]


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"\xff\xfe", "pdl_syntax"), (b"#" * 10_000_000, "pdl_too_large"), (None, "no_such_file")],
)
@pytest.mark.parametrize("command", ["check", "fmt", "apply"])
def test_what_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, command: str, content: bytes | None, code: str
) -> None:
    file = tmp_path / "a.pdl"
    if content is not None:
        file.write_bytes(content)
    assert_refused(mutirao("pdl", command, file), code)


def test_the_engine_is_asked_about_roles_and_conditions(travel: Path, database_url: str) -> None:
    alone = mutirao("pdl", "check", travel, "--database", database_url)
    assert alone.returncode == 1
    assert alone.stdout.count("unknown_role") == 2


async def test_postgresql_judges_the_conditions(
    travel: Path, database_url: str, connection: AsyncConnection[object]
) -> None:
    await add_roles(connection, "office")
    assert mutirao("pdl", "check", travel, "--database", database_url).stdout == "ok 1 flow, 1 task model\n"
    travel.write_text(TRAVEL.replace("stage = 'booked'", "stag = 'booked'"), "utf-8")
    for command in ("check", "apply"):
        said = mutirao("pdl", command, travel, "--database", database_url)
        assert said.returncode == 1
        told = said.stdout if command == "check" else said.stderr
        assert told.splitlines() == [
            f'{travel}:5:20: unknown_attribute: there is no attribute "stag"; did you mean "stage"?',
            """      task Pay { when "stag = 'booked'"; out_context Stage; }""",
            " " * 23 + "^^^^",
        ]
    assert answer("flow", "list", "--database", database_url) == []
    assert answer("pdl", "list", "--database", database_url) == []


async def test_all_that_postgresql_refuses_is_told(
    travel: Path, database_url: str, connection: AsyncConnection[object]
) -> None:
    await add_roles(connection, "office")
    await connection.execute("select mutirao.put_source('stock', 'postgresql://nobody@127.0.0.1:1/none')")
    wrong = TRAVEL.replace("stage = 'booked'", "stag = 'booked'").replace(
        "searchable; }",
        """searchable; }
  query Articles { database stok; expression "select 1"; }
  task Call { when "stage > 3"; out_context Stage; }
  final "staged";""",
    )
    travel.write_text(wrong + "WORKFLOW Other { STRING a; TASK b { WHEN \"c = 'x'\"; } }\n", "utf-8")
    for command in ("check", "apply"):
        said = mutirao("pdl", command, travel, "--database", database_url)
        lines = (said.stdout + said.stderr).splitlines()
        assert [line.removeprefix(f"{travel}:").split(": ")[:2] for line in lines[::3]] == [
            ["4:29", "unknown_database"],
            ["5:27", "condition_type"],
            ["6:10", "unknown_attribute"],
            ["8:20", "unknown_attribute"],
            ["11:43", "unknown_attribute"],
        ]
        assert lines[0].endswith('there is no database "stok"; did you mean "stock"?')
        assert lines[2] == " " * 32 + "^^^^"
    assert answer("flow", "list", "--database", database_url) == []


def test_files_are_formatted(travel: Path) -> None:
    assert mutirao("pdl", "fmt", travel, "--check").stdout == f"would change {travel}\n"
    shown = mutirao("pdl", "fmt", travel, "--diff")
    assert shown.returncode == 1
    assert {"-workflow Travel {   # trips", "+WORKFLOW Travel {  # trips"} <= set(shown.stdout.splitlines())
    assert travel.read_text("utf-8") == TRAVEL
    assert mutirao("pdl", "fmt", travel).stdout == f"formatted {travel}\n"
    assert travel.read_text("utf-8") == FORMATTED
    for options in ((), ("--check",), ("--diff",)):
        assert mutirao("pdl", "fmt", travel, *options).returncode == 0
    travel.write_text("TASK M {", "utf-8")
    said = mutirao("pdl", "fmt", travel)
    assert (said.returncode, said.stderr.splitlines()[1:]) == (1, ["    TASK M {", "            ^"])
    assert travel.read_text("utf-8") == "TASK M {"


def test_missing_roles_are_told_with_the_command_that_makes_them(travel: Path, database_url: str) -> None:
    travel.write_text(TRAVEL.replace("role office", 'role "the boss"'), "utf-8")
    said = mutirao("pdl", "apply", travel, "--database", database_url)
    assert said.returncode == 1
    assert said.stderr.splitlines()[:3] == [
        f'{travel}:2:11: unknown_role: there is no role "office"; there is administrator',
        "      creator office;",
        " " * 14 + "^^^^^^",
    ]
    assert f'{travel}:7:34: unknown_role: there is no role "the boss"' in said.stderr
    assert "role add office --database" in said.stderr
    assert "role add 'the boss' --database" in said.stderr
    assert answer("pdl", "list", "--database", database_url) == []


def test_a_missing_class_is_told_with_the_command_that_makes_it(travel: Path, database_url: str) -> None:
    travel.write_text("workflow f { task a { task_class cran; depends; } }", "utf-8")
    assert mutirao("class", "put", "crane", "--database", database_url).returncode == 0
    said = mutirao("pdl", "apply", travel, "--database", database_url)
    assert said.returncode == 1
    assert said.stderr.splitlines()[:3] == [
        f'{travel}:1:34: unknown_class: there is no class "cran"; did you mean "crane"?',
        "    workflow f { task a { task_class cran; depends; } }",
        " " * 37 + "^^^^",
    ]
    assert "class put cran --database" in said.stderr
    assert answer("pdl", "list", "--database", database_url) == []


async def test_what_is_applied_is_shown_again(
    travel: Path, database_url: str, connection: AsyncConnection[object]
) -> None:
    await add_roles(connection, "office")
    applied = mutirao("pdl", "apply", travel, "--database", database_url)
    assert applied.stdout == "travel: applied, version 1\nin the library: 1 task model\n"
    again = mutirao("pdl", "apply", travel, "--database", database_url)
    assert again.stdout == "travel: unchanged, version 1\nin the library: 1 task model\n"
    shown = mutirao("pdl", "show", "travel", "--database", database_url).stdout
    assert "TASK book: Booking {\n    DEPENDS;\n    OUT_CONTEXT stage;\n  }" in shown
    assert answer("pdl", "show", "travel", "--database", database_url)["pdl"] == shown
    travel.write_text(shown, "utf-8")
    same = mutirao("pdl", "apply", travel, "--database", database_url)
    assert same.stdout.startswith("travel: unchanged, version 1\n")
    people = mutirao("flow", "show", "travel", "--database", database_url, COLUMNS=200).stdout
    assert "done by office, within 2 d" in people
    assert "the role office" in people


async def test_the_creators_may_be_named_when_a_flow_is_applied(
    travel: Path, database_url: str, connection: AsyncConnection[object]
) -> None:
    await add_roles(connection, "office", "manager")
    travel.write_text(TRAVEL.replace("  creator office;\n", ""), "utf-8")
    assert_refused(mutirao("pdl", "apply", travel, "--creator", "boss", "--database", database_url), "unknown_role")
    assert mutirao("pdl", "apply", travel, "--creator", "manager", "--database", database_url).returncode == 0
    assert "CREATOR manager;" in mutirao("pdl", "show", "travel", "--database", database_url).stdout


async def test_the_software_house_of_the_seed_goes_in_from_its_listings(
    database_url: str, connection: AsyncConnection[object]
) -> None:
    await add_roles(connection, "Analista_Sistemas", "Programador", "Gerente")
    files = [LISTINGS / f"{name}.pdl" for name in ("workflow", "task_redigir", "task_criar", "application")]
    said = mutirao("pdl", "apply", *files, "--creator", "Gerente", "--database", database_url)
    assert said.stdout.startswith("criacao_sistema_software: applied, version 1\n")
    entries = answer("pdl", "list", "--database", database_url)
    assert [(each["kind"], each["name"], each["used_by"]) for each in entries] == [
        ("application", "EditorTexto", ["flow criacao_sistema_software", "task model RedigirDocumento"]),
        ("task_model", "CriarClasse", ["flow criacao_sistema_software"]),
        ("task_model", "RedigirDocumento", ["flow criacao_sistema_software"]),
    ]
    assert entries[0]["source"] == (LISTINGS / "application.pdl").read_text("utf-8").strip()
    assert_refused(mutirao("pdl", "drop", "application", "EditorTexto", "--database", database_url), "in_use")
    assert_refused(mutirao("pdl", "drop", "application", "--database", database_url), "usage", 2)
    assert_refused(mutirao("pdl", "drop", "program", "x", "--database", database_url), "wrong_call")


def test_what_nobody_uses_is_dropped(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "library.pdl"
    file.write_text(
        'TASK M { TYPE AUTOMATIC; }\nAPPLICATION E { FILENAME "e"; }\nWORKFLOW A { STRING s; TASK x { } }\n'
        "WORKFLOW_DEFINITIONS A: A; RELATIVE_ORDER { x: x; ON s; }",
        "utf-8",
    )
    assert mutirao("pdl", "apply", file, "--database", database_url).returncode == 0
    listed = " ".join(mutirao("pdl", "list", "--database", database_url, COLUMNS="160").stdout.split())
    assert "ordering a: a x: x; on s" in listed
    for words in (("task_model", "M"), ("application", "E"), ("ordering", "a", "a")):
        assert mutirao("pdl", "drop", *words, "--database", database_url).returncode == 0
    assert answer("pdl", "list", "--database", database_url) == []
    assert "There is nothing yet" in mutirao("pdl", "list", "--database", database_url).stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.pdl")), ids=lambda path: path.stem)
def test_examples_are_right(example: Path, tmp_path: Path) -> None:
    copy = shutil.copy(example, tmp_path)
    assert mutirao("pdl", "check", copy).stdout.startswith("ok ")
