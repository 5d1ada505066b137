"""How a worker works."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True)
class WorkerOptions:
    """Each option has a default that does for most.

    `concurrency` is how many jobs are with a worker at once; of those inside user code, at most `threads` are blocking
    functions, and at most `transactions` are transactional tasks, each with a connection of its own. A `lease` is how
    long a job stays with a worker that is not heard of. A notification wakes an idle worker; `poll` is how often it
    looks by itself, in case one was lost. With `clock` it also looks after time, so that a lone worker needs nobody
    else. A transactional task takes `transaction_limit` at most, and less where its own timeout is shorter.

    With `applications` it also runs the programs of tasks whose application may run on this machine, which is called
    `host`; at most `processes` at once, and only those in the folder `programs`, if one is named.
    """

    name: str | None = None
    concurrency: int = 400
    threads: int = 16
    lease: timedelta = timedelta(seconds=60)
    poll: timedelta = timedelta(seconds=5)
    clock: bool = True
    transactions: int = 8
    transaction_limit: timedelta = timedelta(seconds=60)
    applications: bool = False
    host: str | None = None
    processes: int = 4
    programs: Path | None = None
