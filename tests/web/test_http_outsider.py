"""Somebody without any role tries every route, with what belongs to others: refused each time, and nothing changes."""

from typing import Any

import pytest
from fastapi.routing import APIRoute
from psycopg import sql
from site_kit import Site, fresh_site, newest_site  # noqa: F401 gives the fixtures

from mutirao.database.item import ItemFilter
from mutirao.people import add_token
from mutirao.server.need import NOBODY, need_of
from mutirao.server.openapi import api_routes

# About oneself, or saying of others only that they are there; or open to everybody.
OWN = {
    "GET /api/session",
    "DELETE /api/session",
    "GET /api/worklist",
    "GET /api/worklist/counts",
    "POST /api/worklist/next",
    "GET /api/worklist/filters",
    "PUT /api/worklist/filters/{name}",
    "GET /api/messages",
    "GET /api/messages/unread",
    "GET /api/webhooks",
    "POST /api/webhooks",
    "GET /api/instances",
    "GET /api/flows",
    "GET /api/persons",
    "GET /api/persons/{person}",
    "GET /api/roles",
    "GET /api/roles/{role}",
    "POST /api/pdl/format",
    "POST /api/files",
    "POST /api/uploads",
    "GET /api/events",
    "GET /api/classes",
    "GET /api/classes/waits",
    "GET /api/exceptions/instances",
}

# What a body needs so that only the authority is wrong.
BODIES: dict[str, dict[str, Any]] = {
    "POST /api/flows": {"document": {"name": "x", "attributes": [], "tasks": []}},
    "POST /api/flows/check": {"document": {"name": "x"}},
    "POST /api/flows/{flow}/events": {"events": [{"key": "a", "change": {}}]},
    "POST /api/pdl": {"text": "WORKFLOW x {}"},
    "POST /api/pdl/check": {"text": "WORKFLOW x {}"},
    "POST /api/instances": {"flow": "request"},
    "POST /api/instances/{instance}/set": {"change": {"city": "Natal"}},
    "POST /api/instances/{instance}/hand_over": {"to": "outsider"},
    "POST /api/instances/{instance}/start_task": {"task": "answer"},
    "POST /api/instances/{instance}/go_back": {"task": "answer"},
    "POST /api/instances/{instance}/comments": {"text": "mine"},
    "POST /api/items/{job}/finish": {"attempt": 1, "change": {"answer": "mine"}},
    "POST /api/items/{job}/fail": {"attempt": 1, "error": "mine"},
    "POST /api/items/{job}/delegate": {"to": "outsider"},
    "POST /api/items/{job}/insert": {"to": "outsider"},
    "POST /api/items/{job}/remove": {"from": "clerk_1"},
    "POST /api/items/{job}/move": {"before": 1},
    "POST /api/items/{job}/exchange": {"other": 1},
    "POST /api/items/{job}/extend": {"finish_by": "2100-01-01T00:00:00Z"},
    "POST /api/worklist/filters/{name}/rename": {"name": "mine"},
    "POST /api/messages/read": {"messages": [1]},
    "POST /api/persons": {"name": "mine"},
    "PATCH /api/persons/{person}": {"full_name": "mine"},
    "PUT /api/persons/{person}/password": {"password": "mine for ever and ever"},
    "PUT /api/session/password": {"old": "I do not know it", "new": "mine for ever and ever"},
    "POST /api/persons/{person}/tokens": {"name": "mine"},
    "POST /api/roles": {"name": "mine"},
    "PATCH /api/roles/{role}": {"description": "mine"},
    "POST /api/roles/{role}/members": {"persons": ["outsider"]},
    "POST /api/roles/{role}/members/remove": {"persons": ["clerk_1"]},
    "PUT /api/databases/{name}": {"url": "postgresql://mine:mine@127.0.0.1:1/mine"},
    "PUT /api/schedules/{name}": {"flow": "request", "cron": "0 0 * * *"},
    "POST /api/batches": {"kind": "cancel", "chosen": {"flow": "request"}},
    "POST /api/batches/count": {"kind": "cancel", "chosen": {"flow": "request"}},
    "POST /api/batches/migrate": {"flow": "request"},
    "PATCH /api/settings": {"settings": {"transfer": 1}},
    "PUT /api/flows/{flow}/tasks/{task}/limit": {"at_once": 1},
}
QUERIES = {"GET /api/times": {"cron": "0 0 * * *"}}


