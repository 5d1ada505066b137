"""Why a condition holds or not: it is cut as PostgreSQL reads it, and each part is what PostgreSQL says it is."""

import json
import random
from typing import Any

import pytest
from driver import Engine, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

Tree = dict[str, Any]

ATTRIBUTES = {"n": {"type": "integer"}, "s": {"type": "text"}, "b": {"type": "boolean"}, "when_due": {"type": "date"}}
NAMES = ["n", "s", "b", "when_due", "task_go"]
TYPES = ["bigint", "text", "boolean", "date", "text"]

# Each has something in it that looks like a place to cut, or that must not be cut off from its neighbours.
LEAVES = [
    "n > 5", "N <= 2", "n between 2 and 7", "n not between symmetric 7 and 2", "n between 1 + 1 and 3 * 2", "n is distinct from 4",
    "s = 'a and b'", "s in ('x', 'or', 'not')", "s not in ('and')", "s is null", "s is not null", "s isnull", "s = 'it''s (not'", "\"s\" = 'x'",
    "s like '%(and)%'", "s || ' or ' = 'x or '", "b", "b is not true", "b is unknown", "b = not b", "b = not n > 3", "(b or n > 2) is true", "(b) = (n > 3)",
    "case when b and n > 1 then s = 'x' or b else n < 3 end", "case n when 1 then b or b when 2 then n between 1 and 2 and b end", "coalesce(b and n > 3, false)",
    "n = any (array[1, 2])", "10 / n > 1", "(n + 1) * 2 > 7", "- n < 0", "task_go = 'failed'", "task_go in ('ready', 'running')", "true", "null", "'true'",
    "when_due > date '2031-01-01'", "extract(year from when_due) = 2031", "position('or' in s) > 0",
]  # fmt: skip

STATES: list[dict[str, Any]] = [
    {"n": n, "s": s, "b": b, "when_due": due}
    for n, s, b, due in [
        (1, "x", True, "2031-05-01"), (0, "or", False, None), (4, None, None, "2030-01-01"), (None, "a and b", True, None),
        (7, "it's (not", False, "2031-01-01"), (6, "x", None, "2032-01-01"), (2, "and", True, None), (None, None, None, None),
    ]
]  # fmt: skip
LATEST = ["failed", "ready", "succeeded", None]


def condition(source: random.Random, depth: int) -> str:
    """Parts joined by and, or, not in all ways, with and without parentheses."""
    if depth == 0 or source.random() < 0.2:
        return source.choice(LEAVES)
    joint = source.choice([" and ", " OR ", "\n  and\t", " or "])
    text = joint.join(condition(source, depth - 1) for _ in range(source.randint(2, 3)))
    if source.random() < 0.5:
        text = f"({text})" if source.random() < 0.8 else f"( ({text}))"
        if source.random() < 0.4:
            text = source.choice(["not ", "NOT", "not not "]) + text
    elif source.random() < 0.2:
        text = f"not {text}"
    return text


class Raised:
    """What a part is on a state where it raises."""


Value = bool | None | type[Raised]


def value(tree: Tree) -> Value:
    if "error" in tree:
        return Raised
    return None if tree["holds"] is None else bool(tree["holds"])


def joined(tree: Tree) -> Value:
    """What follows from the parts, as PostgreSQL goes about it: from left to right until it is decided, constants before all."""
    parts = [value(part) for part in tree["parts"]]
    if tree["kind"] == "not":
        return parts[0] if parts[0] in (Raised, None) else not parts[0]
    decided = bool(tree["kind"] == "any")
    if any(value(part) is decided and not part["values"] for part in tree["parts"]):
        return decided
    for part in parts:
        if part in (Raised, decided):
            return part
    return None if None in parts else not decided


def nodes(tree: Tree) -> list[Tree]:
    return [tree, *(node for part in tree.get("parts", []) for node in nodes(part))]


