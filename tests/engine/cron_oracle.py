"""When a cron pattern fires, found the slow way: by walking through time minute by minute, with Python's own time zones."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)

_NAMES = {
    3: ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    4: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
}
_RANGES = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]


@dataclass(frozen=True)
class Pattern:
    fields: list[set[int]]
    last_day: bool
    either: bool

    def takes(self, wall: datetime) -> bool:
        minutes, hours, days, months, weekdays = self.fields
        is_last = (wall + timedelta(days=1)).day == 1
        day = wall.day in days or (self.last_day and is_last)
        weekday = wall.isoweekday() % 7 in weekdays
        return (
            wall.minute in minutes
            and wall.hour in hours
            and wall.month in months
            and (day or weekday if self.either else day and weekday)
        )

    @property
    def is_hourly(self) -> bool:
        return len(self.fields[1]) == 24


def read(cron: str) -> Pattern:
    texts = cron.split()
    fields = [_values(number, text) for number, text in enumerate(texts)]
    stars = [text.startswith("*") for text in texts]
    return Pattern(fields, "L" in texts[2].split(","), not stars[2] and not stars[4])


def _values(number: int, text: str) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        if item == "L":
            continue
        span, _, step = item.partition("/")
        low, _, high = span.partition("-")
        first, last = _RANGES[number] if span == "*" else (_value(number, low), _value(number, high or low))
        found |= set(range(first, last + 1, int(step or 1)))
    return {value % 7 for value in found} if number == 4 else found


def _value(number: int, word: str) -> int:
    return int(word) if word.isdigit() else _NAMES[number].index(word)


def firings(cron: str, zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """Every instant in (after, until].

    A pattern for every hour takes each minute as the clock shows it. Any other takes each time that the clock passes for
    the first time, whether it shows it or jumps over it.
    """
    pattern = read(cron)
    place = ZoneInfo(zone)
    at = after.replace(second=0, microsecond=0) - timedelta(days=3)
    passed = at.astimezone(place).replace(tzinfo=None)
    while at < until:
        at += MINUTE
        wall = at.astimezone(place).replace(tzinfo=None)
        if pattern.is_hourly:
            fires = pattern.takes(wall)
        else:
            fires = False
            while passed < wall:
                passed += MINUTE
                fires = fires or pattern.takes(passed)
        if fires and at > after:
            yield at


def transitions(zone: str, year: int) -> list[datetime]:
    """The hours of a year in which clocks are set."""
    place = ZoneInfo(zone)
    found, at = [], datetime(year, 1, 1, tzinfo=UTC)
    while at.year == year:
        following = at + timedelta(hours=1)
        if at.astimezone(place).utcoffset() != following.astimezone(place).utcoffset():
            found.append(at)
        at = following
    return found
