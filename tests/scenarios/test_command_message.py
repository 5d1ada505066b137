"""`mutirao message`, `webhook` and `setting`: what a person is told, where it is sent on to, and what holds for all."""

import json

import pytest
from command import answer, assert_refused, mutirao
from people import office_of_three  # noqa: F401 gives the fixture `office`

from mutirao import Creation
from mutirao.database.engine import Engine
from mutirao.model import Attribute, Definition, Offer, Task

CLAIM = Definition(
    name="claim",
    attributes=(Attribute("approved", "boolean"),),
    tasks=(Task(name="approve", when="approved is null", offer=Offer(role="clerk")),),
    final="approved is not null",
    creator="manager",
)


@pytest.fixture(name="url")
async def office_with_claims(office: str) -> str:
    """The manager has started three instances."""
    async with Engine(office, upgrade=False) as engine:
        await engine.apply(CLAIM)
        manager = await engine.persons.number("manager")
        for _ in range(3):
            await engine.charges.create(manager, Creation(flow="claim"))
    return office


def test_messages_are_listed_and_read(url: str) -> None:
    told = answer("message", "list", "--as", "manager", "--database", url)
    assert told["unread"] == 3
    newest, middle, oldest = (each["id"] for each in told["messages"])
    assert told["messages"][0]["kind"] == "instance_started"
    said = mutirao("message", "read", str(middle), "--as", "manager", "--database", url)
    assert said.stdout == "1 message marked as read.\n"
    unread = answer("message", "list", "--as", "manager", "--unread", "--database", url)
    assert [each["id"] for each in unread["messages"]] == [newest, oldest]
    assert mutirao("message", "read", "--up-to", str(newest), "--as", "manager", "--database", url).stdout.startswith(
        "2"
    )
    shown = mutirao("message", "list", "--as", "manager", "--limit", "1", "--database", url).stdout
    assert "has started." in shown
    assert "0 not read" in shown
    older = answer("message", "list", "--as", "manager", "--before", str(middle), "--database", url)
    assert [each["id"] for each in older["messages"]] == [oldest]
    assert answer("message", "list", "--as", "manager", "--kind", "deadline", "--database", url)["messages"] == []


def test_a_message_is_shown_whole(url: str) -> None:
    told = answer("message", "list", "--as", "manager", "--limit", 1, "--database", url)["messages"][0]
    narrow = mutirao("message", "list", "--as", "manager", "--limit", 1, "--database", url, COLUMNS=60).stdout
    assert "…" not in narrow
    shown = mutirao("message", "show", told["id"], "--as", "manager", "--database", url).stdout
    assert told["text"] in shown
    assert "not yet" in shown
    assert answer("message", "show", told["id"], "--as", "manager", "--database", url) == told
    assert_refused(mutirao("message", "show", 7777, "--as", "manager", "--database", url), "unknown_message")


def test_a_webhook_is_added_shown_and_removed(url: str) -> None:
    words = ["webhook", "add", "https://example.org/T0KEN", "--person", "manager", "--kind", "deadline"]
    made = answer(*words, "--database", url)
    number = str(made["webhook"]["id"])
    assert made["address"]["secret"].startswith("whsec_")
    listed = mutirao("webhook", "list", "--database", url).stdout
    assert "https://example.org" in listed
    assert "T0KEN" not in listed
    shown = mutirao("webhook", "show", number, "--database", url).stdout
    assert "https://example.org/T0KEN" in shown
    assert "whsec_" not in shown
    assert made["address"]["secret"] in mutirao("webhook", "show", number, "--secret", "--database", url).stdout
    mutirao("webhook", "pause", number, "--database", url)
    assert answer("webhook", "list", "--database", url)[0]["paused"]
    mutirao("webhook", "resume", number, "--database", url)
    assert mutirao("webhook", "retry", number, "--database", url).stdout == "0 messages on the way again.\n"
    mutirao("webhook", "remove", number, "--database", url)
    assert answer("webhook", "list", "--database", url) == []


def test_a_webhook_is_tried_and_tells_what_is_wrong(url: str) -> None:
    said = mutirao("webhook", "add", "http://127.0.0.1:9/hook", "--json", "--database", url)
    assert "warning: nothing is sent there: 127.0.0.1 has no address on the public internet" in said.stderr
    allowed = {"MUTIRAO_WEBHOOK_NETWORKS": "127.0.0.0/8"}
    assert mutirao("webhook", "add", "http://127.0.0.1:9/hook", "--database", url, **allowed).stderr == ""
    made = json.loads(said.stdout)
    refused = mutirao("webhook", "try", str(made["webhook"]["id"]), "--database", url)
    assert_refused(refused, "not_received")
    assert "no address on the public internet" in refused.stderr
    shown = mutirao("webhook", "show", str(made["webhook"]["id"]), "--database", url).stdout
    assert "trial" in shown


def test_settings_are_listed_and_set_together(url: str) -> None:
    words = ["setting", "set", "reminders=[36,12,0.5]", "transfer=12", "--reason", "shorter ways"]
    changed = {each["name"]: each for each in answer(*words, "--database", url)}
    assert (changed["reminders"]["value"], changed["transfer"]["value"]) == ([36, 12, 0.5], 12)
    assert changed["transfer"]["set_by"]
    shown = mutirao("setting", "list", "--database", url).stdout
    assert "[36,12,0.5]  hours before a deadline" in shown
    [change] = answer("setting", "history", "--limit", 1, "--database", url)
    assert (change["reason"], change["name"]) == ("shorter ways", "transfer")
    assert "shorter ways" in mutirao("setting", "history", "--database", url).stdout


@pytest.mark.parametrize(
    ("words", "code", "status", "says"),
    [
        (["message", "list", "--as", "managr"], "unknown_person", 1, 'did you mean "manager"?'),
        (["message", "read", "7777", "--as", "manager"], "unknown_message", 1, "no message 7777"),
        (["message", "read", "--as", "manager"], "usage", 2, "--up-to"),
        (["webhook", "add", "ftp://example.org"], "wrong_url", 1, "http or https"),
        (["webhook", "add", "https://example.org", "--kind", "gossip"], "wrong_call", 1, "gossip"),
        (["webhook", "show", "7777"], "unknown_webhook", 1, "7777"),
        (["setting", "set", "transfer=13"], "wrong_call", 1, "one of the reminders"),
        (["setting", "set", "transfer"], "usage", 2, "NAME=VALUE"),
        (["setting", "set", "transfer=soon"], "usage", 2, "not JSON"),
        (["setting", "set", "colour=1"], "unknown_setting", 1, "those there are"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(url: str, words: list[str], code: str, status: int, says: str) -> None:
    refused = mutirao(*words, "--database", url)
    assert_refused(refused, code, status)
    assert says in refused.stderr
