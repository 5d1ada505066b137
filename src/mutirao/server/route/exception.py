"""What instances are exceptions for. They are repaired one by one (steer.py, job.py), or by a batch (batch.py)."""

from typing import Annotated

from fastapi import Query, Response

from mutirao.database.exception import MOST_KINDS, ExceptionKind
from mutirao.server.answer import answer
from mutirao.server.need import Administrator
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
