"""Counts what each task has got done in this process, where its change is checked.

Not by a function around the user's own: that would stand in every traceback.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from mutirao.language import Handler
from mutirao.model import Change

TaskName = tuple[str, str]


class Tally:
    """Attempts that went well, by flow and task."""

    def __init__(self) -> None:
        self.done: Counter[TaskName] = Counter()

    def counted(self, handlers: Iterable[Handler]) -> list[Handler]:
        return [replace(each, encode_change=self._counting(each)) for each in handlers]

    def _counting(self, handler: Handler) -> Callable[[Change], bytes]:
        def encode(change: Change) -> bytes:
            encoded = handler.encode_change(change)
            self.done[handler.flow, handler.task] += 1
            return encoded

        return encode
