"""Five steps as a DBOS workflow. Runs in an environment of its own, where DBOS is installed.

Through a queue for throughput; its workers take up to a hundred workflows at a time and look ten times a second instead
of once. One after another, workflows are started in the process that asks, which is the quickest that DBOS offers.
"""

import os
import signal
import sys

from dbos import DBOS, DBOSClient
from turn import main, tell_times, wait_for_go

_QUEUE = "bench"
_VERSION = "1"


@DBOS.step()
def step(k: int) -> int:
    return k * 2


@DBOS.workflow()
def five(number: int) -> int:
    for k in range(5):
        step(k)
    return number


def _launch(url: str) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "application_version": _VERSION,
            "executor_id": str(os.getpid()),
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    DBOS.register_queue(_QUEUE, worker_concurrency=100, polling_interval_sec=0.1)


def prepare(url: str, _number: int) -> None:
    _launch(url)
    DBOS.destroy()


def submit(url: str, number: int) -> None:
    client = DBOSClient(system_database_url=url, application_name="bench")
    options = {"workflow_name": "five", "queue_name": _QUEUE, "app_version": _VERSION}
    for each in range(number):
        client.enqueue(options, each)
    client.destroy()


def work(url: str, _number: int) -> None:
    wait_for_go()
    _launch(url)
    signal.sigwait({signal.SIGTERM})
    os._exit(0)  # what it waits for otherwise takes longer than the work


def latency(url: str, rounds: int) -> None:
    _launch(url)
    tell_times(rounds, lambda n: DBOS.start_workflow(five, n), lambda handle: handle.get_result())
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main(prepare=prepare, submit=submit, work=work, latency=latency)
