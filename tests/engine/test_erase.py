"""One person's data: found wherever it is kept, and nowhere left when it is erased."""

from datetime import timedelta
from typing import Any

import pytest
from driver import Engine, fresh_engine
from psycopg.types.json import Jsonb

__all__ = ["fresh_engine"]

VALUE = 'o"neil@example.org'
VISIT = {
    "mail": {"type": "text", "searchable": True},
    "guest": {"type": "json"},
    "room": "",
    "stage": "new",
}


@pytest.fixture
async def visits(engine: Engine) -> Engine:
    await engine.apply("visit", VISIT, {"greet": "stage = 'new'", "feed": "stage = 'hungry'"}, final="stage = 'gone'")
    return engine


async def erase(engine: Engine, instances: list[int], **how: Any) -> dict[int, str | None]:
    named = "".join(f", {name} => %s" for name in how)
    return dict(await engine.rows(f"select * from mutirao.erase(%s{named})", instances, *how.values()))


async def find(engine: Engine, value: str = VALUE, **how: Any) -> list[int]:
    named = "".join(f", {name} => %s" for name in how)
    return list(await engine.one(f"select holding from mutirao.find_value(%s{named})", value, *how.values()))


async def kept(engine: Engine, text: str) -> list[str]:
    """The tables in which the text stands, in any column and any spelling."""
    spelt = [text, text.replace('"', '\\"'), text.replace('"', '""'), text.replace('"', '\\\\""')]
    whole = await engine.everything()
    return [table for table, rows in whole.items() if any(each in str(row[0]) for row in rows for each in spelt)]


async def a_long_story(engine: Engine) -> int:
    """An instance that keeps the value wherever one can."""
    instance = await engine.start("visit", mail=VALUE, guest={"names": [f"mail: {VALUE}", 7]}, room="12")
    await engine.fail(await engine.take("visit", "greet", worker=f"desk of {VALUE}"), f"no answer from {VALUE}")
    await engine.rows("select mutirao.set(%s, %s, %s, %s)", instance, Jsonb({"room": VALUE}), f"{VALUE} called", VALUE)
    await engine.set(instance, room="14")
    return instance


async def test_a_value_is_found_in_state_trace_and_jobs_of_open_and_closed_instances(visits: Engine) -> None:
    in_state = await visits.start("visit", mail=VALUE)
    await visits.start("visit", mail="somebody@example.org")
    in_the_past = await visits.start("visit", guest={"by": [VALUE]})
    await visits.set(in_the_past, guest=None)
    await visits.cancel(in_the_past)
    in_a_note = await visits.start("visit")
    await visits.rows("select mutirao.cancel(%s, %s)", in_a_note, f"{VALUE} is gone")
    in_a_job = await visits.start("visit")
    await visits.rows("update mutirao.job set error = %s where instance = %s", Jsonb({"error": VALUE}), in_a_job)
    assert await find(visits) == [in_state, in_the_past, in_a_note, in_a_job]
    assert await find(visits, attribute="mail") == [in_state]
    assert await find(visits, flow="visit", after=in_state) == [in_the_past, in_a_note, in_a_job]
    assert await find(visits, "nobody@example.org") == []


async def test_blanking_a_closed_instance_leaves_the_value_nowhere_and_says_that_it_happened(visits: Engine) -> None:
    instance = await a_long_story(visits)
    await visits.cancel(instance)
    other = await visits.start("visit", mail="somebody@example.org")
    before = await visits.trace(instance)
    assert {"mutirao.closed", "mutirao.trace", "mutirao.search"} <= set(await kept(visits, VALUE))
    assert await erase(visits, [instance], value=VALUE, reason=f"asked by {VALUE}") == {instance: None}
    assert await kept(visits, VALUE) == []
    after = await visits.trace(instance)
    assert [step.kind for step in after] == [*(step.kind for step in before), "erase"]
    assert after[-1].note == {"reason": "asked by [erased]", "attributes": ["guest", "mail", "room"]}
    assert [step.state["stage"] for step in after if step.state] == ["new"] * 4
    assert (await visits.state(instance))["mail"] is None
    assert (await visits.state(other))["mail"] == "somebody@example.org"
    [row] = await visits.rows("select instance, how, reason from mutirao.erasure")
    assert row == (instance, "blank", "asked by [erased]")


async def test_blanking_attributes_also_takes_their_values_out_of_notes(visits: Engine) -> None:
    instance = await a_long_story(visits)
    await visits.cancel(instance)
    assert await erase(visits, [instance], attributes=["mail", "room", "guest"]) == {instance: None}
    assert await kept(visits, VALUE) == []


async def test_dropping_leaves_only_the_record(visits: Engine) -> None:
    instance = await a_long_story(visits)
    await visits.cancel(instance)
    assert await erase(visits, [instance], value=VALUE, how="drop") == {instance: None}
    assert await kept(visits, VALUE) == []
    assert await visits.rows("select from mutirao.trace where instance = %s", instance) == []
    assert await visits.rows("select instance, how from mutirao.erasure") == [(instance, "drop")]


async def test_an_open_instance_is_left_alone_unless_said_otherwise(visits: Engine) -> None:
    instance = await a_long_story(visits)
    before = await visits.everything()
    for how in ("blank", "drop"):
        [refused] = (await erase(visits, [instance], value=VALUE, how=how)).values()
        assert refused is not None
        assert "cancel it first" in refused
    assert await visits.everything() == before
    assert await erase(visits, [instance], value=VALUE, may_be_open=True) == {instance: None}
    assert await kept(visits, VALUE) == []
    assert await visits.status(instance) == "open.running"
    await visits.advance(minutes=10)
    await visits.tick()
    assert (await visits.take("visit", "greet")).state["mail"] is None


