"""Messages: who is told what, that it is told together with what happened, and that it can be read, counted and forgotten."""

from typing import Any

import pytest
from driver import Engine, after, fresh_engine  # noqa: F401 gives the fixture `engine`
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb
from staff import Office, furnish, offer

from mutirao.database.message import KINDS


@pytest.fixture(name="office")
async def office_of(engine: Engine) -> Office:
    office = await furnish(engine)
    await put(office)
    return office


async def put(office: Office, task: dict[str, Any] | None = None, **more: Any) -> None:
    """The flow `claim`, with one task for a worker or, by default, for clerks."""
    about = task or {"offer": offer()}
    how: dict[str, Any] = more or {"final": "approved"}
    await office.engine.apply(
        "claim", {"approved": False}, {"approve": {"when": "not approved", **about}}, creator="manager", **how
    )


async def told(office: Office, person: str = "manager") -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in await office.messages(person)]


# ------------------------------------------------------------------------------------------------------------ instances


async def test_the_person_in_charge_hears_of_the_start_and_of_the_end(office: Office) -> None:
    instance = await office.create("claim")
    item = await office.engine.job(instance, "approve")
    await office.finish("clerk_1", item, await office.select("clerk_1", item), approved=True)
    assert await told(office) == [
        ("instance_started", f"Instance {instance} of claim has started."),
        ("instance_ended", f"Instance {instance} of claim has ended: it was completed."),
    ]
    assert (await office.messages())[1].note == {"status": "closed.completed"}
    assert await told(office, "clerk_1") == []


async def test_a_cancelled_instance_is_told_of_as_such(office: Office) -> None:
    instance = await office.create("claim")
    await office.engine.cancel(instance)
    assert (await told(office))[1] == ("instance_ended", f"Instance {instance} of claim has ended: it was cancelled.")


async def test_an_instance_that_is_final_at_once_is_told_of_in_order(office: Office) -> None:
    await office.create("claim", approved=True)
    assert [kind for kind, _ in await told(office)] == ["instance_started", "instance_ended"]


async def test_an_instance_that_nobody_is_in_charge_of_tells_nobody(office: Office) -> None:
    await office.engine.start("claim", approved=True)
    assert await office.messages() == []


async def test_one_that_starts_later_is_told_of_when_it_does(office: Office) -> None:
    await office.engine.rows(
        "select mutirao.create_instance(%s, 'claim', at => mutirao.now() + interval '1 hour')",
        office.numbers["manager"],
    )
    assert await office.messages() == []
    await office.engine.advance(hours=2)
    await office.tick("starts")
    assert [kind for kind, _ in await told(office)] == ["instance_started"]


async def test_the_sender_is_the_key_where_there_is_one_and_one_start_is_told_once(office: Office) -> None:
    for _ in range(2):
        await office.engine.rows(
            "select mutirao.create_instance(%s, 'claim', key => 'claim-7')", office.numbers["manager"]
        )
    assert [each.sender for each in await office.messages()] == ["claim-7"]


async def test_what_is_refused_tells_nobody(office: Office) -> None:
    async with office.engine.refused("unknown_attribute"):
        await office.create("claim", colour="red")


# ------------------------------------------------------------------------------------------------------------- failures


async def test_a_task_that_fails_for_good_is_told_of_and_one_that_is_tried_again_is_not(office: Office) -> None:
    await put(office, {"retries": 1})
    instance = await office.create("claim")
    await office.engine.fail(await office.engine.take("claim", "approve"), "no answer")
    assert len(await office.messages()) == 1
    await office.engine.advance(minutes=1)
    await office.tick("retries")
    await office.engine.fail(await office.engine.take("claim", "approve"), "still no answer")
    [_, failed] = await office.messages()
    assert (failed.kind, failed.sender) == ("task_failed", str(instance))
    assert failed.text == f"Task approve of instance {instance}, claim, has failed: still no answer."
    assert failed.note == {"error": "still no answer", "handled": False}


