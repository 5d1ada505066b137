"""Databases that queries of flows are asked of. An address goes in, and never comes out in full.

What the command takes from the operator is more than what is taken here: see `check_self_contained`.
"""

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import BaseModel, Field

from mutirao.database.source import DEFAULT_TIMEOUT, SourceRecord, check_self_contained
from mutirao.server.answer import answer, done
from mutirao.server.need import Administrator
from mutirao.server.route.parts import Body, Text, routes

router = routes("database", "/databases")

Name = Annotated[Text, Path(min_length=1, max_length=100, description="What flows call it.", examples=["stock"])]
Seconds = Annotated[float, Field(description="How long a query may take, in seconds.", examples=[10])]


class PutDatabase(Body):
    url: Annotated[
        Text | None,
        Field(
            max_length=2000,
            description="postgresql://user:password@host/name, of a role that may only read. Nothing: as it was.",
            examples=["postgresql://reader:secret@stock.example.org/stock"],
        ),
    ] = None
    timeout: Annotated[Seconds, Field(ge=0.001, le=3600)] = DEFAULT_TIMEOUT.total_seconds()


class DatabaseRecord(BaseModel):
    """A database that flows may ask: where it is, without user and password, and which flows do."""

    name: Annotated[str, Field(examples=["stock"])]
    address: Annotated[str, Field(examples=["stock.example.org, database stock"])]
    timeout: Seconds
    made_by: str
    made_at: datetime
    flows: Annotated[list[str], Field(examples=[["reorder"]])]


class Rows(BaseModel):
    rows: Annotated[list[dict[str, Any]], Field(examples=[[{"version": "PostgreSQL 18.0"}]])]


def _told(found: SourceRecord) -> dict[str, Any]:
    """Field by field: what a record may get later is not told by itself."""
    told = {name: getattr(found, name) for name in ("name", "address", "made_by", "made_at", "flows")}
    return {**told, "timeout": found.timeout.total_seconds()}


@router.get("", response_model=list[DatabaseRecord])
async def all_databases(who: Administrator) -> Response:
    """The databases that flows may ask, and the flows that do."""
    return answer([_told(each) for each in await who.engine.sources.all()])


@router.get("/{name}", response_model=DatabaseRecord)
async def show(who: Administrator, name: Name) -> Response:
    """One of them."""
    return answer(_told(await who.engine.sources.get(name)))


@router.put("/{name}", response_model=DatabaseRecord)
async def put(who: Administrator, name: Name, body: PutDatabase) -> Response:
    """Name a database that flows may ask, or put another in its place. Its address is kept, and not shown again."""
    if body.url is None:
        url = (await who.engine.sources.get(name)).url
    else:
        url = body.url
        check_self_contained(name, url)
    await who.engine.sources.put(name, url, within=timedelta(seconds=body.timeout))
    return answer(_told(await who.engine.sources.get(name)))


@router.delete("/{name}", status_code=204)
async def remove(who: Administrator, name: Name) -> Response:
    """Take its name away. Jobs that would ask it fail."""
    await who.engine.sources.remove(name)
    return done()


@router.post("/{name}/try", response_model=Rows)
async def try_out(who: Administrator, name: Name) -> Response:
    """Ask it for its version, as a job would, with the same limits."""
    return answer({"rows": await who.engine.sources.rows(name)})
