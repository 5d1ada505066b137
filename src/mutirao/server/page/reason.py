"""Why instances are exceptions, in words of the reader's language. The engine's exact line stands beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mutirao.model import wording
from mutirao.server.page.catalogue import marked
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader

FINAL = "_FINAL"

WORDS = {
    "task_failed": (
        marked("{task} failed"),
        marked("It was tried as often as it may be. What depends on it waits; everything else goes on."),
    ),
    "nothing_fires": (
        marked("Nothing goes on"),
        marked("It has not come to its end, and no task may start with the data that it has."),
    ),
    "condition_failed": (
        marked("A condition cannot be worked out"),
        marked("With the data that it would have, the condition of {task} makes no sense. What was written is kept."),
    ),
    "final_blocked": (
        marked("It cannot come to its end"),
        marked("Each of its open jobs would end it, and waits for the others: one of them has to be skipped."),
    ),
    "runaway": (
        marked("It goes round and round"),
        marked("It has started tasks more often than its flow allows, without coming to an end."),
    ),
    "too_large": (marked("Its data is too large"), marked("What was to be written is larger than is allowed.")),
    "compensation_failed": (
        marked("{task} could not undo what was done"),
        marked("It is being rolled back, and waits here. What was undone stays undone."),
    ),
    "critical_task": (
        marked("It cannot be undone"),
        marked("A failure should have rolled it back, across a task that cannot be undone."),
    ),
    "wait_circle": (
        marked("It waits in a circle"),
        marked("Instances wait for each other, so none of them can go on: one has to give way."),
    ),
}
_OTHERWISE = (marked("It needs somebody"), "")
_THE_END = marked("the end")
_A_TASK = marked("a task")


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why an instance is an exception; `line` is what the engine or a program says of it, if anything.

    In a circle of waits, None stands for an instance that is not for the reader to see.
    """

    code: str
    title: str
    meaning: str
    line: str
    task: str | None
    job: int | None
    circle: tuple[int | None, ...] = ()


def reasons_of(reader: Reader, reasons: list[dict[str, Any]] | None) -> list[Reason]:
    """What failed and could not be rolled back is told as one failure."""
    found = [reason_of(reader, each) for each in reasons or ()]
    failed = {each.job for each in found if each.code == "task_failed"}
    return [each for each in found if each.code != "critical_task" or each.job not in failed or each.job is None]


def reason_of(reader: Reader, reason: Mapping[str, Any]) -> Reason:
    code, task = str(reason.get("code")), reason.get("task")
    title, meaning = words(reader, code, task)
    return Reason(
        code=code,
        title=title,
        meaning=meaning,
        line=_line(reason),
        task=None if task is None else str(task),
        job=reason.get("job"),
        circle=tuple(reason.get("instances") or ()),
    )


def words(reader: Reader, code: str, task: str | None) -> tuple[str, str]:
    """What has happened, and what that means."""
    about = _THE_END if task == FINAL else _A_TASK
    called = reader.say(about) if task in (None, FINAL) else label_of(str(task))
    title, meaning = (reader.say(text).format(task=called) if text else "" for text in WORDS.get(code, _OTHERWISE))
    return title[:1].upper() + title[1:], meaning


def error_text(error: str) -> str:
    """What an error says. Who fails on purpose raises `Failed`: that name says nothing more."""
    return error.removeprefix("Failed: ")


def error_words(error: Any) -> str:
    """The same in one line."""
    return error_text(wording.error(str(error or "")))


def _line(reason: Mapping[str, Any]) -> str:
    """Exactly, in one line; the title has said of what kind it is."""
    firings = reason.get("firings")
    return error_words(reason.get("error")) or (f"firings: {firings}" if firings else "")
