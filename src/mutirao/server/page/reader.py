"""Whom a page is for: their language, zone and theme; and how times, numbers and values are written for them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_date, format_datetime, format_timedelta
from babel.numbers import format_decimal
from starlette.requests import Request

from mutirao.model.value import ENCODER
from mutirao.server.page.catalogue import LANGUAGES, best_of, customs_of, text_in

LANGUAGE, ZONE, THEME = "mutirao_language", "mutirao_zone", "mutirao_theme"
"""Cookies that pages write: nobody but the reader is concerned."""
THEMES = ("system", "light", "dark")

_JUST_NOW = timedelta(seconds=10)
_LONGEST_ZONE = 64
_KILO = 1000
_NOTHING = "\N{EN DASH}"


@dataclass(frozen=True)
class Reader:
    """How pages are written for one person."""

    language: str
    zone: ZoneInfo
    theme: str
    is_zone_known: bool
    now: datetime
    accepted: str | None = None
    """The languages that their browser is set to."""

    @classmethod
    def of(cls, request: Request) -> "Reader":
        chosen, accepted = request.cookies.get(LANGUAGE, ""), request.headers.get("accept-language")
        theme = request.cookies.get(THEME, "")
        zone = _zone(unquote(request.cookies.get(ZONE, "")))
        return cls(
            language=chosen if chosen in LANGUAGES else best_of(accepted),
            zone=zone or ZoneInfo("UTC"),
            theme=theme if theme in THEMES else "system",
            is_zone_known=zone is not None,
            now=datetime.now(UTC) + request.app.state.ahead,
            accepted=accepted,
        )

    @cached_property
    def locale(self) -> Locale:
        return customs_of(self.language, self.accepted)

    def say(self, text: str) -> str:
        return text_in(self.language)(text)

    def moment(self, at: datetime | None) -> str:
        """The full time, in their zone."""
        return "" if at is None else _moment(at, self.zone, str(self.locale))

    def ago(self, at: datetime | None) -> str:
        """How long ago, or in how long."""
        if at is None:
            return ""
        apart = at - self.now
        if abs(apart) < _JUST_NOW:
            return self.say("now")
        return format_timedelta(apart, granularity="second", add_direction=True, format="short", locale=self.locale)

    def duration(self, length: timedelta | float) -> str:
        length = length if isinstance(length, timedelta) else timedelta(seconds=length)
        if abs(length) < timedelta(seconds=1):
            return f"{format_decimal(round(length.total_seconds() * 1000), locale=self.locale)} ms"
        return format_timedelta(length, granularity="second", threshold=1.5, format="short", locale=self.locale)

    def number(self, value: float | Decimal | None, *, is_grouped: bool = True) -> str:
        if value is None:
            return ""
        if isinstance(value, int):
            return _integer(value, str(self.locale), is_grouped)
        return _written(value, str(self.locale), is_grouped)

    def size(self, count: int) -> str:
        """Of so many bytes."""
        amount, unit = float(count), "B"
        for unit in ("B", "kB", "MB", "GB"):
            if amount < _KILO or unit == "GB":
                break
            amount /= _KILO
        return f"{format_decimal(round(amount, 1), locale=self.locale)} {unit}"

    def value(self, value: Any) -> str:  # noqa: PLR0911 one for each kind of value
        """A value of a state."""
        match value:
            case None:
                return _NOTHING
            case bool():
                return self.say("yes") if value else self.say("no")
            case int() | float() | Decimal():
                return self.number(value)
            case str():
                return value
            case {"sha256": str(), "name": str(name)}:
                return name
            case datetime():
                return self.moment(value)
            case date():
                return format_date(value, "medium", locale=self.locale)
        return ENCODER.encode(value).decode()

    def typed(self, value: Any, kind: str) -> str:
        """The same for a value of an attribute whose type is known: states hold times as text."""
        if isinstance(value, str) and kind == "timestamp":
            return self.moment(datetime.fromisoformat(value))
        if isinstance(value, str) and kind == "date":
            return self.value(date.fromisoformat(value))
        return self.value(value)


# Writing a time takes twenty times as long as finding it again, and live pages are read with mostly the same ones.
@lru_cache(8192)
def _moment(at: datetime, zone: ZoneInfo, locale: str) -> str:
    try:
        return format_datetime(at, "medium", tzinfo=zone, locale=locale)
    except (OverflowError, ValueError):  # in their zone it is after the last year that there is, or before the first
        return at.isoformat()


def _zone(name: str) -> ZoneInfo | None:
    if not 0 < len(name) <= _LONGEST_ZONE:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


# Integers alone: of other numbers some that are equal are written differently, such as 0.0 and -0.0.
@lru_cache(8192)
def _integer(value: int, locale: str, is_grouped: bool) -> str:
    return _written(value, locale, is_grouped)


def _written(value: float | Decimal, locale: str, is_grouped: bool) -> str:
    try:
        return format_decimal(value, locale=locale, decimal_quantization=False, group_separator=is_grouped)
    except ArithmeticError:  # it has more digits than Babel can group
        return str(value)
