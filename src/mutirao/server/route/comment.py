"""Comments: what people say about instances and their items; and what else is kept with these."""

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from mutirao.database.item import Attachment, Comment
from mutirao.server.answer import BIGGEST, Cursor, Page, PageSize, answer, decode_cursor, done, page
from mutirao.server.need import SignedIn
from mutirao.server.route.parts import Body, Number, Text, routes
from mutirao.server.routing import creates

router = routes("instance", "")


class Say(Body):
    text: Annotated[Text, Field(min_length=1, max_length=10_000, examples=["The customer will call back."])]
    job: Annotated[int | None, Field(ge=1, le=BIGGEST, description="About this item of it.")] = None


class Said(BaseModel):
    id: int


@router.get("/instances/{instance}/comments", response_model=Page[Comment])
async def comments(
    request: Request,
    who: SignedIn,
    instance: Number,
    job: Annotated[int | None, Query(ge=1, le=BIGGEST, description="About this item of it.")] = None,
    limit: PageSize = 100,
    cursor: Cursor = None,
) -> Response:
    """What was said about it, the oldest first."""
    after = decode_cursor(cursor, int) or 0
    found = await who.engine.worklists.comments(who.id, instance, job=job, after=after, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)


@router.post("/instances/{instance}/comments", status_code=201, response_model=Said)
@creates
async def comment(who: SignedIn, instance: Number, body: Say) -> Response:
    """Say something about it, or about one of its items."""
    number = await who.engine.worklists.comment(who.id, body.text, instance=instance, job=body.job)
    return answer({"id": number}, status=201)


@router.delete("/comments/{comment}", status_code=204)
async def remove_comment(who: SignedIn, comment: Number) -> Response:
    """Take back what you said; administrators take back what others did."""
    await who.engine.worklists.remove_comment(who.id, comment)
    return done()


@router.get("/instances/{instance}/attachments", response_model=Page[Attachment])
async def attachments(
    request: Request,
    who: SignedIn,
    instance: Number,
    job: Annotated[int | None, Query(ge=1, le=BIGGEST, description="Of this item of it.")] = None,
    limit: PageSize = 100,
    cursor: Cursor = None,
) -> Response:
    """What is kept with it, open or closed, though it is not of its state: results that came too late, the oldest first."""
    after = decode_cursor(cursor, int) or 0
    found = await who.engine.worklists.attachments(who.id, instance, job=job, after=after, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)
