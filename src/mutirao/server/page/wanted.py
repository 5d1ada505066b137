"""Which items of their worklist somebody wants to see, and in which order: as an address, and as what a browser remembers.

Whoever comes to /work without saying which gets what they saw last. The cookie names its person: somebody else who signs
in to the same browser begins with everything.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from fastapi import Request, Response
from pydantic import ValidationError

from mutirao.database.item import ALL_ITEMS, ItemFilter
from mutirao.errors import RequestError
from mutirao.model.value import ENCODER
from mutirao.server.page.reader import Reader
from mutirao.server.route.worklist import Chosen
from mutirao.server.who import Who
from mutirao.server.wording import told

COOKIE = "mutirao_work"
_YEAR = 365 * 24 * 3600
_LONGEST = 2000

Pairs = list[tuple[str, str]]


def wanted(pairs: Pairs, reader: Reader) -> ItemFilter:
    """What an address asks for. A form sends empty fields, too."""
    given = {name: value for name, value in pairs if value and name != "attribute"}
    if due := given.get("due_before"):
        given["due_before"] = _with_zone(due, reader)
    attributes = dict(_attribute(value) for name, value in pairs if value and name == "attribute")
    try:
        return Chosen.model_validate(given).filter(attributes)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise RequestError("wrong_call", f"{wrong['loc'][0]}: {told(wrong)}") from error


def _attribute(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name.strip():
        raise RequestError("wrong_call", "an attribute is asked for as name=value, such as city=Recife")
    return name.strip(), value.strip()


def _with_zone(due: str, reader: Reader) -> str:
    """A field for times knows no zone: it means the reader's."""
    try:
        at = datetime.fromisoformat(due)
    except ValueError:
        return due  # refused with the rest
    return (at if at.tzinfo else at.replace(tzinfo=reader.zone)).isoformat()


def address(chosen: ItemFilter, **more: Any) -> str:
    """The page with this filter. It always says something: /work alone is what was seen last."""
    return f"/work?{urlencode(list(_pairs(chosen, more)))}"


def _pairs(chosen: ItemFilter, more: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in {**chosen.document(), **more}.items():
        if name == "attributes":
            yield from (("attribute", f"{attribute}={_text(each)}") for attribute, each in value.items())
        elif value is not None and (name, value) != ("status", "all"):
            yield name, _text(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def taking(chosen: ItemFilter) -> str:
    """What to send for the next item of these."""
    return ENCODER.encode({"chosen": chosen.document()}).decode()


def remember(response: Response, who: Who, chosen: ItemFilter) -> None:
    said = quote(f"{who.id}?{address(chosen).partition('?')[2]}", safe="")
    if chosen == ALL_ITEMS or len(said) > _LONGEST:
        response.delete_cookie(COOKIE, path="/", samesite="lax")
    else:
        response.set_cookie(COOKIE, said, max_age=_YEAR, path="/", httponly=True, samesite="lax")


def remembered(request: Request, who: Who, reader: Reader) -> ItemFilter:
    """What they saw last; everything, if that is not known."""
    person, _, said = unquote(request.cookies.get(COOKIE, "")).partition("?")
    if person != str(who.id):
        return ALL_ITEMS
    try:
        return wanted(parse_qsl(said), reader)
    except RequestError:
        return ALL_ITEMS
