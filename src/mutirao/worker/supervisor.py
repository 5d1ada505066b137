"""Stands between a worker and the program of a job, and sees to it that nothing of the program outlives its attempt.

    python -I -S supervisor.py LIFE STATUS FOLDER PROGRAM

It runs PROGRAM where it was started itself, in a process group of its own. LIFE is the reading end of a pipe whose other end only the
worker has: when that is closed, on purpose or because the worker was killed, the group is killed and FOLDER removed.
When the program ends by itself, whatever it left running is killed too, and how it ended is written to STATUS.

A program of its own, with nothing of the engine's in it: the worker may be killed at any moment, and this goes on.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress


def kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def follow(life: int, child: "subprocess.Popen[bytes]", folder: str, ending: threading.Lock) -> None:
    """Comes back from the read when the worker has let go. Nobody exits before the folder is gone."""
    os.read(life, 1)
    with ending:
        kill(child.pid)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)


def main(life: int, status: int, folder: str, program: str) -> None:
    try:
        child = subprocess.Popen(  # noqa: S603 to run what an application names is its duty; no shell reads it
            [program], stdin=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        os.write(status, f"error {error.strerror}".encode())
        return
    ending = threading.Lock()
    follower = threading.Thread(target=follow, args=(life, child, folder, ending), daemon=True)
    follower.start()
    # Left unreaped for now: as long as it is there, nobody else can have the number of its group.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with ending:
        kill(child.pid)
        with suppress(BrokenPipeError):
            os.write(status, f"ended {child.wait()}".encode())
            return
    follower.join()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
