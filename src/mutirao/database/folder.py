"""The data folder: where it is, whose it is, and who is using it.

    MUTIRAO_HOME/
      data/             PostgreSQL's own files
      socket/           the only way in: mode 0700, so the owner and root
      postgresql.log    what the server says; the previous one is postgresql.log.1
      local.conf        yours, optional: PostgreSQL settings that win over ours
      start.lock        held by whoever starts or stops the server
      users.lock        held (shared) by every process that uses it

Both locks are flocks: the kernel frees them when a process ends, however it ends. A process joins and leaves under
`start.lock`, so "am I the last?" has one answer.
"""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mutirao.database.account import Account, account_of, system_account
from mutirao.errors import OperatorError

# sun_path holds 108 bytes on Linux, the last of them zero.
_LONGEST_SOCKET = 107
_SOCKET_FILE = ".s.PGSQL.5432"


def default_home() -> Path:
    """MUTIRAO_HOME, or the place where such data belongs for this user."""
    if given := os.environ.get("MUTIRAO_HOME"):
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/mutirao")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "mutirao"


@dataclass(frozen=True)
class Folder:
    """A data folder that exists and belongs to the account the server runs as."""

    home: Path
    account: Account

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "postgresql.log"

    def socket(self) -> Path:
        """The folder of the server's socket: in the home, or under /tmp where the home's path is too long for one."""
        usual = self.home / "socket"
        if len(os.fsencode(usual / _SOCKET_FILE)) <= _LONGEST_SOCKET:
            return usual
        # Neither TMPDIR nor XDG_RUNTIME_DIR: they differ between a login and a service, and all must find one socket.
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path(f"/tmp/mutirao-{self.account.uid}-{digest}")  # noqa: S108 its owner is checked

    def make_socket_folder(self) -> Path:
        folder = self.socket()
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            self.account.own(folder)
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == self.account.uid and not found.st_mode & 0o077
        if not private:
            raise OperatorError(
                "socket_folder_taken",
                f"{folder} must be a folder of '{self.account.name}' that nobody else may enter; remove it or chmod 700 it",
            )
        return folder

    def write(self, path: Path, text: str) -> None:
        """Put a whole file in place, for the account to read."""
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(FileNotFoundError):
            draft.unlink()
        # O_EXCL never follows a link: root may be writing into a folder of somebody else.
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        self.account.own(draft)
        draft.replace(path)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Nobody else starts, joins, leaves or stops meanwhile."""
        with _opened(self.home / "start.lock", self.account) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def join(self) -> int:
        """Become a user of the server; the returned file descriptor is the membership. Only inside `starting`."""
        membership = _open(self.home / "users.lock", self.account)
        fcntl.flock(membership, fcntl.LOCK_SH)
        return membership

    @staticmethod
    def is_last(membership: int) -> bool:
        """Whether nobody else uses the server. Only inside `starting`: asking gives the membership up."""
        try:
            fcntl.flock(membership, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def open_folder(home: Path) -> Folder:
    """The folder at `home`, made if need be, with its owner settled."""
    home = Path(os.path.realpath(home))
    try:
        with suppress(FileExistsError):
            home.parent.mkdir(parents=True, exist_ok=True)
            home.mkdir(mode=0o700)
        _refuse_stranger(home)
        _refuse_foreign(home)
        account = _settle_owner(home)
    except OSError as error:
        raise unusable(home, error) from error
    _require_entry(home, account)
    return Folder(home, account)


def unusable(home: Path, error: OSError) -> OperatorError:
    """What to tell when the operating system does not let us work in the folder."""
    if error.errno == errno.ENOSPC:
        return OperatorError(
            "disk_full", f"the disk of the data folder {home} has no space left; make room and try again"
        )
    return OperatorError(
        "home_unusable",
        f"the data folder {home} cannot be used ({error.strerror or error}); set MUTIRAO_HOME to one that can",
    )


def _refuse_stranger(home: Path) -> None:
    owner = home.stat().st_uid
    if os.geteuid() not in {0, owner}:
        raise OperatorError(
            "home_not_yours",
            f"the data folder {home} belongs to '{account_of(owner).name}'; run as that user or as root, or set MUTIRAO_HOME",
        )


def _refuse_foreign(home: Path) -> None:
    # A slip such as MUTIRAO_HOME=/etc must not make us strew files there, or give the folder away.
    names = {entry.name for entry in home.iterdir()} - {"lost+found"}
    if names and not names & {"start.lock", "data"}:
        raise OperatorError(
            "home_not_empty",
            f"{home} holds other files and is no data folder of Mutirão; give MUTIRAO_HOME an empty one",
        )


def _settle_owner(home: Path) -> Account:
    owner = home.stat().st_uid
    if owner != 0:
        return account_of(owner)
    # Root's own folder, new or left so by a kill: give it to the system user. Two who do so at once do the same.
    account = system_account()
    account.own(home)
    return account


def _require_entry(home: Path, account: Account) -> None:
    if account.is_ours:
        return
    if account.run(["/bin/sh", "-c", 'test -w "$1" && test -x "$1"', "sh", home]).returncode != 0:
        raise OperatorError(
            "home_unreachable",
            f"PostgreSQL runs as '{account.name}', who may not enter {home}; "
            "allow that on the folders above it (chmod o+x), or set MUTIRAO_HOME to a place such as /var/lib/mutirao",
        )


def _open(path: Path, account: Account) -> int:
    # Of two that create it at once the second finds it there; only the maker gives it away.
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    if not account.is_ours:
        os.fchown(descriptor, account.uid, account.gid)
    return descriptor


@contextmanager
def _opened(path: Path, account: Account) -> Iterator[int]:
    descriptor = _open(path, account)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
