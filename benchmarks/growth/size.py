"""How much is done. The goals are for the full size."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """`worked` instances make a rate, `rounds` a latency; where there is more to do than can be done, `window` seconds do."""

    instances: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)
    conditions: Sequence[int] = (1, 3, 10, 30, 100, 300, 1_000)
    workers: Sequence[int] = (1, 2, 4, 8, 16, 32, 64)
    worked: int = 10_000
    rounds: int = 100
    window: float = 5.0
    runs: int = 3


QUICK = Size(
    instances=(1_000, 10_000, 100_000),
    conditions=(1, 10, 100),
    workers=(1, 4, 16),
    worked=2_000,
    rounds=30,
    window=2.0,
    runs=1,
)
TINY = Size(instances=(10, 100), conditions=(1, 11), workers=(1, 2), worked=50, rounds=3, window=0.5, runs=1)