async def test_a_failure_that_the_flow_handles_is_told_of_as_such(office: Office) -> None:
    tasks = {
        "approve": {"when": "not approved", "fires": "once", "offer": offer()},
        "again": after("approve", "failed"),
    }
    await office.engine.apply("claim", {"approved": False}, tasks, ends="quiet", creator="manager")
    instance = await office.create("claim")
    item = await office.engine.job(instance, "approve")
    await office.finish("clerk_1", item, await office.select("clerk_1", item), error="not mine")
    [_, failed] = await office.messages()
    assert failed.text.endswith("has failed: not mine; another task handles that.")
    assert failed.note["handled"] is True


async def test_an_instance_that_cannot_go_on_is_told_of(office: Office) -> None:
    await office.engine.apply(
        "claim", {"a": 0}, {"approve": {"when": "a = 0", "offer": offer()}}, final="a = 9", creator="manager"
    )
    instance = await office.create("claim")
    item = await office.engine.job(instance, "approve")
    await office.finish("clerk_1", item, await office.select("clerk_1", item), a=1)
    [_, stuck] = await office.messages()
    assert (stuck.kind, stuck.note) == ("exception", {"code": "nothing_fires"})
    assert stuck.text == f"Instance {instance} of claim cannot go on: nothing is pending, and no condition holds."


async def test_what_is_rolled_back_was_not_told(office: Office) -> None:
    async with await AsyncConnection.connect(office.engine.url) as session:
        await session.execute("select mutirao.create_instance(%s, 'claim')", [office.numbers["manager"]])
        await session.rollback()
    assert await office.messages() == []


# ---------------------------------------------------------------------------------------------------------------- items


async def test_an_item_that_comes_to_one_alone_is_told_of(office: Office) -> None:
    await put(office, {"offer": offer(policy={"kind": "least_loaded"})})
    instance = await office.create("claim")
    item = await office.engine.job(instance, "approve")
    await office.delegate("clerk_1", item, "clerk_2")
    await office.select("clerk_2", item)
    await office.delegate("manager", item, "clerk_1")
    words = f"Task approve of instance {instance}, claim, is"
    assert await told(office, "clerk_1") == [
        ("offered", f"{words} offered to you alone."),
        ("delegated", f'{words} yours now, delegated by "manager".'),
    ]
    assert await told(office, "clerk_2") == [
        ("delegated", f'{words} yours now, delegated by "clerk_1".'),
        ("taken", f'{words[:-2]}was taken from you by "manager".'),
    ]


async def test_whoever_is_put_in_charge_is_told(office: Office) -> None:
    await office.hire("manager_2", "manager")
    instance = await office.create("claim")
    await office.engine.rows(
        "select mutirao.hand_over(%s, %s, %s, 'on leave')",
        office.numbers["manager"], instance, office.numbers["manager_2"],
    )  # fmt: skip
    assert await told(office, "manager_2") == [
        ("in_charge", f'You are in charge of instance {instance} of claim now, by "manager": on leave.')
    ]


# ------------------------------------------------------------------------------------------------- many, and whoever is here


async def test_many_that_end_together_are_told_of_in_one_statement_and_called_once(office: Office) -> None:
    await put(office, {"priority": 1})
    instances = [await office.create("claim") for _ in range(30)]
    await office.heard()
    jobs = await office.engine.claim("claim", "approve", room=30)
    async with await AsyncConnection.connect(office.engine.url, autocommit=True) as session:
        await session.execute("listen mutirao_people")
        await office.engine.turn([(job, {"approved": True}) for job in jobs])
        calls = [each.payload async for each in session.notifies(timeout=0.3)]
    assert calls == [f"p{office.numbers['manager']}"]
    assert [each.sender for each in await office.messages()] == [str(each) for each in sorted(instances)]


# -------------------------------------------------------------------------------------------------------------- reading


async def read(office: Office, person: str, messages: list[int] | None = None, up_to: int | None = None) -> int:
    return int(
        await office.engine.one(
            "select mutirao.read_messages(%s, %s::bigint[], %s)", office.numbers[person], messages, up_to
        )
    )


