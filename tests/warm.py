"""A process that has imported the command and runs each one it is asked for in a fork of itself.

Most of the time a short command takes is Python reading our modules; tests run a thousand of them. A line of JSON on stdin
asks: {"arguments", "environment", "folder", "stdout", "stderr"}, the last two being files. The answers are the number of the process,
and when it has ended its exit code. What has to be seen from its first instruction on, or in the background, is started in
the ordinary way: see `command.py`.
"""

import json
import os
import sys
from importlib import import_module

from mutirao.cli.main import COMMANDS, main


def become(arguments: list[str], environment: dict[str, str], folder: str, stdout: str, stderr: str) -> None:
    """What a process is when it begins."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDONLY)
    outputs = [os.open(path, os.O_WRONLY | os.O_APPEND) for path in (stdout, stderr)]
    for number, opened in enumerate([nothing, *outputs]):
        os.dup2(opened, number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 it is a number, and stays open
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = ["mutirao", *arguments]


def serve() -> bool:
    """Whether this process is one of the commands, and not the one that makes them."""
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            become(**asked)
            return True
        print(child, flush=True)  # noqa: T201 this is how it answers
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201
    return False


if __name__ == "__main__":
    for module, _ in COMMANDS.values():
        import_module(module)
    if serve():
        main()
