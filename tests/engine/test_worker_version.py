"""A worker beside other versions: of its flow, and of the schema."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from worker_stage import Stage, fresh_stage  # noqa: F401 gives the fixture `stage`

from mutirao import Change, Flow, OperatorError, task, work
from mutirao.database.connection import connect
from mutirao.database.engine import Engine
from mutirao.database.migrate import Schema, schema, upgrade


class Old(Flow):
    name = "order"
    state: str = "new"
    final = "state = 'sent'"

    @task(when="state = 'new'")
    async def send(self) -> Change:
        return {"state": "sent"}


class New(Flow):
    name = "order"
    state: str = "new"
    final = "state = 'sent'"

    @task(when="state = 'new'")
    async def pack(self) -> Change:
        return {"state": "packed"}

    @task(when="state = 'packed'")
    async def send(self) -> Change:
        return {"state": "sent"}


async def version(stage: Stage) -> int:
    [flow] = await stage.engine.flows("order")
    return flow.version


async def test_worker_puts_its_flow_in_place(stage: Stage) -> None:
    async with stage.working(Old):
        assert await version(stage) == 1
        await stage.comes_to(await stage.engine.start(Old()))


async def test_old_worker_that_is_restarted_does_not_take_the_flow_back(stage: Stage) -> None:
    async with stage.working(Old):
        pass
    async with stage.working(New), stage.working(Old, name="old"):
        assert await version(stage) == 2
        started = await stage.engine.start(New())
        assert (await stage.comes_to(started)).version == 2


async def test_instances_of_both_versions_are_done_by_both_workers(stage: Stage) -> None:
    await stage.engine.apply(Old)
    before = await stage.engine.start(Old())
    async with stage.working(New), stage.working(Old, name="old"):
        after = await stage.engine.start(New())
        assert (await stage.comes_to(before)).version == 1
        assert (await stage.comes_to(after)).version == 2
    assert [row.task for row in await stage.engine.trace(before)] == [None, "send"]
    assert [row.task for row in await stage.engine.trace(after)] == [None, "pack", "send"]


async def test_worker_says_which_jobs_of_older_versions_it_cannot_do(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    class Parcel(Flow):
        packed: bool = False
        sent: bool = False
        final = "sent"

        @task(when="not packed")
        async def pack(self) -> Change:
            return {"packed": True}

    await stage.engine.apply(Parcel)
    await stage.engine.start(Parcel())
    old = Parcel

    class Parcel(Flow):  # type: ignore[no-redef]
        label: str | None = None
        sent: bool = False
        final = "sent"

        @task(when="not sent")
        async def send(self) -> Change:
            return {"sent": True}

    await stage.engine.apply(Parcel)
    async with stage.working(Parcel):
        await stage.comes_to(await stage.engine.start(Parcel()))
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert 'jobs of task "pack" wait: 1 of flow parcel, version 1' in warning
    caplog.clear()
    async with stage.working(Parcel, *old.handlers.values()):
        pass
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_no_worker_warns_of_what_people_do(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    class Letter(Flow):
        answer: str | None = None
        sent: bool = False
        final = "sent"
        reply = work("clerk", when="answer is null", outputs=("answer",))

        @task(when="answer is not null")
        async def send(self) -> Change:
            return {"sent": True}

    await stage.engine.roles.add(None, "clerk")
    await stage.engine.apply(Letter)
    await stage.engine.start(Letter())
    async with stage.working(Letter):
        await stage.comes_to(await stage.engine.start(Letter(answer="yes")))
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_what_an_older_version_lacks_is_told_with_the_version(stage: Stage) -> None:
    class Note(Flow):
        done: bool = False
        final = "done"

        @task(when="not done", retries=0)
        async def write(self) -> Change:
            return {"label": "new", "done": True}

    await stage.engine.apply(Note)
    started = await stage.engine.start(Note())

    class Later(Note):
        name = "note"
        label: str | None = None

    await stage.engine.apply(Later)
    async with stage.working(Later):
        found = await stage.comes_to(started, "open.exception")
    assert found.reasons is not None
    assert found.reasons[0]["error"].startswith(
        'version 1 of the flow, which this instance keeps, has no attribute "label"'
    )


# ---------------------------------------------------------------------------------------------------- of the schema itself


async def refuse(url: str) -> OperatorError:
    with pytest.raises(OperatorError) as refusal:
        async with Engine(url, upgrade=False):
            pass
    return refusal.value


async def test_worker_newer_than_the_schema_is_refused(empty_database_url: str) -> None:
    async with await connect(empty_database_url) as connection:
        await upgrade(connection, Schema(schema().migrations[:-1], replace(schema().functions, sql="")))
    error = await refuse(empty_database_url)
    assert error.code == "schema_too_old"
    assert "mutirao db upgrade" in str(error)
    assert "\n" not in str(error)


async def test_worker_older_than_the_schema_is_refused(stage: Stage, database_url: str) -> None:
    await stage.do("insert into mutirao.migration (number, name, checksum) values (9999, 'from_the_future', '')")
    error = await refuse(database_url)
    assert error.code == "schema_too_new"
    assert "9999_from_the_future" in str(error)
    assert "\n" not in str(error)


FLOW = """
from mutirao import Change, Flow, task

class Hello(Flow):
    said: bool = False
    final = "said"

    @task(when="not said")
    async def say(self) -> Change:
        return {"said": True}
"""


async def test_command_tells_it_in_one_line(stage: Stage, database_url: str, tmp_path: Path) -> None:
    await stage.do("insert into mutirao.migration (number, name, checksum) values (9999, 'from_the_future', '')")
    file = tmp_path / "hello.py"
    file.write_text(FLOW)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mutirao", "worker", f"{file}:Hello", "--database", database_url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode != 0
    assert len(said.decode().splitlines()) == 1
    assert "schema_too_new" in said.decode()
