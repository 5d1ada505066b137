"""Texts that change word by word: a mutator for languages, and the seeds it begins with."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from fuzz.target import ROOT
from mutirao.language.pdl.clause import APPLICATION, ATTRIBUTES, FLOW, OUTERMOST, TASK
from mutirao.model.dependency import TASK_STATES

_PIECE = re.compile(r"\w+|\s+|->|.", re.DOTALL)
_MOST_EDITS = 4
_FENCED = re.compile(r"```(?:pdl)?\n(.*?)```", re.DOTALL)

PDL_WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        chain(
            OUTERMOST,
            FLOW,
            TASK,
            APPLICATION,
            ATTRIBUTES,
            chain.from_iterable(ATTRIBUTES.values()),
            (state.upper() for state in TASK_STATES),
            "AUTOMATIC SEMI_AUTOMATIC COOPERATIVE MANUAL EACH ONCE BLOCK RELEASE ROLL_BACK SAFE_POINT FINAL QUIET".split(),
            "ALL AT_ONCE PER HOURS MINUTES SECONDS DAYS SAME_AS EVERYONE CRITICAL NONE ON OFF TRUE FALSE NULL".split(),
            "and or -> → { } ( ) ; : , \" \\ # // /* */".split(),
            ("a", "b", "T1", "Book", "1", "-1", "0.5", "1e3", "1e999", "99999999999999999999", "\n", " ", "\x00", "é", "ı"),
            ('"a"', '"\\n"', '"\\u0041"', '"true"', '"select :a"', '"2024-02-30"', '"a; b"', "\u2028", "\N{PILE OF POO}"),
        )
    )
)

EXPRESSION_WORDS: tuple[str, ...] = (
    *"select from where and or not in is null case when then else end :a :b :city ::text := ; $1 $$ $a$ ' '' \" e' E'".split(),
    *"-- /* */ \\ ( ) [ ] , . = <> < > + - * / % 1 0.5 task_book 'failed' .succeeded .failed . a b city".split(),
    *'{ } " : , {"name":"f"} "tasks" "attributes" "when" "depends" "all" "any" "task" "state" "type" "text" "final"'.split(),
    *'"query" "expression" "database" "default" "limit" "at_once" "per" true false null [] {} 1e400 -0'.split(),
    "\n", " ", "\x00", "é", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
)  # fmt: skip

Mutate = Callable[[bytes, int], bytes]


def word_mutator(words: Sequence[str], mutate_bytes: Mutate) -> Callable[[bytes, int, int], bytes]:
    """Every third time the bytes are changed as the fuzzer would; else some of the text's pieces."""

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        chance = random.Random(seed)  # noqa: S311 it is to be the same again
        if chance.random() < 1 / 3:
            return mutate_bytes(data, max_size)
        pieces = _PIECE.findall(data.decode("utf-8", "replace"))
        for _ in range(chance.randint(1, _MOST_EDITS)):
            _edit(pieces, words, chance)
        return "".join(pieces).encode("utf-8", "replace")[:max_size]

    return mutate


def _edit(pieces: list[str], words: Sequence[str], chance: random.Random) -> None:
    at = chance.randrange(len(pieces) + 1)
    end = min(len(pieces), at + chance.randint(1, 8))
    match chance.randrange(6):
        case 0:
            pieces[at:at] = [chance.choice(words), " "]
        case 1:
            pieces[at : at + 1] = [chance.choice(words)]
        case 2:
            del pieces[at:end]
        case 3:
            pieces[at:at] = pieces[at:end]
        case 4:
            there = chance.randrange(len(pieces) + 1)
            pieces[there:there] = pieces[at:end]
        case _:
            pieces[at:at] = [chance.choice(words) + " "] * chance.choice((2, 3, 10, 60))


def write_seeds(folder: Path, texts: Iterable[str], most: int) -> None:
    """Beside what earlier runs have left there."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(dict.fromkeys(texts)):
        content = text.encode()
        if len(content) <= most:
            (folder / f"seed-{number:04}").write_bytes(content)


def pdl_seeds() -> list[str]:
    """All PDL that the repository has, whole and in its parts."""
    files = [*ROOT.glob("examples/*.pdl"), *ROOT.glob("tests/unit/pdl/listings/*.pdl")]
    whole = [path.read_text("utf-8") for path in sorted(files)]
    for path in sorted(ROOT.glob("docs/*.md")):
        whole += [text for text in _FENCED.findall(path.read_text("utf-8")) if "WORKFLOW" in text or "TASK" in text]
    parts = [part for text in whole for part in re.split(r"\n(?=[A-Z])", text)]
    inner = [each for text in whole for each in re.split(r"\n\s*\n", text)]
    return [*whole, *parts, *inner, *(f"WORKFLOW W {{\n{each}\n}}" for each in inner)]


def expression_seeds() -> list[str]:
    return [
        "select name from city where name = :city and n > :a::int",
        "select ':a', \":b\", $$ :a $$, $t$ :a $t$, e'\\':a' /* :a */ -- :a\n from t",
        "a = 'x' and task_book = 'failed'",
        "book.failed",
        '{"name": "f", "tasks": [{"name": "a", "when": "true"}, {"name": "b", "depends": {"all": [{"task": "a"}]}}]}',
        '{"name": "f", "attributes": [{"name": "a", "type": "number", "default": 1.50}], "final": "a > 1"}',
        '{"name": "f", "attributes": [{"name": "q", "type": "json", "query": {"database": "d", "expression": "select :a"}},'
        ' {"name": "a", "type": "text"}], "tasks": []}',
        '{"name": "f", "tasks": [{"name": "a", "when": "x", "offer": {"role": "r"}, "limit": {"at_once": 3}}]}',
    ]
