"""Keeps an eye on a running engine: shows the board, and raises when the database stays away.

The worker and the clock outlive short silences of the database by themselves, and start an embedded server again. When
a server has not answered for a while, somebody must look, and the program ends saying so.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta

from rich.live import Live

from mutirao.cli.board import Board, View, look
from mutirao.cli.logged import Logged
from mutirao.cli.output import console
from mutirao.cli.rate import Rate
from mutirao.cli.service import Service, is_set_within
from mutirao.database.engine import Engine
from mutirao.database.protocol import is_lost
from mutirao.errors import MutiraoError, OperatorError

_ANSWER_WITHIN = 3.0
_EVERY = timedelta(seconds=0.5 if console.is_terminal else 1)


class Watch:
    """Shows the board, ends the program when its time is over, and raises when its patience with the database is."""

    def __init__(self, engine: Engine, board: Board, length: timedelta | None, patience: timedelta | None) -> None:
        self._engine = engine
        self._board = board
        self._length = length
        self._patience = patience
        self._started = time.monotonic()
        self._answered = self._started
        self._stopped = asyncio.Event()
        self._others: Sequence[Service] = ()
        self._view = View()
        self._rate = Rate()
        self._logged = Logged()

    def stops(self, services: Sequence[Service]) -> None:
        self._others = services

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
            while not self._stopped.is_set():
                await self._look()
                is_over = self._length is not None and self._up_for() >= self._length
                self._show(live, is_over=is_over)
                if is_over:
                    self._stop_all()
                await is_set_within(self._stopped, self._pause())

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                self._view = await look(self._engine, self._view)
            self._answered = time.monotonic()
        except (TimeoutError, MutiraoError) as error:
            if isinstance(error, MutiraoError) and not is_lost(error):
                raise
            self._bear_silence()

    def _bear_silence(self) -> None:
        silent = timedelta(seconds=time.monotonic() - self._answered)
        if self._patience is not None and silent > self._patience:
            where = self._board.where
            raise OperatorError(
                "server_lost", f"no answer for {silent.seconds} s from {where}; see that it runs, then start this again"
            )
        self._view.silent_for = silent

    def _show(self, live: Live | None, *, is_over: bool) -> None:
        rate = self._rate.of(sum(self._board.tally.done.values()))
        if live is not None:
            live.update(self._board.full(self._view, rate, self._up_for()), refresh=True)
        elif self._logged.is_due(self._board.line(self._view, 0.0), self._view, is_last=is_over):
            console.print(self._board.line(self._view, rate), highlight=False, markup=False, soft_wrap=True)

    def _stop_all(self) -> None:
        for service in self._others:
            service.stop()

    def _up_for(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._started)

    def _pause(self) -> timedelta:
        return _EVERY if self._length is None else max(timedelta(), min(_EVERY, self._length - self._up_for()))
