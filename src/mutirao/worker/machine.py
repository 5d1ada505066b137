"""Whether an application may run on this machine: by its hosts, its system and its processor.

A processor is the least that is needed. Those of the x86 family are in order, so whatever was written for a 486 runs on
what came after it; any other must be the machine's own.
"""

import platform
import re
import socket
from dataclasses import dataclass

from mutirao.model import Application

# From the oldest on; what stands on one line is the same.
_X86 = (
    ("386", "i386", "80386"),
    ("486", "i486", "80486"),
    ("586", "i586", "pentium"),
    ("pentiummmx",),
    ("686", "i686", "pentiumpro"),
    ("pentiumii", "pentium2"),
    ("pentiumiii", "pentium3"),
    ("pentium4", "x86"),
    ("x8664", "amd64", "x64"),
)
_RANK = {name: rank for rank, names in enumerate(_X86) for name in names}
_SAME = {"arm64": "aarch64"}
_ANY = ("", "any")


@dataclass(frozen=True, slots=True)
class Machine:
    host: str
    os: str
    cpu: str

    @classmethod
    def here(cls, host: str | None = None) -> "Machine":
        return cls(host or socket.gethostname(), platform.system(), platform.machine())

    def why_not(self, application: Application) -> str | None:
        """Why the application may not run here; None if it may."""
        if application.hosts and self.host.casefold() not in map(str.casefold, application.hosts):
            return f'it runs on {", ".join(application.hosts)}, and this host is "{self.host}"'
        if not _is_os(self.os, application.os or ""):
            return f'it needs the system "{application.os}", and this is {self.os}'
        if not _is_cpu(self.cpu, application.cpu or ""):
            return f'it needs the processor "{application.cpu}", and this is {self.cpu}'
        return None

    def may_run(self, application: Application) -> bool:
        return self.why_not(application) is None


def _is_os(here: str, wanted: str) -> bool:
    return wanted.strip().casefold() in (*_ANY, here.casefold())


def _is_cpu(here: str, wanted: str) -> bool:
    mine, asked = _plain(here), _plain(wanted)
    if asked in _ANY or asked == mine:
        return True
    return asked in _RANK and _RANK.get(mine, -1) >= _RANK[asked]


def _plain(cpu: str) -> str:
    """Without spaces and marks, in lower case: `Pentium MMX` and `x86_64` as the table has them."""
    plain = re.sub(r"[^a-z0-9]", "", cpu.casefold())
    return _SAME.get(plain, plain)
