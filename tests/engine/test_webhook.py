"""Webhooks: what is sent, how it is signed, what is tried again, given up, sent twice, and never sent at all."""

import asyncio
import base64
import hashlib
import hmac
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address

import pytest
from driver import Engine as Driver
from driver import fresh_engine  # noqa: F401 gives the fixture `engine`
from receiver import HANG, Receiver
from staff import Office, furnish, offer

from mutirao.database.engine import Engine
from mutirao.database.webhook import SECRET_PREFIX, DeliveryRecord, decode_secret
from mutirao.errors import MutiraoError, OperatorError
from mutirao.people.address import AddressRefused, allowed_networks, checked_address, may_call
from mutirao.people.webhook import WebhookSender

LOOPBACK = allowed_networks("127.0.0.0/8, ::1/128")
QUICK = timedelta(milliseconds=300)


@dataclass
class Post:
    """An office, and a receiver that hears of its messages."""

    engine: Engine
    office: Office
    receiver: Receiver

    async def send(self, patience: timedelta = timedelta(seconds=10)) -> int:
        """Send what is due now; answers how many."""
        sender = WebhookSender(self.engine, LOOPBACK, timeout=patience)
        taken = await sender.take()
        await sender.arrived()
        return taken

    async def add(self, path: str = "/hook", **more: object) -> int:
        made, _ = await self.engine.webhooks.add(None, self.receiver.url(path), **more)  # type: ignore[arg-type]
        return made.id

    async def deliveries(self, webhook: int) -> list[DeliveryRecord]:
        return await self.engine.webhooks.deliveries(None, webhook)


@pytest.fixture
async def post(engine: Driver) -> AsyncIterator[Post]:
    office = await furnish(engine)
    await engine.apply(
        "claim", {"a": 0}, {"approve": {"when": "a = 0", "offer": offer()}}, final="a = 1", creator="manager"
    )
    async with Engine(engine.url, upgrade=False) as real, Receiver().listening() as receiver:
        yield Post(real, office, receiver)


async def test_the_address_is_not_in_the_log(post: Post, caplog: pytest.LogCaptureFixture) -> None:
    await post.add("/hook/of-a-secret")
    await post.office.create("claim")
    with caplog.at_level(logging.INFO):
        assert await post.send() == 1
    assert post.receiver.requests
    assert "of-a-secret" not in caplog.text


async def test_a_message_is_sent_on_signed_and_once(post: Post) -> None:
    made, address = await post.engine.webhooks.add(None, post.receiver.url("/hook?key=7"))
    instance = await post.office.create("claim")
    assert (await post.send(), await post.send()) == (1, 0)
    [request] = post.receiver.requests
    [message] = await post.engine.messages.page(post.office.numbers["manager"])
    assert request.path == "/hook?key=7"
    assert request.headers["host"] == f"127.0.0.1:{post.receiver.port}"
    assert request.content == {
        "id": message.id, "kind": "instance_started", "person": "manager", "sender": str(instance), "instance": instance,
        "flow": "claim", "job": None, "task": None, "text": message.text, "note": None, "at": request.content["at"],
    }  # fmt: skip
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    secret = base64.b64decode(address.secret.removeprefix(SECRET_PREFIX))
    expected = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"
    [delivery] = await post.deliveries(made.id)
    assert (delivery.status, delivery.tries, delivery.answer, delivery.error) == ("sent", 1, 200, None)
    shown = await post.engine.webhooks.get(None, made.id)
    assert (shown.waiting, shown.given_up, shown.sent_at) == (0, 0, delivery.ended_at)