async def test_an_open_instance_with_a_running_job_is_not_erased(visits: Engine) -> None:
    instance = await visits.start("visit", mail=VALUE)
    await visits.take("visit", "greet")
    [refused] = (await erase(visits, [instance], value=VALUE, may_be_open=True)).values()
    assert refused is not None
    assert "a worker has a job of it" in refused
    assert (await visits.state(instance))["mail"] == VALUE


async def test_an_open_instance_that_needs_the_value_says_so(visits: Engine) -> None:
    await visits.apply("stay", {"mail": {"type": "text", "required": True}}, {"greet": "true"})
    instance = await visits.start("stay", mail=VALUE)
    before = await visits.everything()
    [refused] = (await erase(visits, [instance], value=VALUE, may_be_open=True)).values()
    assert refused is not None
    assert "missing_attribute" in refused
    assert await visits.everything() == before


async def test_exceptions_and_failed_jobs_do_not_keep_it(visits: Engine) -> None:
    instance = await visits.start("visit", mail=VALUE)
    await visits.fail_for_good(await visits.take("visit", "greet"), f"{VALUE} does not exist")
    assert VALUE in str(await visits.reasons(instance))
    assert await erase(visits, [instance], value=VALUE, may_be_open=True) == {instance: None}
    assert await kept(visits, VALUE) == []
    assert await visits.codes(instance) == ["task_failed"]


async def test_a_batch_that_named_it_does_not_keep_it(visits: Engine) -> None:
    instance = await visits.start("visit", mail=VALUE)
    made = "select mutirao.make_batch('cancel', %s, '{}', %s)"
    await visits.rows(made, Jsonb({"flow": "visit", "where": f"mail = '{VALUE}'"}), f"{VALUE} asked")
    while await visits.rows("select from mutirao.batch where status = 'running'"):
        await visits.advance(seconds=2)
        await visits.tick()
    assert "mutirao.batch" in await kept(visits, VALUE)
    assert await erase(visits, [instance], value=VALUE) == {instance: None}
    assert await kept(visits, VALUE) == []


async def test_many_are_looked_at_page_by_page(visits: Engine) -> None:
    states = [{"mail": VALUE if n % 4 == 0 else "somebody"} for n in range(20)]
    instances = await visits.start_many("visit", states)
    after, pages = 0, []
    while True:
        [(last, looked, found)] = await visits.rows(
            "select last, looked, holding from mutirao.find_value(%s, after => %s, room => 6)", VALUE, after
        )
        pages.append(found)
        if looked < 6:
            break
        after = last
    assert [number for page in pages for number in page] == instances[::4]
    assert len(pages) == 4


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ({"value": "ab"}, "wrong_call", "at least three characters"),
        ({}, "wrong_call", "give a value, or attributes"),
        ({"value": VALUE, "how": "burn"}, "wrong_call", "burn"),
        ({"attributes": ["shoe_size"]}, "unknown_attribute", "shoe_size"),
        ({"value": VALUE, "reason": "x" * 70_000}, "too_large", "70000"),
    ],
)
async def test_what_makes_no_sense_is_refused(visits: Engine, how: dict[str, Any], code: str, says: str) -> None:
    instance = await visits.start("visit", mail=VALUE)
    async with visits.refused(code, says):
        await erase(visits, [instance], **how)


async def test_an_unknown_instance_is_answered_as_such(visits: Engine) -> None:
    assert await erase(visits, [10**12], value=VALUE) == {10**12: "there is no such instance"}


async def test_retention_goes_on_beside_an_erasure(visits: Engine) -> None:
    instance = await visits.start("visit", mail=VALUE, stage="gone")
    await erase(visits, [instance], value=VALUE)
    await visits.rows("select mutirao.keep('visit', %s)", timedelta(0))
    await visits.advance(seconds=5)
    await visits.tick()
    assert await visits.rows("select from mutirao.trace") == []


async def test_what_the_engine_reads_again_is_not_scrubbed(visits: Engine) -> None:
    """The value is what a key of its own documents is called, and a code, and a task."""
    for value in ("job", "task_failed", "greet"):
        instance = await visits.start("visit", mail=value)
        await visits.fail(await visits.take("visit", "greet"), f"no {value} here", final=True)
        [(before,)] = await visits.rows("select reasons from mutirao.instance where id = %s", instance)
        assert await erase(visits, [instance], attributes=["mail"], may_be_open=True) == {instance: None}
        [(reasons,)] = await visits.rows("select reasons from mutirao.instance where id = %s", instance)
        assert reasons == [{**before[0], "error": "no [erased] here"}]
        [job] = [each for each, _ in await visits.rows("select id, task from mutirao.job where status = 'failed'")]
        await visits.rows("select mutirao.retry(%s)", job)
        await visits.complete(await visits.take("visit", "greet"), stage="gone")
        assert await visits.status(instance) == "closed.completed"


async def test_a_stopped_batch_still_says_what_to_do_when_a_value_was_erased_that_is_called_so(visits: Engine) -> None:
    instance = await visits.start("visit", mail="visit")
    [(batch,)] = await visits.rows(
        "select mutirao.make_batch('set', %s, %s)",
        Jsonb({"flow": "visit", "where": "mail = 'visit'"}),
        Jsonb({"change": {"room": "of a visit"}}),
    )
    await visits.rows("select mutirao.stop_batch(%s)", batch)
    await visits.cancel(instance)
    assert await erase(visits, [instance], value="visit") == {instance: None}
    assert await visits.rows("select filter, arguments from mutirao.batch") == [
        ({"flow": "visit", "where": "mail = '[erased]'"}, {"change": {"room": "of a [erased]"}})
    ]
