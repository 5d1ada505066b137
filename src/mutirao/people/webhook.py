"""Sends messages on to webhooks. Any number of senders may run: each takes some deliveries for a while.

A request is a POST of one message as JSON, signed as Standard Webhooks (https://www.standardwebhooks.com) say: its id, its
time and its body, by HMAC-SHA256 with the webhook's secret. An answer of 2xx within ten seconds is a receipt. Anything else,
a redirect too, is tried again for a day. A sender that is killed leaves its deliveries to the next, so a receiver may hear
something twice, with the same `webhook-id`.
"""

import asyncio
import base64
import hashlib
import hmac
import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import httpx

from mutirao.database.engine import Engine
from mutirao.database.protocol import Backoff, is_lost
from mutirao.database.webhook import TakenDelivery
from mutirao.errors import MutiraoError, OperatorError
from mutirao.model.value import ENCODER
from mutirao.people.address import AddressRefused, Network, allowed_networks, checked_address

log = logging.getLogger(__name__)
# Of each request it would tell the whole address, which may be a secret of whoever receives.
logging.getLogger("httpx").setLevel(logging.WARNING)

TIMEOUT = timedelta(seconds=10)
# Longer than a request may take, with time to tell how it went.
_LEASE = timedelta(seconds=60)
_AT_ONCE = 50
# One that does not answer holds so many of these places.
_OF_EACH = 4
_PAUSE = 1.0


def signed_headers(delivery: int, sent_at: int, body: bytes, secret: bytes) -> dict[str, str]:
    """The headers by which a receiver knows who sent it, that it is whole, and whether it came before."""
    identity = f"delivery_{delivery}"
    signature = hmac.new(secret, f"{identity}.{sent_at}.".encode() + body, hashlib.sha256).digest()
    return {
        "content-type": "application/json",
        "user-agent": "mutirao-webhook",
        "webhook-id": identity,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


class WebhookSender:
    """Sends until stopped: a service, as workers and clocks are."""

    def __init__(
        self, engine: Engine, networks: Sequence[Network] | None = None, *, timeout: timedelta = TIMEOUT
    ) -> None:
        self._engine = engine
        self._networks = allowed_networks() if networks is None else networks
        self._timeout = timeout
        self._stopping = asyncio.Event()
        self._sending: dict[asyncio.Task[None], int] = {}
        # No proxy of the environment: it would be called instead of the address that was checked. And no connection twice:
        # they are known by address, so that one host's could be taken for another's.
        limits = httpx.Limits(max_keepalive_connections=0)
        seconds = timeout.total_seconds()
        self._client = httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=seconds, limits=limits)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Send what is due until `stop`; then what is on its way may arrive."""
        backoff = Backoff()
        try:
            while not self._stopping.is_set():
                try:
                    await self.take()
                    backoff.reset()
                    await self._pause()
                except MutiraoError as error:
                    if not is_lost(error) and isinstance(error, OperatorError):
                        raise
                    log.warning("webhooks are tried again: %s", error)
                    await backoff.wait()
                    await self._engine.revive()
            await self.arrived()
        finally:
            for task in self._sending:
                task.cancel()
            await self._client.aclose()

    async def take(self, delivery: int | None = None) -> int:
        """Begin to send what is due, or a given delivery, as far as there is room; answers how many."""
        held = Counter(self._sending.values())
        busy = [webhook for webhook, number in held.items() if number >= _OF_EACH]
        room = _AT_ONCE - len(self._sending)
        if room == 0:
            return 0
        taken = await self._engine.webhooks.take(room, each=_OF_EACH, lease=_LEASE, busy=busy, delivery=delivery)
        for each in taken:
            task = asyncio.create_task(self._send(each))
            self._sending[task] = each.webhook
            task.add_done_callback(self._sending.pop)
        return len(taken)

    async def arrived(self) -> None:
        """Wait until everything that was begun has been answered."""
        if self._sending:
            await asyncio.wait(list(self._sending))

    async def _pause(self) -> None:
        """Until something may be due, a place is free, or it is told to stop."""
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([stopping, *self._sending], timeout=_PAUSE, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _send(self, taken: TakenDelivery) -> None:
        answer, error = await self._post(taken)
        try:
            outcome = await self._engine.webhooks.end(taken, answer=answer, error=error)
        except MutiraoError as refusal:  # it is sent again when the lease has ended
            log.warning("delivery %s was sent, but not noted: %s", taken.delivery, refusal)
        else:
            if outcome == "given_up":
                log.warning("delivery %s to webhook %s is given up: %s", taken.delivery, taken.webhook, error)

    async def _post(self, taken: TakenDelivery) -> tuple[int | None, str | None]:
        """The status of the answer, and what was wrong."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                status = await self._request(taken)
        except TimeoutError:
            return None, f"no answer within {self._timeout.total_seconds():g} s"
        except AddressRefused as error:
            return None, str(error)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return None, f"{type(error).__name__}: {error}"
        if httpx.codes.is_success(status):
            return status, None
        return status, f"the answer was {status}" + (
            ", and redirects are not followed" if httpx.codes.is_redirect(status) else ""
        )

    async def _request(self, taken: TakenDelivery) -> int:
        url = httpx.URL(taken.url)
        address = await checked_address(url.host, url.port or (443 if url.scheme == "https" else 80), self._networks)
        body = ENCODER.encode(taken.content)
        headers = signed_headers(taken.delivery, int(time.time()), body, taken.secret)
        request = self._client.build_request(
            "POST",
            url.copy_with(host=address),
            content=body,
            headers={**headers, "host": url.netloc.decode()},
            extensions={"sni_hostname": url.host},
        )
        response = await self._client.send(request, stream=True)
        await response.aclose()  # what it says is of no interest
        return response.status_code
