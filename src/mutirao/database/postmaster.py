"""Is the server of a data folder alive? What its `postmaster.pid` says, checked against the process of that number.

PostgreSQL trusts the number alone. After a reboot it may belong to anything, and the server would refuse to start until
somebody deletes the file by hand; so we look whether that process works in this very folder.
"""

import os
import subprocess
from pathlib import Path


def is_alive(data: Path) -> bool:
    """Whether the server that `postmaster.pid` names runs, and runs here."""
    process = _recorded(data)
    return process is not None and _works_in(process, data)


def forget_dead(data: Path, socket: Path) -> None:
    """Remove the marks of a server that is gone. Only while nobody else may start one."""
    if not is_alive(data):
        # PostgreSQL's third guard stays: it refuses to start while a child of the dead server holds its memory.
        for mark in (data / "postmaster.pid", socket / ".s.PGSQL.5432.lock"):
            mark.unlink(missing_ok=True)


def _recorded(data: Path) -> int | None:
    try:
        first = (data / "postmaster.pid").read_text().partition("\n")[0]
        return int(first)
    except (FileNotFoundError, ValueError):
        return None


def _works_in(process: int, data: Path) -> bool:
    if not Path("/proc/self").exists():
        return _is_postgres_by_ps(process)
    try:
        # PostgreSQL makes its data folder the current one. Compared by inode, so that links and mounts do not matter.
        return os.path.samestat(os.stat(f"/proc/{process}/cwd"), data.stat())  # noqa: PTH116 a magic link, not a path
    except FileNotFoundError:
        return False
    except PermissionError:
        return _is_postgres_by_name(process)


def _is_postgres_by_name(process: int) -> bool:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return False
    return command.endswith(b"postgres")


def _is_postgres_by_ps(process: int) -> bool:
    said = subprocess.run(  # noqa: S603 fixed arguments
        ["/bin/ps", "-o", "comm=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return said.stdout.strip().endswith("postgres")
