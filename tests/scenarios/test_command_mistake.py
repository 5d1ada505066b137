"""A mistake of ours in a page: whoever saw the page was told a number, and the program that served it says what went wrong by it."""

import re

import httpx
import psycopg
import pytest
from command import running

LOST = "alter function mutirao.roles(int, text, int) rename to gone"


@pytest.mark.parametrize(
    "command",
    [
        ("up", "--no-example"),
        ("server", "--log-format", "text", "--log-level", "error"),
        ("server", "--log-format", "json"),
    ],
)
def test_what_a_page_says_is_in_the_log_is_there(database_url: str, command: tuple[str, ...]) -> None:
    with running(*command, "--port", 0, "--database", database_url) as program:
        password = re.findall(r'this run: ([^\s"]+)', program.wait_for("not shown after this run: "))[0]
        url = re.findall(r"http://[\d.:]+\d", program.wait_for("http://"))[0]
        with psycopg.connect(database_url, autocommit=True) as connection, httpx.Client(base_url=url) as browser:
            signed_in = browser.post("/api/session", json={"name": "administrator", "password": password})
            assert signed_in.status_code == 201, signed_in.text
            assert browser.get("/roles").status_code == 200
            connection.execute(LOST)
            page = browser.get("/roles", headers={"Accept": "text/html"})
        assert page.status_code == 500
        number = page.headers["x-request-id"]
        assert number in page.text
        assert "mutirao.roles" not in page.text
        line = program.wait_for(number)
        assert "GET /roles" in line
        assert "function mutirao.roles" in line
        assert "Traceback" in line or program.wait_for("Traceback")
