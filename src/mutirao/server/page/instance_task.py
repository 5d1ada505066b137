"""How each task of an instance stands, as its page says it; and what has to end before a rollback or a cancellation does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mutirao.database.record import JobRecord, TaskStanding
from mutirao.database.sight import SeenInstance
from mutirao.model import Definition
from mutirao.server.page.edge import Edge
from mutirao.server.page.graph import standing


@dataclass(frozen=True, slots=True)
class TaskLine:
    """`word` is its state, or why it is not ready; `asks` is what a reader may want to know about it."""

    standing: TaskStanding
    word: str
    asks: Literal["why", "why_not"] | None


def lines_of(
    seen: SeenInstance, definition: Definition, found: Iterable[Edge], standings: Sequence[TaskStanding]
) -> list[TaskLine]:
    passed = _passed(found, standings)
    stand_by = standing(definition)
    return [_line(seen, each, is_passed=each.task in passed, stands_by=each.task in stand_by) for each in standings]


def _line(seen: SeenInstance, one: TaskStanding, *, is_passed: bool, stands_by: bool) -> TaskLine:
    if one.state != "not_ready" or one.job is not None:
        return TaskLine(one, one.state, "why_not" if one.state in ("not_ready", "synchronizing", "blocked") else "why")
    if not seen.is_open:
        return TaskLine(one, "not_done", None)
    if stands_by:
        return TaskLine(one, "stands_by", "why_not")
    return TaskLine(one, "passed_over" if is_passed else "not_ready", "why_not")


def _passed(found: Iterable[Edge], standings: Sequence[TaskStanding]) -> set[str]:
    """Tasks that never started though one has that they lead to, and not in a circle: another way led there, or data that was given.

    They may still start: nobody knows. Those to which something under way leads are rather to come.
    """
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for edge in found:
        after.setdefault(edge.source, set()).add(edge.target)
        before.setdefault(edge.target, set()).add(edge.source)
    begun = {each.task for each in standings if each.state != "not_ready" or each.job is not None or each.times}
    under_way = {each.task for each in standings if each.job is not None}
    candidates = _reached(begun, before) - begun - _reached(under_way, after)
    return {each for each in candidates if (_reached({each}, after) & begun) - _reached({each}, before)}


def _reached(tasks: Iterable[str], steps: Mapping[str, set[str]]) -> set[str]:
    """By however many steps."""
    found: set[str] = set()
    rest = list(tasks)
    while rest:
        new = steps.get(rest.pop(), set()) - found
        found |= new
        rest += new
    return found


def in_hand(seen: SeenInstance, jobs: Iterable[JobRecord]) -> list[JobRecord]:
    """What is in work, and has to end first. What undoes is the rollback itself, unless that was cancelled."""
    if seen.hold not in ("undoing", "cancelled"):
        return []
    is_undoing = seen.hold == "undoing"
    return [each for each in jobs if each.status == "running" and not (is_undoing and each.undoes is not None)]