async def test_a_webhook_hears_what_it_asked_for(post: Post) -> None:
    numbers = post.office.numbers
    await post.add("/manager", person=numbers["manager"])
    await post.add("/clerk", person=numbers["clerk_1"])
    await post.add("/ends", kinds=["instance_ended"])
    instance = await post.office.create("claim")
    await post.office.engine.cancel(instance)
    await post.send()
    assert sorted((each.path, each.content["kind"]) for each in post.receiver.requests) == [
        ("/ends", "instance_ended"),
        ("/manager", "instance_ended"),
        ("/manager", "instance_started"),
    ]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (500, "the answer was 500"),
        (404, "the answer was 404"),
        (302, "the answer was 302, and redirects are not followed"),
        (HANG, "no answer within 0.3 s"),
    ],
)
async def test_what_is_not_received_is_tried_again(post: Post, answer: int, says: str) -> None:
    webhook = await post.add()
    post.receiver.answers = [answer, 204]
    await post.office.create("claim")
    assert (await post.send(QUICK), await post.send()) == (1, 0)
    [delivery] = await post.deliveries(webhook)
    assert (delivery.status, delivery.tries, delivery.error) == ("waiting", 1, says)
    await post.office.engine.advance(seconds=7)
    assert await post.send() == 1
    [delivery] = await post.deliveries(webhook)
    assert (delivery.status, delivery.tries, delivery.answer, delivery.error) == ("sent", 2, 204, None)
    first, second = post.receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert {each.path for each in post.receiver.requests} == {"/hook"}


async def test_after_a_day_it_is_given_up_and_can_be_sent_again_by_hand(post: Post) -> None:
    webhook = await post.add()
    post.receiver.answers = [503]
    await post.office.create("claim")
    tries = 0
    while not (await post.engine.webhooks.get(None, webhook)).given_up:
        tries += await post.send()
        await post.office.engine.advance(hours=1)
    [delivery] = await post.deliveries(webhook)
    assert (delivery.status, delivery.tries) == ("given_up", tries)
    assert 10 < tries < 25
    assert delivery.ended_at is not None
    assert timedelta(days=1) <= delivery.ended_at - delivery.made_at < timedelta(hours=28)
    post.receiver.answers = [200]
    assert await post.engine.webhooks.retry(None, webhook) == 1
    assert await post.send() == 1
    assert (await post.deliveries(webhook))[0].status == "sent"
    assert await post.engine.webhooks.retry(None, webhook) == 0


async def test_pauses_grow_and_differ(post: Post) -> None:
    rows = await post.office.engine.rows(
        "select n, min(extract(epoch from p))::float, max(extract(epoch from p))::float from generate_series(1, 12) n,"
        " lateral (select mutirao.pause_after(n) from generate_series(1, 50)) x(p) group by n order by n"
    )
    assert [(low < 5 * 3 ** (n - 1) < high) for n, low, high in rows[:7]] == [True] * 7
    assert all(low < 3 * 3600 < high <= 3 * 3600 * 1.25 for _, low, high in rows[8:])


async def test_a_sender_that_is_killed_leaves_its_deliveries_to_the_next(post: Post) -> None:
    webhook = await post.add()
    await post.office.create("claim")
    [lost] = await post.engine.webhooks.take(9, each=9, lease=timedelta(seconds=60))
    assert await post.send() == 0
    await post.office.engine.advance(seconds=61)
    assert await post.send() == 1
    # The one that was thought dead comes back: its try is not the last one any more.
    assert await post.engine.webhooks.end(lost, answer=None, error="late") is None
    assert (await post.deliveries(webhook))[0].status == "sent"


async def test_senders_side_by_side_send_each_once(post: Post) -> None:
    await post.add()
    for _ in range(12):
        await post.office.create("claim")
    senders = [WebhookSender(post.engine, LOOPBACK) for _ in range(4)]
    assert sum(await asyncio.gather(*(sender.take() for sender in senders))) == 12
    for sender in senders:
        await sender.arrived()
    assert len({each.headers["webhook-id"] for each in post.receiver.requests}) == len(post.receiver.requests) == 12


async def test_one_that_hangs_holds_up_no_other(post: Post) -> None:
    await post.add("/good", kinds=["instance_ended"])
    async with Receiver(answers=[HANG]).listening() as hanging:
        await post.engine.webhooks.add(None, hanging.url())
        for _ in range(9):
            await post.office.create("claim")
        sender = WebhookSender(post.engine, LOOPBACK, timeout=timedelta(seconds=5))
        assert (await sender.take(), await sender.take()) == (4, 0)
        instance = await post.office.create("claim")
        await post.office.engine.cancel(instance)
        assert await sender.take() == 1
        await asyncio.wait_for(post.receiver.called.wait(), 10)
        assert post.receiver.requests[0].path == "/good"


