"""A worker is killed while an application runs: its programs die with it, and another worker does the job, once."""

import os
import sys
from pathlib import Path
from signal import SIGKILL

import pytest
from worker_process import worker_process
from worker_stage import Stage, fresh_stage, until  # noqa: F401 gives the fixture `stage`

from mutirao.model import Application, Attribute, Definition, Task

FLOW = Definition(
    name="printing",
    attributes=(Attribute("done", "boolean", default=False),),
    tasks=(Task(name="print", when="not done", application="Printer"),),
    final="done",
)


def write(script: Path, *lines: str) -> None:
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    script.chmod(0o755)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_worker_killed_while_an_application_runs(stage: Stage, database_url: str, tmp_path: Path) -> None:
    script, began = tmp_path / "printer", tmp_path / "began"
    # With so many files its folder takes longer to go than the program to die.
    write(
        script,
        "seq 20000 | xargs touch",
        "sleep 1000 &",
        f'echo "$$ $! $(pwd)" > {began}.new; mv {began}.new {began}; wait',
    )
    await stage.engine.library.put(Application(name="Printer", filename=str(script)))
    await stage.engine.apply(FLOW)
    [number] = await stage.engine.start_named("printing", [{}])
    async with worker_process(database_url, applications=True) as child:

        async def words() -> list[str] | None:
            return began.read_text().split() if began.exists() else None

        program, left, folder = await until(words)
        child.signal(SIGKILL)
        assert await child.ends() == -SIGKILL

    async def all_are_gone() -> bool:
        return not is_alive(int(program)) and not is_alive(int(left)) and not Path(folder).exists()

    await until(all_are_gone)
    write(script, "echo '{\"done\": true}' > output.json")
    await stage.advance(minutes=5)
    async with stage.working(applications=True):
        await stage.comes_to(number)
    assert await stage.kinds(number) == ["start", "finish"]
