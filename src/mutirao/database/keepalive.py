"""How soon each side of a connection notices that the other's host has vanished.

A host that is switched off or cut off sends no goodbye. Left to the kernel, a call that waits for an answer would hang for
fifteen minutes and an idle listener for two hours; and on the server a session would keep its locks as long. So both
sides ask every few seconds whether the other is still there, and give up after `NOTICED_WITHIN`.

What the address says itself (`?keepalives_idle=60`, `?options=-c …`) wins. A local socket needs none of this: its other
end cannot vanish without the kernel's telling.

Writing is what all of the engine does, so a server that only reads (a standby, before it is promoted) is passed over:
`target_session_attrs=any` is for who wants to look at one.
"""

import os
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

NOTICED_WITHIN = timedelta(seconds=20)

_IDLE, _INTERVAL, _COUNT = 5, 5, 3
_UNANSWERED = 15_000
_CONNECT_SECONDS = 10

# Ours, of the driver. What was sent and not acknowledged has its own limit, since it keeps the kernel from asking.
_CLIENT: dict[str, Any] = {
    "connect_timeout": _CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": _IDLE,
    "keepalives_interval": _INTERVAL,
    "keepalives_count": _COUNT,
    "tcp_user_timeout": _UNANSWERED,
}
# The server's, for this session. It looks at the connection only between statements, unless it is told to.
_SERVER: dict[str, Any] = {
    "tcp_keepalives_idle": _IDLE,
    "tcp_keepalives_interval": _INTERVAL,
    "tcp_keepalives_count": _COUNT,
    "tcp_user_timeout": _UNANSWERED,
    "client_connection_check_interval": _IDLE * 1000,
}
_SERVER_OPTIONS = " ".join(f"-c {name}={value}" for name, value in _SERVER.items())
# By which variables the driver may have been told the same.
_BY_ENVIRONMENT = {"connect_timeout": "PGCONNECT_TIMEOUT", "target_session_attrs": "PGTARGETSESSIONATTRS"}


def parameters(url: str, options: str = "", **more: Any) -> dict[str, Any]:
    """What to connect with beside the URL; `options` are for the server, and win over those of the URL."""
    try:
        given = {name: value for name, value in conninfo_to_dict(url).items() if value not in (None, "")}
    except psycopg.ProgrammingError:
        given = {}  # connecting says what is wrong with it
    wanted = {"target_session_attrs": "read-write"}
    of_url = str(given.get("options") or os.environ.get("PGOPTIONS", ""))
    for_server = [of_url, options]
    if not _is_local(given):
        wanted |= _CLIENT
        for_server.insert(0, _SERVER_OPTIONS)
    ours = {name: value for name, value in wanted.items() if name not in given and not _is_in_environment(name)}
    said = " ".join(each for each in for_server if each)
    return ours | ({"options": said} if said else {}) | more


def _is_local(given: dict[str, Any]) -> bool:
    hosts = str(given.get("host") or given.get("hostaddr") or os.environ.get("PGHOST", "")).split(",")
    return "service" not in given and all(not each or each[0] in "/@" for each in hosts)


def _is_in_environment(name: str) -> bool:
    return bool(os.environ.get(_BY_ENVIRONMENT.get(name, "")))
