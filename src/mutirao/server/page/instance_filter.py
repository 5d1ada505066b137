"""Which instances somebody looks for: as the address of a page says it, and as a batch chooses them."""

import re
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from mutirao.database.batch import Filter
from mutirao.database.find import InstanceFilter
from mutirao.errors import RequestError
from mutirao.model import Definition
from mutirao.server.page.catalogue import marked
from mutirao.server.page.reader import Reader

OLDER = {
    "1h": (marked("an hour"), timedelta(hours=1)),
    "1d": (marked("a day"), timedelta(days=1)),
    "7d": (marked("a week"), timedelta(weeks=1)),
    "30d": (marked("30 days"), timedelta(days=30)),
}
_LONGEST = 1000
_NUMBER = re.compile(r"-?\d{1,50}(\.\d{1,50})?")


@dataclass(frozen=True, slots=True)
class Looked:
    """The fields of the form, as they stand in the address. `role` is in_charge, or person: whoever has had to do with it."""

    text: str = ""
    flow: str = ""
    status: str = ""
    who: str = ""
    role: str = "in_charge"
    after: str = ""
    before: str = ""
    older: str = ""
    attribute: str = ""
    value: str = ""

    @classmethod
    def of(cls, given: dict[str, str]) -> "Looked":
        known = {name: value.strip() for name, value in given.items() if name in cls.__dataclass_fields__ and value}
        if any(len(value) > _LONGEST or "\0" in value for value in known.values()):
            raise RequestError("wrong_call", f"a filter has at most {_LONGEST} characters")
        found = cls(**known)
        for name, value, allowed in (
            ("role", found.role, ("in_charge", "person")),
            ("older", found.older, ("", *OLDER)),
        ):
            if value not in allowed:
                raise RequestError(
                    "wrong_call", f"{name} is {', '.join(filter(None, allowed))}: it cannot be {value[:100]}"
                )
        return found

    def filter(self, reader: Reader) -> InstanceFilter:
        until = _moment("before", self.before, reader)
        if self.older:
            old = reader.now - OLDER[self.older][1]
            until = old if until is None else min(old, until)
        return InstanceFilter(
            flow=self.flow or None,
            status=self.status or None,
            in_charge=self.who if self.who and self.role == "in_charge" else None,
            person=self.who if self.who and self.role == "person" else None,
            started_after=_moment("after", self.after, reader),
            started_before=until,
            text=self.text[:200] or None,
            attribute=self.attribute or None if self.flow else None,
            value=self.value if self.attribute and self.flow else None,
        )

    def pairs(self, **more: Any) -> list[tuple[str, str]]:
        said = {**asdict(self), **more}
        if not said["who"]:
            said["role"] = ""
        if not said["flow"]:
            said["attribute"] = said["value"] = ""
        return [(name, str(value)) for name, value in said.items() if value]

    def address(self, path: str = "/instances", **more: Any) -> str:
        pairs = self.pairs(**more)
        return f"{path}?{urlencode(pairs)}" if pairs else path


def batch_filter(wanted: InstanceFilter, definition: Definition | None) -> Filter | None:
    """The same as a batch chooses; None where a batch cannot: it knows no persons, and no beginnings of keys."""
    if wanted.flow is None or definition is None or wanted.in_charge or wanted.person or wanted.text:
        return None
    where = None
    if wanted.attribute is not None:
        kinds = {each.name: each.type for each in definition.attributes}
        where = _condition(wanted.attribute, kinds.get(wanted.attribute, ""), wanted.value or "")
        if where is None:
            return None
    return Filter(
        flow=wanted.flow,
        status=wanted.status,
        started_after=wanted.started_after,
        started_before=wanted.started_before,
        where=where,
    )


def _condition(name: str, kind: str, value: str) -> str | None:
    """A condition passes the gate that all of them pass: it may ask nothing but this."""
    if kind == "text":
        quoted = value.replace("'", "''")
        return f"{name} = '{quoted}'"
    if kind in ("integer", "number") and _NUMBER.fullmatch(value):
        return f"{name} = {value}"
    return {"true": name, "false": f"not {name}"}.get(value) if kind == "boolean" else None


def _moment(name: str, text: str, reader: Reader) -> datetime | None:
    """A field for times knows no zone: it is the reader's."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at if at.tzinfo else at.replace(tzinfo=reader.zone)
    except ValueError as error:
        raise RequestError(
            "wrong_call", f"{name} is a time such as 2027-01-31T12:00: it cannot be {text[:100]}"
        ) from error