async def unread(office: Office, person: str) -> int:
    return int(await office.engine.one("select mutirao.unread_messages(%s)", office.numbers[person]))


async def test_what_calls_for_somebody_who_is_away_reaches_their_substitute(office: Office) -> None:
    await office.hire("deputy", "manager")
    await office.engine.rows(
        "select mutirao.set_away(null, %s, mutirao.now(), substitute => %s)",
        office.numbers["manager"],
        office.numbers["deputy"],
    )
    instance = await office.create("claim")
    assert await office.heard() == [("manager", "instance_started")]
    await office.engine.rows(
        "select mutirao.hand_over(%s, %s, %s)",
        *(office.numbers[name] if name else instance for name in ("admin", "", "manager")),
    )
    [to_deputy] = await office.messages("deputy")
    assert (to_deputy.kind, to_deputy.text.startswith('For "manager", who is away: You are in charge')) == (
        "in_charge",
        True,
    )
    await office.engine.rows("select mutirao.set_away(null, %s, null)", office.numbers["manager"])
    await office.engine.rows("delete from mutirao.message")
    await office.engine.rows(
        "select mutirao.hand_over(%s, %s, %s)",
        *(office.numbers[name] if name else instance for name in ("admin", "", "manager")),
    )
    assert await office.heard() == [("manager", "in_charge")]


async def test_messages_are_read_one_by_one_or_all_up_to_one(office: Office) -> None:
    for _ in range(4):
        await office.create("claim")
    numbers = [n for (n,) in await office.engine.rows("select id from mutirao.message order by id")]
    assert await unread(office, "manager") == 4
    assert await read(office, "manager", [numbers[1]]) == 1
    assert await read(office, "manager", [numbers[1]]) == 0
    assert await read(office, "manager", up_to=numbers[2]) == 2
    assert await unread(office, "manager") == 1
    async with office.engine.refused("unknown_message", f"there is no message {numbers[0]} for you"):
        await read(office, "clerk_1", [numbers[0]])
    async with office.engine.refused("wrong_call"):
        await read(office, "manager")
    assert await read(office, "clerk_1", up_to=numbers[3]) == 0


async def test_read_messages_are_forgotten_after_a_while_and_unread_ones_are_kept(office: Office) -> None:
    await office.create("claim")
    await office.create("claim")
    (first,) = (await office.engine.rows("select min(id) from mutirao.message"))[0]
    await read(office, "manager", [first])
    await office.engine.advance(days=89)
    assert await office.tick("messages") == 0
    await office.engine.advance(days=2)
    assert await office.tick("messages") == 1
    assert await unread(office, "manager") == len(await office.messages()) == 1
    await office.engine.rows(
        "select mutirao.set_settings(%s, %s)", office.numbers["admin"], Jsonb({"keep_messages": 0.5})
    )
    await read(office, "manager", up_to=first + 1)
    await office.engine.advance(hours=13)
    assert await office.tick("messages") == 1


async def test_messages_go_with_their_instance_and_are_blanked_with_it(office: Office) -> None:
    instance = await office.create("claim")
    item = await office.engine.job(instance, "approve")
    await office.finish("clerk_1", item, await office.select("clerk_1", item), error="the customer Niemand refused")
    await office.engine.rows("select mutirao.erase(%s, 'Niemand', how => 'blank', may_be_open => true)", [instance])
    assert (await office.messages())[-1].text.endswith("has failed: the customer [erased] refused.")
    assert (await office.messages())[-1].note["error"] == "the customer [erased] refused"
    await office.engine.cancel(instance)
    assert await office.engine.one("select refused from mutirao.erase(%s, how => 'drop')", [instance]) is None
    assert await office.messages() == []


async def test_the_kinds_are_the_same_in_the_table_in_sql_and_in_python(office: Office) -> None:
    assert await office.engine.one("select mutirao.message_kinds()") == list(KINDS)
    allowed = await office.engine.one(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'message_kind_check'"
    )
    assert {kind for kind in KINDS if f"'{kind}'" in allowed} == set(KINDS)
    assert allowed.count("::text") == len(KINDS)
