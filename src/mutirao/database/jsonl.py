"""JSON lines: one instance a line, with its trace; compressed if so wished."""

import gzip
from collections.abc import Sequence
from typing import IO, Any


class JsonLines:
    def __init__(self, raw: IO[bytes], *, compress: bool) -> None:
        self._out: Any = gzip.GzipFile("", "wb", 6, raw, mtime=0) if compress else raw
        self._raw = raw

    def write(self, lines: Sequence[bytes]) -> None:
        self._out.writelines(line + b"\n" for line in lines)

    def finish(self) -> None:
        if self._out is not self._raw:
            self._out.close()
