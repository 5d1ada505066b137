"""Processes whose clock is wrong: by libfaketime where it is installed, else by shifting what Python tells.

libfaketime (Debian: `faketime`) stands between a process and the C library, so that everything in it sees the wrong time.
Without it, `time.time` and `datetime.now` are shifted before anything else is imported: that is all of the wall clock that
Python code sees. Time that passes (`time.monotonic`) stays as it is in either case.
"""

import datetime
import os
import time
from glob import glob
from typing import Any

HOURS = 48


def library() -> str | None:
    """Where libfaketime is, if it is here."""
    found = sorted(glob("/usr/lib/*/faketime/libfaketime.so.1") + glob("/usr/lib*/faketime/libfaketime.so.1"))  # noqa: PTH207 absolute
    return found[0] if found else None


def described() -> str:
    return "libfaketime" if library() else "Python's clock shifted"


def environment(hours: int) -> dict[str, str]:
    """What a process is told so that its clock is wrong by so many hours."""
    if not hours:
        return {}
    if path := library():
        return {"LD_PRELOAD": path, "FAKETIME": f"{hours:+d}h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return {"TORTURE_SKEW": str(hours * 3600)}


def shift_if_wanted() -> None:
    if seconds := os.environ.get("TORTURE_SKEW"):
        shift(float(seconds))


def shift(seconds: float) -> None:
    """Shift what this process is told, from now on."""
    true_time, true_ns = time.time, time.time_ns
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_ns() + int(seconds * 1e9)
    true = datetime.datetime

    class Shifted(true):  # type: ignore[valid-type, misc]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return true.now(tz) + datetime.timedelta(seconds=seconds)

        @classmethod
        def utcnow(cls) -> Any:
            return true.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=seconds)

    datetime.datetime = Shifted  # type: ignore[misc]
