"""The pytest plugin: an engine for each test, and the stories of its instances in the report of one that fails.

It stands beside the package and imports it only when a test asks for an engine: a project that has Mutirão installed
and does not test flows must neither wait for it nor have it imported before its coverage is measured.
"""

import inspect
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mutirao import Engine
    from mutirao.database.bridge import Wait
    from mutirao.testing.ahead import ClonedAhead

_OPTION = "--mutirao-database-url"
_MARKER = "mutirao(flows=[…]): flows that are put in place in mutirao_engine before the test begins"

_engine = pytest.StashKey["tuple[Engine, Wait]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mutirao", "Mutirão")
    text = "make the databases of mutirao_engine on this server (postgresql://user@host/database) instead of one of our own"
    group.addoption(_OPTION, metavar="URL", help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture(scope="session")
def mutirao_wait() -> "Iterator[Wait]":
    """For tests that are not async: `mutirao_wait(engine.start(…))`, `with mutirao_wait.inside(working(…)) as worker`."""
    from mutirao.database.bridge import loop_beside

    with loop_beside() as wait:
        yield wait


@pytest.fixture(scope="session")
def _mutirao_databases(request: pytest.FixtureRequest, mutirao_wait: "Wait") -> "Iterator[ClonedAhead]":
    """On one server for the whole session; the processes of xdist share it."""
    from mutirao.testing.ahead import ClonedAhead
    from mutirao.testing.database import throwaway_server
    from mutirao.testing.given import GivenServer

    url = request.config.getoption(_OPTION)
    with ExitStack() as stack:
        with _in_one_line():
            server = GivenServer(url) if url else stack.enter_context(throwaway_server())
        yield stack.enter_context(mutirao_wait.inside(ClonedAhead(server)))


@pytest.fixture
def mutirao_engine(
    request: pytest.FixtureRequest, _mutirao_databases: "ClonedAhead", mutirao_wait: "Wait"
) -> "Iterator[Engine]":
    """An engine of the test's own, thrown away afterwards, with the flows of its mark, `@pytest.mark.mutirao(flows=[…])`."""
    from mutirao.testing.engine import LooseEngine
    from mutirao.testing.person import make_roles

    with ExitStack() as stack:
        with _in_one_line():
            url = stack.enter_context(mutirao_wait.inside(_mutirao_databases.clone()))
        engine = LooseEngine(url)
        stack.callback(engine.close)
        for mark in reversed(list(request.node.iter_markers("mutirao"))):
            for flow in mark.kwargs.get("flows", ()):
                mutirao_wait(make_roles(engine, flow))
                mutirao_wait(engine.apply(flow))
        request.node.stash[_engine] = engine, mutirao_wait
        yield engine
        del request.node.stash[_engine]


@contextmanager
def _in_one_line() -> Iterator[None]:
    """A server that cannot be used is no fault of the test: one line says so."""
    from mutirao.errors import MutiraoError

    try:
        yield
    except MutiraoError as error:
        raise pytest.fail.Exception(f"{_OPTION}: {error}", pytrace=False) from None


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test that asks for our engine, where no other plugin does; those come before, or wrap the function."""
    if "mutirao_engine" not in pyfuncitem.fixturenames or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    import asyncio

    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """To a test that failed: the stories of its instances that the failure itself does not tell."""
    report = yield
    if call.when == "call" and report.failed and call.excinfo is not None and _engine in item.stash:
        engine, wait = item.stash[_engine]
        told = getattr(call.excinfo.value, "told", ())
        stories = "" if told is None else _stories(engine, wait, told)
        if stories:
            report.sections.append(("Mutirão: what happened", stories))
    return report


def _stories(engine: "Engine", wait: "Wait", told: "tuple[int, ...]") -> str:
    from mutirao.errors import MutiraoError
    from mutirao.testing.story import tell_all

    try:
        return wait(tell_all(engine, but=told))
    except MutiraoError as error:
        return f"cannot be told: {error}"
