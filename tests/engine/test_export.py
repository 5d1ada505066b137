"""Finished instances to files: all of them once, whole files only, and nothing dropped that is not on the disk."""

import asyncio
import gzip
import json
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from mutirao.database import export as module
from mutirao.database.engine import Engine
from mutirao.database.export import Exported, ExportOptions, Format
from mutirao.database.part import Part
from mutirao.errors import MutiraoError, OperatorError, RequestError
from mutirao.model import Attribute, Definition, Task
from mutirao.testing import move_clock

NOTE = Definition(
    name="note",
    attributes=(
        Attribute("stage", "text"),
        Attribute("due", "date"),
        Attribute("price", "number"),
        Attribute("pages", "integer"),
        Attribute("lines", "json"),
        Attribute("kept_for", "text"),
    ),
    tasks=(Task(name="write", when="stage = 'new'"),),
    final="stage = 'done'",
)


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Engine]:
    async with Engine(database_url, upgrade=False, name="test") as engine:
        await engine.apply(NOTE)
        yield engine


async def finish(engine: Engine, number: int, **state: Any) -> list[int]:
    return await engine.start_named("note", [{"stage": "done", **state}] * number)


async def write(engine: Engine, folder: Path, *, form: Format = "jsonl", **more: Any) -> Exported:
    return await engine.export(ExportOptions(flow="note", folder=folder, format=form, **more))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text("utf-8").splitlines()]


async def closed(engine: Engine) -> int:
    async with engine.connection() as connection:
        row = await (await connection.execute("select count(*) from mutirao.closed")).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def parts_of(monkeypatch: pytest.MonkeyPatch, size: int) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(module, "PART", size)
        yield


async def test_a_line_has_the_state_and_the_whole_trace(engine: Engine, tmp_path: Path) -> None:
    [instance] = await engine.start_named("note", [{"stage": "new", "price": 12}])
    await engine.set(instance, {"pages": 3}, reason="counted")
    [job] = await engine.jobs(instance)
    await engine.skip(job.id, {"stage": "done"})
    done = await write(engine, tmp_path / "out")
    assert (done.instances, done.dropped, len(done.files)) == (1, 0, 1)
    [line] = lines(tmp_path / "out")
    assert (line["instance"], line["flow"], line["version"], line["status"]) == (
        instance,
        "note",
        1,
        "closed.completed",
    )
    assert line["state"]["pages"] == 3
    assert [row["kind"] for row in line["trace"]] == ["start", "set", "skip"]
    assert (line["trace"][0]["fired"], line["trace"][1]["note"]) == (["write"], {"reason": "counted"})
    assert line["trace"][2]["task"] == "write"


