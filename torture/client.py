"""A client: a process that asks for operations, through Python and over HTTP, and keeps a ledger of what it was told.

    python -m torture.client --database URL --server URL --token SECRET --person N --ledger FILE --seed N

It needs nothing but addresses. The first SIGTERM ends its starts, and it goes on to serve what waits for somebody (items,
events, repairs), so that everything can end; the second ends it.

A lost connection leaves an operation of unknown outcome. What has a key is then asked for again until somebody answers;
what has none is left as it is, for the audit to find it done wholly or not at all.
"""

import argparse
import asyncio
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from mutirao import Client, Engine, MutiraoError, OperatorError
from torture.ledger import Ledger

# Nobody knows what became of it. `key_under_way`: somebody else, perhaps a server killed meanwhile, is at it.
_UNKNOWN = ("server_lost", "server_unreachable", "key_under_way", "try_again")
_PATIENCE = 5.0


@dataclass(frozen=True)
class Target:
    """What a client works against. `person` is whom the token is for; the person does work items."""

    database: str
    servers: tuple[str, ...]
    token: str
    person: int
    most_open: int = 1500


class Refused(Exception):
    """The engine said no, and so it has not happened."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Lost(Exception):
    """Nobody can tell."""


@dataclass
class Desk:
    """What all lanes of a client share."""

    target: Target
    engine: Engine
    clients: Sequence[Client]
    ledger: Ledger
    chance: random.Random
    name: str
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """No more starts."""
    room: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while there is not too much going on."""
    parcels: list[tuple[str, int]] = field(default_factory=list)
    """Tickets and numbers of parcels that wait for their payment."""
    _tickets: int = 0

    def ticket(self) -> str:
        self._tickets += 1
        return f"{self.name}-{self._tickets}"

    @property
    def client(self) -> Client:
        return self.chance.choice(self.clients)

    async def ask(
        self, what: str, call: Callable[[], Awaitable[Any]], *, again: bool, count: int = 1, **details: Any
    ) -> Any:
        """Do one operation with the ledger open. With `again`, until somebody answers."""
        number = self.ledger.intends(what, **details)
        was_lost = False
        while True:
            try:
                answer = await call()
            except MutiraoError as error:
                if not _is_unknown(error):
                    # After an unknown outcome, "it has ended" may well be our own doing.
                    (self.ledger.unknown if was_lost else self.ledger.refused)(number, error.code)
                    raise Refused(error.code) from error
                was_lost = True
                await self.engine.revive()
                if not again:
                    self.ledger.unknown(number, error.code)
                    raise Lost from error
                self.ledger.unknown(number, error.code)
                await asyncio.sleep(self.chance.uniform(0.05, 0.3))
            else:
                self.ledger.done(number, count, **_noted(answer))
                return answer


def _noted(answer: Any) -> dict[str, Any]:
    match answer:
        case int():
            return {"instances": [answer]}
        case [int(), *_]:
            return {"instances": answer}
        case _:
            return {}


def _is_unknown(error: MutiraoError) -> bool:
    return isinstance(error, OperatorError) or error.code in _UNKNOWN


async def watch(desk: Desk) -> None:
    """Let starts wait while too much is open: the engine is to be killed, not to be buried."""
    while True:
        with suppress(MutiraoError):
            async with desk.engine.connection() as connection:
                row = await (await connection.execute("select count(*) from mutirao.instance")).fetchone()
            if row is not None and row[0] < desk.target.most_open:
                desk.room.set()
            else:
                desk.room.clear()
        await asyncio.sleep(0.3)


async def run(target: Target, ledger: Ledger, seed: int, name: str) -> None:
    """Work until told to stop twice."""
    from torture.lane import LANES  # noqa: PLC0415 lanes are made of this

    ended = asyncio.Event()
    async with AsyncExitStack() as stack:
        engine = await _opened(stack, target, name)
        clients = [await stack.enter_async_context(Client(url, token=target.token)) for url in target.servers]
        desk = Desk(target, engine, clients, ledger, random.Random(seed), name)  # noqa: S311 to be repeated, not secret
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: (ended if desk.stopping.is_set() else desk.stopping).set())
        tasks = [asyncio.ensure_future(lane(desk)) for lane in (watch, *LANES)]
        ending = asyncio.ensure_future(ended.wait())
        while not ending.done():
            done, _ = await asyncio.wait([*tasks, ending], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {ending}:
                task.result()
                tasks.remove(task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _opened(stack: AsyncExitStack, target: Target, name: str) -> Engine:
    """The server may be away just now."""
    while True:
        engine = Engine(target.database, name=name, patience=_PATIENCE)
        try:
            return await stack.enter_async_context(engine)
        except MutiraoError:
            await asyncio.sleep(0.2)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m torture.client", description=__doc__.partition("\n")[0])
    parser.add_argument("--database", required=True, help="postgresql://…")
    parser.add_argument("--server", action="append", default=[], help="http://…, may be repeated")
    parser.add_argument("--token", required=True)
    parser.add_argument("--person", type=int, required=True, help="whose token it is")
    parser.add_argument("--ledger", required=True, help="a file to append to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="client")
    parser.add_argument("--most-open", type=int, default=1500, help="how many instances may be open before starts wait")
    said = parser.parse_args(words)
    target = Target(said.database, tuple(said.server), said.token, said.person, said.most_open)
    asyncio.run(run(target, Ledger(said.ledger), said.seed, said.name))


if __name__ == "__main__":
    main()
