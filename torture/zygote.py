"""The parent of all processes: it has imported what they need, and forks one whenever it is told to.

A start costs a tenth of a second instead of a whole one, so killing can go on all the time. What runs in the fork is the
command itself, `mutirao worker …`, from its entry point, in a process with connections of its own.

One line of JSON in, `{"program": …, "words": […], "environment": {…}, "log": …}`, the number of the process out. When
the harness goes, however it goes, the pipe ends, and everything that was forked is killed.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

from torture import witness

PROGRAMS = {"mutirao": "mutirao.cli.main", "client": "torture.client"}

_PRELOADED = (
    *PROGRAMS.values(),
    "mutirao.cli.worker",
    "mutirao.cli.clock",
    "mutirao.cli.server",
    "mutirao.server.service",
    "mutirao.language",
    "torture.lane",
)


def main() -> None:
    for module in _PRELOADED:
        importlib.import_module(module)
    gc.freeze()
    children: set[int] = set()
    for line in sys.stdin:
        children -= {each for each in children if _has_ended(each)}
        order = json.loads(line)
        process = os.fork()
        if not process:
            _become(order)
        children.add(process)
        print(process, flush=True)  # noqa: T201 the answer
    for process in children:
        if not _has_ended(process):
            os.kill(process, signal.SIGKILL)


def _has_ended(process: int) -> bool:
    return os.waitpid(process, os.WNOHANG)[0] == process


def _become(order: dict[str, Any]) -> NoReturn:
    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.environ.update(order["environment"])
    witness.install_if_wanted()
    sys.argv = [order["program"], *order["words"]]
    code = 1
    try:
        importlib.import_module(PROGRAMS[order["program"]]).main()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:  # noqa: BLE001 told in its log, as Python would
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()  # noqa: SLF001 a fork does not come past them by itself
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
