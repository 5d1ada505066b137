"""Under whose name the embedded PostgreSQL runs.

PostgreSQL refuses to run as root. A plain user runs it as themselves; root lends it to the owner of the data folder or,
for a new folder, to a system user of our own. Everything the server touches belongs to that account.
"""

import fcntl
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from mutirao.errors import OperatorError

SYSTEM_USER = "mutirao"


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """A user of the operating system that PostgreSQL's programs run as."""

    name: str
    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        return self.uid == os.geteuid()

    def run(self, command: Sequence[str | Path], cwd: Path | str = "/") -> subprocess.CompletedProcess[str]:
        """Run a program as this account and return what it said; the caller judges the exit code."""
        return subprocess.run(  # noqa: S603 the commands are our own, no shell is involved
            [str(part) for part in command],
            cwd=cwd,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            # A Ctrl-C in the terminal is for us: we stop the server in order, so its programs must not get it too.
            start_new_session=True,
            **self._identity(),
        )

    def own(self, path: Path) -> None:
        """Give a file or folder that we have just made to this account."""
        if not self.is_ours:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def _identity(self) -> _Identity:
        if self.is_ours:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": os.getgrouplist(self.name, self.gid)}

    def _environment(self) -> dict[str, str]:
        # PGDATA, PGOPTIONS and their kin belong to some other server; the messages we read must be in English.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        return kept | {"LC_ALL": "C"}


def account_of(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        # A container may run us under a number that no passwd file names. PostgreSQL itself accepts that.
        return Account(str(uid), uid, os.getgid() if uid == os.geteuid() else uid)
    return Account(entry.pw_name, uid, entry.pw_gid)


def system_account() -> Account:
    """The system user that runs the server for root; made on first use."""
    found = _look_up(SYSTEM_USER)
    if found is not None:
        return found
    with _one_at_a_time():
        found, said = _look_up(SYSTEM_USER), ""
        if found is None:
            said = _make(SYSTEM_USER)
            found = _look_up(SYSTEM_USER)
    if found is None:
        raise OperatorError(
            "no_system_user",
            f"PostgreSQL does not run as root, and the system user '{SYSTEM_USER}' could not be made ({said}); make it, "
            "or point MUTIRAO_HOME at an empty folder that belongs to another user, or do not run as root",
        )
    return found


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    # Two useradds at once both succeed, and the second gives the user another number than the first one answered.
    descriptor = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(name: str) -> str:
    """Make a system user; what useradd said."""
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if useradd is None:
        return "this machine has no useradd"
    made = subprocess.run(  # noqa: S603 fixed arguments
        [useradd, "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name],
        capture_output=True,
        text=True,
        check=False,
    )
    return made.stderr.strip()


def _look_up(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)
