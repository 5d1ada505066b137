"""What every test may ask for: a database of its own, on each PostgreSQL that is here.

One server of each version is shared by all xdist workers of a run; its folder is made and removed by the first process.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from mutirao.database.programs import Programs, bundled
from mutirao.testing.database import TestServer, quick_folder

_FOLDER = "MUTIRAO_TEST_FOLDER"
_DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")

collect_ignore = ["kit_project"]  # a project of its own: test_pytest_plugin.py runs it

SERVERS = {"pg18": bundled()}
if (_DEBIAN_15 / "postgres").exists():
    SERVERS["pg15"] = Programs(_DEBIAN_15)


def pytest_report_header() -> str:
    if "pg15" in SERVERS:
        return "postgresql: " + ", ".join(f"{name} ({programs.version})" for name, programs in SERVERS.items())
    return f"postgresql: only {SERVERS['pg18'].version}; PostgreSQL 15 is not in {_DEBIAN_15}, so nothing runs on it"


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Begun in the background, we ignore Ctrl-C, and so would the commands that tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        # A worker's environment is a copy of ours, so all of them find the same folder.
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix="mutirao-tests-", dir=quick_folder())
        Path(os.environ[_FOLDER]).chmod(0o755)  # run by root, the servers belong to a system user
    # Tests choose their databases themselves: what the developer's shell points at is none of their business.
    os.environ.pop("MUTIRAO_DATABASE_URL", None)
    os.environ["MUTIRAO_HOME"] = f"{os.environ[_FOLDER]}/home"


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[_FOLDER], ignore_errors=True)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter: run by root, a server in it belongs to somebody else."""
    folder = Path(tempfile.mkdtemp(prefix="mutirao-test-", dir=quick_folder()))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, TestServer]]:
    folder = Path(os.environ[_FOLDER])
    with ExitStack() as running:
        yield {name: running.enter_context(TestServer(folder / name, programs)) for name, programs in SERVERS.items()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        # The command is the same whatever the server: one will do.
        names = ["pg18"] if metafunc.module.__name__.startswith("test_command") else list(SERVERS)
        metafunc.parametrize("server", names, indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest, servers: dict[str, TestServer]) -> TestServer:
    """Each PostgreSQL in turn."""
    return servers[request.param]


@pytest.fixture
async def database_url(server: TestServer) -> AsyncIterator[str]:
    """A database with the schema in place and a clock to move, owned by a role that is no superuser."""
    async with server.clone() as url:
        yield url


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[AsyncConnection[Any]]:
    """A connection to `database_url`, in autocommit."""
    async with await AsyncConnection.connect(database_url, autocommit=True) as connected:
        yield connected


@pytest.fixture
async def empty_database_url(server: TestServer) -> AsyncIterator[str]:
    """A database without a schema."""
    async with server.empty() as url:
        yield url