class Judge:
    """Asks for the trees of conditions on states, of a flow that has the attributes above."""

    def __init__(self, session: AsyncConnection[Any], version: int) -> None:
        self.session = session
        self.version = version

    async def trees(self, text: str, moments: list[dict[str, Any]]) -> list[Tree]:
        found = await self.session.execute(
            "select c.function, c.arguments from mutirao.condition_function('here', %s, %s, %s) c", [text, NAMES, TYPES]
        )
        row = await found.fetchone()
        assert row is not None
        rule = {"version": self.version, "condition": text, "function": row[0], "arguments": row[1]}
        found = await self.session.execute(
            "select mutirao.why_condition(jsonb_populate_record(null::mutirao.rule, %s), jsonb_populate_record(null::mutirao.work, m.value)) "
            "from jsonb_array_elements(%s) m",
            [Jsonb(rule), Jsonb(moments)],
        )
        return [tree for (tree,) in await found.fetchall()]


@pytest.fixture
async def judge(engine: Engine) -> Any:
    await engine.apply("f", ATTRIBUTES, {"go": "n is null"}, final="n = 9")
    version = await engine.one("select max(id) from mutirao.version")
    async with await AsyncConnection.connect(engine.url, autocommit=True) as session:
        yield Judge(session, version)


MOMENTS = [
    {"state": state, "latest": {"go": latest} if latest else None}
    for state, latest in zip(STATES * 2, LATEST * 4, strict=True)
]


@pytest.mark.parametrize("seed", range(3))
async def test_the_parts_of_any_condition_add_up_to_it(judge: Judge, seed: int) -> None:
    source = random.Random(seed)
    kinds: set[str] = set()
    for _ in range(25):
        text = "n is not null and " * source.randint(0, 1) + condition(source, source.randint(1, 3))
        if text.strip("'()") in ("null", "true"):
            continue
        for tree in await judge.trees(text, MOMENTS):
            for node in nodes(tree):
                assert node["text"] in text
                kinds.add(node["kind"])
                if node["kind"] != "part":
                    assert value(node) == joined(node), f"{text}\n{json.dumps(node, indent=1)}"
    assert kinds == {"all", "any", "not", "part"}


async def test_every_leaf_is_one_part(judge: Judge) -> None:
    for leaf in LEAVES[:-6]:
        for tree in await judge.trees(f"n = 3 and {leaf} and n = 4", MOMENTS[:1]):
            assert [(part["kind"], part["text"]) for part in tree["parts"]] == [
                ("part", "n = 3"), ("part", leaf), ("part", "n = 4"),
            ]  # fmt: skip


async def test_not_binds_tighter_than_and_and_that_tighter_than_or(judge: Judge) -> None:
    [tree] = await judge.trees("not b and n > 1 or s = 'x' and not (b or n = 2)", MOMENTS[:1])

    def shape(node: Tree) -> Any:
        return node["text"] if node["kind"] == "part" else (node["kind"], *map(shape, node["parts"]))

    assert shape(tree) == (
        "any",
        ("all", ("not", "b"), "n > 1"),
        ("all", "s = 'x'", ("not", ("any", "b", "n = 2"))),
    )


async def test_a_part_says_what_it_saw_and_what_it_raised(judge: Judge) -> None:
    [tree] = await judge.trees("s = 'y' and 10 / n > 1 and task_go = 'failed'", MOMENTS[1:2])
    assert tree["holds"] is False
    assert "error" not in tree  # PostgreSQL did not come to it
    assert [(part["holds"], part.get("error"), part["values"]) for part in tree["parts"]] == [
        (False, None, {"s": "or"}),
        (None, "division by zero", {"n": 0}),
        (False, None, {"task_go": "ready"}),
    ]
    [tree] = await judge.trees("10 / n > 1", MOMENTS[1:2])
    assert (tree["holds"], tree["error"]) == (None, "division by zero")


async def test_a_part_is_read_as_the_gate_read_it_whatever_the_session_has_set(judge: Judge) -> None:
    # With backslashes as escapes, the first string would go on to the second, and something else would be asked.
    text = r"s = 'a\' and s <> ' or true or s = '"
    before = await judge.trees(text, MOMENTS[:2])
    for setting in ("standard_conforming_strings = off", "transform_null_equals = on", "search_path = pg_temp, public"):
        await judge.session.execute(f"set {setting}".encode())
    assert await judge.trees(text, MOMENTS[:2]) == before
    assert [part["text"] for part in before[0]["parts"]] == [r"s = 'a\'", "s <> ' or true or s = '"]
