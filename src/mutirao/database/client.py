"""PostgreSQL's client programs from the wheel, pointed at a database: psql, pg_dump, pg_restore."""

import os
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mutirao.database.programs import bundled

Command = tuple[list[str], dict[str, str]]


def command(program: str, url: str, *arguments: str | Path) -> Command:
    """The words and the environment to run it with. A password travels in the latter: `ps` shows the former to all."""
    parts = conninfo_to_dict(url)
    environment = dict(os.environ)
    if password := parts.pop("password", None):
        environment["PGPASSWORD"] = str(password)
    return [str(bundled().path(program)), "-d", make_conninfo("", **parts), *map(str, arguments)], environment
