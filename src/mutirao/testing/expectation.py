"""What a test expects of an instance; where it is not so, the instance's story is told.

    await expect(engine, trip).completed().ran("book_hotel", "charge_card").state(paid=True)

Everything that is said before the `await` is asked of one look at the instance, and all that does not hold is told.
"""

import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from mutirao.database.engine import STATUSES, Engine
from mutirao.database.record import Instance, JobRecord, TraceRow
from mutirao.database.story import EXCEPTION_TASK
from mutirao.errors import RequestError
from mutirao.language.task import TaskMethod
from mutirao.model import Definition, wording
from mutirao.model.name import suggest
from mutirao.testing.stand_in import TaskName
from mutirao.testing.story import StoryError, as_json, check_attributes, tell_all


@dataclass(frozen=True)
class Look:
    """An instance and all that is known about it, at one moment."""

    instance: Instance
    definition: Definition
    trace: Sequence[TraceRow]
    jobs: Sequence[JobRecord]

    @property
    def done(self) -> list[str]:
        """The tasks that were done, in that order."""
        return [row.task for row in self.trace if row.kind == "finish" and row.task is not None]

    def tries(self, task: str) -> int:
        """How many attempts have ended, well or not. One that vanished with its worker left no trace."""
        ends = [row for row in self.trace if row.task == task and row.kind in ("finish", "fail", "retry", "parked")]
        return sum(row.kind != "retry" or row.state is None for row in ends)


Check = Callable[[Look], str | None]
"""Says what does not hold, None when it does."""


