"""What creations over HTTP were answered, for whoever asks twice with one key. The engine has them as `engine.answers`."""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg.types.json import Jsonb

from mutirao.database.caller import Face
from mutirao.database.sql import query


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked for what: the key, the route, and the SHA-256 of the body."""

    actor: int
    key: str
    route: str
    body: bytes

    @property
    def values(self) -> tuple[int, str, str, bytes]:
        return self.actor, self.key, self.route, self.body


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer; without content it held a secret."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None


class Answers(Face):
    """To be used inside of `engine.together()`: so an answer is kept exactly where what it tells of was made."""

    async def recall(self, asked: Asked) -> Answered | None:
        """What it was answered, or None: then no other of this key is let in until the transaction ends."""
        async with self.connection() as connection:
            row = await (await connection.execute(query("recall_answer"), asked.values)).fetchone()
        return None if row is None or row[0] is None else Answered(*row)

    async def keep(self, asked: Asked, answered: Answered) -> None:
        headers = Jsonb(dict(answered.headers))
        await self._call("keep_answer", *asked.values, answered.status, headers, answered.content)
