"""Every refusal of Mutirão, by who must act.

    MutiraoError
    ├── FlowError        the author of a flow: its definition is wrong        SQLSTATE MU1xx
    ├── RequestError     the caller: this cannot be done, or not now          SQLSTATE MU2xx
    │   ├── LeaseLost    a worker: somebody else has the job by now
    │   └── TooManyAttempts  whoever signs in: not before `retry_at`
    └── OperatorError    whoever runs the engine: server, disk, versions      SQLSTATE MU3xx

Each carries a stable `code` (a word, such as `final_blocked`) that programs may rely on, and one line for people:
what, where, and what would be right. In SQL the same refusal is raised by `mutirao.refuse(code, message)`, with the
word in front of the message and a SQLSTATE that tells the family; `from_sqlstate` is the one place that maps them.
"""

from datetime import datetime
from typing import Any


class MutiraoError(Exception):
    """The root: catch this to catch every refusal."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details: dict[str, Any] = {}
        """What else there is to tell, for programs: over HTTP, the other members of the problem."""

    def __reduce__(self) -> tuple[type["MutiraoError"], tuple[Any, ...]]:
        return type(self), (self.code, self.message)


class FlowError(MutiraoError):
    """The definition of a flow cannot be accepted."""


class RequestError(MutiraoError):
    """The request cannot be carried out in the state things are in."""


class LeaseLost(RequestError):
    """The attempt is no longer the current one: another worker has the job, or it has ended."""


class TooManyAttempts(RequestError):
    """Too many have tried to sign in by this name or from this address, and failed."""

    def __init__(self, code: str, message: str, retry_at: datetime) -> None:
        super().__init__(code, message)
        self.retry_at = retry_at

    def __reduce__(self) -> tuple[type[MutiraoError], tuple[Any, ...]]:
        return type(self), (self.code, self.message, self.retry_at)


class OperatorError(MutiraoError):
    """The engine cannot run as it is set up."""


class Failed(Exception):
    """Raised by a task's function: the job has failed for good, without another try."""


_FAMILIES: dict[str, type[MutiraoError]] = {"MU1": FlowError, "MU2": RequestError, "MU3": OperatorError}
_SPECIAL: dict[str, type[MutiraoError]] = {"lease_lost": LeaseLost}


def from_sqlstate(sqlstate: str, message: str) -> MutiraoError | None:
    """The refusal that SQL raised as `code: message`, or None when it is not one of ours."""
    family = _FAMILIES.get(sqlstate[:3])
    if family is None:
        return None
    code, _, text = message.partition(": ")
    return _SPECIAL.get(code, family)(code, text)
