"""`@task`: what makes a method of a flow's class a task.

What it leaves in the class is a `TaskMethod`: called on a state it is the method it was, and in the class body it
stands for the task, so that others can depend on it: `depends=book_hotel`, `depends=book_hotel.failed | pay`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Never,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from mutirao.errors import FlowError
from mutirao.language.place import place_of, place_of_caller, placed, placing
from mutirao.model import AllOf, AnyOf, Change, Dependency, Fires, Limit, OnFailure, Recovery, Task, Term
from mutirao.model.dependency import dependency
from mutirao.model.name import quote, suggest

if TYPE_CHECKING:
    from datetime import timedelta

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R", bound=Change | Awaitable[Change])


class Reached:
    """A state of a task, as a term to depend on; it is called as its attribute is."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._state = name

    def __get__(self, method: TaskMethod[Any, ..., Any], owner: type) -> Term:
        term = Term(method.name, self._state)
        if not method.name:
            method.unnamed.append(term)
        return term


class TaskMethod(Generic[S, P, R]):
    """A task in the body of a flow's class; by itself it stands for its success.

    Without a function it is a `wait`, a `work` or a `child`.
    """

    synchronizing = Reached()
    ready = Reached()
    running = Reached()
    succeeded = Reached()
    failed = Reached()
    aborted = Reached()
    blocked = Reached()
    compensated = Reached()

    def __init__(self, function: Callable[Concatenate[S, P], R] | None, options: TaskOptions) -> None:
        self.function = function
        self.options = options
        self.name: str = getattr(function, "__name__", "")
        self.unnamed: list[Term] = []  # terms made in the class body, before a task without a function has its name
        self.__doc__ = None if function is None else function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name
        for term in self.unnamed:
            object.__setattr__(term, "task", self.name)

    @overload
    def __get__(self, state: None, owner: type) -> Self: ...
    @overload
    def __get__(self, state: S, owner: type) -> Callable[P, R]: ...
    def __get__(self, state: S | None, owner: type) -> Self | Callable[P, R]:
        return self if state is None or self.function is None else self.function.__get__(state, owner)

    def __and__(self, other: Meant) -> AllOf:
        return self.succeeded & meant(other)

    def __rand__(self, other: Dependency | str) -> AllOf:
        return dependency(other) & self.succeeded

    def __or__(self, other: Meant) -> AnyOf:
        return self.succeeded | meant(other)

    def __ror__(self, other: Dependency | str) -> AnyOf:
        return dependency(other) | self.succeeded


Meant: TypeAlias = TaskMethod[Any, ..., Any] | Dependency | str
Named: TypeAlias = TaskMethod[Any, ..., Any] | str


class RecoveryOptions(TypedDict, total=False):
    """What becomes of a task that fails or is undone, and whom it excludes: see `mutirao.model.Recovery`.

    One that stands by has neither `when` nor `depends`: another names it as its contingency or compensation.
    """

    on_failure: OnFailure
    force: bool
    contingency: Named
    compensation: Named
    critical: bool
    safe_point: bool
    time_to_wait: timedelta
    task_class: str
    stands_by: bool


class TaskOptions(RecoveryOptions, total=False):
    """How a task starts and how its jobs are run: see `mutirao.model.Task`."""

    when: str
    depends: Meant
    fires: Fires
    timeout: timedelta | None
    retries: int
    backoff: timedelta
    priority: int
    transactional: bool
    enabled: bool
    description: str | None
    wait: str
    by_clock: bool
    limit: Limit | None
    outputs: Sequence[str]


class WaitOptions(TypedDict, total=False):
    """How a wait starts."""

    when: str
    depends: Meant
    fires: Fires
    enabled: bool
    description: str | None


class Decorator(Protocol):
    def __call__(self, function: Callable[Concatenate[S, P], R], /) -> TaskMethod[S, P, R]: ...


def task(*bare: Never, **options: Unpack[TaskOptions]) -> Decorator:
    """Make a method a task. It starts by `when`, a SQL condition over the state, or by `depends`."""
    if bare:  # @task without parentheses has got the function, @task("n > 0") a condition
        given: Any = bare[0]
        what = f"task {quote(given.__name__)}" if hasattr(given, "__name__") else f"@task({given!r})"
        raise placed(without_start(what), place_of_caller())

    def decorate(function: Callable[Concatenate[S, P], R], /) -> TaskMethod[S, P, R]:
        method = TaskMethod(function, options)
        with placing(place_of(function)):
            check_options(method.name, options)
            if not has_start(options):
                raise without_start(f"task {quote(method.name)}")
        return method

    return decorate


def wait(until: str, **options: Unpack[WaitOptions]) -> TaskMethod[Any, ..., Change]:
    """A task that nobody does: it ends when the time in the attribute `until` has come, and what depends on it goes on.

    cool_off = wait("remind_at", depends=order)
    """
    with placing(place_of_caller()):
        check_options("wait", options, WaitOptions)
        if not {"when", "depends"} & options.keys():
            raise without_start(f"wait({until!r})", 'write wait("…", when="…") or wait("…", depends=…)')
    return TaskMethod(None, cast("TaskOptions", {**options, "wait": until, "by_clock": True}))


def has_start(options: Mapping[str, Any]) -> bool:
    return bool({"when", "depends"} & options.keys()) or options.get("stands_by", False)


def without_start(
    what: str, right: str = 'write @task(when="…"), @task(depends=…) or @task(stands_by=True)'
) -> FlowError:
    return FlowError("flow_invalid", f"{what} has neither when nor depends; {right}")


def check_options(name: str, options: Mapping[str, Any], allowed: type = TaskOptions) -> None:
    """For those who do not run a type checker."""
    for option in options:
        if option not in allowed.__annotations__:
            known = suggest(option, allowed.__annotations__)
            raise FlowError("flow_invalid", f"task {quote(name)} has the unknown option {quote(option)}{known}")


def make_task(name: str, options: TaskOptions, description: str | None) -> Task:
    """The model of a task; `description` is for one that has none among its options."""
    fields: dict[str, Any] = {"description": description, **options}
    fields.pop("stands_by", None)
    if "depends" in options:
        fields["depends"] = meant(options["depends"])
    fields.update({name: tuple(fields[name]) for name in ("inputs", "outputs") if name in fields})
    recovery = {each.name: _named(fields.pop(each.name)) for each in dataclass_fields(Recovery) if each.name in fields}
    if "offer" in fields:  # made now: it may speak of a task that got its name with the class
        fields["offer"] = fields["offer"]()
    return Task(name=name, recovery=Recovery(**recovery), **fields)


def _named(value: Any) -> Any:
    return value.name if isinstance(value, TaskMethod) else value


def meant(depends: Meant) -> Dependency:
    return depends.succeeded if isinstance(depends, TaskMethod) else dependency(depends)
