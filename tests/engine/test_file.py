"""The file store: content kept once, in chunks; who may refer to it and read it; and what is swept."""

import hashlib
import random
import tracemalloc
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from worker_stage import Stage, fresh_stage  # noqa: F401 gives the fixture `stage`

from mutirao import Engine, File, Flow, RequestError, task
from mutirao.database.erase import Erasure, erase
from mutirao.database.file import CHUNK
from mutirao.model import Attribute, Change, Definition, Offer, Task
from mutirao.testing import move_clock

DAY = timedelta(days=1)
PAPER = Definition(
    name="paper",
    attributes=(Attribute("text", "file"), Attribute("note", "text"), Attribute("done", "boolean", default=False)),
    tasks=(
        Task(name="write", when="text is null", offer=Offer(role="author"), outputs=("text", "note")),
        Task(name="print", when="text is not null", fires="once"),
    ),
    final="done",
)


def some_bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


async def pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for first in range(0, len(content), size):
        yield content[first : first + size]


async def whole(engine: Engine, file: File | str, **part: Any) -> bytes:
    return b"".join([each async for each in engine.files.open(file, **part)])


async def count(stage: Stage, table: str) -> int:
    [(found,)] = await stage.rows(f"select count(*) from mutirao.{table}")
    return int(found)


async def persons(stage: Stage, *names: str) -> list[int]:
    """Members of the role `author`, which may also start the flow `paper`."""
    await stage.do("insert into mutirao.role (name, made_at) values ('author', now()) on conflict do nothing")
    numbers = []
    for name in names:
        [(number,)] = await stage.rows(
            "insert into mutirao.person (name, made_by, made_at) values (%s, 'test', now()) returning id", name
        )
        await stage.do(
            "insert into mutirao.member (role, person) select id, %s from mutirao.role where name = 'author'", number
        )
        numbers.append(number)
    return numbers


async def refused(code: str, call: Any) -> str:
    with pytest.raises(RequestError) as refusal:
        await call
    assert refusal.value.code == code
    return refusal.value.message


async def sweep(stage: Stage) -> None:
    for _ in range(20):
        [(done,)] = await stage.rows("select (done ->> 'files')::int from mutirao.turn_clock()")
        if not done:
            return


# In and out


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
async def test_what_goes_in_comes_out(stage: Stage, size: int) -> None:
    content = some_bytes(size)
    file = await stage.engine.files.upload(pieces(content, 100_000), "a file", media="text/plain")
    assert file == File(hashlib.sha256(content).hexdigest(), "a file", size, "text/plain")
    assert await whole(stage.engine, file) == content


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 10), (CHUNK - 3, 6), (10, None), (2 * CHUNK + 5, 100), (CHUNK, 0), (2 * CHUNK + 5, None)]
)
async def test_a_part_is_read(stage: Stage, offset: int, length: int | None) -> None:
    content = some_bytes(2 * CHUNK + 5)
    file = await stage.engine.files.upload(content, "a")
    expected = content[offset:] if length is None else content[offset : offset + length]
    assert await whole(stage.engine, file, offset=offset, length=length) == expected


async def test_a_part_outside_of_the_file_is_refused(stage: Stage) -> None:
    file = await stage.engine.files.upload(b"short", "a")
    for part in ({"offset": 6}, {"offset": -1}, {"length": -1}):
        await refused("wrong_call", whole(stage.engine, file, **part))
    await refused("unknown_file", whole(stage.engine, "0" * 64))


