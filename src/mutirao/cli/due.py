"""Times to come as people type them: `--at 2031-12-24T18:00` and `--in 2h`."""

import re
from datetime import UTC, datetime, timedelta

from mutirao.errors import RequestError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d{1,9})([smhdw])")


def read_due(at: str | None, after: str | None) -> datetime | None:
    """When it is due. A time without a zone is by the clock on the wall here."""
    if at is not None and after is not None:
        raise RequestError("wrong_call", "give --at or --in, not both")
    if after is not None:
        return _now_and(after)
    return None if at is None else read_moment("--at", at)


def read_moment(option: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise RequestError(
            "wrong_call", f'{option} "{text}" is no time: write it as 2031-12-24T18:00, or 2031-12-24T18:00Z'
        ) from None


def _now_and(text: str) -> datetime:
    read = _SPAN.fullmatch(text)
    if read is None:
        raise RequestError("wrong_call", f'--in "{text}" is no time: write it as 90s, 15m, 2h or 3d')
    try:
        return datetime.now(UTC) + timedelta(**{_UNITS[read[2]]: int(read[1])})
    except OverflowError:
        raise RequestError("wrong_call", f'--in "{text}" is too far away') from None
