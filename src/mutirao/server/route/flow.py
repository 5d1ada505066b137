"""Flows: the definitions of processes."""

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import BaseModel, Field

from mutirao.database.engine import DECODER
from mutirao.database.record import VersionRecord
from mutirao.database.sight import SeenFlow
from mutirao.model import encode_document, from_document
from mutirao.server.answer import answer
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.route.parts import Body, FlowName, routes
from mutirao.server.routing import creates

router = routes("flow", "/flows")

_DOCUMENT = {
    "name": "leave",
    "attributes": [{"name": "days", "type": "integer", "required": True}, {"name": "granted", "type": "boolean"}],
    "tasks": [{"name": "decide", "when": "granted is null", "offer": {"role": "manager"}, "outputs": ["granted"]}],
    "final": "granted is not null",
}
Document = Annotated[
    dict[str, Any], Field(description="The definition, as docs/flows.md describes it.", examples=[_DOCUMENT])
]


class ApplyFlow(Body):
    document: Document
    keep: Annotated[bool, Field(description="A version known from earlier is not made anew.")] = False


class CheckFlow(Body):
    document: Document


class AppliedFlow(BaseModel):
    flow: Annotated[str, Field(examples=["leave"])]
    version: Annotated[int, Field(examples=[1])]


class Sound(BaseModel):
    flow: Annotated[str, Field(examples=["leave"])]


class ShownFlow(BaseModel):
    flow: Annotated[str, Field(examples=["leave"])]
    document: Document


@router.get("", response_model=list[SeenFlow])
async def startable(who: SignedIn) -> Response:
    """The flows that you may start."""
    return answer(await who.sight.flows())


@router.post("", status_code=201, response_model=AppliedFlow)
@creates
async def apply(who: Administrator, body: ApplyFlow) -> Response:
    """Put a flow in place. What it runs and when is checked by the database; a refusal says where."""
    definition = from_document(body.document)
    version = await who.engine.apply(definition, keep=body.keep)
    headers = {"Location": f"/api/flows/{definition.name}"}
    return answer({"flow": definition.name, "version": version}, status=201, headers=headers)


@router.post("/check", response_model=Sound)
async def check(who: Administrator, body: CheckFlow) -> Response:
    """Find out whether a flow would be accepted; nothing changes."""
    definition = from_document(body.document)
    await who.engine.check(definition)
    return answer({"flow": definition.name})


@router.get("/{flow}", response_model=ShownFlow)
async def show(
    who: SignedIn, flow: FlowName, version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> Response:
    """The definition of a flow that you may start: its newest version, or an earlier one."""
    definition = await who.sight.definition(flow, version)
    return answer({"flow": flow, "document": DECODER.decode(encode_document(definition))})


@router.get("/{flow}/versions", response_model=list[VersionRecord])
async def versions(who: Administrator, flow: FlowName, limit: Annotated[int, Query(ge=1, le=1000)] = 10) -> Response:
    """The newest versions of a flow."""
    await who.sight.definition(flow)
    return answer(await who.engine.versions(flow, limit=limit))
