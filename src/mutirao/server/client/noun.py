"""What every noun of the client has."""

from mutirao.server.client.transport import Transport


class Noun:
    def __init__(self, transport: Transport) -> None:
        self._http = transport
