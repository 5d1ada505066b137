"""A handler: the function that does a task's jobs, with all that a worker needs to call it.

The functions of a flow's own class become handlers by themselves. `@handles` binds a plain function to a task of a
flow that was defined in SQL:

    @handles("travel", "tr_a2")
    def book_hotel(state: Mapping[str, Any]) -> Change: ...
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from mutirao.language.signature import Signature, read_signature
from mutirao.model import Change, Job
from mutirao.model.plain import decode_plain, encode_plain

F = TypeVar("F", bound=Callable[..., Change | Awaitable[Change]])

_MARK = "__mutirao_handlers__"


@dataclass(frozen=True, slots=True)
class Handler:
    """`load` makes of an instance's JSON the state that the function takes; `encode_change` checks what it returns.

    With `is_program` the function runs a program, and as many go at once as the worker has processes for.
    """

    flow: str
    task: str
    function: Callable[..., Any]
    signature: Signature
    load: Callable[[bytes | str], Any]
    encode_change: Callable[[Change], bytes]
    transactional: bool = False
    is_program: bool = False

    @property
    def is_async(self) -> bool:
        return self.signature.is_async

    @property
    def wants_job(self) -> bool:
        return self.signature.job is not None

    def call(self, state: Any, job: Job | None = None, connection: Any = None) -> Any:
        """Call the function; what it returns is a change, or when `is_async` something to await for one."""
        signature = self.signature
        if signature.job is None and signature.connection is None:
            return self.function(state)
        extra: dict[str, Any] = {}
        if signature.job is not None:
            extra[signature.job] = job
        if signature.connection is not None:
            extra[signature.connection] = connection
        return self.function(state, **extra)


def handles(flow: str, task: str, *, transactional: bool = False) -> Callable[[F], F]:
    """Bind a function to a task of a flow defined in SQL. It takes the state as a read-only mapping of JSON values."""

    def bind(function: F) -> F:
        signature = read_signature(task, function, transactional=transactional, names={})
        handler = Handler(flow, task, function, signature, decode_plain, encode_plain, transactional)
        setattr(function, _MARK, (*handlers_of(function), handler))
        return function

    return bind


def handlers_of(candidate: object) -> tuple[Handler, ...]:
    """What `@handles` bound to this object: nothing, for most."""
    found = getattr(candidate, "__dict__", {}).get(_MARK, ())
    return found if isinstance(found, tuple) else ()
