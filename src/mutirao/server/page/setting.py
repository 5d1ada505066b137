"""Settings: what holds for the whole engine, who set it, and why."""

from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

from mutirao.server.answer import Cursor, decode_cursor, encode_cursor
from mutirao.server.need import Administrator
from mutirao.server.page.catalogue import marked
from mutirao.server.page.database import PLACE
from mutirao.server.page.form import text_of
from mutirao.server.page.shell import pages, render

router = pages()

_PAGE = 20


@dataclass(frozen=True)
class Told:
    """What a setting says, and what its number counts."""

    words: str
    unit: str
    type: str = "number"


SETTINGS = {
    "reminders": Told(
        marked("When before its deadline a work item is told of"),
        marked("hours before the deadline, such as 48, 24, 1.5"),
        "numbers",
    ),
    "transfer": Told(
        marked("At which of these reminders it moves to the person in charge"), marked("hours before the deadline")
    ),
    "session_idle_hours": Told(marked("How long without a request ends a session"), marked("hours")),
    "session_hours": Told(marked("How long a session lasts at most"), marked("hours")),
    "file_limit": Told(marked("How large a file may be"), marked("bytes")),
    "unused_limit": Told(
        marked("How much a person may have uploaded that no instance has yet"),
        marked("bytes"),
    ),
    "keep_messages": Told(marked("How long messages that were read are kept"), marked("days")),
}
"""One that is not here is shown by its name, and changed as JSON."""
_UNKNOWN = Told("", "JSON", "json")


@router.get("/settings")
async def settings(request: Request, who: Administrator, cursor: Cursor = None) -> Response:
    """What is set, and the newest changes."""
    changes = await who.engine.settings.changes(before=decode_cursor(cursor, int), limit=_PAGE + 1)
    return render(
        request,
        "settings.html",
        path=PLACE,
        settings=await who.engine.settings.all(),
        told=SETTINGS,
        text=_text,
        unknown=_UNKNOWN,
        changes=changes[:_PAGE],
        is_first=cursor is None,
        following=encode_cursor(changes[_PAGE - 1].id) if len(changes) > _PAGE else None,
    )


def _text(name: str, value: Any) -> str:
    """As it is typed: numbers as people list them, anything else as JSON."""
    if isinstance(value, list) and SETTINGS.get(name, _UNKNOWN).type == "numbers":
        return ", ".join(map(str, value))
    return text_of(value, "json")
