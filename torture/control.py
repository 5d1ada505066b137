"""Negative controls: the same ordeal, shortly, with a bug planted. An audit that does not catch it would catch nothing.

    async_commit     commits are acknowledged before they are on the disk; the database is killed
    forgetful        one job in some stays though it has ended
    unfenced         whoever was thought dead may end a job all the same; workers are paused for longer than their lease
    effect_outside   effects are committed by themselves, before the job is; workers are killed

Each must be caught by an invariant that it breaks. Chance decides whether a kill hits the moment that shows the bug, so a
control that came out clean is tried again, some times.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from torture.ordeal import Plan
from torture.work import EFFECT_OUTSIDE

TRIES = 4


@dataclass(frozen=True)
class Control:
    """`shows`: the invariants of which at least one must be found broken."""

    name: str
    meaning: str
    shows: frozenset[str]
    every: Mapping[str, float]
    plant: Callable[[psycopg.Connection[Any]], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def plan(self, seconds: float) -> Plan:
        return Plan(
            seconds=seconds,
            at_most=seconds,
            every=self.every,
            workers=3,
            servers=1,
            clocks=1,
            clients=1,
            lease=1,
            most_open=800,
            rest_within=8,
        )


def _commit_asynchronously(connection: psycopg.Connection[Any]) -> None:
    connection.execute(f'alter database "{connection.info.dbname}" set synchronous_commit = off'.encode())


_FORGET = """
create function torture.forget() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger torture_forget before delete on mutirao.job for each row when (old.id % 50 = 0) execute function torture.forget();
"""


def _forget(connection: psycopg.Connection[Any]) -> None:
    connection.execute(_FORGET)


_FENCE = "and j.attempt = x.attempt"


def _take_fence_down(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute("select pg_get_functiondef('mutirao.finish_jobs'::regproc)").fetchone()
    assert row is not None  # noqa: S101 a function has a definition
    text = str(row[0])
    if _FENCE not in text:
        raise SystemExit("mutirao.finish_jobs is not fenced where this control expects it: plant the bug elsewhere")
    connection.execute(text.replace(_FENCE, "").encode())


CONTROLS = (
    Control(
        "async_commit",
        "commits are acknowledged before they are on the disk",
        frozenset({"lost", "finish_lost", "event_lost", "not_cancelled"}),
        {"database_kill": 2.5},
        plant=_commit_asynchronously,
    ),
    Control(
        "forgetful",
        "one job in fifty stays though it has ended",
        frozenset({"ended_twice", "after_the_end", "hot_rows", "leased"}),
        {"worker": 2},
        plant=_forget,
    ),
    Control(
        "unfenced",
        "whoever was thought dead may end a job all the same",
        frozenset({"dead_wrote"}),
        {"pause": 0.4},
        plant=_take_fence_down,
    ),
    Control(
        "effect_outside",
        "effects are committed by themselves, before the job is",
        frozenset({"effect_extra", "wrong_sum"}),
        {"worker": 0.7},
        environment={"TORTURE_PLANT": EFFECT_OUTSIDE},
    ),
)
