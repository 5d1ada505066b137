"""SIGTERM: a worker finishes what runs and gives back the rest at once; a second one ends it at once."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from signal import SIGTERM

import pytest
from worker_flows import Waiting
from worker_process import make_payments, worker_process
from worker_stage import Stage, stage_on, until


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with stage_on(database_url) as made:
        await make_payments(made)
        await made.engine.apply(Waiting)
        yield made


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


async def statuses(stage: Stage) -> list[str]:
    return [job.status for job in await stage.engine.jobs()]


async def test_what_runs_is_finished_and_what_has_not_begun_is_given_back(
    stage: Stage, database_url: str, pipe: Path
) -> None:
    first, *others = await stage.engine.start_many([Waiting(kind="blocking") for _ in range(5)])
    async with worker_process(database_url, gate=str(pipe), threads=1) as child:
        await child.says("reached")
        await until(lambda: some_wait_behind_it(stage))
        await child.is_told_to_stop()

        async def only_the_first_is_left() -> bool:
            return await statuses(stage) == ["running", "ready", "ready", "ready", "ready"]

        await until(only_the_first_is_left)
        assert child.is_alive
        pipe.write_bytes(b"go on")
        assert await child.ends() == 0
    assert (await stage.engine.instance(first)).status == "closed.completed"
    assert [await stage.kinds(each) for each in others] == [["start"]] * 4
    assert await statuses(stage) == ["ready"] * 4


async def some_wait_behind_it(stage: Stage) -> bool:
    return (await statuses(stage)).count("running") > 1


@pytest.mark.parametrize("kind", ["async", "transactional"])
async def test_async_job_may_finish(stage: Stage, database_url: str, tmp_path: Path, kind: str) -> None:
    gate = tmp_path / "gate"
    started = await stage.engine.start(Waiting(kind=kind))
    async with worker_process(database_url, gate=str(gate)) as child:
        await child.says("reached")
        await child.is_told_to_stop()
        later = await stage.engine.start(Waiting(kind=kind))
        gate.touch()
        assert await child.ends() == 0
    assert (await stage.engine.instance(started)).status == "closed.completed"
    assert await stage.kinds(later) == ["start"]
    assert await statuses(stage) == ["ready"]


@pytest.mark.parametrize("kind", ["async", "transactional", "blocking"])
async def test_second_signal_ends_it_at_once_and_gives_everything_back(
    stage: Stage, database_url: str, tmp_path: Path, pipe: Path, kind: str
) -> None:
    never = pipe if kind == "blocking" else tmp_path / "never"
    started = await stage.engine.start(Waiting(kind=kind))
    async with worker_process(database_url, gate=str(never)) as child:
        await child.says("reached")
        await child.is_told_to_stop()
        child.signal(SIGTERM)
        assert await child.ends() == 0
    [job] = await stage.engine.jobs(started)
    assert (job.status, job.worker, job.failures) == ("ready", None, 0)
    async with stage.working(Waiting):
        await stage.comes_to(started)


async def test_idle_worker_ends_at_the_first_signal(stage: Stage, database_url: str) -> None:
    await stage.engine.apply(Waiting)
    async with worker_process(database_url) as child:
        await child.says("ready")
        await child.is_told_to_stop()
        assert await child.ends() == 0
