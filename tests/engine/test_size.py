"""Size limits: what is too large is refused in one line, and the rest of the batch goes through."""

import pytest
from driver import Engine, fresh_engine

__all__ = ["fresh_engine"]

LARGE = "x" * 1_100_000


@pytest.fixture
async def letters(engine: Engine) -> Engine:
    await engine.apply(
        "letter", {"text": "", "more": "", "sent": False}, {"write": "not sent"}, final="sent and text = ''"
    )
    return engine


async def test_a_start_that_is_too_large_is_refused(letters: Engine) -> None:
    async with letters.refused("too_large", 'and flow "letter" allows 1000000'):
        await letters.start_many("letter", [{"text": "short"}, {"text": LARGE}])


async def test_a_set_that_is_too_large_is_refused(letters: Engine) -> None:
    instance = await letters.start("letter")
    async with letters.refused("too_large", "the change would have 11000"):
        await letters.set(instance, text=LARGE)


async def test_a_state_grows_to_its_limit_and_no_further(letters: Engine) -> None:
    instance = await letters.start("letter", text="x" * 600_000)
    async with letters.refused("too_large", "the state would have 12000"):
        await letters.set(instance, more="x" * 600_000)
    await letters.set(instance, more="x" * 300_000)


async def test_a_job_whose_change_is_too_large_is_told_so_and_the_others_go_through(letters: Engine) -> None:
    instances = await letters.start_many("letter", [{}] * 10)
    jobs = await letters.claim("letter", room=10)
    told, _ = await letters.turn([(job, {"text": LARGE if job.instance == instances[4] else "fine"}) for job in jobs])
    [refused] = told
    assert (refused.kind, refused.note and refused.note["code"]) == ("refused", "too_large")
    assert [(await letters.state(each))["text"] for each in instances].count("fine") == 9
    assert (await letters.state(instances[4]))["text"] == ""


async def test_a_repair_that_is_too_large_is_refused(letters: Engine) -> None:
    instance = await letters.start("letter")
    await letters.fail_for_good(await letters.take("letter", "write"))
    async with letters.refused("too_large"):
        await letters.repair(instance, text=LARGE)


async def test_the_limit_of_a_flow_can_be_set_and_holds_from_the_next_write(letters: Engine) -> None:
    instance = await letters.start("letter", text="x" * 5_000)
    await letters.rows("select mutirao.limit_size('letter', state => 2000, change => 1000)")
    async with letters.refused("too_large", "the change would have 15"):
        await letters.set(instance, text="x" * 1_500)
    async with letters.refused("too_large", "the state would have 50"):
        await letters.set(instance, more="a")
    await letters.set(instance, text="")  # what makes it small enough
    await letters.rows("select mutirao.limit_size('letter', state => 3000000, change => 3000000)")
    await letters.set(instance, text=LARGE)
    assert len((await letters.state(instance))["text"]) == len(LARGE)


async def test_a_trace_that_is_full_takes_no_more_from_outside(letters: Engine) -> None:
    full = await letters.start("letter")
    await letters.rows("select mutirao.limit_size('letter', trace => 3)")
    for text in ("one", "two"):
        await letters.set(full, text=text)
    async with letters.refused("too_large", 'the trace has 3 rows, as many as flow "letter" allows'):
        await letters.set(full, text="three")
    await letters.turn([(await letters.take("letter", "write"), {"text": "", "sent": True})])
    assert await letters.status(full) == "closed.completed"


async def test_an_event_for_a_full_trace_is_refused_beside_one_that_is_taken(letters: Engine) -> None:
    await letters.rows("select mutirao.start('letter', '{}', key => each) from unnest(array['full', 'free']) each")
    await letters.rows("select mutirao.limit_size('letter', trace => 2)")
    await letters.rows("select mutirao.send('letter', 'full', '{\"text\": \"one\"}')")
    told = await letters.rows(
        "select key, code from mutirao.send_many('letter', array['full', 'free'], "
        'array[\'{"text": "two"}\', \'{"text": "two"}\']::jsonb[])'
    )
    assert dict(told)["full"] == "too_large"
    assert dict(told).get("free") is None


async def test_an_instance_that_is_too_large_by_a_new_limit_can_still_be_stopped(letters: Engine) -> None:
    instance = await letters.start("letter", text="x" * 5_000)
    await letters.rows("select mutirao.limit_size('letter', state => 1000)")
    await letters.cancel(instance)
    assert await letters.status(instance) == "closed.aborted"


async def test_a_state_that_was_too_large_is_an_exception_no_longer_than_it_is(letters: Engine) -> None:
    instance = await letters.start("letter")
    await letters.rows("update mutirao.instance set status = 'open.exception', reasons = '[{\"code\": \"too_large\"}]'")
    await letters.set(instance, text="short")
    assert (await letters.status(instance), await letters.codes(instance)) == ("open.running", [])


async def test_a_failure_is_told_however_long_its_words_are(letters: Engine) -> None:
    instance = await letters.start("letter")
    await letters.fail_for_good(await letters.take("letter", "write"), LARGE)
    [row] = [step for step in await letters.trace(instance) if step.kind == "fail"]
    assert row.note is not None
    assert row.note["error"].startswith("xxx")
    assert row.note["error"].endswith("bytes)")
    assert len(row.note["error"]) < 10_000
    assert await letters.codes(instance) == ["task_failed"]


async def test_a_reason_that_is_too_long_is_refused(letters: Engine) -> None:
    instance = await letters.start("letter")
    async with letters.refused("too_large", "a reason has 1100000 bytes"):
        await letters.rows("select mutirao.cancel(%s, %s)", instance, LARGE)