async def others_things(site: Site) -> dict[str, Any]:
    """What belongs to others, by what paths call it."""
    clerk, boss = await site.client("clerk_1"), await site.client("boss")
    await site.item()  # number 1, to put others before
    instance, job = await site.item(city="Recife")
    await (await site.client("clerk_2")).worklist.select(job)
    await clerk.worklist.save_filter("nightly", ItemFilter())
    await add_token(site.engine, None, "clerk_1", "nightly")
    return {
        "instance": instance,
        "job": job,
        "comment": await clerk.comments.add(instance, "ours"),
        "upload": (await clerk.files.begin("a.bin")).upload,
        "webhook": (await boss.webhooks.add("https://hooks.example.org/1", person="clerk_1")).webhook.id,
        "person": "clerk_1",
        "name": "nightly",
        "role": "clerk",
        "flow": "request",
        "task": "approve",
        "number": 0,
        "sha256": "0" * 64,
        "batch": 1,
        "session": 1,
        "first": "a",
        "second": "b",
    }


async def everything(site: Site) -> dict[str, Any]:
    """All rows of all tables, but for when somebody was last seen or tried to sign in."""
    tables = "select schemaname, tablename from pg_tables where schemaname in ('mutirao', 'mutirao_secret')"
    count = (
        "select md5(string_agg((to_jsonb(t) - '{{seen_at,used_at}}'::text[])::text, ',' order by t::text)) from {} t"
    )
    async with site.engine.connection() as connection:
        names = await (await connection.execute(tables)).fetchall()
        found = {}
        for name in names:
            rows = await connection.execute(sql.SQL(count).format(sql.Identifier(*name)))
            found[".".join(name)] = await rows.fetchone()
    return {name: rows for name, rows in found.items() if name != "mutirao_secret.attempt"}


def closed_routes(site: Site) -> list[tuple[str, APIRoute]]:
    """Every route that somebody without a role may not use on what belongs to others."""
    named = [
        (f"{method} {route.path}", route) for route in api_routes(site.server.app) for method in route.methods or ()
    ]
    assert {name for name, _ in named} >= OWN | BODIES.keys()
    return [(name, route) for name, route in named if name not in OWN and need_of(route) is not NOBODY]


@pytest.mark.timeout(300)
async def test_an_outsider_is_refused_everywhere_and_changes_nothing(site: Site) -> None:
    path = await others_things(site)
    http = await site.http("outsider", timeout=30)
    before = await everything(site)
    for name, route in closed_routes(site):
        method, _, template = name.partition(" ")
        body = BODIES.get(name, {}) if method != "GET" else None
        answer = await http.request(method, template.format(**path), json=body, params=QUERIES.get(name))
        expected = {403} if need_of(route).is_administrator else {401, 403, 404}
        if name in ("POST /api/items/{job}/finish", "POST /api/items/{job}/fail"):
            expected = {409}  # one that is there is told apart from none in nothing
            nothing = await http.post(template.format(job=99), json=body)
            assert nothing.json()["code"] == answer.json()["code"] == "item_not_held"
        assert answer.status_code in expected, f"{name}: {answer.status_code} {answer.text}"
        assert answer.status_code != 401 or answer.json()["code"] == "wrong_credentials"
    assert await everything(site) == before


async def test_without_a_session_nothing_is_answered(site18: Site) -> None:
    path = await others_things(site18)
    http = await site18.http()
    for route in api_routes(site18.server.app):
        for method in route.methods or ():
            if need_of(route) is not NOBODY:
                answer = await http.request(method, route.path.format(**path), json={})
                assert answer.status_code == 401, f"{method} {route.path}: {answer.text}"
                assert answer.json()["code"] == "not_signed_in"


async def test_what_is_ones_own_shows_nothing_of_others(site18: Site) -> None:
    await others_things(site18)
    outsider = await site18.client("outsider")
    assert [each async for each in outsider.worklist.all()] == []
    assert [each async for each in outsider.instances.all()] == []
    assert [each async for each in outsider.messages.all()] == []
    assert await outsider.worklist.filters() == []
    assert await outsider.webhooks.all() == []
    assert await outsider.flows.startable() == []
    assert await outsider.worklist.next() is None
    found = await outsider.persons.get("clerk_1")
    assert (found.email, found.seen_at, found.holds) == (None, None, None)
