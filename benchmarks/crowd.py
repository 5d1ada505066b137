"""Many who go for one work item at the same moment: how long the last of them waits for an answer."""

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from benchmarks.measure import BrokenRunError, Run
from benchmarks.noise import NoiseMeter
from mutirao.database.engine import Engine
from mutirao.people import add_token

_ROUNDS = 4  # the first finds sessions that have never asked for anything


class Crowd:
    """So many persons of a role, who have a list in front of them."""

    def __init__(self, url: str, role: str, size: int) -> None:
        self._url = url
        with psycopg.connect(url, autocommit=True) as connection:
            self._persons = connection.execute(
                "select p.id, p.name from mutirao.person p join mutirao.member m on m.person = p.id join mutirao.role r on r.id = m.role"
                " where r.name = %s order by p.id limit %s",
                [role, size],
            ).fetchall()
            items = connection.execute(
                "select j.id from mutirao.job j join mutirao.role r on r.id = j.role where r.name = %s and j.status = 'ready' order by j.id limit %s",
                [role, 2 * _ROUNDS],
            ).fetchall()
            self._room = int(connection.execute("show max_connections").fetchone()[0]) - 15  # type: ignore[index]
        self._items = iter([item for (item,) in items])

    def in_database(self, meter: NoiseMeter) -> Run:
        """As many sessions as the server lets in ask at once."""
        persons = [person for person, _ in self._persons]
        sessions = [psycopg.connect(self._url, autocommit=True) for _ in persons[: self._room]]
        try:
            return self._rounds(meter, lambda item: self._ask_sessions(item, sessions, persons))
        finally:
            for session in sessions:
                session.close()

    def _ask_sessions(
        self, item: int, sessions: Sequence[psycopg.Connection[Any]], persons: Sequence[int]
    ) -> list[tuple[float, bool]]:
        gate = threading.Barrier(len(sessions))
        answers: list[tuple[float, bool]] = []

        def go(session: psycopg.Connection[Any], some: Sequence[int]) -> None:
            gate.wait()
            began = time.perf_counter()
            for person in some:
                try:
                    session.execute("select mutirao.select_item(%s, %s)", [person, item])
                    got = True
                except psycopg.Error as error:
                    if "item_taken" not in str(error):
                        raise
                    got = False
                answers.append((time.perf_counter() - began, got))

        crowd = [
            threading.Thread(target=go, args=(session, persons[n :: len(sessions)]))
            for n, session in enumerate(sessions)
        ]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        return answers

    def over_http(self, meter: NoiseMeter) -> Run:
        """Each has a connection of their own to one server."""
        tokens = asyncio.run(self._tokens())
        with serving(self._url) as port:
            return self._rounds(meter, lambda item: asyncio.run(_ask_server(port, item, tokens)))

    async def _tokens(self) -> list[str]:
        async with Engine(self._url) as engine:
            return [(await add_token(engine, None, name, "bench")).secret for _, name in self._persons]

    def _rounds(self, meter: NoiseMeter, ask: Callable[[int], list[tuple[float, bool]]]) -> Run:
        last = []
        for _ in range(_ROUNDS):
            answers = ask(next(self._items))
            won = sum(got for _, got in answers)
            if won != 1 or len(answers) != len(self._persons):
                raise BrokenRunError(
                    f"of {len(self._persons)} who went for one item {won} got it, and {len(answers)} had an answer"
                )
            last.append(max(waited for waited, _ in answers) * 1000)
        return Run(max(last[1:]), meter.read(), {"first": last[0], "persons": len(self._persons)})


@contextmanager
def serving(url: str) -> Iterator[int]:
    """`mutirao server` on this database, at a port that is free."""
    command = [sys.executable, "-m", "mutirao", "server", "--port", "0", "--database", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603 ourselves
        try:
            for line in process.stdout or ():
                if ready := re.search(r"is ready: http://127.0.0.1:(\d+)\b", line):
                    yield int(ready[1])
                    return
            raise BrokenRunError("the server ended before it was ready")
        finally:
            process.terminate()


async def _ask_server(port: int, item: int, tokens: Sequence[str]) -> list[tuple[float, bool]]:
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in tokens]

    async def go(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> tuple[float, bool]:
        began = time.perf_counter()
        writer.write(
            f"POST /api/items/{item}/select HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}".encode()
        )
        answer = await reader.read()
        waited = time.perf_counter() - began
        writer.close()
        status = answer.split(maxsplit=2)[1]
        if status not in (b"200", b"409"):
            raise BrokenRunError(f"an answer that is none: {answer[:200]!r}")
        return waited, status == b"200"

    return await asyncio.gather(*(go(*each, token) for each, token in zip(connections, tokens, strict=True)))
