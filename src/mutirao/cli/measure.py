"""Times and sizes as people write them: `90d`, `36 hours`, `2031-12-24T18:00`, `2MB`."""

import re
from datetime import UTC, datetime, timedelta

from mutirao.errors import RequestError

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
_WORDS = {"second": "s", "minute": "min", "m": "min", "hour": "h", "day": "d", "week": "w", "year": "y"}
_SIZES = {"": 1, "b": 1, "kb": 1000, "mb": 1_000_000}


def read_period(text: str) -> timedelta:
    """Such as `90d`, `12 hours` or `1y`, which is 365 days."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([a-z]+?)s?", text.strip().lower())
    unit = found and _WORDS.get(found[2], found[2] or "s")
    if not found or unit not in _UNITS:
        raise RequestError("wrong_call", f'"{text}" is no time: write it as 90d, 12h, 30min or 1y')
    try:
        return timedelta(seconds=float(found[1]) * _UNITS[unit])
    except OverflowError as error:
        raise RequestError("wrong_call", f'"{text}" is too long; to keep things for ever, remove the rule') from error


def read_moment(text: str) -> datetime:
    """A date or a time; without a zone, by the clock on the wall here."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise RequestError(
            "wrong_call", f'"{text}" is no time: write it as 2031-12-24, 2031-12-24T18:00 or 2031-12-24T18:00Z'
        ) from error


def read_past(text: str) -> datetime:
    """A date, a time, or how long ago."""
    try:
        return datetime.now(UTC) - read_period(text)
    except (RequestError, OverflowError):
        return read_moment(text)


def read_due(at: str | None, after: str | None) -> datetime | None:
    """When it is due: at a time, or so long from now."""
    if at is not None and after is not None:
        raise RequestError("wrong_call", "give --at or --in, not both")
    if after is None:
        return None if at is None else read_moment(at)
    try:
        return datetime.now(UTC) + read_period(after)
    except OverflowError as error:
        raise RequestError("wrong_call", f'--in "{after}" is too far away') from error


def read_size(text: str) -> int:
    """Such as `2MB`, `500 kB` or `2000000`."""
    found = re.fullmatch(r"(\d{1,12}) *([a-z]*)", text.strip().lower())
    if not found or found[2] not in _SIZES:
        raise RequestError("wrong_call", f'"{text}" is no size: write it as 2MB, 500kB or 2000000')
    return int(found[1]) * _SIZES[found[2]]
