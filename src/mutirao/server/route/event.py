"""Events: what happened outside, for instances by their keys; and the stream of hints of what to read again."""

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import Field

from mutirao.database.record import Event, Sent
from mutirao.errors import OperatorError, RequestError
from mutirao.server.answer import BIGGEST, answer
from mutirao.server.hub import Hub, OpenStream
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.options import ServerOptions
from mutirao.server.route.parts import Because, Body, FlowName, State, Text, routes
from mutirao.server.routing import creates, streams
from mutirao.server.stream import HintStream

router = routes("event", "")

Key = Annotated[Text, Field(min_length=1, max_length=1000, examples=["order-4711"])]


class Happened(Body):
    key: Annotated[Key, Field(description="Of the instance that it is for.")]
    change: State
    id: Annotated[Key | None, Field(description="Of events of one id only one is written.")] = None


class Send(Because):
    events: Annotated[list[Happened], Field(min_length=1, max_length=1000)]
    only_if: Annotated[
        Text | None, Field(max_length=10_000, description="Only where this condition holds.", examples=["paid is null"])
    ] = None


@router.post("/flows/{flow}/events", response_model=list[Sent])
@creates
async def send(who: Administrator, flow: FlowName, body: Send) -> Response:
    """Set attributes of the instances that have these keys; answers what became of each event, in their order."""
    events = [Event(each.key, each.change, each.id) for each in body.events]
    return answer(await who.engine.send_many(flow, events, only_if=body.only_if, reason=body.reason))


@router.get(
    "/events",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Hints."}},
)
@streams
async def hints(
    request: Request,
    who: SignedIn,
    instance: Annotated[
        list[Annotated[int, Field(ge=1, le=BIGGEST)]] | None,
        Query(max_length=50, description="Instances to hear of, too."),
    ] = None,
    everything: Annotated[
        bool, Query(description="Hear whenever any instance moves, every two seconds at most: for administrators.")
    ] = False,
) -> Response:
    """Server-sent events: `hint`, with what to read again, such as `{"reread": ["worklist", "messages", "instance/17"]}`.

    With `everything`, `instances` says that some have moved, of whomever. The first hint says all of it. The stream ends
    when the session does, or when somebody who hears everything is no administrator any more.
    """
    hub: Hub = request.app.state.hub
    options: ServerOptions = request.app.state.options
    if hub.is_closed:
        raise OperatorError("stopping", "the server is stopping")
    if hub.count(who.id) >= options.streams_each:
        raise RequestError("too_many_streams", f"you have {options.streams_each} streams open: close one")
    for unseen in set(instance or ()) - await who.sight.among(instance or ()):
        raise RequestError("unknown_instance", f"there is no instance {unseen}")
    if everything:
        who.check_administrator()
    stream = OpenStream(who.id, instance or (), hears_everything=everything)
    return HintStream(hub, stream, who.is_still_administrator if everything else who.is_still_in)