async def test_what_is_in_a_file_is_not_written_again(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await finish(engine, 7)
    open_one = await engine.start_named("note", [{"stage": "new"}])
    with parts_of(monkeypatch, 3):
        done = await write(engine, tmp_path)
    assert (done.instances, len(done.files)) == (7, 3)
    assert (await write(engine, tmp_path)).files == []
    await engine.cancel(open_one[0])
    assert (await write(engine, tmp_path)).instances == 1
    assert [line["instance"] for line in lines(tmp_path)] == [*first, *open_one]
    assert await closed(engine) == 8


async def test_with_drop_they_are_gone_when_they_are_in_a_file(engine: Engine, tmp_path: Path) -> None:
    await finish(engine, 4)
    await write(engine, tmp_path)
    await finish(engine, 2)
    done = await write(engine, tmp_path, form="jsonl.gz", drop=True)
    assert (done.instances, done.dropped) == (2, 6)
    assert await closed(engine) == 0
    assert len(gzip.decompress(done.files[0].read_bytes()).splitlines()) == 2
    async with engine.connection() as connection:
        for table in ("trace", "exported"):
            assert not await (await connection.execute(f"select from mutirao.{table}".encode())).fetchall()


async def test_only_what_closed_before_a_time(engine: Engine, tmp_path: Path) -> None:
    old = await finish(engine, 2)
    await move_clock(engine, timedelta(days=10))
    await finish(engine, 3)
    before = (await engine.instance(old[0])).started_at + timedelta(days=1)
    assert await engine.count_exportable("note", before) == 2
    done = await write(engine, tmp_path, closed_before=before, drop=True)
    assert (done.instances, done.dropped, await closed(engine)) == (2, 2, 3)


async def test_retention_with_export_drops_only_what_is_in_a_file(engine: Engine, tmp_path: Path) -> None:
    await finish(engine, 3)
    await engine.keep("note", timedelta(days=5), action="export")
    await move_clock(engine, timedelta(days=6))

    async def drop() -> int:
        await move_clock(engine, timedelta(seconds=2))
        async with engine.connection() as connection:
            row = await (await connection.execute("select done from mutirao.turn_clock(10, 'retention')")).fetchone()
        return int(row[0]["retention"]) if row else 0

    assert (await drop(), await closed(engine)) == (0, 3)
    await write(engine, tmp_path)
    await finish(engine, 1)
    assert (await drop(), await closed(engine)) == (3, 1)


async def test_parquet_has_typed_attributes_and_the_trace(engine: Engine, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    state = {"due": date(2031, 12, 24), "price": 12, "pages": 3, "lines": ["a"]}
    instances = await finish(engine, 3, **state)
    [file] = (await write(engine, tmp_path, form="parquet")).files
    rows = parquet.read_table(file).to_pylist()
    assert [row["instance"] for row in rows] == instances
    assert rows[0]["state"] == {
        "stage": "done", "due": date(2031, 12, 24), "price": 12.0, "pages": 3, "lines": '["a"]', "kept_for": None,
    }  # fmt: skip
    assert json.loads(rows[0]["state_json"])["lines"] == ["a"]
    assert [row["kind"] for row in rows[0]["trace"]] == ["start"]


async def test_a_full_disk_leaves_no_half_file_and_drops_nothing(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await finish(engine, 2)
    await finish(engine, 4, kept_for="x" * 100_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # No file may be larger: what a full disk does, without one.
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        with parts_of(monkeypatch, 2), pytest.raises(OperatorError) as refusal:
            await write(engine, tmp_path, drop=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert refusal.value.code == "disk_full"
    assert "\n" not in str(refusal.value)
    [whole] = tmp_path.iterdir()  # the part that fitted
    assert len(whole.read_text("utf-8").splitlines()) == 2
    assert await closed(engine) == 4
    done = await write(engine, tmp_path, drop=True)
    assert (done.instances, await closed(engine)) == (4, 0)


async def is_locked(engine: Engine) -> bool:
    async with engine.connection() as connection:
        mine = "select database from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"
        return bool(await (await connection.execute(mine.encode())).fetchall())


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from mutirao.database import export as module
from mutirao.database.engine import Engine
module.PART = 3
url, folder, moment, count = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def die(*_):
    global count
    count -= 1
    if count == 0:
        os.kill(os.getpid(), signal.SIGKILL)

ours = getattr(module, moment)
if moment == "query":
    setattr(module, moment, lambda name: (die(), ours(name))[1])
else:
    setattr(module, moment, lambda *given: (ours(*given), die())[0])

async def main():
    async with Engine(url, upgrade=False) as engine:
        await engine.export(module.ExportOptions(flow="note", folder=folder, drop=True))

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", [*(("query", count) for count in (6, 9, 11, 12, 14, 16)), ("_sync_folder", 2)])
async def test_an_export_killed_at_any_moment_goes_on_and_loses_nothing(
    engine: Engine, tmp_path: Path, moment: tuple[str, int]
) -> None:
    instances = await finish(engine, 8)
    words = [sys.executable, "-c", KILLED, engine.url, str(tmp_path), *map(str, moment)]
    killed = await asyncio.to_thread(subprocess.run, words, check=False)
    assert killed.returncode == -signal.SIGKILL
    # The server notices the dead one's lock only when it meets its closed connection.
    while await is_locked(engine):
        pass
    await write(engine, tmp_path, drop=True)
    assert sorted(line["instance"] for line in lines(tmp_path)) == instances
    assert await closed(engine) == 0


async def test_two_exports_of_a_flow_do_not_meet(engine: Engine, tmp_path: Path) -> None:
    await finish(engine, 1)
    async with engine.connection() as connection:
        await connection.execute("select pg_advisory_lock(hashtextextended('mutirao.export.note', 0))")
        with pytest.raises(RequestError, match="export_running"):
            await write(engine, tmp_path)
        await connection.execute("select pg_advisory_unlock_all()")


async def test_a_file_of_another_database_is_refused_and_left_alone(engine: Engine, tmp_path: Path) -> None:
    await finish(engine, 1)
    for name in ("note-000001.jsonl", "note-000002.jsonl.unfinished"):
        (tmp_path / name).write_text("of another database")
        with pytest.raises(RequestError, match="file_exists"):
            await write(engine, tmp_path, drop=True)
        assert (tmp_path / name).read_text() == "of another database"
        assert await closed(engine) == 1
    assert len(list(tmp_path.iterdir())) == 2


async def begin(engine: Engine, folder: Path) -> Path:
    """What a copy that was restored from a backup believes: that this file was begun, and never finished."""
    async with engine.connection() as connection:
        said = "select file from mutirao.begin_export('note', %s, 'jsonl')"
        row = await (await connection.execute(said, [str(folder)])).fetchone()
    assert row is not None
    return Path(row[0])


async def test_a_copy_does_not_remove_what_its_original_finished(engine: Engine, tmp_path: Path) -> None:
    file = await begin(engine, tmp_path)
    file.write_text("the only place where these instances are")
    await finish(engine, 2)
    assert (await write(engine, tmp_path)).instances == 2
    assert file.read_text() == "the only place where these instances are"


async def test_a_copy_does_not_remove_what_its_original_is_writing(engine: Engine, tmp_path: Path) -> None:
    file = await begin(engine, tmp_path)
    part = Part.begin(file)
    part.raw.write(b"a line\n")
    await finish(engine, 2)
    assert (await write(engine, tmp_path)).instances == 2
    part.finish()
    part.close()
    assert file.read_bytes() == b"a line\n"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"flow": "nowhere"}, "unknown_flow"),
        ({"folder": Path("/dev/null")}, "wrong_call"),
        ({"folder": Path("/proc/nothing/here")}, "export_failed"),
    ],
)
async def test_what_cannot_be_exported_is_refused(
    engine: Engine, tmp_path: Path, options: dict[str, Any], code: str
) -> None:
    await finish(engine, 1)
    with pytest.raises(MutiraoError) as refusal:
        await engine.export(ExportOptions(**{"flow": "note", "folder": tmp_path, **options}))
    assert refusal.value.code == code
