"""The embedded PostgreSQL: started for the first process that needs it, stopped when the last one leaves.

It holds real data, so every step must stand a kill -9: the cluster is made aside and renamed into place; a server left
behind by a killed process is adopted; a `postmaster.pid` left behind by a killed server, or by a reboot, is seen through.
Where the files are and who may touch them is `folder`'s business, which binaries run is `programs`'s.

Starting blocks (a fraction of a second, seconds the first time). That is on purpose: nothing can be done before it.
"""

import atexit
import os
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg
from psycopg import errors, sql
from psycopg.pq import PGconn, Ping

from mutirao.database import postmaster
from mutirao.database.connection import refusals
from mutirao.database.folder import Folder, default_home, open_folder, unusable
from mutirao.database.programs import Programs, bundled
from mutirao.errors import OperatorError

# The engine works as OWNER, who is no superuser: what the embedded server allows is what a managed server allows.
SUPERUSER = "postgres"
OWNER = "mutirao"

_SHIPPED_SETTINGS = files("mutirao.database").joinpath("postgresql.conf").read_text("utf-8")
# A crash may leave gigabytes of write-ahead log to replay.
_PATIENCE = 600.0
_STAMP = re.compile(r"^[\d-]+ [\d:.]+ \w+ \[\d+\] ")
_FATAL_WORDS = ("FATAL", "PANIC", "error:", "could not")
_LARGE_LOG = 10_000_000
# Since 17 PostgreSQL brings a locale of its own, the same on every system and in every later release.
_LOCALE_SINCE_17 = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
_LOCALE_BEFORE = ("--locale=C.UTF-8",)


