"""Programs that do jobs: claim, run, complete; retries, leases, and the clock.

`worker` holds the traffic with the database, `desk` and `running` what is inside user code, `thread` blocking functions,
`transaction` tasks that do their work in the job's own transaction, `clock` time, `wed` the worker of WED-SQL. `observer` is
for those who want to know: `metrics` and `spans` are, and neither is imported unless it is asked for.
"""

from mutirao.worker.clock import Clock
from mutirao.worker.observer import Observer
from mutirao.worker.options import WorkerOptions
from mutirao.worker.running import current_job
from mutirao.worker.worker import Worker

__all__ = ["Clock", "Observer", "Worker", "WorkerOptions", "current_job"]
