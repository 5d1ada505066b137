"""One stream of hints: server-sent events, for as long as the reader is signed in and reads."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mutirao.errors import MutiraoError
from mutirao.model.value import ENCODER
from mutirao.server.hub import Hub, OpenStream

HEARTBEAT = 15.0
_AT_MOST_EVERY = 0.25
# A reader that takes nothing for so long is not there.
_TAKE_WITHIN = 10.0

StillIn = Callable[[], Awaitable[bool]]


class HintStream(Response):
    """Tells at once to read everything, and then what has changed. `still_in` says whether the session goes on."""

    media_type = "text/event-stream"

    def __init__(self, hub: Hub, stream: OpenStream, still_in: StillIn) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._stream = stream
        self._still_in = still_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 the interface of the base class
        with self._hub.open(self._stream):
            telling = asyncio.create_task(self._tell(send))
            leaving = asyncio.create_task(_until_gone(receive))
            try:
                await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (telling, leaving):
                    task.cancel()
                await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        await _sent(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._stream.tell_all()
        await self._say(send, b"retry: 2000\n\n")
        while not self._hub.is_closed:
            told = await self._stream.wait(HEARTBEAT)
            if self._hub.is_closed or not await self._may_go_on(is_due=not told):
                break
            await self._say(send, _hint(told) if told else b": still here\n\n")
            await asyncio.sleep(_AT_MOST_EVERY)
        await _sent(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _may_go_on(self, *, is_due: bool) -> bool:
        """Whoever is hinted at by name, or hears the heartbeat, may have signed out or changed roles."""
        if not (is_due or self._stream.is_stale):
            return True
        try:
            if not await self._still_in():
                return False
            await self._hub.refresh(self._stream)
        except MutiraoError:  # the database is away: that is asked again with the next heartbeat
            self._stream.is_stale = True
        return True

    async def _say(self, send: Send, text: bytes) -> None:
        await _sent(send, {"type": "http.response.body", "body": text, "more_body": True})


async def _sent(send: Send, message: dict[str, object]) -> None:
    async with asyncio.timeout(_TAKE_WITHIN):
        await send(message)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _hint(what: list[str]) -> bytes:
    return b"event: hint\ndata: " + ENCODER.encode({"reread": what}) + b"\n\n"
