"""How a program here is called, and how it takes its turn: `PROGRAM COMMAND URL [NUMBER]`, alike for all of them."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

WARM_UP = 10

Command = Callable[[str, int], None]


def main(**commands: Command) -> None:
    name, url, *number = sys.argv[1:]
    commands[name](url, int(number[0]) if number else 0)


def wait_for_go() -> None:
    """All is imported: the clock may start. What is done from here on is in the time."""
    print("ready", flush=True)
    sys.stdin.readline()


def tell_times(rounds: int, begin: Callable[[int], Any], wait: Callable[[Any], None]) -> None:
    """Milliseconds from asking for an instance until its end is seen, one instance after another."""
    times = []
    for number in range(rounds + WARM_UP):
        began = time.perf_counter()
        wait(begin(number))
        times.append((time.perf_counter() - began) * 1000)
    print(json.dumps(times[WARM_UP:]))
