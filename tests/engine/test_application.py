"""Tasks that an executable does: what it is given, what it gives back, and how it ends."""

import os
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from worker_stage import Stage, stage_on, until

from mutirao import File
from mutirao.model import Application, Attribute, Definition, Offer, Task

ATTRIBUTES = (
    Attribute("text", "text"),
    Attribute("amount", "number"),
    Attribute("flag", "boolean"),
    Attribute("extra", "json"),
    Attribute("draft", "file", filename="/home/author/draft.txt"),
    Attribute("report", "file", filename="report.txt"),
    Attribute("given", "file"),
    Attribute("result", "json"),
    Attribute("done", "boolean", default=False),
)
DONE = "echo '{\"done\": true}' > output.json"


class Shop:
    """A stage with one application, whose executable is a script of the test's own."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self.folder = folder
        self.script = folder / "tool"

    def write(self, *lines: str, program: str = "/bin/sh") -> None:
        self.script.write_text("\n".join([f"#!{program}", *lines, ""]))
        self.script.chmod(0o755)

    async def put(self, **more: Any) -> None:
        await self.stage.engine.library.put(Application(**{"name": "Tool", "filename": str(self.script), **more}))

    async def define(self, **more: Any) -> None:
        """A flow whose one task the application does; it tries once."""
        options = {"retries": 0, "application": "Tool", **more}
        task = Task(name="make", when="not done", **options)
        await self.stage.engine.apply(Definition(name="order", attributes=ATTRIBUTES, tasks=(task,), final="done"))

    async def start(self, **state: Any) -> int:
        [number] = await self.stage.engine.start_named("order", [state])
        return number

    def working(self, **options: Any) -> Any:
        return self.stage.working(applications=True, **options)

    async def does(self, **state: Any) -> dict[str, Any]:
        """The state of an instance once the application has done its job."""
        async with self.working():
            return (await self.stage.comes_to(await self.start(**state))).state

    async def fails(self, **state: Any) -> dict[str, Any]:
        """The error of a job for which the application did no good."""
        async with self.working():
            job = await self.stage.job_comes_to(await self.start(**state), "failed")
        assert job.error is not None
        return job.error


@pytest.fixture
async def shop(database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    async with stage_on(database_url) as stage:
        made = Shop(stage, tmp_path)
        made.write(DONE)
        await made.put()
        yield made


async def content(shop: Shop, value: dict[str, Any]) -> bytes:
    return b"".join([part async for part in shop.stage.engine.files.open(File(**value))])


# In and out


async def test_it_is_given_its_inputs_as_files_and_environment(shop: Shop) -> None:
    shop.write(
        "cat input.json > report.txt",
        'echo "$IN_TEXT|$IN_AMOUNT|$IN_FLAG|$IN_EXTRA|$IN_DONE" >> report.txt',
        'echo "$MUTIRAO_FLOW $MUTIRAO_TASK $MUTIRAO_INSTANCE $MUTIRAO_JOB $MUTIRAO_ATTEMPT" >> report.txt',
        "cat draft.txt >> report.txt",
        DONE,
    )
    await shop.define(inputs=("text", "amount", "flag", "extra", "draft"))
    draft = await shop.stage.engine.files.upload(b"a draft", "whatever.doc")
    state = await shop.does(text="Olá; $(rm -rf /)", amount=10, flag=True, extra=[1.5], draft=draft)
    given, plain, numbers, text = (await content(shop, state["report"])).decode().split("\n")
    assert '"extra":[1.5]' in given
    assert '"done"' not in given
    assert plain == "Olá; $(rm -rf /)|10|true||"
    assert numbers.split()[:2] == ["order", "make"]
    assert len(numbers.split()) == 5
    assert text == "a draft"
    assert (state["report"]["name"], state["report"]["media"]) == ("report.txt", "text/plain")


async def test_numbers_stay_exact(shop: Shop) -> None:
    shop.write('echo "{\\"done\\": true, \\"amount\\": $IN_AMOUNT}" > output.json')
    await shop.define()
    state = await shop.does(amount=12345678901234567890123)
    assert state["amount"] == 12345678901234567890123


async def test_output_json_may_name_a_file(shop: Shop) -> None:
    shop.write("printf new > other.txt", 'echo \'{"done": true, "draft": "other.txt"}\' > output.json')
    await shop.define(outputs=("draft", "done"))
    state = await shop.does()
    assert await content(shop, state["draft"]) == b"new"


async def test_an_input_that_was_not_changed_is_no_output(shop: Shop) -> None:
    draft = await shop.stage.engine.files.upload(b"a draft", "d.txt")
    await shop.define(outputs=("draft", "done"))
    assert (await shop.does(draft=draft))["draft"]["name"] == "d.txt"
    shop.write("printf more >> draft.txt", DONE)
    assert await content(shop, (await shop.does(draft=draft))["draft"]) == b"a draftmore"


@pytest.mark.parametrize(
    ("lines", "code", "says"),
    [
        (['echo \'{"done": true, "text": "x"}\' > output.json'], "wrong_output", '"text", and the task writes'),
        (["echo no > output.json"], "wrong_output", "no JSON object"),
        (["echo '[1]' > output.json"], "wrong_output", "no JSON object"),
        (['echo \'{"result": "a\\u0000b"}\' > output.json'], "wrong_output", "U+0000"),
        (['echo \'{"report": "../secret"}\' > output.json'], "wrong_output", "a plain name"),
        (['echo \'{"report": "nowhere.txt"}\' > output.json'], "wrong_output", "which is not there"),
        (['echo \'{"done": "maybe"}\' > output.json'], "wrong_type", "boolean"),
    ],
)
async def test_what_it_may_not_write_fails_the_attempt(shop: Shop, lines: list[str], code: str, says: str) -> None:
    shop.write(*lines)
    await shop.define(outputs=("report", "result", "done"))
    error = await shop.fails()
    assert error["code"] == code
    assert says in error["error"]


async def test_a_link_is_no_output(shop: Shop) -> None:
    (shop.folder / "secret").write_text("secret")
    shop.write(f"ln -s {shop.folder}/secret report.txt", DONE)
    await shop.define()
    assert (await shop.does())["report"] is None


async def test_a_file_that_is_too_large_fails_the_attempt(shop: Shop) -> None:
    await shop.stage.engine.settings.set(None, {"file_limit": 1_000})
    shop.write("head -c 2000 /dev/zero > report.txt", DONE)
    await shop.define()
    assert (await shop.fails())["code"] == "file_too_large"


# Where it runs


async def test_it_runs_in_a_folder_of_its_own_that_goes_afterwards(shop: Shop) -> None:
    seen = shop.folder / "seen"
    shop.write(f'pwd > {seen}; stat -c %a . >> {seen}; echo "$HOME" >> {seen}', DONE)
    await shop.define()
    await shop.does()
    folder, mode, home = seen.read_text().split()
    assert mode == "700"
    assert Path(home).parent == Path(folder).parent != Path(folder)
    assert not Path(folder).parent.exists()


async def test_what_somebody_uploads_is_not_obeyed_as_a_setting(shop: Shop) -> None:
    """Neither in its home, which is empty, nor where it runs."""
    shop.write('ls -A "$HOME" "$TMPDIR" > ../seen; ls -A >> ../seen; cp ../seen report.txt', DONE)
    await shop.define(inputs=("given",))
    file = await shop.stage.engine.files.upload(b"url = evil", ".curlrc")
    seen = (await content(shop, (await shop.does(given=file))["report"])).decode()
    assert [line for line in seen.split() if "curlrc" in line] == ["_.curlrc"]
    assert [line for line in seen.split() if line.startswith(".")] == []


async def test_more_than_an_environment_takes_fails_the_attempt(shop: Shop) -> None:
    attributes = tuple(Attribute(f"text_{number}", "text") for number in range(40))
    task = Task(name="make", when="not done", retries=0, application="Tool")
    await shop.stage.engine.apply(
        Definition(name="order", attributes=(*ATTRIBUTES, *attributes), tasks=(task,), final="done")
    )
    await shop.stage.engine.limit_size("order", state=10_000_000, change=10_000_000)
    error = await shop.fails(**{each.name: "x" * 99_000 for each in attributes})
    assert error["code"] == "environment_too_large"
    assert "name fewer inputs" in error["error"]


async def test_it_knows_nothing_of_the_workers_secrets(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTIRAO_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    shop.write("env > report.txt; ls -l /proc/$$/fd >> report.txt", DONE)
    await shop.define()
    seen = (await content(shop, (await shop.does())["report"])).decode()
    assert "secret" not in seen
    assert "socket" not in seen


async def test_no_shell_reads_its_filename(shop: Shop) -> None:
    odd = shop.folder / "my tool; touch x"
    shop.script.rename(odd)
    await shop.put(filename=str(odd))
    await shop.define()
    assert (await shop.does())["done"]
    assert not (shop.folder / "x").exists()


async def test_only_programs_of_the_named_folder_are_run(shop: Shop, tmp_path: Path) -> None:
    inside = tmp_path / "programs"
    inside.mkdir()
    await shop.define()
    async with shop.working(programs=inside):
        job = await shop.stage.job_comes_to(await shop.start(), "failed")
        assert job.error is not None
        assert job.error["code"] == "application_missing"
        shop.script.rename(inside / "tool")
        await shop.put(filename="tool")
        assert await shop.stage.comes_to(await shop.start())


async def test_a_program_that_is_not_there_fails_the_attempt(shop: Shop) -> None:
    await shop.put(filename="/nowhere/tool")
    await shop.define()
    error = await shop.fails()
    assert error["code"] == "application_missing"
    assert '"/nowhere/tool"' in error["error"]


async def test_one_that_cannot_be_executed_fails_the_attempt(shop: Shop) -> None:
    shop.write(DONE, program="/nowhere/sh")
    await shop.define()
    error = await shop.fails()
    assert (error["code"], "could not be run" in error["error"]) == ("application_failed", True)


# How it ends


async def test_another_status_than_0_is_a_failure_with_its_last_words(shop: Shop) -> None:
    shop.write("echo working; echo 'no paper' >&2; exit 3")
    await shop.define()
    error = await shop.fails()
    assert error == {
        "code": "application_failed",
        "error": 'application "Tool" ended with status 3: no paper',
        "stdout": "working\n",
        "stderr": "no paper\n",
    }


async def test_a_failure_is_tried_again(shop: Shop) -> None:
    count = shop.folder / "count"
    shop.write(f"echo x >> {count}", f'[ "$(wc -l < {count})" -ge 3 ] || exit 1', DONE)
    await shop.define(retries=5, backoff=timedelta(0))
    async with shop.working():
        number = await shop.start()
        await shop.stage.comes_to(number)
    assert await shop.stage.kinds(number) == ["start", "retry", "retry", "finish"]


async def test_what_it_says_is_in_the_trace_up_to_a_limit(shop: Shop) -> None:
    shop.write("head -c 300000 /dev/zero | tr '\\0' x; echo end", DONE)
    await shop.define()
    async with shop.working():
        number = await shop.start()
        await shop.stage.comes_to(number)
    [said] = [row for row in await shop.stage.engine.trace(number) if row.kind == "output"]
    assert said.note is not None
    assert said.note["stdout"].endswith("xend\n")
    assert len(said.note["stdout"]) == 8_000


async def test_it_may_say_what_is_no_text(shop: Shop) -> None:
    shop.write("printf 'a\\000b\\377'", DONE)
    await shop.define()
    assert (await shop.does())["done"]


async def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def family(shop: Shop) -> list[int]:
    """The numbers of the program and of the child that it left behind."""

    async def both() -> list[int] | None:
        found = shop.folder / "pids"
        numbers = found.read_text().split() if found.exists() else []
        return [int(each) for each in numbers] if len(numbers) == 2 else None

    return await until(both)


async def all_are_gone(pids: list[int]) -> None:
    async def gone() -> bool:
        return not any([await is_alive(pid) for pid in pids])

    await until(gone)


def endless(shop: Shop) -> None:
    shop.write(f"sleep 1000 & echo $$ > {shop.folder}/pids; echo $! >> {shop.folder}/pids", "wait")


async def test_a_timeout_kills_all_that_it_started(shop: Shop) -> None:
    endless(shop)
    await shop.define(timeout=timedelta(seconds=1))
    assert (await shop.fails())["code"] == "timeout"
    await all_are_gone(await family(shop))


async def test_a_lost_lease_kills_all_that_it_started(shop: Shop) -> None:
    endless(shop)
    await shop.define()
    async with shop.working(lease=timedelta(seconds=0.3)):
        await shop.start()
        pids = await family(shop)
        # Whoever takes the job makes it do something else.
        shop.write(DONE)
        await shop.stage.do(
            "update mutirao.job set status = 'ready', attempt = null, worker = null, lease_until = null"
        )
        await all_are_gone(pids)


async def test_what_it_leaves_running_is_killed_when_it_ends(shop: Shop) -> None:
    shop.write(f"sleep 1000 & echo $$ > {shop.folder}/pids; echo $! >> {shop.folder}/pids", DONE)
    await shop.define()
    await shop.does()
    await all_are_gone(await family(shop))


async def test_a_worker_that_stops_lets_it_end(shop: Shop) -> None:
    go = shop.folder / "go"
    shop.write(f"echo > {shop.folder}/began; while [ ! -e {go} ]; do sleep 0.05; done", DONE)
    await shop.define()
    async with shop.working() as worker:
        number = await shop.start()

        async def began() -> bool:
            return (shop.folder / "began").exists()

        await until(began)
        worker.stop()
        go.touch()
        assert (await shop.stage.comes_to(number)).state["done"]


async def test_so_many_go_at_once(shop: Shop) -> None:
    running = shop.folder / "running"
    running.mkdir()
    shop.write(f"mkdir {running}/$$; ls {running} | wc -l >> {shop.folder}/most; sleep 0.05; rmdir {running}/$$", DONE)
    await shop.define()
    async with shop.working(processes=2):
        numbers = [await shop.start() for _ in range(8)]
        for number in numbers:
            await shop.stage.comes_to(number)
    assert max(map(int, (shop.folder / "most").read_text().split())) <= 2


# Who runs it


async def test_only_a_worker_on_one_of_its_hosts_runs_it(shop: Shop) -> None:
    await shop.put(hosts=("iguacu", "tuiuiu"))
    await shop.define()
    number = await shop.start()
    async with shop.working(host="parana", name="parana") as elsewhere:
        assert not elsewhere.does("order", "make")
        async with shop.working(host="Tuiuiu", name="tuiuiu"):
            await shop.stage.comes_to(number)
    [finish] = [row for row in await shop.stage.engine.trace(number) if row.kind == "finish"]
    assert finish.writer == "tuiuiu"


@pytest.mark.parametrize("needs", [{"os": "Plan 9"}, {"cpu": "Alpha"}, {"hosts": ("elsewhere",)}])
async def test_a_machine_that_does_not_fit_claims_nothing(shop: Shop, needs: dict[str, Any]) -> None:
    await shop.put(**needs)
    await shop.define()
    async with shop.working() as worker:
        assert not worker.does("order", "make")


async def test_a_worker_without_leave_runs_no_applications(shop: Shop) -> None:
    await shop.define()
    async with shop.stage.working() as worker:
        assert not worker.does("order", "make")


async def test_flows_and_applications_that_come_later_are_heard_of(shop: Shop) -> None:
    await shop.put(hosts=("elsewhere",))
    async with shop.working():
        await shop.define()
        number = await shop.start()
        await shop.put(hosts=(socket.gethostname(),))
        await shop.stage.comes_to(number)


async def test_a_job_that_is_not_for_this_machine_is_given_back_uncounted(shop: Shop) -> None:
    """Of one task, two versions: the older one's application runs only elsewhere."""
    await shop.stage.engine.library.put(Application(name="Other", filename=str(shop.script), hosts=("elsewhere",)))
    await shop.define(application="Other")
    old = await shop.start()
    await shop.define()
    async with shop.working():
        await shop.stage.comes_to(await shop.start())

        async def is_back() -> bool:
            [job] = await shop.stage.engine.jobs(old)
            return job.status == "ready"

        await until(is_back)
    [job] = await shop.stage.engine.jobs(old)
    assert (job.status, job.failures) == ("ready", 0)
    assert await shop.stage.kinds(old) == ["start"]


async def test_the_installer_is_never_run(shop: Shop) -> None:
    installer = shop.folder / "install"
    installer.write_text(f"#!/bin/sh\ntouch {shop.folder}/installed\n")
    installer.chmod(0o755)
    await shop.put(installer=str(installer))
    await shop.define()
    await shop.does()
    assert not (shop.folder / "installed").exists()


async def test_a_semi_automatic_item_is_run_by_nobody(shop: Shop) -> None:
    await shop.stage.do("insert into mutirao.role (name, made_at) values ('clerk', now())")
    await shop.define(offer=Offer(role="clerk", kind="semi_automatic"))
    number = await shop.start()
    async with shop.working() as worker:
        assert not worker.does("order", "make")
    [job] = await shop.stage.engine.jobs(number)
    assert job.status == "ready"
    [(clerk,)] = await shop.stage.rows(
        "insert into mutirao.person (name, made_by, made_at) values ('clerk_1', 'test', now()) returning id"
    )
    await shop.stage.do("insert into mutirao.member select id, %s from mutirao.role where name = 'clerk'", clerk)
    shown = await shop.stage.engine.worklists.show(clerk, job.id)
    assert (shown.item.application, shown.program) == ("Tool", str(shop.script))
