"""Tasks that an executable does: which of them this machine runs, and how a job becomes a program and comes back.

To a worker such a task is one more handler, so leases, timeouts, retries and the rest are the same code. What a program
is given, and what it gives back, is in docs/applications.md.
"""

import asyncio
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mutirao.database.application import (
    ApplicationTask,
    ApplicationWork,
    application_tasks,
    application_work,
    note_output,
)
from mutirao.database.engine import Engine
from mutirao.errors import LeaseLost, RequestError
from mutirao.language.handler import Handler
from mutirao.language.signature import Signature
from mutirao.model import Application, Change, File, Job
from mutirao.model.file import is_file_name
from mutirao.model.value import has_nul
from mutirao.worker.machine import Machine
from mutirao.worker.process import Ran, run_program
from mutirao.worker.running import Ended, Outcome, failure

State: TypeAlias = Mapping[str, msgspec.Raw]

INPUT = "input.json"
OUTPUT = "output.json"

_MOST_OUTPUT = 16_000_000
# Longer ones Linux would not take; they are in input.json.
_MOST_VARIABLE = 100_000
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")


class Applications:
    """What this machine may run. Of programs, only those in the folder `programs`, if there is one."""

    def __init__(self, engine: Engine, machine: Machine, programs: Path | None = None) -> None:
        self._engine = engine
        self._machine = machine
        self._programs = programs

    async def handlers(self) -> list[tuple[ApplicationTask, Handler]]:
        """A handler for each task whose application may run here, in any version of its flow."""
        found = await application_tasks(self._engine)
        return [(each, self._handler(each)) for each in found if self._machine.may_run(each.application)]

    def _handler(self, task: ApplicationTask) -> Handler:
        signature = Signature(is_async=True, job="job")
        return Handler(task.flow, task.task, self._run, signature, _load, msgspec.json.encode, is_program=True)

    async def _run(self, state: State, job: Job) -> Change:
        work = await application_work(self._engine, job.id, job.attempt)
        if work is None:
            raise LeaseLost("lease_lost", f"attempt {job.attempt} of job {job.id} is not the current one")
        application = self._allowed(work)
        root = Path(tempfile.mkdtemp(prefix=f"mutirao-{job.id}-{job.attempt}-"))
        try:
            place = Folder(root, self._engine, work, state)
            await place.fill()
            ran = await self._ran(application, place, job)
            await self._keep_words(job, application, ran)
            return await place.collect()
        finally:
            await asyncio.shield(asyncio.to_thread(partial(shutil.rmtree, root, ignore_errors=True)))

    async def _ran(self, application: Application, place: "Folder", job: Job) -> Ran:
        try:
            return await run_program(self._program(application), place.path, place.environment(job), place.root)
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
            text = "the inputs are more than the system takes as an environment: name fewer inputs, or put them into a file"
            raise failed("environment_too_large", f'application "{application.name}": {text}') from error

    def _allowed(self, work: ApplicationWork) -> Application:
        """The version of this instance may name another application than the one that made us claim its job."""
        if work.application is None or not self._machine.may_run(work.application):
            raise Ended(Outcome(is_given_back=True))
        return work.application

    def _program(self, application: Application) -> Path:
        """Never by a shell: a filename is one path, whatever is in it."""
        name = application.filename
        if self._programs is not None:
            found = (self._programs / name).resolve()
            right = found.is_relative_to(self._programs.resolve()) and os.access(found, os.X_OK)
            return _found(application, found if right else None, f"in {self._programs}")
        if Path(name).is_absolute():
            return _found(application, Path(name) if os.access(name, os.X_OK) else None, "there")
        on_path = None if "/" in name else shutil.which(name)
        return _found(application, None if on_path is None else Path(on_path), "on the PATH; or name its full path")

    async def _keep_words(self, job: Job, application: Application, ran: Ran) -> None:
        said = {name: text for name, text in (("stdout", ran.stdout), ("stderr", ran.stderr)) if text}
        if ran.status != 0:
            line = f": {ran.last_line}" if ran.last_line else ""
            text = f'application "{application.name}" {ran.ending}{line}'
            raise Ended(failure(text, code="application_failed", **said))
        if said:
            await note_output(self._engine, job.id, job.attempt, said)


@dataclass(frozen=True, slots=True)
class _Seen:
    """How a file that we put there looked."""

    changed_at: int
    size: int