class EmbeddedServer:
    """A share in the server of one data folder. Enter it to have the server running, leave it when done."""

    def __init__(
        self,
        home: Path | None = None,
        *,
        programs: Programs | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`programs` and `settings` are for tests: another PostgreSQL, or one that trades safety for speed."""
        self._folder: Folder = open_folder(home or default_home())
        self._given_programs = programs or bundled()
        self._runnable = self._given_programs
        self._settings = dict(settings or {})
        self._membership: int | None = None
        self._process = os.getpid()

    def __enter__(self) -> Self:
        """Join the users of the server, starting it if it does not run."""
        try:
            with self._folder.starting():
                self._membership = self._folder.join()
                self._bring_up()
                self._make_role()
        except OSError as error:
            self._forget_membership()
            raise unusable(self.home, error) from error
        except BaseException:
            self._forget_membership()
            raise
        atexit.register(self.leave)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()

    def leave(self) -> None:
        """Give up the share; the last one stops the server. Leaving twice is harmless."""
        # A forked child shares our descriptor, not our membership: it must not stop the server under us.
        if self._membership is None or self._process != os.getpid():
            return
        atexit.unregister(self.leave)
        with self._folder.starting():
            if self._folder.is_last(self._membership):
                self._stop()
            self._forget_membership()

    def revive(self) -> None:
        """Start the server again if it has died under us; harmless when it runs."""
        if self._membership is not None and self._ping() != Ping.OK:
            with self._folder.starting():
                self._bring_up()

    def url(self, database: str = "mutirao", user: str = OWNER) -> str:
        return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(self._folder.socket()), safe='')}"

    def ensure_database(self, name: str) -> None:
        """Make the database if it is not there yet."""
        make = sql.SQL("create database {} owner {}").format(sql.Identifier(name), sql.Identifier(OWNER))
        with refusals(), psycopg.connect(self.url("postgres", SUPERUSER), autocommit=True) as connection:
            if not connection.execute("select from pg_database where datname = %s", [name]).rowcount:
                with suppress(errors.DuplicateDatabase, errors.UniqueViolation):  # somebody else was quicker
                    connection.execute(make)

    @property
    def home(self) -> Path:
        return self._folder.home

    @property
    def log(self) -> Path:
        return self._folder.log

    @property
    def data(self) -> Path:
        return self._folder.data

    @property
    def programs(self) -> Programs:
        return self._given_programs

    # ------------------------------------------------------------------ starting and stopping, all under `starting`

    def _bring_up(self) -> None:
        self._check_version()
        self._runnable = self._given_programs.reachable_by(self._folder.account, self.home)
        deadline = time.monotonic() + _PATIENCE
        while (answer := self._ping()) != Ping.OK:
            if time.monotonic() > deadline:
                raise self._failure("did not answer in time", self._log_tail(0))
            if answer == Ping.REJECT or postmaster.is_alive(self.data):
                time.sleep(0.02)  # left by a killed process while starting or stopping: see what becomes of it
            else:
                self._start(deadline)

    def _ping(self) -> Ping:
        return Ping(PGconn.ping(self.url("postgres", SUPERUSER).encode()))

    def _start(self, deadline: float) -> None:
        if not self.data.exists():
            self._make_cluster()
        socket = self._folder.make_socket_folder()
        postmaster.forget_dead(self.data, socket)
        self._write_settings()
        self._turn_log()
        before = self.log.stat().st_size if self.log.exists() else 0
        options = f"-k {shlex.quote(str(socket))}"
        said = self._run("pg_ctl", "start", "-s", "-w", "-t", str(int(_PATIENCE)), "-l", self.log, "-o", options)
        if said is None:
            return
        tail = self._log_tail(before)
        if "is still in use" in tail and time.monotonic() < deadline:
            # The server was killed and its last children have not noticed yet. They will within a second or so.
            time.sleep(0.1)
            return
        raise self._failure("did not start", tail or said)

    def _stop(self) -> None:
        # Should it fail, the server stays, and the next process adopts it: nothing to tell a program that is leaving.
        if postmaster.is_alive(self.data):
            self._run("pg_ctl", "stop", "-s", "-w", "-m", "fast", "-t", str(int(_PATIENCE)))

    def _make_cluster(self) -> None:
        for abandoned in self.home.glob("data.new-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        unfinished = self.home / f"data.new-{secrets.token_hex(4)}"
        locale = _LOCALE_SINCE_17 if self._given_programs.major >= 17 else _LOCALE_BEFORE  # noqa: PLR2004 named above
        careless = ["--no-sync"] if self._settings.get("fsync") == "off" else []
        options = [
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--data-checksums",
            *locale,
            *careless,
        ]
        said = self._run("initdb", f"--username={SUPERUSER}", *options, data=unfinished)
        if said is not None:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise self._failure("could not be set up", said)
        with (unfinished / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write("\ninclude 'mutirao.conf'\ninclude_if_exists '../local.conf'\n")
        local = self.home / "local.conf"
        if not local.exists():
            self._folder.write(
                local, "# PostgreSQL settings for this data folder; they win over the ones Mutirão ships.\n"
            )
        unfinished.rename(self.data)
        _sync_folder(self.home)

    def _write_settings(self) -> None:
        extra = "".join(f"{name} = {value}\n" for name, value in self._settings.items())
        self._folder.write(self.data / "mutirao.conf", f"{_SHIPPED_SETTINGS}\n{extra}")

    def _turn_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > _LARGE_LOG:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _make_role(self) -> None:
        with refusals(), psycopg.connect(self.url("postgres", SUPERUSER), autocommit=True) as connection:
            if not connection.execute("select from pg_roles where rolname = %s", [OWNER]).rowcount:
                connection.execute(sql.SQL("create role {} login createdb createrole").format(sql.Identifier(OWNER)))
                connection.execute(sql.SQL("grant pg_monitor to {}").format(sql.Identifier(OWNER)))

    def _check_version(self) -> None:
        marker = self.data / "PG_VERSION"
        if not marker.exists():
            return
        found, ours = marker.read_text().strip(), str(self._given_programs.major)
        if found != ours:
            raise OperatorError(
                "data_folder_version",
                f"{self.home} was made by PostgreSQL {found} and this Mutirão brings {ours}; write `mutirao db backup` with "
                "the Mutirão that made it, then `mutirao db restore` with this one into a new folder",
            )

    # ------------------------------------------------------------------ helpers

    def _run(self, program: str, *arguments: str | Path, data: Path | None = None) -> str | None:
        """Run one of PostgreSQL's programs on the cluster; None when it went well, else what it said."""
        command = [self._runnable.path(program), "-D", data or self.data, *arguments]
        done = self._folder.account.run(command, cwd=self.home)
        return None if done.returncode == 0 else done.stdout

    def _log_tail(self, since: int) -> str:
        try:
            with self.log.open("rb") as file:
                file.seek(since)
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _failure(self, what: str, said: str) -> OperatorError:
        code = "disk_full" if "No space left on device" in said else "server_start_failed"
        return OperatorError(
            code, f"the embedded PostgreSQL in {self.home} {what}: {_reason(said)} (more in {self.log})"
        )

    def _forget_membership(self) -> None:
        if self._membership is not None:
            os.close(self._membership)
            self._membership = None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(said: str) -> str:
    """The fatal line and the one before it, which often names the cause, without their timestamps."""
    lines = [_STAMP.sub("", line).strip() for line in said.splitlines() if line.strip()]
    fatal = [number for number, line in enumerate(lines) if any(word in line for word in _FATAL_WORDS)]
    last = fatal[-1] if fatal else len(lines) - 1
    return "; ".join(lines[max(0, last - 1) : last + 1]) or "it said nothing"
