"""`mutirao server`, and the server that `mutirao up` runs."""

import re
import signal
import socket
from collections.abc import Iterator

import pytest
from command import Background, assert_refused, mutirao, running

from mutirao import blocking_client


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def url_of(program: Background, said: str) -> str:
    found = re.search(r"http://[\d.:]+", program.wait_for(said))
    assert found is not None
    return found[0]


def test_the_first_administrator_is_shown_once_and_may_sign_in(database_url: str) -> None:
    with running("server", "--port", 0, "--log-format", "text", "--database", database_url) as server:
        password = server.wait_for("not shown after this run: ").rpartition("not shown after this run: ")[2].strip()
        url = url_of(server, "The server is ready")
        with blocking_client(url) as (client, wait):
            me = wait(client.sessions.sign_in("administrator", password))
            assert me.is_administrator
            assert wait(client.flows.overview()) == []
        server.signal(signal.SIGTERM)
        assert server.ends_with() == 0
    with running("server", "--port", 0, "--log-format", "text", "--database", database_url) as server:
        assert "shown once" not in server.wait_for("The server is ready")


def test_a_taken_port_is_told(database_url: str, taken_port: int) -> None:
    for command in ("server", "up"):
        said = mutirao(command, "--port", taken_port, "--database", database_url)
        assert_refused(said, "port_unavailable", 3)
        assert f"port {taken_port}" in said.stderr


def test_up_serves_the_api_unless_told_not_to(database_url: str) -> None:
    with running("up", "--port", 0, "--database", database_url) as up:
        url = url_of(up, "The HTTP API: ")
        with blocking_client(url) as (client, wait):
            assert wait(client.is_ready())
        up.signal(signal.SIGINT)
        assert up.ends_with() == 0
    said = mutirao("up", "--no-server", "--for", 1, "--database", database_url)
    assert "HTTP" not in said.stdout
