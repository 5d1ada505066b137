"""Every listing in README and docs/ is run, in order, in a folder and a database of its own.

```python file=NAME   is saved under that name          ```python run   is run
```pdl file=NAME      likewise; any other ```pdl is only read
```console            each line after `$ ` is run; one that ends in & runs beside the rest of the page
```sql                goes to psql, all of a page in one session
```sh, ```text        is for the reader only
"""

import fcntl
import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import run_warm
from conftest import SERVERS

from mutirao import Client, Engine
from mutirao.language.pdl import Source, parse
from mutirao.server.client.noun import Noun
from mutirao.testing.database import TestServer

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KNOWN = ("python", "pdl", "console", "sql", "sh", "text")

_FOR_THE_SHELL = set("|&;<>$`~*?#()\\")
_FENCE = re.compile(r"^```(\w+)? ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Listing:
    language: str
    info: str
    text: str
    line: int


def listings(page: Path) -> list[Listing]:
    text = page.read_text("utf-8")
    return [Listing(m[1] or "", m[2], m[3], text.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(text)]


# What a page says in SQL is said to each server.
SITTINGS = [
    (page, server) for page in PAGES for server in (SERVERS if "```sql" in page.read_text("utf-8") else ["pg18"])
]


class Reader:
    """Does what a page says."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        (folder / "examples").symlink_to(ROOT / "examples")
        scripts = Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "MUTIRAO_DATABASE_URL": database_url,
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "COLUMNS": "120",
        }
        self.beside: list[subprocess.Popen[bytes]] = []

    def follow(self, listing: Listing) -> None:
        match listing.language, listing.info:
            case "python" | "pdl", info if info.startswith("file="):
                (self.folder / info.removeprefix("file=")).write_text(listing.text, "utf-8")
            case "python", _:
                self._run([sys.executable, "-c", listing.text])
            case "pdl", _:
                parse(Source(f"line {listing.line}", listing.text))
            case "console", _:
                for line in listing.text.splitlines():
                    if line.startswith("$ "):
                        self._type(line[2:])

    def run_sql(self, text: str) -> None:
        self._run(["mutirao", "db", "upgrade"])
        # psql's own options would be ours to pass: a refusal ends the session with an error instead.
        self._run(["mutirao", "db", "shell"], "\\set ON_ERROR_STOP on\n" + text)

    def _type(self, command: str) -> None:
        if command.endswith("&"):
            words = ["sh", "-c", "exec " + command[:-1]]
            process = subprocess.Popen(
                words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            self.beside.append(process)
            assert process.stdout is not None
            # It says so when it is ready; before that, a signal would only meet Python's own start.
            assert any(b"is ready" in line for line in process.stdout), f"{command} ended before it was ready"
        elif command.startswith("mutirao ") and not _FOR_THE_SHELL & set(command):
            self._check(command, run_warm(shlex.split(command)[1:], self.environment, self.folder))
        else:
            self._run(["sh", "-c", command])

    def _run(self, command: list[str], stdin: str = "") -> None:
        ran = subprocess.run(
            command, cwd=self.folder, env=self.environment, input=stdin, text=True, capture_output=True, check=False
        )
        self._check(command[-1], ran)

    def _check(self, command: str, ran: "subprocess.CompletedProcess[str]") -> None:
        assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"


@contextmanager
def reading(folder: Path, database_url: str) -> Iterator[Reader]:
    reader = Reader(folder, database_url)
    try:
        yield reader
    finally:
        for process in reader.beside:
            process.terminate()
            process.communicate(timeout=30)
            assert process.returncode == 0


@pytest.fixture
async def database_of_page(servers: dict[str, TestServer], server_name: str) -> AsyncIterator[str]:
    async with servers[server_name].clone() as url:
        yield url


@pytest.mark.timeout(400)  # a page may have twenty commands, each a process
@pytest.mark.parametrize(("page", "server_name"), SITTINGS, ids=lambda said: getattr(said, "name", said))
def test_every_listing_of_a_page_runs(page: Path, tmp_path: Path, database_of_page: str) -> None:
    found = listings(page)
    unknown = [listing for listing in found if listing.language not in KNOWN]
    assert not unknown, f"{page.name}: what is a listing in {unknown[0].language!r}, line {unknown[0].line}?"
    with page.open() as same_page, reading(tmp_path, database_of_page) as reader:
        fcntl.flock(same_page, fcntl.LOCK_EX)  # a page may name a port: it is read by one at a time
        for listing in found:
            reader.follow(listing)
        sql = "\n".join(listing.text for listing in found if listing.language == "sql")
        if sql:
            reader.run_sql(sql)


def test_pages_link_only_to_what_is_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_method_of_the_client_is_documented() -> None:
    page = (ROOT / "docs" / "client.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    parts = {name: part for name, part in vars(Client("http://localhost")).items() if isinstance(part, Noun)}
    assert rows.keys() == parts.keys()
    for name, part in parts.items():
        methods = {each for each in dir(part) if not each.startswith("_") and callable(getattr(part, each))}
        assert set(re.findall(r"`(\w+)\(", rows[name])) == methods, name
    own = {each for each in dir(Client) if not each.startswith("_") and callable(getattr(Client, each))}
    assert {each for each in own if f"`client.{each}(" not in page} == set()


def test_every_setting_is_documented() -> None:
    rules = (ROOT / "src/mutirao/database/sql/functions/42_setting.sql").read_text("utf-8")
    page = (ROOT / "docs" / "operate.md").read_text("utf-8")
    settings = re.findall(r"^  when '(\w+)' then", rules, re.MULTILINE)
    assert settings
    assert [name for name in settings if f"| `{name}` |" not in page] == []


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


# What only workers ask an engine.
FOR_WORKERS = {"revive", "undone", "task_numbers", "fates", "origins", "ping"}


def test_every_method_of_the_engine_is_documented() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    methods = {name for name in dir(Engine) if callable(getattr(Engine, name)) and not name.startswith("_")}
    assert {name for name in methods - FOR_WORKERS if f"`{name}(" not in page} == set()
