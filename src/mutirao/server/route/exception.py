"""What instances are exceptions for, and which. They are repaired one by one (steer.py, job.py), or by a batch (batch.py)."""

from typing import Annotated

from fastapi import Query, Request, Response

from mutirao.database.exception import MOST_KINDS, ExceptionKind
from mutirao.database.sight import SeenException
from mutirao.server.answer import Cursor, Page, PageSize, answer, decode_cursor, page
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.route.parts import Text, routes

router = routes("exception", "/exceptions")


@router.get("", response_model=list[ExceptionKind])
async def kinds(
    who: Administrator,
    flow: Annotated[Text | None, Query(max_length=100, description="Of this flow.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_KINDS)] = 100,
) -> Response:
    """What instances are exceptions for, the most frequent first; and the batch that would repair all of a kind."""
    return answer(await who.engine.exceptions(flow, limit=limit))


@router.get("/instances", response_model=Page[SeenException])
async def instances(
    request: Request,
    who: SignedIn,
    flow: Annotated[Text | None, Query(max_length=100, description="Of this flow.")] = None,
    code: Annotated[
        Text | None, Query(max_length=100, description="With this reason.", examples=["task_failed"])
    ] = None,
    task: Annotated[Text | None, Query(max_length=100, description="Because of this task.")] = None,
    error: Annotated[
        Text | None, Query(max_length=200, description="How its error begins: `error` of what is chosen.")
    ] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> Response:
    """The exceptions that are yours to see to, newest first: all of them if you are an administrator."""
    before = decode_cursor(cursor, int)
    found = await who.sight.exceptions(flow, code=code, task=task, error=error, before=before, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)
