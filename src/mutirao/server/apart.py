"""Work that takes its time, such as reading a long text: apart from where everybody waits, and not more of it than there is room for."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mutirao.errors import RequestError

R = TypeVar("R")

_ROOM = 8


class Apart:
    """One thread: whoever asks for much waits for themselves. So many may wait, whoever comes then is to come again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"mutirao-{name}")
        self._room = threading.BoundedSemaphore(_ROOM)

    async def do(self, act: Callable[..., R], *values: Any) -> R:
        if not self._room.acquire(blocking=False):
            raise RequestError("try_again", f"{_ROOM} others wait for {self._name} at this moment: ask again")
        doing = self._thread.submit(act, *values)
        doing.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(doing)