async def test_the_service_runs_until_it_is_told_to_stop(post: Post) -> None:
    webhook = await post.add()
    sender = WebhookSender(post.engine, LOOPBACK)
    running = asyncio.create_task(sender.run())
    await post.office.create("claim")
    await asyncio.wait_for(post.receiver.called.wait(), 10)
    sender.stop()
    await asyncio.wait_for(running, 10)
    assert (await post.deliveries(webhook))[0].status == "sent"


async def test_a_paused_webhook_keeps_what_comes(post: Post) -> None:
    webhook = await post.add()
    await post.office.create("claim")
    await post.engine.webhooks.pause(None, webhook)
    await post.office.create("claim")
    assert await post.send() == 0
    await post.engine.webhooks.resume(None, webhook)
    assert await post.send() == 2


async def test_the_webhooks_of_a_disabled_person_are_silent(post: Post) -> None:
    manager = post.office.numbers["manager"]
    webhook = await post.add("/manager", person=manager)
    first = await post.office.create("claim")
    [revision] = [each for (each,) in await post.office.engine.rows("select mutirao.disable_person(null, %s)", manager)]
    await post.office.engine.cancel(first)
    assert await post.send() == 0
    assert (await post.engine.webhooks.get(None, webhook)).waiting == 1
    await post.office.engine.rows("select mutirao.enable_person(null, %s, %s)", manager, revision)
    assert await post.send() == 1
    assert [each.content["kind"] for each in post.receiver.requests] == ["instance_started"]


async def test_what_is_on_its_way_is_not_sent_again_by_hand(post: Post) -> None:
    webhook = await post.add()
    await post.office.create("claim")
    hooks, lease = post.engine.webhooks, timedelta(seconds=60)
    [taken] = await hooks.take(9, each=9, lease=lease)
    assert await hooks.retry(None, webhook, taken.delivery) == 0
    assert await hooks.take(9, each=9, lease=lease) == []
    assert await hooks.end(taken, answer=500, error="the answer was 500") == "waiting"
    assert await hooks.retry(None, webhook, taken.delivery) == 1
    [again] = await hooks.take(9, each=9, lease=lease)
    assert again.try_ > taken.try_
    # A try that was thought dead does not end the one that came of sending it again.
    assert await hooks.end(taken, answer=200, error=None) is None
    assert await hooks.end(again, answer=200, error=None) == "sent"


async def test_what_waits_longest_goes_first(post: Post) -> None:
    for kind in ("instance_ended", "instance_started"):
        await post.add(f"/{kind}", kinds=[kind])
    await post.office.engine.cancel(await post.office.create("claim"))
    lease = timedelta(seconds=60)
    order = [await post.engine.webhooks.take(1, each=9, lease=lease) for _ in range(3)]
    assert [each.content["kind"] for taken in order for each in taken] == ["instance_started", "instance_ended"]


async def test_a_webhook_that_is_taken_away_takes_its_deliveries_along(post: Post) -> None:
    webhook = await post.add()
    await post.office.create("claim")
    await post.engine.webhooks.drop(None, webhook)
    assert await post.send() == 0
    assert await post.office.engine.rows("select from mutirao.delivery") == []
    assert await post.office.engine.rows("select from mutirao_secret.webhook") == []


async def test_a_trial_says_nothing(post: Post) -> None:
    webhook = await post.add()
    delivery = await post.engine.webhooks.try_out(None, webhook)
    assert await post.send() == 1
    assert post.receiver.requests[0].content["kind"] == "trial"
    assert (await post.deliveries(webhook))[0].id == delivery


async def test_old_deliveries_are_forgotten(post: Post) -> None:
    await post.add()
    await post.office.create("claim")
    await post.send()
    await post.office.engine.advance(days=91)
    assert await post.office.tick("messages") == 1
    assert await post.office.engine.rows("select from mutirao.delivery") == []


# ------------------------------------------------------------------------------------------------------------ who may


async def refused(code: str, awaitable: object) -> None:
    with pytest.raises(MutiraoError) as caught:
        await awaitable  # type: ignore[misc]
    assert caught.value.code == code


