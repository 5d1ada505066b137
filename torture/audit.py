"""The audit: what the ledgers say against what the database says, when everything has come to rest.

It needs the address of the database and the ledgers, nothing else. Each invariant is a query of `audit.sql` that answers
what is wrong; a finding has its first rows. Figures beside them tell how much was at stake: what was acknowledged, what
nobody was told of, and which of that had been committed all the same.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg

from torture import ledger, work
from torture.ledger import Entry

_SHOWN = 5
_FIGURES = ("unheard", "unknown_there")
_TABLES = """
create temporary table started (batch int, ticket text, outcome text, instance bigint);
create temporary table finished (job bigint, attempt bigint, outcome text);
create temporary table event_sent (event text, outcome text);
create temporary table cancelled (instance bigint);
create temporary table may_write (flow text, task text, attributes text[]);
create temporary table transactional (flow text, task text);
"""


@dataclass(frozen=True)
class Finding:
    """An invariant that does not hold."""

    invariant: str
    meaning: str
    count: int
    examples: list[str]


@dataclass
class Audit:
    """`acknowledged` and `unknown` are operations by kind, as whoever asked for them knows."""

    findings: list[Finding] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    acknowledged: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    committed_unheard: int = 0
    """Jobs that were ended, and instances that were started, though nobody was told."""

    def broken(self) -> set[str]:
        return {each.invariant for each in self.findings}


@dataclass
class _Papers:
    """The ledgers as rows for the database."""

    started: list[tuple[int, str, str, int | None]] = field(default_factory=list)
    finished: list[tuple[int, int, str]] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)


def audit(url: str, ledgers: Iterable[Path], only: Sequence[str] | None = None) -> Audit:
    """Ask everything; or `only` some invariants."""
    found = Audit()
    papers = _read(ledgers, found)
    with psycopg.connect(url, autocommit=True, application_name="torture audit") as connection:
        _hand_in(connection, papers)
        connection.execute(_query("prepare"))
        for name, (meaning, text) in _queries().items():
            if name in _FIGURES:
                [(count,)] = connection.execute(text.encode()).fetchall()
                found.committed_unheard += count
            elif name != "prepare" and (only is None or name in only):
                _ask(connection, name, meaning, found)
    return found


def sessions(url: str) -> list[str]:
    """Who is connected to the database beside us."""
    text = b"select application_name from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() order by 1"
    with psycopg.connect(url, autocommit=True, application_name="torture audit") as connection:
        return [name for (name,) in connection.execute(text)]


def _ask(connection: psycopg.Connection[Any], name: str, meaning: str, found: Audit) -> None:
    cursor = connection.execute(_query(name))
    columns = [column.name for column in cursor.description or ()]
    rows = cursor.fetchall()
    if rows:
        examples = [
            ", ".join(f"{column} {value}" for column, value in zip(columns, row, strict=True)) for row in rows[:_SHOWN]
        ]
        found.findings.append(Finding(name, meaning, len(rows), examples))
    else:
        found.held.append(name)


def _read(ledgers: Iterable[Path], found: Audit) -> _Papers:
    papers = _Papers()
    for number, entry in enumerate(ledger.read(ledgers)):
        counted = {"done": found.acknowledged, "unknown": found.unknown, "refused": found.refused}[entry.outcome]
        counted[entry.what] += entry.count if entry.outcome == "done" else 1
        _sort(number, entry, papers)
    return papers


def _sort(number: int, entry: Entry, papers: _Papers) -> None:
    details, answer = entry.details, entry.answer
    match entry.what:
        case "start":
            tickets = details["tickets"]
            numbers = answer.get("instances") or [None] * len(tickets)
            papers.started += [
                (number, ticket, entry.outcome, instance) for ticket, instance in zip(tickets, numbers, strict=True)
            ]
        case "finish":
            # A worker is told which of a turn went well; of a person's finish there is one.
            well = set(answer.get("attempts", details["attempts"])) if entry.outcome == "done" else set()
            for job, attempt in zip(details["jobs"], details["attempts"], strict=True):
                if entry.outcome != "done" or attempt in well:
                    papers.finished.append((job, attempt, entry.outcome))
        case "event":
            papers.events += [(event, entry.outcome) for event in details["events"]]
        case "cancel" if entry.outcome == "done":
            papers.cancelled.append(details["instance"])


def _hand_in(connection: psycopg.Connection[Any], papers: _Papers) -> None:
    connection.execute(_TABLES)
    rows: dict[str, Iterable[Sequence[Any]]] = {
        "started": papers.started,
        "finished": papers.finished,
        "event_sent": papers.events,
        "cancelled": [(instance,) for instance in papers.cancelled],
        "may_write": [(flow, task, list(names)) for (flow, task), names in work.WRITES.items()],
        "transactional": work.TRANSACTIONAL,
    }
    for table, content in rows.items():
        with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin".encode()) as copy:
            for row in content:
                copy.write_row(row)
        connection.execute(f"analyze {table}".encode())
    connection.execute("create index on started (ticket)")


def invariants() -> dict[str, str]:
    """All of them, and what a finding means."""
    return {name: meaning for name, (meaning, _) in _queries().items() if name not in ("prepare", *_FIGURES)}


def _query(name: str) -> bytes:
    return _queries()[name][1].encode()


@cache
def _queries() -> dict[str, tuple[str, str]]:
    text = files("torture").joinpath("audit.sql").read_text("utf-8")
    _, *pieces = re.split(r"(?m)^-- (\w+): (.*)\n", text)
    return {name: (meaning, body) for name, meaning, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)}
