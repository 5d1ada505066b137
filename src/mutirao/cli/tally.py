"""Counts what each task has done in this process, by standing in front of its function."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mutirao.language import Handler

TaskName = tuple[str, str]


class Tally:
    """`done` and `failed` attempts, by flow and task."""

    def __init__(self) -> None:
        self.done: Counter[TaskName] = Counter()
        self.failed: Counter[TaskName] = Counter()

    def counted(self, handlers: Iterable[Handler]) -> list[Handler]:
        return [replace(each, function=self._counting(each)) for each in handlers]

    def _counting(self, handler: Handler) -> Callable[..., Any]:
        key, function = (handler.flow, handler.task), handler.function

        async def call_async(*given: Any, **named: Any) -> Any:
            try:
                change = await function(*given, **named)
            except Exception:
                self.failed[key] += 1
                raise
            self.done[key] += 1
            return change

        def call(*given: Any, **named: Any) -> Any:
            try:
                change = function(*given, **named)
            except Exception:
                self.failed[key] += 1
                raise
            self.done[key] += 1
            return change

        return call_async if handler.is_async else call
