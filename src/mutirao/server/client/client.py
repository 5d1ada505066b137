"""The HTTP API for Python programs: typed, and with the refusals that the engine itself raises.

    async with Client("https://work.example.org", token=…) as client:
        instance = await client.instances.create("travel", {"destination": "Recife"})
        async for row in client.instances.trace(instance.id):
            print(row.kind, row.task)

A person signs in instead: `await client.sessions.sign_in(name, password)`. For programs without an event loop there is
`blocking_client`, as there is `blocking_engine`.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from mutirao.database.bridge import Wait, loop_beside
from mutirao.server.client.batch import Batches
from mutirao.server.client.database import Databases
from mutirao.server.client.exception import Exceptions
from mutirao.server.client.file import Files
from mutirao.server.client.flow import Flows
from mutirao.server.client.instance import Instances
from mutirao.server.client.item import Comments, Worklist
from mutirao.server.client.job import Jobs
from mutirao.server.client.library import Library
from mutirao.server.client.meeting import Classes
from mutirao.server.client.message import Messages, Settings, Webhooks
from mutirao.server.client.person import Persons, Roles
from mutirao.server.client.schedule import Schedules
from mutirao.server.client.session import Sessions, Tokens
from mutirao.server.client.transport import Transport, raise_refusal

_HINT = "data: "


class _Hint(msgspec.Struct):
    reread: list[str]


class Client:
    """One server, as one person or program sees it. Enter it, or `close` it when done."""

    def __init__(self, url: str = "http://127.0.0.1:8321", *, token: str | None = None) -> None:
        self.transport = Transport(url, token=token)
        self.sessions = Sessions(self.transport)
        self.tokens = Tokens(self.transport)
        self.persons = Persons(self.transport)
        self.roles = Roles(self.transport)
        self.flows = Flows(self.transport)
        self.instances = Instances(self.transport)
        self.exceptions = Exceptions(self.transport)
        self.library = Library(self.transport)
        self.databases = Databases(self.transport)
        self.classes = Classes(self.transport)
        self.worklist = Worklist(self.transport)
        self.comments = Comments(self.transport)
        self.files = Files(self.transport)
        self.messages = Messages(self.transport)
        self.webhooks = Webhooks(self.transport)
        self.settings = Settings(self.transport)
        self.jobs = Jobs(self.transport)
        self.schedules = Schedules(self.transport)
        self.batches = Batches(self.transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    async def is_ready(self) -> bool:
        """Whether the server and its database answer."""
        try:
            answer = await self.transport.http.get("/ready")
        except httpx.TransportError:
            return False
        return answer.status_code == HTTPStatus.OK

    async def hints(self, *, instances: Sequence[int] = (), everything: bool = False) -> AsyncIterator[list[str]]:
        """What to read again, as it happens: worklist, messages, and instance/… of those that are named.

        Administrators hear of `everything`: `instances`, whenever some have moved.
        """
        asked: dict[str, Any] = {"instance": list(instances)} if instances else {}
        if everything:
            asked["everything"] = True
        async with self.transport.http.stream("GET", "/api/events", params=asked, timeout=60) as response:
            if response.status_code != HTTPStatus.OK:
                await response.aread()
                raise_refusal(response)
            async for line in response.aiter_lines():
                if line.startswith(_HINT):
                    yield msgspec.json.decode(line.removeprefix(_HINT), type=_Hint).reread


@contextmanager
def blocking_client(url: str = "http://127.0.0.1:8321", *, token: str | None = None) -> Iterator[tuple[Client, Wait]]:
    """A client, and the function that waits for its answers: `wait(client.instances.get(17))`."""
    with loop_beside() as wait, wait.inside(Client(url, token=token)) as client:
        yield client, wait
