"""Webhooks: where messages are sent on to. Persons see to their own, administrators to all."""

from typing import Annotated, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from mutirao.database.webhook import DeliveryRecord, WebhookAddress, WebhookRecord
from mutirao.server.answer import BIGGEST, Cursor, Page, PageSize, answer, decode_cursor, done, page
from mutirao.server.need import SignedIn
from mutirao.server.route.message import Count, Kind
from mutirao.server.route.parts import Body, Number, Text, routes
from mutirao.server.routing import creates, creates_secret

router = routes("webhook", "/webhooks")


class AddWebhook(Body):
    url: Annotated[Text, Field(min_length=1, max_length=2000, examples=["https://chat.example.org/hooks/4711"])]
    person: Annotated[
        Text | None, Field(max_length=100, description="Whose messages. Nothing: your own.", examples=["clerk_1"])
    ] = None
    everybody: Annotated[bool, Field(description="Everybody's messages: for administrators.")] = False
    kinds: Annotated[list[Kind] | None, Field(max_length=20, description="Nothing: all.")] = None
    secret: Annotated[Text | None, Field(max_length=200, description="Nothing: one is made.")] = None


class AddedWebhook(BaseModel):
    """`secret` signs its messages, as Standard Webhooks do."""

    webhook: WebhookRecord
    secret: str


class PutDelivery(BaseModel):
    delivery: int


class Retry(Body):
    delivery: Annotated[int | None, Field(ge=1, le=BIGGEST, description="Nothing: all that were given up.")] = None


@router.get("", response_model=list[WebhookRecord])
async def all_webhooks(who: SignedIn) -> Response:
    """Your webhooks; all of them if you are an administrator."""
    return answer(await who.engine.webhooks.all(who.id))


@router.post("", status_code=201, response_model=AddedWebhook)
@creates_secret
async def add(who: SignedIn, body: AddWebhook) -> Response:
    """Have messages sent on to an address."""
    person = None if body.everybody else who.id
    if body.person is not None and not body.everybody:
        person = await who.engine.persons.number(body.person)
    webhook, address = await who.engine.webhooks.add(
        who.id, body.url, person=person, kinds=body.kinds, secret=body.secret
    )
    return answer({"webhook": webhook, "secret": address.secret}, status=201)


@router.get("/{webhook}", response_model=WebhookRecord)
async def show(who: SignedIn, webhook: Number) -> Response:
    """One webhook, and how it fares."""
    return answer(await who.engine.webhooks.get(who.id, webhook))


@router.get("/{webhook}/address", response_model=WebhookAddress)
async def address(who: SignedIn, webhook: Number) -> Response:
    """Its whole URL, and the secret by which its messages are signed."""
    return answer(await who.engine.webhooks.address(who.id, webhook))


@router.post("/{webhook}/pause", status_code=204)
async def pause(who: SignedIn, webhook: Number) -> Response:
    """Let it send nothing until it is resumed. What comes meanwhile is kept for it."""
    await who.engine.webhooks.pause(who.id, webhook)
    return done()


@router.post("/{webhook}/resume", status_code=204)
async def resume(who: SignedIn, webhook: Number) -> Response:
    """Let it go on, with what was kept for it."""
    await who.engine.webhooks.resume(who.id, webhook)
    return done()


@router.delete("/{webhook}", status_code=204)
async def drop(who: SignedIn, webhook: Number) -> Response:
    """Take it away, with what it has still to send."""
    await who.engine.webhooks.drop(who.id, webhook)
    return done()


@router.post("/{webhook}/try", status_code=201, response_model=PutDelivery)
@creates
async def try_out(who: SignedIn, webhook: Number) -> Response:
    """Put a message on its way that says nothing."""
    return answer({"delivery": await who.engine.webhooks.try_out(who.id, webhook)}, status=201)


@router.post("/{webhook}/retry", response_model=Count)
async def retry(who: SignedIn, webhook: Number, body: Retry) -> Response:
    """Send again what was given up; answers how many."""
    return answer({"count": await who.engine.webhooks.retry(who.id, webhook, body.delivery)})


@router.get("/{webhook}/deliveries", response_model=Page[DeliveryRecord])
async def deliveries(
    request: Request,
    who: SignedIn,
    webhook: Number,
    status: Annotated[Literal["waiting", "sent", "given_up"] | None, Query()] = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> Response:
    """What became of its messages, newest first."""
    before = decode_cursor(cursor, int)
    found = await who.engine.webhooks.deliveries(who.id, webhook, status=status, before=before, limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)
