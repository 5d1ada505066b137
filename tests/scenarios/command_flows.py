"""Flows for the tests of the command: one of every type of attribute, and some that a test can stop in the middle."""

import asyncio
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from mutirao import Change, Failed, Flow, Json, searchable, task


class Order(Flow):
    """Pay, then ship."""

    customer: Annotated[str, searchable] = "walk-in"
    pieces: int = 1
    price: Annotated[Decimal, searchable] = Decimal("9.90")
    gift: bool = False
    due: date | None = None
    placed: datetime | None = None
    lines: Json = None
    stage: str = "new"

    final = "stage = 'shipped'"

    @task(when="stage = 'new'", retries=0)
    async def pay(self) -> Change:
        if self.customer == "bankrupt":
            raise Failed("the bank says no")
        return {"stage": "paid"}

    @task(when="stage = 'paid'", retries=0)
    async def ship(self) -> Change:
        return {"stage": "shipped"}


class Gate(Flow):
    """Blocks in a thread until a test opens the other end of a pipe."""

    pipe: str = ""
    word: str | None = None

    final = "word is not null"

    @task(when="word is null")
    def read(self) -> Change:
        return {"word": Path(self.pipe).read_text()}


class Endless(Flow):
    """Tells a test through a pipe that it has begun, and never ends."""

    pipe: str = ""
    word: str | None = None

    final = "word is not null"

    @task(when="word is null")
    async def wait(self) -> Change:
        Path(self.pipe).write_text("begun")
        await asyncio.Event().wait()
        return {}


class Flaky(Flow):
    """Its first try fails."""

    marker: str = ""
    word: str | None = None

    final = "word is not null"

    @task(when="word is null", backoff=timedelta(milliseconds=1))
    def step(self) -> Change:
        marker = Path(self.marker)
        if not marker.exists():
            marker.touch()
            raise ConnectionError("not yet")
        return {"word": "done"}


class Careless(Flow):
    """Returns what its flow does not have, or what is of another type."""

    how: str = "unknown"
    pieces: int | None = None

    final = "pieces is not null"

    @task(when="pieces is null", retries=0)
    def count(self) -> Change:
        return {"peices": 1} if self.how == "unknown" else {"pieces": "many"}
