"""Databases that flows may ask, over HTTP; and that no answer has a password."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict
from site_kit import Site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.model import Attribute, Definition, Query, Task

SECRET = "s3cret"
NOWHERE = f"postgresql://reader:{SECRET}@127.0.0.1:1/stock"
REORDER = Definition(
    name="reorder",
    attributes=(Attribute("articles", "json", query=Query("stock", "select 1 as one")),),
    tasks=(Task(name="order", when="true", fires="once"),),
)


@asynccontextmanager
async def by_network(url: str) -> AsyncIterator[str]:
    """The address of a database that tests reach by a socket, as one that is reached by the network."""
    parts = conninfo_to_dict(url)
    socket = f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}"

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket)
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"postgresql://{quote(str(parts['user']))}:{SECRET}@127.0.0.1:{port}/{quote(str(parts['dbname']))}"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
    writer.close()


async def test_a_database_is_named_tried_changed_and_taken_away(site18: Site) -> None:
    boss = await site18.client("boss")
    async with by_network(site18.engine.url) as url:
        made = await boss.databases.put("stock", url, within=timedelta(seconds=2.5))
        assert (made.name, made.timeout, made.made_by, made.flows) == ("stock", 2.5, "boss", [])
        assert [row.keys() for row in await boss.databases.try_out("stock")] == [{"version"}]
        await boss.databases.put("stock", within=timedelta(seconds=5))  # where it is stays as it was
        assert "PostgreSQL" in (await boss.databases.try_out("stock"))[0]["version"]
    await site18.engine.apply(REORDER)
    [found] = await boss.databases.all()
    assert (found, found.timeout, found.flows) == (await boss.databases.get("stock"), 5, ["reorder"])
    await boss.databases.remove("stock")
    assert await boss.databases.all() == []
    async with refused("unknown_database", 404):
        await boss.databases.try_out("stock")
    async with refused("unknown_database", 404):
        await boss.databases.put("stock", within=timedelta(seconds=5))


async def test_no_answer_has_a_user_or_a_password(site18: Site) -> None:
    http = await site18.http("boss")
    path, body = "/api/databases/stock", {"url": NOWHERE}
    answers = [
        await http.put(path, json=body),
        await http.put(path, json={**body, "timeout": "soon"}),
        await http.put(path, json={**body, "url": f"postgresql://reader:{SECRET}@["}),
        await http.put(path, json={**body, "url": f"{NOWHERE}?passfile=/{SECRET}"}),
        await http.get("/api/databases"),
        await http.get(path),
        await http.post(f"{path}/try"),
        await http.delete(path),
    ]
    assert [each.status_code for each in answers] == [200, 422, 422, 422, 200, 200, 409, 204]
    for each in answers:
        assert SECRET not in each.text
        assert "reader" not in each.text


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql:///stock?host=/tmp&user=postgres&password=x", "sockets are for the operator"),
        ("postgresql://postgres:x@%2Ftmp/stock", "sockets are for the operator"),
        ("host=a,@b user=postgres password=x", "sockets are for the operator"),
        ("postgresql://a:b@h/stock?hostaddr=10.0.0.1", '"hostaddr" is for the operator'),
        ("postgresql://a:b@h/stock?sslkey=/etc/key", '"sslkey" is for the operator'),
        ("service=nightly host=h user=a password=b", '"service" is for the operator'),
        ("postgresql://reader@stock.example.org/stock", "has no password"),
        ("postgresql://:x@stock.example.org/stock", "has no user"),
        ("postgresql://a:b@/stock", "has no host"),
        ("stock.example.org", "its address is written postgresql://"),
    ],
)
async def test_nothing_of_the_servers_own_machine_is_lent(site18: Site, url: str, says: str) -> None:
    boss = await site18.client("boss")
    async with refused("wrong_call", 422, says):
        await boss.databases.put("stock", url)
    assert await boss.databases.all() == []


async def test_where_flows_name_a_role_is_told(site18: Site) -> None:
    boss = await site18.client("boss")
    found = [(each.role, each.flow, each.task) for each in await boss.roles.uses("clerk")]
    assert found == [("clerk", "request", None), ("clerk", "request", "approve")]
    assert await boss.roles.uses("administrator") == []
    async with refused("unknown_role", 404):
        await boss.roles.uses("clark")