class Expectation:
    """Say what is expected, then await it."""

    def __init__(self, engine: Engine, instance: int) -> None:
        self._engine = engine
        self._instance = instance
        self._checks: list[Check] = []
        self._attributes: list[str] = []
        self._tasks: list[str] = []
        self._is_asked = False

    def completed(self) -> Self:
        """It is `closed.completed`."""
        return self.has_status("closed.completed")

    def has_status(self, status: str) -> Self:
        """It has this status, or one that begins so: `open`, `closed.aborted`."""
        if not any(known.startswith(status) for known in STATUSES):
            raise RequestError("wrong_call", f'there is no status "{status}"{suggest(status, STATUSES)}')
        return self._check(
            lambda look: None if look.instance.status.startswith(status) else f"is {look.instance.status}, not {status}"
        )

    def is_exception(self, code: str | None = None) -> Self:
        """It is an exception, with this among its reasons."""

        def check(look: Look) -> str | None:
            codes = [str(reason["code"]) for reason in look.instance.reasons or ()]
            if look.instance.status != "open.exception":
                return f"is {look.instance.status}, not an exception"
            return None if code in (None, *codes) else f"is an exception for {', '.join(codes)}, not for {code}"

        return self._check(check)

    def ran(self, *tasks: TaskName) -> Self:
        """These were done in this order; others may have been between."""
        names = self._named(tasks)

        def check(look: Look) -> str | None:
            done = iter(look.done)
            missing = next((name for name in names if name not in done), None)
            if missing is None:
                return None
            order = f" after {', '.join(names[: names.index(missing)])}" if missing in look.done else ""
            return f"did not run {missing}{order}; it ran {_listed(look.done)}"

        return self._check(check)

    def ran_exactly(self, *tasks: TaskName) -> Self:
        """These were done in this order, and nothing else."""
        names = self._named(tasks)
        return self._check(
            lambda look: None if look.done == names else f"ran {_listed(look.done)}, not exactly {_listed(names)}"
        )

    def ran_once(self, *tasks: TaskName) -> Self:
        """Each of these was done once, however many tries it took."""
        names = self._named(tasks)

        def check(look: Look) -> str | None:
            wrong = [f"{name} {_times(look.done.count(name))}" for name in names if look.done.count(name) != 1]
            return f"ran {', '.join(wrong)}, not once" if wrong else None

        return self._check(check)

    def never_ran(self, *tasks: TaskName) -> Self:
        """Of none of these has an attempt ended, well or not."""
        names = self._named(tasks)

        def check(look: Look) -> str | None:
            ran = [f"{name} {_times(look.tries(name))}" for name in names if look.tries(name)]
            return f"tried {', '.join(ran)}, not never" if ran else None

        return self._check(check)

    def tried(self, task: TaskName, times: int) -> Self:
        """So many attempts of it have ended, well or not."""
        [name] = self._named([task])

        def check(look: Look) -> str | None:
            tries = look.tries(name)
            return None if tries == times else f"tried {name} {_times(tries)}, not {_times(times)}"

        return self._check(check)

    def failed(self, *tasks: TaskName) -> Self:
        """Each of these has failed for good."""
        names = self._named(tasks)

        def check(look: Look) -> str | None:
            failed = {row.task for row in look.trace if row.kind == "fail"}
            kept = [name for name in names if name not in failed]
            return f"{', '.join(kept)} did not fail for good" if kept else None

        return self._check(check)

    def waits_for(self, *tasks: TaskName) -> Self:
        """Each of these has a job that has not ended."""
        names = self._named(tasks)

        def check(look: Look) -> str | None:
            waiting = [job.task for job in look.jobs if job.status != "failed" and job.task != EXCEPTION_TASK]
            missing = [name for name in names if name not in waiting]
            return f"does not wait for {', '.join(missing)}; it waits for {_listed(waiting)}" if missing else None

        return self._check(check)

    def state(self, **values: Any) -> Self:
        """Its attributes have these values."""
        self._attributes += values
        wanted = as_json(values)

        def check(look: Look) -> str | None:
            return _differences("has", wanted, look.instance.state)

        return self._check(check)

    def wrote(self, task: TaskName, **values: Any) -> Self:
        """Some time when this task was done, the state had these values right after it."""
        [name] = self._named([task])
        self._attributes += values
        wanted = as_json(values)

        def check(look: Look) -> str | None:
            written = [row.state or {} for row in look.trace if row.kind == "finish" and row.task == name]
            if not written:
                return f"did not run {name}"
            found = [_differences(f"had after {name}", wanted, state) for state in written]
            return None if None in found else found[-1]

        return self._check(check)

    def __await__(self) -> Generator[Any, None, None]:
        __tracebackhide__ = True
        self._is_asked = True
        return self._ask().__await__()

    def __del__(self) -> None:
        if not self._is_asked and self._checks:
            text = f"expect(…, {self._instance}) was never awaited: nothing was checked"
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)

    def _check(self, check: Check) -> Self:
        self._checks.append(check)
        return self

    def _named(self, tasks: Sequence[TaskName]) -> list[str]:
        names = [task.name if isinstance(task, TaskMethod) else task for task in tasks]
        self._tasks += names
        return names

    async def _ask(self) -> None:
        __tracebackhide__ = True
        await check_attributes(self._engine, self._instance, self._attributes)
        look = await self._look()
        self._check_names(look.definition)
        wrong = [problem for check in self._checks if (problem := check(look)) is not None]
        if wrong:
            problem = f"instance {self._instance} of {look.instance.flow} " + "\n  and ".join(wrong)
            raise StoryError(problem, await tell_all(self._engine, [self._instance]), [self._instance])

    async def _look(self) -> Look:
        found = await self._engine.instance(self._instance)
        definition = await self._engine.definition(found.flow, found.version)
        return Look(
            found, definition, await self._engine.trace(self._instance), await self._engine.jobs(self._instance)
        )

    def _check_names(self, definition: Definition) -> None:
        known = [task.name for task in definition.tasks]
        for name in self._tasks:
            if name not in known:
                text = f'flow "{definition.name}" has no task "{name}"{suggest(name, known)}'
                raise RequestError("unknown_task", text)


def expect(engine: Engine, instance: int) -> Expectation:
    """Begin to say what is expected of an instance."""
    return Expectation(engine, instance)


def _differences(has: str, wanted: dict[str, Any], found: dict[str, Any]) -> str | None:
    wrong = [
        f"{name} = {wording.value(found.get(name))}, not {wording.value(value)}"
        for name, value in wanted.items()
        if found.get(name) != value
    ]
    return f"{has} {'; '.join(wrong)}" if wrong else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")
