"""A file as a state has it: what it is called, and by which content the file store has it."""

import re
import unicodedata
from dataclasses import dataclass

from mutirao.errors import RequestError

ANY_MEDIA = "application/octet-stream"
MAX_NAME = 255  # bytes: what file systems take

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MEDIA = re.compile(r"[!-.0-~]+/[ -.0-~]+")
_MAX_MEDIA = 200
# Control characters, halves of a surrogate pair, and ends of lines.
_UNFIT = frozenset({"Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class File:
    """What `engine.files.upload` answers. The value of an attribute of type `file`; its content is in the file store."""

    sha256: str
    name: str
    size: int
    media: str = ANY_MEDIA

    def __post_init__(self) -> None:
        if not isinstance(self.sha256, str) or not _SHA256.fullmatch(self.sha256):
            raise _wrong(f"a sha256 has 64 lowercase hexadecimal digits: got {self.sha256!r}")
        check_file_name(self.name)
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 0:
            raise _wrong(f"the size of a file is a number of bytes: got {self.size!r}")
        if not isinstance(self.media, str) or not _MEDIA.fullmatch(self.media) or len(self.media) > _MAX_MEDIA:
            raise _wrong(f"a media type is written text/plain, say: got {self.media!r}")


def check_file_name(name: object) -> None:
    """A plain name: one that a program can put into a folder of its own without leaving it."""
    if not is_file_name(name):
        right = f"a plain name of at most {MAX_NAME} bytes, without slashes and control characters"
        raise _wrong(f"a file is called by {right}: got {str(name)[:60]!r}")


def is_file_name(name: object) -> bool:
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\\" in name:
        return False
    return not any(unicodedata.category(each) in _UNFIT for each in name) and len(name.encode()) <= MAX_NAME


def _wrong(text: str) -> RequestError:
    return RequestError("wrong_type", text)
