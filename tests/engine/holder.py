"""A process of its own that uses an embedded server until its standard input ends. Run by test_embedded.

    holder.py HOME [UID]

With a UID, root becomes that user first. Everything is imported before: the user may not be able to read this Python.
"""

import os
import sys
from pathlib import Path

import psycopg  # noqa: F401 see above

from mutirao.database.account import account_of
from mutirao.database.embedded import EmbeddedServer
from mutirao.database.programs import Programs, bundled
from mutirao.errors import MutiraoError


def become(uid: int, workshop: Path) -> Programs:
    account = account_of(uid)
    programs = bundled().reachable_by(account, workshop)
    os.setgroups([])
    os.setgid(account.gid)
    os.setuid(account.uid)
    return programs


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    home = Path(sys.argv[1])
    programs = become(int(sys.argv[2]), home.parent) if len(sys.argv) > 2 else None
    try:
        with EmbeddedServer(home, programs=programs) as server:
            server.ensure_database("mutirao")
            say(server.url())
            sys.stdin.read()
    except MutiraoError as error:
        say(f"refused {error}")


main()
