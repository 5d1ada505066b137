"""Two who store the same content at once, and a sweep beside them: it is there, once."""

import asyncio
from datetime import timedelta

from psycopg.types.json import Jsonb
from worker_stage import Stage, fresh_stage, until  # noqa: F401 gives the fixture `stage`

from mutirao import File
from mutirao.database.file import CHUNK
from mutirao.model import Attribute, Definition, Task
from mutirao.testing import move_clock

CONTENT = b"the same" * (CHUNK // 8) + b"."


async def test_two_uploads_of_one_content_finish_at_once(stage: Stage) -> None:
    """The second waits for the first to commit, and then finds what that stored."""
    files = stage.engine.files
    uploads = [await files.begin(name) for name in ("one", "other")]
    for upload in uploads:
        await files.put_chunk(upload, 0, CONTENT[:CHUNK])
        await files.put_chunk(upload, 1, CONTENT[CHUNK:])
    [(seal,)] = await stage.rows("select mutirao.seal_upload(%s)", uploads[0])
    sha256 = await files._digest(uploads[0])  # noqa: SLF001 what finish would tell
    async with stage.engine.connection() as first, first.transaction():
        await first.execute("select mutirao.finish_upload(%s, %s, %s)", (uploads[0], sha256, seal))
        second = asyncio.create_task(files.finish(uploads[1]))
        await until_somebody_waits(stage)
    file = await second
    assert (file.sha256, file.name, file.size) == (sha256, "other", len(CONTENT))
    await swept(stage)
    assert await stage.rows(
        "select f.id, count(*) from mutirao.file f join mutirao.chunk c on c.file = f.id group by 1"
    ) == [(uploads[0], 2)]


async def test_many_uploads_of_one_content(stage: Stage) -> None:
    async def put(name: str) -> File:
        return await stage.engine.files.upload(CONTENT, name)

    stored = await asyncio.gather(*(put(f"file {number}") for number in range(20)))
    assert len({file.sha256 for file in stored}) == 1
    await swept(stage)
    assert await stage.rows("select count(*) from mutirao.chunk") == [(2,)]
    assert b"".join([part async for part in stage.engine.files.open(stored[-1])]) == CONTENT


async def test_content_that_is_being_swept_is_stored_anew(stage: Stage) -> None:
    await stage.engine.files.upload(CONTENT, "old")
    await move_clock(stage.engine, timedelta(days=3))
    async with stage.engine.connection() as sweeping, sweeping.transaction():
        await sweeping.execute("select mutirao.turn_clock(duty => 'files')")
        again = asyncio.create_task(stage.engine.files.upload(CONTENT, "new"))
        await until_somebody_waits(stage)
    file = await again
    await swept(stage)
    assert b"".join([part async for part in stage.engine.files.open(file)]) == CONTENT


PAPER = Definition(
    name="paper",
    attributes=(Attribute("text", "file"), Attribute("done", "boolean", default=False)),
    tasks=(Task(name="print", when="text is not null", fires="once"),),
    final="done",
)


async def test_erasing_leaves_what_an_instance_under_way_refers_to(stage: Stage) -> None:
    await stage.engine.apply(PAPER)
    file = await stage.engine.files.upload(CONTENT, "form")
    [old] = await stage.engine.start_named("paper", [{"text": file}])
    await stage.engine.cancel(old)
    value = Jsonb({"text": {"sha256": file.sha256, "name": file.name, "size": file.size, "media": file.media}})
    async with stage.engine.connection() as starting, starting.transaction():
        [(new,)] = await (await starting.execute("select mutirao.start('paper', %s)", (value,))).fetchall()
        assert await stage.rows("select refused from mutirao.erase(array[%s]::bigint[], how => 'drop')", old) == [
            (None,)
        ]
    await stage.engine.set(new, {"text": file})  # it has it, so it may be given it again
    for _ in range(2):
        await move_clock(stage.engine, timedelta(days=2))
        await stage.rows("select mutirao.turn_clock()")
        await swept(stage)
    assert b"".join([part async for part in stage.engine.files.open(file)]) == CONTENT


async def swept(stage: Stage) -> None:
    while await stage.rows("select from mutirao.discarded"):
        await stage.rows("select mutirao.turn_clock()")


async def until_somebody_waits(stage: Stage) -> None:
    await until(lambda: stage.rows(_WAITING))


_WAITING = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
