"""A typed client of the HTTP API: `mutirao.Client`."""

from mutirao.server.client.client import Client, blocking_client

__all__ = ["Client", "blocking_client"]
