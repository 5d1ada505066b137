"""What `mutirao up` writes into a log."""

from datetime import timedelta

import pytest

from mutirao.cli import logged
from mutirao.cli.board import View
from mutirao.database.record import Backlog


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def a_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(logged, "time", clock)
    return clock


def written(log: logged.Logged, clock: Clock, seconds: int) -> list[int]:
    """At which seconds, if there is something new at each."""
    view, began = View(), clock.now
    found = []
    for second in range(seconds):
        clock.now = began + second
        if log.is_due(f"{second} jobs done", view, is_last=False):
            found.append(second)
    return found


def test_a_log_is_written_ever_more_rarely_so_that_the_password_stays_in_sight(clock: Clock) -> None:
    assert written(logged.Logged(), clock, 130) == [0, 1, 3, 7, 15, 31, 61, 91, 121]


def test_trouble_and_the_end_are_written_at_once_and_nothing_twice(clock: Clock) -> None:
    log = logged.Logged()
    written(log, clock, 60)
    stuck = View(backlog={("travel", "pay"): Backlog("travel", "pay", 0, 0, 0, 1, None)})
    assert log.is_due("1 stuck", stuck, is_last=False)
    assert not log.is_due("1 stuck, 5 done", stuck, is_last=False)
    silent = View(backlog=stuck.backlog, silent_for=timedelta(seconds=3))
    assert log.is_due("no answer for 3 s", silent, is_last=False)
    silent.silent_for = timedelta(seconds=4)
    assert not log.is_due("no answer for 4 s", silent, is_last=False)
    assert log.is_due("1 stuck, 9 done", stuck, is_last=True)
    assert not log.is_due("1 stuck, 9 done", stuck, is_last=True)
