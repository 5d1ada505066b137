"""Exceptions: what needs a person, with its repair in place.

Administrators see what is wrong by kind, and see to all of a kind by a batch; everybody sees the instances that are theirs to
steer, and sees to them one by one.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Request, Response
from pydantic import BaseModel, Field, ValidationError

from mutirao.database.batch import Batch
from mutirao.database.exception import ExceptionKind
from mutirao.database.sight import SeenException
from mutirao.errors import RequestError
from mutirao.model import wording
from mutirao.server.answer import Cursor, Number, decode_cursor, encode_cursor
from mutirao.server.need import SignedIn
from mutirao.server.page.form import label_of
from mutirao.server.page.reader import Reader
from mutirao.server.page.reason import Reason, reasons_of, words
from mutirao.server.page.shell import pages, render
from mutirao.server.page.way import EXCEPTION, Ways, fields_of
from mutirao.server.route.parts import Text
from mutirao.server.who import Who

router = pages()

_PAGE = 25
_LONG = 240
_TOLD_FOR = timedelta(minutes=2)
"""So long a batch that has ended is still shown."""

Word = Annotated[Text, Field(max_length=200)]


class Kind(BaseModel, frozen=True):
    """What instances of a flow are exceptions for; an empty word stands for any."""

    flow: Word = ""
    code: Word = ""
    task: Word = ""
    error: Word = ""

    @classmethod
    def of(cls, request: Request) -> "Kind":
        try:
            return cls.model_validate(dict(request.query_params))
        except ValidationError as error:
            wrong = error.errors()[0]
            raise RequestError("wrong_call", f"{wrong['loc'][0]}: {wrong['msg']}") from error

    def asked(self) -> dict[str, str]:
        return {name: value for name, value in self.model_dump().items() if value}

    def address(self, **more: Any) -> str:
        said = {**self.asked(), **more}
        return f"/exceptions?{urlencode(said)}" if said else "/exceptions"


@dataclass(frozen=True, slots=True)
class ToldKind:
    """A kind in words, where those of it are listed, and how all of them are repaired."""

    kind: ExceptionKind
    title: str
    meaning: str
    link: str

    @property
    def needs_change(self) -> bool:
        """What would be right instead only somebody knows who looks at it."""
        return self.kind.repair in ("repair", "skip") and self.kind.code != "runaway"


@dataclass(frozen=True, slots=True)
class Row:
    """One instance that is an exception."""

    instance: SeenException
    reasons: list[Reason]
    data: str
    """What it says, in one line."""

    @property
    def retried(self) -> Reason | None:
        """The failed job to try again, where there is only one."""
        jobs = [each for each in self.reasons if each.job and each.code.endswith("_failed")]
        return jobs[0] if len(jobs) == 1 and jobs[0].code in ("task_failed", "compensation_failed") else None


@router.get("/exceptions")
async def exceptions(request: Request, who: SignedIn, cursor: Cursor = None) -> Response:
    """By kind for administrators until they choose one; for everybody else, and of a kind, one by one."""
    chosen = Kind.of(request)
    if who.is_administrator and not chosen.code:
        return await _kinds(request, who, chosen)
    return await _instances(request, who, chosen, cursor)


async def _kinds(request: Request, who: Who, chosen: Kind) -> Response:
    reader = Reader.of(request)
    found = await who.engine.exceptions(chosen.flow or None)
    flows = {each.flow for each in found} | ({chosen.flow} if chosen.flow else set())
    return render(
        request,
        "exception.html",
        chosen=chosen,
        kinds=[_told(reader, each) for each in found],
        flows=sorted(flows),
        batches=await _batches(who, reader),
    )


async def _instances(request: Request, who: Who, chosen: Kind, cursor: str | None) -> Response:
    reader = Reader.of(request)
    before = decode_cursor(cursor, int)
    asked = chosen.asked()
    found = await who.sight.exceptions(asked.pop("flow", None), **asked, before=before, limit=_PAGE + 1)
    kinds = await _same_kind(who, reader, chosen)
    return render(
        request,
        "exception_list.html",
        chosen=chosen,
        rows=[Row(each, reasons_of(reader, each.reasons), _in_short(reader, each)) for each in found[:_PAGE]],
        kind=kinds[0] if kinds else None,
        fields=await _fields(who, kinds),
        batches=await _batches(who, reader) if who.is_administrator else [],
        is_first=cursor is None,
        here=chosen.address(**({"cursor": cursor} if cursor else {})),
        following=chosen.address(cursor=encode_cursor(found[_PAGE - 1].id)) if len(found) > _PAGE else None,
    )


def _in_short(reader: Reader, instance: SeenException) -> str:
    known = {label_of(name): value for name, value in instance.state.items() if value is not None}
    line = " \N{MIDDLE DOT} ".join(f"{label}: {wording.shortened(reader.value(known[label]))}" for label in known)
    return wording.shortened(line, _LONG)


async def _same_kind(who: Who, reader: Reader, chosen: Kind) -> list[ToldKind]:
    """What an administrator has chosen, as it is counted and repaired."""
    if not who.is_administrator or not chosen.flow:
        return []
    found = [_told(reader, each) for each in await who.engine.exceptions(chosen.flow)]
    return [each for each in found if each.link == chosen.address()]


async def _fields(who: Who, kinds: list[ToldKind]) -> Any:
    """For the change that would repair all of a kind."""
    if not kinds or not kinds[0].needs_change:
        return ()
    return fields_of(await who.engine.definition(kinds[0].kind.flow), "all")


async def _batches(who: Who, reader: Reader) -> list[Batch]:
    """Those that go on, and those that have ended a moment ago."""
    found = await who.engine.batches(limit=10)
    return [each for each in found if each.is_running or (each.ended_at and reader.now - each.ended_at < _TOLD_FOR)]


def _told(reader: Reader, kind: ExceptionKind) -> ToldKind:
    title, meaning = words(reader, kind.code, kind.task)
    told = kind.task if kind.repair == "retry" or kind.code == "condition_failed" else None
    chosen = Kind(flow=kind.flow, code=kind.code, task=told or "", error=kind.chosen.get("error") or "")
    return ToldKind(kind, title, meaning, chosen.address())


@router.get("/exceptions/{instance}")
async def one(request: Request, who: SignedIn, instance: Number) -> Response:
    """Why one instance is an exception, and what can be done about it."""
    reader = Reader.of(request)
    found = await who.sight.instance(instance)
    reasons = reasons_of(reader, found.reasons) if found.status == EXCEPTION else []
    ways = []
    if reasons and found.may_steer:
        definition = await who.engine.definition(found.flow, found.version)
        ways = Ways(found, definition, await who.sight.jobs(instance), reader.zone).of(reasons)
    return render(
        request,
        "exception_one.html",
        instance=found,
        reasons=reasons,
        ways=ways,
        events=f"/api/events?instance={instance}",
    )