async def test_a_large_file_is_never_wholly_in_memory(stage: Stage) -> None:
    size, piece = 200_000_000, some_bytes(1_000_000)

    async def stream() -> AsyncIterator[bytes]:
        for _ in range(size // len(piece)):
            yield piece

    tracemalloc.start()
    try:
        file = await stage.engine.files.upload(stream(), "large")
        digest = hashlib.sha256()
        async for part in stage.engine.files.open(file):
            digest.update(part)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (file.size, file.sha256) == (size, digest.hexdigest())
    assert peak < 10_000_000


async def test_the_same_content_is_kept_once(stage: Stage) -> None:
    content = some_bytes(CHUNK + 7)
    first = await stage.engine.files.upload(content, "first")
    second = await stage.engine.files.upload(content, "second")
    assert (first.sha256, first.name, second.name) == (second.sha256, "first", "second")
    await sweep(stage)
    assert (await count(stage, "file"), await count(stage, "chunk")) == (1, 2)
    assert await whole(stage.engine, second) == content


async def test_files_go_to_disk_and_come_from_it(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(some_bytes(CHUNK * 2))
    file = await stage.engine.files.upload_from(tmp_path / "in.txt")
    assert (file.name, file.media) == ("in.txt", "text/plain")
    await stage.engine.files.download(file, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "in.txt").read_bytes()


# Resuming


async def test_an_upload_is_resumed_by_chunk_number(stage: Stage) -> None:
    files, content = stage.engine.files, some_bytes(3 * CHUNK + 9)
    upload = await files.begin("a", size=len(content), sha256=hashlib.sha256(content).hexdigest())
    await files.put_chunk(upload, 2, content[2 * CHUNK : 3 * CHUNK])
    await files.put_chunk(upload, 0, content[:CHUNK])
    assert "2 chunks up to number 2" in await refused("upload_incomplete", files.finish(upload))
    state = await files.progress(upload)
    assert (state.missing, state.received, state.finished) == ([1, 3], 2 * CHUNK, False)
    await files.put_chunk(upload, 1, b"x" * CHUNK)
    await files.put_chunk(upload, 3, content[3 * CHUNK :])
    assert "was to have the content" in await refused("file_mismatch", files.finish(upload))
    await files.put_chunk(upload, 1, content[CHUNK : 2 * CHUNK])
    file = await files.finish(upload)
    assert await files.finish(upload) == file  # its answer was lost
    assert (await files.progress(upload)).missing == []
    assert await files.read_chunk(file, 3) == content[3 * CHUNK :]


async def test_a_chunk_of_the_wrong_size_or_place_is_refused(stage: Stage) -> None:
    files = stage.engine.files
    upload = await files.begin("a", size=CHUNK + 1)
    for number, content in ((0, b""), (0, b"x" * (CHUNK + 1)), (-1, b"x")):
        await refused("wrong_call", files.put_chunk(upload, number, content))
    await refused("file_mismatch", files.put_chunk(upload, 1, b"xx"))
    await files.put_chunk(upload, 0, b"short")
    await files.put_chunk(upload, 1, b"x")
    await refused("upload_incomplete", files.finish(upload))
    await files.put_chunk(upload, 0, b"y" * CHUNK)
    await files.finish(upload)
    await refused("wrong_call", files.put_chunk(upload, 0, b"z" * CHUNK))


async def test_a_finish_that_was_cut_off_leaves_the_upload_as_it_was(stage: Stage) -> None:
    files, content = stage.engine.files, some_bytes(CHUNK + 1)
    upload = await files.begin("a")
    await files.put_chunk(upload, 0, content[:CHUNK])
    [(seal,)] = await stage.rows("select mutirao.seal_upload(%s)", upload)  # and whoever did it is killed
    await files.put_chunk(upload, 1, content[CHUNK:])
    finish = "select of_content from mutirao.finish_upload(%s, %s, %s)"
    stale = hashlib.sha256(content[:CHUNK]).hexdigest()
    await refused("wrong_call", stage.rows(finish, upload, stale, seal))
    [(again,)] = await stage.rows("select mutirao.seal_upload(%s)", upload)
    await refused("wrong_call", stage.rows(finish, upload, stale, seal))
    assert await stage.rows("select mutirao.seal_upload(%s)", upload) == [(again,)]  # two may finish it at once
    assert (await files.finish(upload)).sha256 == hashlib.sha256(content).hexdigest()


async def test_a_file_larger_than_allowed_is_refused_before_it_is_kept(stage: Stage) -> None:
    files = stage.engine.files
    assert await files.limit() == 2**30
    await stage.engine.settings.set(None, {"file_limit": CHUNK + 10})
    assert f"{CHUNK + 10} are allowed" in await refused("file_too_large", files.begin("a", size=CHUNK + 11))
    upload = await files.begin("a")
    await refused("file_too_large", files.put_chunk(upload, 1, b"x" * 11))
    await refused("file_too_large", files.upload(pieces(some_bytes(10 * CHUNK), CHUNK), "large"))
    await sweep(stage)
    assert await count(stage, "chunk") == 0
    await refused("wrong_call", stage.engine.settings.set(None, {"file_limit": 0}))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\nb", "ä" * 128, "a\x7f"])
async def test_a_file_has_a_plain_name(stage: Stage, name: str) -> None:
    await refused("wrong_type", stage.engine.files.upload(b"x", name))
    with pytest.raises(RequestError, match="plain name"):
        File("0" * 64, name, 1)


async def test_an_upload_belongs_to_whoever_began_it(stage: Stage) -> None:
    one, other = await persons(stage, "clerk_1", "clerk_2")
    files = stage.engine.files
    upload = await files.begin("a", actor=one)
    for call in (files.put_chunk(upload, 0, b"x", actor=other), files.progress(upload, actor=other)):
        await refused("unknown_upload", call)
    await refused("unknown_upload", files.finish(upload, actor=other))
    await refused("unknown_upload", files.abandon(upload, actor=other))
    await files.put_chunk(upload, 0, b"x", actor=one)
    assert (await files.finish(upload, actor=one)).size == 1


# Values


class Letter(Flow):
    body: File | None = None
    answer: File | None = None
    final = "answer is not null"

    @task(when="body is not null")
    def reply(self) -> Change:
        assert self.body is not None
        return {"answer": self.body}


async def test_a_python_flow_has_files(stage: Stage) -> None:
    body = await stage.engine.files.upload(b"Good day", "letter.txt", media="text/plain")
    async with stage.working(Letter):
        number = await stage.engine.start(Letter(body=body))
        found = await stage.comes_to(number)
    assert File(**found.state["answer"]) == body


async def test_a_file_that_is_not_in_the_store_is_refused_wherever_it_comes_in(stage: Stage) -> None:
    await persons(stage)
    await stage.engine.apply(PAPER)
    text = await stage.engine.files.upload(b"text", "t")
    nowhere = File("0" * 64, "t", 4)
    await refused("unknown_file", stage.engine.start_named("paper", [{"text": nowhere}]))
    await refused("unknown_file", stage.engine.start_named("paper", [{"text": File(text.sha256, "t", 5)}]))
    await refused("wrong_type", stage.engine.start_named("paper", [{"text": {"sha256": text.sha256}}]))
    [number] = await stage.engine.start_named("paper", [{"text": text}])
    await refused("unknown_file", stage.engine.set(number, {"text": nowhere}))
    [job] = await stage.engine.jobs(number)
    with pytest.raises(RequestError) as refusal:
        await stage.engine.skip(job.id, {"text": nowhere})
    assert refusal.value.code == "unknown_file"
    [(task_number,)] = await stage.rows("select id from mutirao.task where name = 'print'")
    [(job_number, attempt)] = await stage.rows(
        "select job, attempt from mutirao.claim('ann', array[%s]::int[])", task_number
    )
    told = await stage.rows(
        "select kind, note ->> 'code' from mutirao.turn('ann', array[%s]::bigint[], array[%s]::bigint[], "
        "array[%s]::jsonb[], array[null]::jsonb[], '{}', 0)",
        *(job_number, attempt, Jsonb({"text": {"sha256": "0" * 64, "name": "t", "size": 4, "media": "a/b"}})),
    )
    assert told == [("refused", "unknown_file")]


async def test_only_a_flow_with_files_asks_for_them_at_every_change(stage: Stage) -> None:
    plain = Definition(name="plain", attributes=PAPER.attributes[1:], final="done")
    await persons(stage)
    for flow in (PAPER, plain):
        await stage.engine.apply(flow)
    asks = await stage.rows(
        "select strpos(mutirao.valid_sql(v.id), 'has_files') > 0 from mutirao.version v order by v.id"
    )
    assert asks == [(True,), (False,)]


async def test_a_person_gives_only_files_of_their_own(stage: Stage) -> None:
    one, other = await persons(stage, "clerk_1", "clerk_2")
    await stage.engine.apply(PAPER)
    [number] = await stage.engine.start_named("paper", [{}])
    [job] = await stage.engine.jobs(number)
    of_other = await stage.engine.files.upload(b"somebody else's", "o", actor=other)
    of_one = await stage.engine.files.upload(b"mine", "m", actor=one)
    [(attempt,)] = await stage.rows("select mutirao.select_item(%s, %s)", one, job.id)
    finish = "select outcome from mutirao.finish_item(%s, %s, %s, %s)"

    def change(file: File) -> Jsonb:
        return Jsonb({"text": {"sha256": file.sha256, "name": file.name, "size": file.size, "media": file.media}})

    await refused("unknown_file", stage.rows(finish, one, job.id, attempt, change(of_other)))
    assert await stage.rows(finish, one, job.id, attempt, change(of_one)) == [("done",)]
    assert await stage.engine.files.may_read(one, of_one, number)
    assert not await stage.engine.files.may_read(one, of_other, number)
    assert not await stage.engine.files.may_read(999, of_one, number)


async def test_whoever_may_see_the_instance_may_read_its_files(stage: Stage) -> None:
    [one, stranger] = await persons(stage, "clerk_1", "clerk_2")
    await stage.do("delete from mutirao.member where person = %s", stranger)
    await stage.engine.apply(PAPER)
    early, late = [await stage.engine.files.upload(text, "t") for text in (b"early", b"late")]
    [number] = await stage.engine.start_named("paper", [{"text": early}])
    [elsewhere] = await stage.engine.start_named("paper", [{}])
    await stage.do("insert into mutirao.charge (instance, person) values (%s, %s)", number, one)
    await stage.engine.set(number, {"text": late})
    files = stage.engine.files
    for file in (early, late):  # its trace shows the early one
        assert await files.may_read(one, file, number)
        assert not await files.may_read(stranger, file, number)
        assert not await files.may_read(one, file, elsewhere)


async def test_a_result_that_came_too_late_keeps_only_files_of_its_author(stage: Stage) -> None:
    one, other = await persons(stage, "clerk_1", "clerk_2")
    await stage.engine.apply(PAPER)
    [number] = await stage.engine.start_named("paper", [{}])
    [job] = await stage.engine.jobs(number)
    mine = await stage.engine.files.upload(b"mine", "m", actor=one)
    foreign = await stage.engine.files.upload(b"somebody else's", "f", actor=other)
    for file in (mine, foreign):
        attempt = await stage.engine.worklists.select(one, job.id)
        await stage.engine.worklists.delegate(one, job.id, one)
        await refused("item_moved", stage.engine.worklists.finish(one, job.id, attempt, {"text": file}))
    assert await stage.engine.files.may_read(one, mine, number)
    assert not await stage.engine.files.may_read(one, foreign, number)
    await move_clock(stage.engine, DAY * 3)
    await sweep(stage)
    assert await whole(stage.engine, mine) == b"mine"
    await refused("unknown_file", whole(stage.engine, foreign))
    async with stage.engine.connection() as connection:
        erasure = Erasure(attributes=["text"], may_be_open=True)
        [[(_, why_not)]] = [page async for page in erase(connection, [number], erasure, "test")]
    assert why_not is None
    await an_hour_later(stage)
    await refused("unknown_file", whole(stage.engine, mine))


# Sweeping


async def test_an_upload_that_nobody_finishes_goes_after_a_day(stage: Stage) -> None:
    files = stage.engine.files
    old = await files.begin("old")
    await files.put_chunk(old, 0, b"x" * CHUNK)
    slow = await files.begin("slow")
    await move_clock(stage.engine, DAY * 0.9)
    await files.put_chunk(slow, 0, b"y" * CHUNK)
    await move_clock(stage.engine, DAY * 0.2)
    await sweep(stage)
    await refused("unknown_upload", files.put_chunk(old, 1, b"x"))
    assert await count(stage, "chunk") == 1
    assert (await files.finish(slow)).size == CHUNK


async def test_a_file_goes_when_no_instance_refers_to_it(stage: Stage) -> None:
    await persons(stage)
    await stage.engine.apply(PAPER)
    used, unused = [await stage.engine.files.upload(text, "t") for text in (b"used", b"unused")]
    [number] = await stage.engine.start_named("paper", [{"text": used}])
    await stage.engine.set(number, {"text": None})  # the trace still shows it
    await move_clock(stage.engine, DAY)
    await refused("unknown_file", stage.engine.set(number, {"text": unused}))  # too late, though it is still there
    assert await whole(stage.engine, unused) == b"unused"
    await move_clock(stage.engine, DAY)
    await sweep(stage)
    await refused("unknown_file", whole(stage.engine, unused))
    assert await whole(stage.engine, used) == b"used"
    await stage.engine.set(number, {"text": used})
    await stage.engine.cancel(number)
    await stage.do('select mutirao.drop_instances(\'{"flow": "paper"}\')')
    await sweep(stage)
    assert await whole(stage.engine, used) == b"used"
    await move_clock(stage.engine, DAY * 2)
    await sweep(stage)
    assert [await count(stage, table) for table in ("file", "chunk", "file_use", "upload", "discarded")] == [0] * 5


async def test_an_unused_file_is_fresh_again_when_it_is_uploaded_again(stage: Stage) -> None:
    await persons(stage)
    await stage.engine.apply(PAPER)
    await stage.engine.files.upload(b"text", "t")
    await move_clock(stage.engine, DAY)
    again = await stage.engine.files.upload(b"text", "t")
    await move_clock(stage.engine, DAY / 2)
    await sweep(stage)
    await stage.engine.start_named("paper", [{"text": again}])


async def test_what_waits_in_a_parked_job_is_kept(stage: Stage) -> None:
    await persons(stage)
    flow = Definition(
        name="two",
        attributes=(Attribute("text", "file"), Attribute("other", "text")),
        tasks=(Task(name="a", when="true", fires="once"), Task(name="b", when="true", fires="once")),
        final="text is not null",
    )
    await stage.engine.apply(flow)
    [number] = await stage.engine.start_named("two", [{}])
    text = await stage.engine.files.upload(b"text", "t")
    value = {"sha256": text.sha256, "name": "t", "size": 4, "media": "text/plain"}
    [(first,), (second,)] = await stage.rows("select id from mutirao.task where name in ('a', 'b') order by name")
    [(job, attempt)] = await stage.rows("select job, attempt from mutirao.claim('ann', array[%s]::int[])", first)
    assert await stage.rows("select mutirao.complete(%s, %s, %s)", job, attempt, Jsonb({"text": value})) == [
        ("parked",)
    ]
    await move_clock(stage.engine, DAY * 3)
    await sweep(stage)
    [(job, attempt)] = await stage.rows("select job, attempt from mutirao.claim('ann', array[%s]::int[])", second)
    await stage.rows("select mutirao.complete(%s, %s, '{}')", job, attempt)
    assert (await stage.engine.instance(number)).status == "closed.completed"
    assert await whole(stage.engine, text) == b"text"


async def an_hour_later(stage: Stage) -> None:
    await move_clock(stage.engine, timedelta(minutes=61))
    await sweep(stage)


async def test_erasing_leaves_what_another_person_has_uploaded(stage: Stage) -> None:
    one, other = await persons(stage, "clerk_1", "clerk_2")
    await stage.engine.apply(PAPER)
    files, worklists = stage.engine.files, stage.engine.worklists
    mine = await files.upload(b"the form", "mine", actor=one)
    [number] = await stage.engine.start_named("paper", [{}])
    [job] = await stage.engine.jobs(number)
    await worklists.finish(one, job.id, await worklists.select(one, job.id), {"text": mine})
    theirs = await files.upload(b"the form", "theirs", actor=other)
    await stage.engine.cancel(number)
    await stage.rows("select mutirao.erase(array[%s]::bigint[], how => 'drop')", number)
    await an_hour_later(stage)
    [number] = await stage.engine.start_named("paper", [{}])
    [job] = await stage.engine.jobs(number)
    await refused("unknown_file", worklists.finish(one, job.id, await worklists.select(one, job.id), {"text": mine}))
    await worklists.give_back(one, job.id)
    await worklists.finish(other, job.id, await worklists.select(other, job.id), {"text": theirs})
    await move_clock(stage.engine, DAY * 3)
    await sweep(stage)
    assert await whole(stage.engine, theirs) == b"the form"


@pytest.mark.parametrize("how", ["blank", "drop"])
async def test_erasing_leaves_no_file_of_the_person(stage: Stage, how: Any) -> None:
    await persons(stage)
    await stage.engine.apply(PAPER)
    files = stage.engine.files
    mine, shared = [await files.upload(text, "cv of clerk_7.pdf") for text in (b"mine", b"shared")]
    [one, other] = await stage.engine.start_named("paper", [{"text": mine}, {"text": shared}])
    await stage.engine.set(one, {"text": shared})
    await stage.engine.cancel(one)
    erasure = Erasure(value="clerk_7" if how == "blank" else None, attributes=["text"], how=how)
    async with stage.engine.connection() as connection:
        [[(_, why_not)]] = [page async for page in erase(connection, [one], erasure, "test")]
    assert why_not is None
    assert (
        await stage.rows(
            "select from mutirao.upload u join mutirao.file f on f.id = u.file where f.sha256 = %s", mine.sha256
        )
        == []
    )
    await refused("unknown_file", stage.engine.set(other, {"text": mine}))
    await an_hour_later(stage)
    await refused("unknown_file", whole(stage.engine, mine))
    assert await whole(stage.engine, shared) == b"shared"  # another instance has it
    assert await count(stage, "chunk") == 1
    assert not await stage.rows("select from mutirao.file_use where instance = %s", one)
    assert (await stage.engine.instance(other)).state["text"]["name"] == "cv of clerk_7.pdf"
