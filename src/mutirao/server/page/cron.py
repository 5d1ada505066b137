"""Cron patterns in words, for those that people use most; any other is shown as it is, with the times it means."""

import re

from babel import Locale

from mutirao.server.page.reader import Reader

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = 5
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ONE_TIME = re.compile(r"\d{1,2}")
_EVERY = re.compile(r"\*/(\d{1,2})")


def in_words(cron: str, reader: Reader) -> str:
    """What a pattern means, or nothing where this knows no words for it."""
    fields = _NAMED.get(cron.strip().lower(), cron).lower().split()
    if len(fields) != _FIELDS or fields[3] != "*":
        return ""
    minute, hour, day, _, weekday = fields
    if (hour, day, weekday) == ("*", "*", "*"):
        return _within_the_hour(minute, reader)
    if not (_ONE_TIME.fullmatch(minute) and _ONE_TIME.fullmatch(hour)):
        return ""
    return _at(f"{int(hour):02}:{int(minute):02}", day, weekday, reader)


def _at(at: str, day: str, weekday: str, reader: Reader) -> str:
    """At one time of some days."""
    match day, weekday:
        case "*", "*":
            words = reader.say("every day at {at}")
        case "l", "*":
            words = reader.say("on the last day of the month at {at}")
        case _, "*" if _ONE_TIME.fullmatch(day):
            words = reader.say("on day {day} of the month at {at}")
        case "*", _ if _days(weekday, reader):
            words = reader.say("{days} at {at}")
        case _:
            words = ""
    return words.format(at=at, day=day.lstrip("0"), days=_days(weekday, reader))


def _within_the_hour(minute: str, reader: Reader) -> str:
    if minute in ("*", "*/1"):
        return reader.say("every minute")
    # Where they do not fill the hour, the last of them is shorter.
    if (every := _EVERY.fullmatch(minute)) and 60 % max(int(every[1]), 1) == 0:
        return reader.say("every {count} minutes").format(count=int(every[1]))
    if _ONE_TIME.fullmatch(minute):
        return reader.say("every hour at minute {minute}").format(minute=int(minute))
    return ""


def _days(weekday: str, reader: Reader) -> str:
    """Single days with commas between them, or from one to another."""
    names = [_day(each, reader.locale) for each in re.split(r"[,-]", weekday)]
    if "" in names or ("-" in weekday and (len(names) != 2 or "," in weekday)):  # noqa: PLR2004 from, to
        return ""
    if "-" in weekday:
        return reader.say("{first} to {last}").format(first=names[0], last=names[1])
    return ", ".join(names)


def _day(word: str, locale: Locale) -> str:
    number = int(word) if word.isdigit() else _DAYS.index(word) if word in _DAYS else len(_DAYS)
    # Babel's week begins with Monday, cron's with Sunday.
    return str(locale.days["format"]["wide"][(number - 1) % 7]) if number < len(_DAYS) else ""
