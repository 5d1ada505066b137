"""A file of an export in the making. What another database wrote is neither replaced nor removed.

It is written as `<name>.unfinished`, which is made anew or not at all, and locked while its writer lives. Then it gets its name as
well, and loses the first one when it is recorded. So a file whose `.unfinished` is gone is somebody's finished one, whatever a
restored copy of the database believes; and one that is locked is being written.
"""

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class Part:
    """One file, for who writes it."""

    def __init__(self, file: Path, raw: BinaryIO) -> None:
        self.file = file
        self.raw = raw

    @classmethod
    def begin(cls, file: Path) -> Self:
        """Raises FileExistsError where somebody has or writes a file of this name."""
        raw = _unfinished(file).open("xb")
        fcntl.flock(raw, fcntl.LOCK_EX)
        part = cls(file, raw)
        # Only now: who has just finished one of this name had the other name until then.
        if file.exists():
            part.remove()
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(file))
        return part

    def finish(self) -> None:
        """Bring it to the disk and give it its name; it stays locked until it is closed."""
        self.raw.flush()
        os.fsync(self.raw.fileno())
        try:
            os.link(_unfinished(self.file), self.file)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # A disk that has no second names: if it is killed now, a whole file is left that nobody recorded.
            _unfinished(self.file).rename(self.file)

    def close(self) -> None:
        self.raw.close()

    def remove(self) -> None:
        with suppress(OSError):  # of what is removed, nothing need fit on the disk
            self.close()
        remove_unrecorded(self.file)


def remove_unrecorded(file: Path) -> None:
    """Remove what a writer left that did not come to record it."""
    unfinished = _unfinished(file)
    try:
        raw = unfinished.open("r+b")
    except FileNotFoundError:
        return
    with raw:
        try:
            fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if file.exists() and file.samefile(unfinished):
            file.unlink()
        unfinished.unlink()


def leave_recorded(file: Path) -> None:
    """Take away the name that said that it is not recorded yet."""
    _unfinished(file).unlink(missing_ok=True)


def _unfinished(file: Path) -> Path:
    return file.with_name(f"{file.name}.unfinished")
