"""Where in a program something is written, to be named in a refusal."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from mutirao.errors import FlowError


def place_of(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def place_of_frame(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def place_of_caller() -> str:
    """Where the function that asks was called."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    return place_of_frame(frame) if frame else "?"


def placed(error: FlowError, place: str) -> FlowError:
    return FlowError(error.code, f"{error.message} ({place})")


@contextmanager
def placing(place: str) -> Iterator[None]:
    """A refusal names the place. Whoever asks `placing(place_of_caller())` means their own caller."""
    try:
        yield
    except FlowError as error:
        raise placed(error, place) from None