async def test_persons_see_to_their_own_webhooks_and_administrators_to_all(post: Post) -> None:
    hooks, numbers = post.engine.webhooks, post.office.numbers
    clerk, other, admin = numbers["clerk_1"], numbers["clerk_2"], numbers["admin"]
    url = "https://example.org/secret-path"
    own, _ = await hooks.add(clerk, url, person=clerk)
    await refused("forbidden", hooks.add(clerk, url))
    await refused("forbidden", hooks.add(clerk, url, person=other))
    everybody, _ = await hooks.add(admin, url)
    assert [each.id for each in await hooks.all(clerk)] == [own.id]
    assert [each.id for each in await hooks.all(other)] == []
    assert [each.id for each in await hooks.all(admin)] == [own.id, everybody.id]
    assert own.target == "https://example.org"
    assert (await hooks.address(clerk, own.id)).url == url
    for act in (hooks.address, hooks.pause, hooks.drop, hooks.try_out, hooks.retry, hooks.deliveries):
        await refused("unknown_webhook", act(other, own.id))
    await hooks.drop(admin, own.id)


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org/", "file:///etc/passwd", "http://", "https://name:word@example.org/",
     "https://example.org/a b", "https://example.org/\nx", "https://example.org/" + "x" * 2000, "http://a@b/"],
)  # fmt: skip
async def test_an_address_that_is_none_is_refused(post: Post, url: str) -> None:
    await refused("wrong_url", post.engine.webhooks.add(None, url))
    assert await post.engine.webhooks.all(None) == []


async def test_what_else_cannot_be_is_refused(post: Post) -> None:
    hooks = post.engine.webhooks
    await refused("wrong_call", hooks.add(None, "https://example.org", kinds=["gossip"]))
    await refused("wrong_call", hooks.add(None, "https://example.org", secret="short"))
    await refused("wrong_call", hooks.add(None, "https://example.org", secret="whsec_not base64"))
    await refused("unknown_person", hooks.add(None, "https://example.org", person=9999))
    await refused("unknown_webhook", hooks.get(None, 9999))
    for _ in range(10):
        await hooks.add(None, "https://example.org")
    await refused("wrong_call", hooks.add(None, "https://example.org"))


async def test_what_is_secret_is_not_for_readers(post: Post) -> None:
    await post.engine.webhooks.add(None, "https://example.org/T0KEN")
    everything = str(await post.office.engine.everything())
    assert "https://example.org" in everything
    assert "T0KEN" not in everything


# ----------------------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("address", "networks", "may"),
    [
        ("127.0.0.1", "", False),
        ("127.0.0.1", "127.0.0.0/8", True),
        ("10.1.2.3", "", False),
        ("10.1.2.3", "10.1.0.0/16", True),
        ("10.2.2.3", "10.1.0.0/16", False),
        ("169.254.169.254", "", False),
        ("0.0.0.0", "", False),
        ("::1", "", False),
        ("::ffff:127.0.0.1", "", False),
        ("fd00::1", "", False),
        ("64:ff9b::7f00:1", "", False),
        ("224.0.0.1", "", False),
        ("93.184.215.14", "", True),
        ("2606:4700::1111", "", True),
    ],
)
def test_only_the_public_internet_is_called_unless_the_operator_says_otherwise(
    address: str, networks: str, may: bool
) -> None:
    assert may_call(ip_address(address), allowed_networks(networks)) is may


async def test_a_name_that_leads_inside_is_refused_when_it_is_called(post: Post) -> None:
    webhook = await post.add()
    await post.office.create("claim")
    sender = WebhookSender(post.engine, ())
    await sender.take()
    await sender.arrived()
    [delivery] = await post.deliveries(webhook)
    assert delivery.error is not None
    assert delivery.error.startswith("127.0.0.1 has no address on the public internet")
    assert post.receiver.requests == []
    with pytest.raises(AddressRefused, match="has no address"):
        await checked_address("no-such-host.invalid", 443, ())


def test_networks_that_are_none_are_told() -> None:
    with pytest.raises(OperatorError, match="MUTIRAO_WEBHOOK_NETWORKS"):
        allowed_networks("loopback")


def test_a_secret_is_read_as_it_is_written() -> None:
    assert decode_secret("whsec_" + base64.b64encode(b"x" * 32).decode()) == b"x" * 32
