"""A message in words of the reader's language, by its kind; the engine's own line stands behind it."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mutirao.database.message import MessageRecord
from mutirao.server.page.catalogue import marked
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.reason import error_words, words

KIND_WORDS = {
    "instance_started": marked("Instance started"),
    "instance_ended": marked("Instance ended"),
    "task_failed": marked("Task failed"),
    "deadline": marked("Deadline"),
    "exception": marked("Exception"),
    "transferred": marked("Item moved"),
    "delegated": marked("Item delegated"),
    "offered": marked("Item offered"),
    "taken": marked("Item taken away"),
    "in_charge": marked("In charge"),
}

_FORMS = {
    "instance_started": marked("It has started."),
    "task_failed": marked("{task} has failed: {error}"),
    "delegated": marked("{task} is yours now: {by} delegated it to you."),
    "offered": marked("{task} is offered to you alone."),
    "taken": marked("{task} was taken from you by {by}."),
    "in_charge": marked("You are in charge of it now, by {by}."),
}
_ENDED = {
    "closed.completed": marked("It has come to its end."),
    "closed.aborted": marked("It was cancelled."),
    "closed.terminated": marked("It was undone."),
}
_HANDLED = marked("{task} has failed: {error} The flow goes on by another task.")
_EXTENDED = marked("{task} has more time, until {time}: {by} gave it.")
_LATE = marked("{task} should have been done by {time}.")
_SOON = marked("{task} is to be done within {left}, by {time}.")
_MOVED = marked("{task} moved to {to}: its time is nearly up, or over.")
_TAKEN_BY_TIME = marked("{task} was taken from you: its time is over.")
_FOR = re.compile(r'^For "(.+?)", who is away: ')


@dataclass(frozen=True, slots=True)
class Notice:
    """What a message says, whom it was for if they are away, and where to go: the item, or the way out of an exception."""

    kind: str
    text: str
    instead_of: str | None
    is_bad: bool
    item: int | None
    exception: int | None


def notice_of(reader: Reader, message: MessageRecord) -> Notice:
    away = _FOR.match(message.text)
    is_trouble = message.kind in ("task_failed", "exception") and not (message.note or {}).get("handled")
    is_item = message.kind in ("deadline", "transferred", "delegated", "offered")
    return Notice(
        kind=reader.say(KIND_WORDS[message.kind]) if message.kind in KIND_WORDS else message.kind,
        text=_text(reader, message),
        instead_of=away[1] if away else None,
        is_bad=is_trouble,
        item=message.job if is_item else None,
        exception=message.instance if is_trouble else None,
    )


def _text(reader: Reader, message: MessageRecord) -> str:
    note = message.note or {}
    if message.kind == "exception":
        title, meaning = words(reader, str(note.get("code")), None)
        return f"{title}. {meaning}".strip()
    form = _form(message.kind, note)
    return message.text if form is None else reader.say(form).format_map(_values(reader, message, note))


def _form(kind: str, note: dict[str, Any]) -> str | None:
    """The words for it; where there are none, the engine's own line has to do."""
    if kind in ("deadline", "transferred"):
        return _time_form(kind, note)
    if kind == "instance_ended":
        return _ENDED.get(str(note.get("status")))
    if kind == "task_failed" and note.get("handled"):
        return _HANDLED
    if kind == "taken" and not note.get("by"):
        return _TAKEN_BY_TIME
    return _FORMS.get(kind)


def _time_form(kind: str, note: dict[str, Any]) -> str:
    if kind == "transferred":
        return _MOVED if note.get("to") else _TAKEN_BY_TIME
    if note.get("by"):
        return _EXTENDED
    return _SOON if note.get("seconds_left") else _LATE


def _values(reader: Reader, message: MessageRecord, note: dict[str, Any]) -> dict[str, str]:
    finish_by = note.get("finish_by")
    error = error_words(note.get("error")) or str(note.get("code") or "")
    return {
        "task": label_of(message.task or ""),
        "error": error if error.endswith((".", "!", "?")) else f"{error}.",
        "by": str(note.get("by") or ""),
        "to": str(note.get("to") or ""),
        "time": reader.moment(datetime.fromisoformat(finish_by)) if finish_by else "",
        "left": reader.duration(timedelta(seconds=float(note.get("seconds_left") or 0))),
    }
