"""What whoever runs a server may decide."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024
PATIENCE = 5.0
"""Seconds that a request waits for a connection to the database, before it is told that there is none."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """`proxies` are the addresses of those whose X-Forwarded headers tell who asks, and whether by https.

    `origins` are further origins whose pages may write, such as https://work.example.org.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    body_limit: int = MEGABYTE
    answer_within: float = 30.0
    streams_each: int = 20
    """Event streams that one person may have open."""
