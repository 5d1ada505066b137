"""The library: task models, applications and orderings that flows share; and the process language that defines them."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from mutirao.database.library import LibraryRecord
from mutirao.errors import FlowError, RequestError
from mutirao.language.pdl import (
    Bundle,
    Finding,
    PdlError,
    Reading,
    Source,
    check_size,
    examine,
    format_text,
    to_pdl,
    with_creator,
)
from mutirao.model import Inventory
from mutirao.server.answer import answer, done
from mutirao.server.apart import Apart
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.problem import named_by_address
from mutirao.server.route.parts import Body, FlowName, Text, routes
from mutirao.server.routing import creates

router = routes("library", "")

# Everybody may ask for the one, only administrators for the other: so neither keeps the other waiting.
_FORMATTING, _READING = Apart("formatting"), Apart("reading")
_MOST_FORMATTED = 100_000

_PDL = """WORKFLOW Leave {
  CREATOR employee;
  NUMBER Days { }
  TASK Decide { DEPENDS; ROLE manager; }
}"""
EntryName = Annotated[Text, Path(min_length=1, max_length=200)]


class Pdl(Body):
    text: Annotated[Text, Field(description="In the process language: see docs/pdl.md.", examples=[_PDL])]
    name: Annotated[Text, Field(max_length=200, description="What findings call it.", examples=["leave.pdl"])] = "pdl"


class ApplyPdl(Pdl):
    creator: Annotated[
        Text | None, Field(max_length=100, description="Whose members may start the flows that do not say so.")
    ] = None


class Found(BaseModel):
    """Something about a text, and where."""

    code: str
    message: str
    line: int
    column: int
    is_warning: bool


class Defined(BaseModel):
    flow: Annotated[str, Field(examples=["leave"])]
    is_new: Annotated[bool, Field(description="There is no flow of this name yet.", examples=[True])]


class Checked(BaseModel):
    ok: bool
    findings: list[Found]
    flows: Annotated[list[Defined], Field(description="The flows that the text defines, as far as it can be read.")]


class AppliedPdl(BaseModel):
    flows: Annotated[dict[str, int], Field(description="The version of each flow.", examples=[{"leave": 1}])]
    findings: Annotated[list[Found], Field(description="Warnings.")]


class Written(BaseModel):
    text: str


@router.get("/library", response_model=list[LibraryRecord])
async def entries(
    who: Administrator, kind: Annotated[Literal["task_model", "application", "ordering"] | None, Query()] = None
) -> Response:
    """What flows share, and which use it."""
    return answer(await who.engine.library.all(kind))


@router.delete("/library/task_models/{name}", status_code=204)
async def drop_model(who: Administrator, name: EntryName) -> Response:
    """Take a task model away. Refused while the newest version of a flow uses it."""
    with named_by_address():
        await who.engine.library.drop_model(name)
    return done()


@router.delete("/library/applications/{name}", status_code=204)
async def drop_application(who: Administrator, name: EntryName) -> Response:
    """Take an application away. Refused while something uses it."""
    with named_by_address():
        await who.engine.library.drop_application(name)
    return done()


@router.delete("/library/orderings/{first}/{second}", status_code=204)
async def drop_ordering(who: Administrator, first: EntryName, second: EntryName) -> Response:
    """Take an ordering of two flows away."""
    with named_by_address():
        await who.engine.library.drop_ordering(first, second)
    return done()


@router.post("/pdl", status_code=201, response_model=AppliedPdl)
@creates
async def apply_pdl(who: Administrator, body: ApplyPdl) -> Response:
    """Put all that a text defines in place, or nothing of it."""
    inventory = await who.engine.library.inventory()
    reading = await _read(inventory, body)
    if reading.findings.errors:
        await reading.judge(who.engine.library.try_out)
        raise _refusal(reading.findings.errors)
    bundle = with_creator(reading.bundle, body.creator, inventory)
    try:
        versions = await who.engine.library.apply(bundle, sources=reading.texts)
    except FlowError as error:
        await reading.judge(who.engine.library.try_out)
        if not reading.findings.errors:
            raise
        raise _refusal(reading.findings.errors) from error
    return answer({"flows": versions, "findings": [_told(each) for each in reading.findings.warnings]}, status=201)


@router.post("/pdl/check", response_model=Checked)
async def check_pdl(who: Administrator, body: Pdl) -> Response:
    """Say what is wrong with a text, all of it, with its place. Nothing is changed."""
    inventory = await who.engine.library.inventory()
    reading = await _read(inventory, body)
    await reading.judge(who.engine.library.try_out)
    found = reading.findings
    flows = [Defined(flow=name, is_new=name not in inventory.tasks) for name in reading.places.flows]
    findings = [_told(each) for each in (*found.errors, *found.warnings)]
    return answer({"ok": not found.errors, "findings": findings, "flows": [each.model_dump() for each in flows]})


@router.post("/pdl/format", response_model=Written)
async def format_pdl(who: SignedIn, body: Pdl) -> Response:  # noqa: ARG001 it says who may ask
    """The text, of up to 100 kB, in the one layout. Its meaning and its comments stay."""
    if len(body.text.encode()) > _MOST_FORMATTED:
        raise RequestError("pdl_too_large", f"{body.name}: over HTTP up to {_MOST_FORMATTED:,} bytes are formatted")
    try:
        return answer({"text": await _FORMATTING.do(format_text, Source(body.name, body.text))})
    except PdlError as error:
        raise _refusal(error.findings) from error


@router.get("/flows/{flow}/pdl", response_model=Written)
async def flow_as_pdl(who: SignedIn, flow: FlowName) -> Response:
    """A flow that you may start, in the process language."""
    definition = await who.sight.definition(flow)
    return answer({"text": to_pdl(Bundle(flows=(definition,)))})


async def _read(inventory: Inventory, body: Pdl) -> Reading:
    """Reading takes its time, so it is not done where everybody waits for it."""
    check_size(body.name, len(body.text.encode()))
    return await _READING.do(examine, [Source(body.name, body.text)], inventory)


def _refusal(findings: Any) -> PdlError:
    error = PdlError(findings)
    error.details["findings"] = [_told(each) for each in findings]
    return error


def _told(finding: Finding) -> dict[str, Any]:
    at = finding.place
    where = {"line": at.line, "column": at.column}
    return {"code": finding.code, "message": finding.message, **where, "is_warning": finding.is_warning}