class Folder:
    """The folder of one attempt: inputs are put into it, outputs are found in it.

    Its home is another, empty one: what somebody uploads must not become a setting that the program obeys.
    """

    def __init__(self, root: Path, engine: Engine, work: ApplicationWork, state: State) -> None:
        self.root = root
        self.path = root / "work"
        self._home = root / "home"
        for each in (self.path, self._home):
            each.mkdir(mode=0o700)
        self._engine = engine
        self._work = work
        names = work.attributes if work.inputs is None else work.inputs
        self._inputs = {name: state[name] for name in names if name in state}
        self._put: dict[str, _Seen] = {}

    async def fill(self) -> None:
        (self.path / INPUT).write_bytes(msgspec.json.encode(self._inputs) + b"\n")
        for name, value in self._inputs.items():
            if self._work.attributes[name].type == "file" and bytes(value) != b"null":
                file = msgspec.json.decode(value, type=File)
                called = self._called(name) or _undotted(file.name)
                if called in (INPUT, OUTPUT) or called in self._put:
                    raise failed("wrong_output", f'attribute "{name}": another file is called "{called}" as well')
                await self._engine.files.download(file, self.path / called)
                self._put[called] = _seen(self.path / called)

    def environment(self, job: Job) -> dict[str, str]:
        """Nothing of the worker's own but what every program needs."""
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        plain = {
            f"IN_{name.upper()}": text
            for name, value in self._inputs.items()
            if (text := _as_text(value)) is not None and len(text.encode()) <= _MOST_VARIABLE
        }
        return {
            "LANG": "C.UTF-8",
            **passed_on,
            "HOME": str(self._home),
            "TMPDIR": str(self._home),
            "MUTIRAO_FLOW": job.flow,
            "MUTIRAO_TASK": job.task,
            "MUTIRAO_INSTANCE": str(job.instance_id),
            "MUTIRAO_JOB": str(job.id),
            "MUTIRAO_ATTEMPT": str(job.attempt),
            **plain,
        }

    async def collect(self) -> Change:
        """What the program wrote: its output.json, and the files that outputs are called by."""
        change = self._said()
        allowed = self._work.attributes if self._work.outputs is None else self._work.outputs
        for name in change:
            if name not in allowed:
                raise failed(
                    "wrong_output", f'{OUTPUT} has "{name}", and the task writes {", ".join(allowed) or "nothing"}'
                )
        for name in allowed:
            if self._work.attributes[name].type == "file":
                await self._collect_file(name, change)
        return change

    def _said(self) -> dict[str, Any]:
        path = self.path / OUTPUT
        if not _is_file(path):
            return {}
        if path.stat().st_size > _MOST_OUTPUT:
            raise failed("wrong_output", f"{OUTPUT} has more than {_MOST_OUTPUT:,} bytes: put them into a file")
        try:
            text = path.read_bytes()
            said: dict[str, Any] = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError as error:
            raise failed("wrong_output", f"{OUTPUT} is no JSON object: {error}") from error
        if has_nul(text):
            raise failed("wrong_output", f"{OUTPUT} has a character U+0000, which PostgreSQL cannot keep")
        return said

    async def _collect_file(self, name: str, change: dict[str, Any]) -> None:
        """By the name that output.json gives it, or by the one that the flow does. What we put there is no output."""
        is_said = name in change
        called = _text_of(change.pop(name)) if is_said else self._called(name)
        if called is None:
            return
        if not is_file_name(called):
            raise failed("wrong_output", f'attribute "{name}": a file in the folder has a plain name, not {called!r}')
        path = self.path / called
        if is_said and not _is_file(path):
            raise failed("wrong_output", f'attribute "{name}": {OUTPUT} names the file {called!r}, which is not there')
        if not _is_file(path) or self._put.get(called) == _seen(path):
            return
        try:
            change[name] = await self._engine.files.upload_from(path, called)
        except RequestError as error:
            raise failed(error.code, f'attribute "{name}": {error.message}') from error

    def _called(self, name: str) -> str | None:
        """Without the path that the flow may say: here it is in the folder."""
        filename = self._work.attributes[name].filename
        return None if filename is None else filename.replace("\\", "/").rpartition("/")[2] or None


def failed(code: str, text: str) -> Ended:
    return Ended(failure(text, code=code))


def _found(application: Application, path: Path | None, where: str) -> Path:
    if path is None:
        text = f'application "{application.name}": there is no executable "{application.filename}" {where}'
        raise failed("application_missing", text)
    return path


def _undotted(name: str) -> str:
    """Many programs obey a file such as `.npmrc` wherever they find it; what it is called is up to whoever uploads it."""
    return f"_{name}" if name.startswith(".") else name


def _is_file(path: Path) -> bool:
    """Not through a link: it could lead out of the folder."""
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _seen(path: Path) -> _Seen:
    found = path.lstat()
    return _Seen(found.st_mtime_ns, found.st_size)


def _load(state: bytes | str) -> State:
    """Values stay as they are written: a number is exact."""
    return msgspec.json.decode(state, type=dict[str, msgspec.Raw])


def _as_text(value: msgspec.Raw) -> str | None:
    """Texts as they are, numbers and booleans as JSON has them; lists, objects and nulls are no text."""
    text = bytes(value).decode()
    if text.startswith('"'):
        return msgspec.json.decode(text, type=str)
    return None if text.startswith(("{", "[", "n")) else text


def _text_of(raw: msgspec.Raw) -> str | None:
    try:
        found: str | None = msgspec.json.decode(raw, type=str | None)
    except msgspec.ValidationError as error:
        raise failed(
            "wrong_output", f"a file is named in {OUTPUT} by what it is called in the folder: {error}"
        ) from error
    return found
