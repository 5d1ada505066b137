"""How it goes, while it goes: what the ledgers have gained since the last look."""

import re
import time
from pathlib import Path

_DONE = re.compile(rb'"says":"done","at":[\d.]+,"count":(\d+)')
_UNKNOWN = b'"says":"unknown"'


class Tally:
    """Acknowledged operations and unknown outcomes so far; `samples` are (time, acknowledged)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.acknowledged = 0
        self.unknown = 0
        self.samples: list[tuple[float, int]] = []

    def look(self) -> None:
        for path in self._folder.iterdir():
            if path.suffix in (".ledger", ".witness"):
                self._look_at(path)
        self.samples.append((time.time(), self.acknowledged))

    def _look_at(self, path: Path) -> None:
        begin = self._read.get(path, 0)
        if path.stat().st_size == begin:
            return
        with path.open("rb") as file:
            file.seek(begin)
            new = file.read()
        whole = new.rfind(b"\n") + 1
        self._read[path] = begin + whole
        self.acknowledged += sum(map(int, _DONE.findall(new, 0, whole)))
        self.unknown += new.count(_UNKNOWN, 0, whole)
