"""What nobody should send: a clear answer, the right status, and nothing changed."""

import asyncio
import threading
from typing import Any

import pytest
from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.errors import RequestError
from mutirao.server.apart import Apart

MEGABYTE = 1024 * 1024


async def code_of(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    assert told["type"] == f"urn:mutirao:problem:{told['code']}"
    return answer.status_code, told["code"]


async def test_a_name_may_have_a_quote(site18: Site) -> None:
    boss = await site18.client("boss")
    for name in ("O'Neill", 'the "first"', "50%", "a/b", "x?y#z", "Ação; drop table person"):
        await boss.persons.add(name, roles=["clerk"])
        assert (await boss.persons.get(name)).name == name
        assert (await boss.persons.disable(name)).disabled_at is not None


async def test_ten_megabytes_of_pdl_are_refused_before_they_are_read(site18: Site) -> None:
    http = await site18.http("boss")
    text = '{"text": "' + "x" * (10 * MEGABYTE) + '"}'
    answer = await http.post("/api/pdl", content=text, headers={"Content-Type": "application/json"})
    assert await code_of(answer) == (413, "too_large")
    answer = await http.post("/api/pdl", json={"text": "x" * 600_000})
    assert await code_of(answer) == (413, "pdl_too_large")


async def test_what_is_formatted_for_everybody_is_bounded(site18: Site) -> None:
    http = await site18.http("outsider")
    answer = await http.post("/api/pdl/format", json={"text": "// a comment\n" * 8_000})
    assert await code_of(answer) == (413, "pdl_too_large")
    answer = await http.post("/api/pdl/format", json={"text": "WORKFLOW a { }"})
    assert (answer.status_code, answer.json()) == (200, {"text": "WORKFLOW a {\n}\n"})


async def test_who_waits_for_what_takes_its_time_is_not_without_number() -> None:
    apart, go = Apart("reading"), threading.Event()
    waiting = [asyncio.create_task(apart.do(go.wait)) for _ in range(8)]
    await asyncio.sleep(0)
    with pytest.raises(RequestError, match="try_again"):
        await apart.do(go.wait)
    waiting[-1].cancel()  # who does not wait any more makes room
    await asyncio.wait(waiting[-1:])
    waiting.append(asyncio.create_task(apart.do(go.wait)))
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*waiting[:7], waiting[8]) == [True] * 8


async def test_a_body_of_unknown_length_has_the_same_limit(site18: Site) -> None:
    async def endless() -> Any:
        for _ in range(100):
            yield b" " * 100_000

    http = await site18.http("boss")
    answer = await http.post("/api/roles", content=endless(), headers={"Content-Type": "application/json"})
    assert await code_of(answer) == (413, "too_large")


@pytest.mark.parametrize("depth", [101, 1_000, 100_000])
async def test_deep_json_is_refused(site18: Site, depth: int) -> None:
    http = await site18.http("clerk_1")
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = f'{{"flow": "request", "state": {{"city": {opening * depth}1{closing * depth}}}}}'
        answer = await http.post("/api/flows/check", content=deep, headers={"Content-Type": "application/json"})
        assert await code_of(answer) == (422, "too_deep")


async def test_a_thousand_deep_rules_are_refused(site18: Site) -> None:
    boss = await site18.client("boss")
    rule = "and(" * 1000 + "a -> SUCCEEDED" + ")" * 1000
    text = f"WORKFLOW deep {{ TASK a {{ DEPENDS; ROLE clerk; }} TASK b {{ DEPENDS {rule}; ROLE clerk; }} }}"
    answer = await (await site18.http("boss")).post("/api/pdl", json={"text": text})
    assert answer.status_code == 422
    assert {"findings", "code"} <= answer.json().keys()
    assert [flow.name for flow in await boss.flows.startable()] == ["request"]


async def test_what_is_wrong_with_a_text_is_told_with_its_place(site18: Site) -> None:
    http = await site18.http("boss")
    head = "WORKFLOW trip {\n  STRING City;\n  TASK a {\n    "
    for clauses, code, line, column in (
        ("DEPENDS; ROLE clrk;", "unknown_role", 4, 19),
        ('WHEN "citi = 5"; ROLE clerk;', "unknown_attribute", 4, 11),
    ):
        text = f"{head}{clauses}\n  }}\n}}"
        [told] = (await http.post("/api/pdl/check", json={"text": text})).json()["findings"]
        assert (told["code"], told["line"], told["column"]) == (code, line, column)
        assert "did you mean" in told["message"]
        answer = await http.post("/api/pdl", json={"text": text})
        assert await code_of(answer) == (422, code)
        assert answer.json()["findings"] == [told]
    query = 'QUERY q { DATABASE stok; EXPRESSION "select 1"; }'
    answer = await http.post("/api/pdl", json={"text": f"{head} DEPENDS; ROLE clerk; }}\n{query} }}"})
    assert await code_of(answer) == (422, "unknown_database")
    assert [(each["line"], each["column"]) for each in answer.json()["findings"]] == [(5, 20)]
    answer = await http.post("/api/pdl", json={"text": f"{head} DEPENDS; ROLE clerk; }} }}", "creator": "clrk"})
    assert await code_of(answer) == (422, "unknown_role")
    assert 'did you mean "clerk"?' in answer.json()["detail"]


async def test_all_that_is_wrong_with_a_text_is_told_at_once(site18: Site) -> None:
    """A wrong name in one task hides neither a role that is not there nor a condition that PostgreSQL refuses."""
    text = """WORKFLOW trip {
      STRING City; STRING Answer;
      FINAL "anser is not null";
      TASK a { DEPENDS; ROLE clrk; OUT_CONTEXT Anser; }
      TASK b { WHEN "citi = 'Recife' and task_a = 'failed'"; PRIORTY 3; }
      TASK c { DEPENDS d -> SUCCEEDED; ROLE clerk; }
    }"""
    answer = (await (await site18.http("boss")).post("/api/pdl/check", json={"text": text})).json()
    told = [(each["line"], each["code"]) for each in answer["findings"] if not each["is_warning"]]
    assert told == [
        (3, "unknown_attribute"),
        (4, "unknown_role"),
        (4, "unknown_attribute"),
        (5, "unknown_attribute"),
        (5, "pdl_syntax"),
        (6, "unknown_task"),
    ]
    assert answer["flows"] == [{"flow": "trip", "is_new": True}]


async def test_flows_that_are_each_others_children_are_refused(site18: Site) -> None:
    boss = await site18.client("boss")
    text = "WORKFLOW a { TASK x { DEPENDS; WORKFLOW a; } }"
    answer = await (await site18.http("boss")).post("/api/pdl", json={"text": text})
    assert answer.status_code == 422, answer.text
    assert [flow.name for flow in await boss.flows.startable()] == ["request"]


@pytest.mark.parametrize(
    ("body", "where", "detail"),
    [
        ({}, "body.name", "it is missing"),
        ({"name": 1}, "body.name", "a text is wanted"),
        ({"name": ["x"]}, "body.name", "a text is wanted"),
        ({"name": "x", "roles": "clerk"}, "body.roles", "a list is wanted: […]"),
        ({"name": "x", "colour": "red"}, "body.colour", "there is no such field here"),
        ([], "body", "an object is wanted: {…}"),
        ("x", "body", "an object is wanted: {…}"),
        (None, "body", "it is missing"),
    ],
)
async def test_a_body_of_the_wrong_type_is_told_where(site18: Site, body: Any, where: str, detail: str) -> None:
    answer = await (await site18.http("boss")).post("/api/persons", json=body)
    assert await code_of(answer) == (422, "wrong_body")
    assert answer.json()["errors"][0] == {"where": where, "detail": detail}
    assert answer.json()["detail"].startswith(f"{where}: {detail}")


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/api/instances/x", "a whole number is wanted"),
        ("/api/instances/0", "it is 1 at least"),
        ("/api/instances?limit=many", "a whole number is wanted"),
        ("/api/jobs?status=gone", "one of these is wanted: "),
        (f"/api/flows/{'x' * 101}", "it may have 100 characters at most"),
    ],
)
async def test_what_is_wrong_with_an_address_is_told_in_our_words(site18: Site, path: str, detail: str) -> None:
    answer = await (await site18.http("boss")).get(path)
    assert detail in answer.json().get("detail", "")
    for word in ("Input should", "valid", "dict", "NoneType", "pydantic"):
        assert word not in answer.text


@pytest.mark.parametrize("text", [b"", b"{", b"nonsense", b"\xff\xfe", b'{"name": NaN}', b'{"name": "\\ud800"}'])
async def test_what_is_no_json_is_refused(site18: Site, text: bytes) -> None:
    http = await site18.http("boss")
    answer = await http.post("/api/persons", content=text, headers={"Content-Type": "application/json"})
    assert await code_of(answer) == (422, "wrong_body")


async def test_json_that_does_not_say_so_is_refused(site18: Site) -> None:
    http = await site18.http("boss")
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = await http.post("/api/persons", content=b'{"name": "x"}', headers={"Content-Type": media})
        assert answer.status_code == 422
    assert [person.name async for person in (await site18.client("boss")).persons.all()] == [
        "boss",
        "clerk_1",
        "clerk_2",
        "outsider",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/api/instances/0",
        "/api/instances/-1",
        "/api/instances/x",
        "/api/instances/9223372036854775808",
        "/api/instances/1/why?at=99999999999999999999",
        "/api/persons/%00",
        "/api/persons?search=%00",
        "/api/instances?limit=0",
        "/api/instances?limit=100000",
        "/api/instances?cursor=%FF",
        "/api/instances?status=gone",
        "/api/jobs?status=gone",
        "/api/times?cron=x",
        "/api/times?cron=0+0+*+*+*&zone=Nowhere",
    ],
)
async def test_addresses_that_cannot_be_meant(site: Site, path: str) -> None:
    answer = await (await site.http("boss")).get(path)
    assert (await code_of(answer))[0] == 422


async def test_a_text_without_end_is_refused(site18: Site) -> None:
    answer = await (await site18.http("boss")).post("/api/persons", json={"name": "a\0b"})
    assert await code_of(answer) == (422, "wrong_body")


async def test_what_is_not_there(site18: Site) -> None:
    http = await site18.http("boss")
    assert await code_of(await http.get("/api/nothing")) == (404, "unknown_path")
    assert await code_of(await http.get("/nothing")) == (404, "unknown_path")
    assert await code_of(await http.delete("/api/flows")) == (405, "wrong_method")
    for path, code in (
        ("/api/instances/17", "unknown_instance"),
        ("/api/jobs/17", "unknown_job"),
        ("/api/persons/nobody", "unknown_person"),
        ("/api/roles/nothing", "unknown_role"),
        ("/api/flows/nothing", "unknown_flow"),
        ("/api/flows/request?version=9", "unknown_version"),
        ("/api/schedules/nothing", "unknown_schedule"),
        ("/api/batches/17", "unknown_batch"),
        ("/api/uploads/17", "unknown_upload"),
        (f"/api/instances/17/files/{'0' * 64}", "unknown_file"),
    ):
        assert await code_of(await http.get(path)) == (404, code)
    for path, code in (
        ("/api/library/task_models/nothing", "unknown_model"),
        ("/api/library/applications/nothing", "unknown_application"),
        ("/api/library/orderings/a/b", "unknown_ordering"),
    ):
        assert await code_of(await http.delete(path)) == (404, code)


async def test_every_answer_keeps_browsers_from_harm(site18: Site) -> None:
    http = await site18.http("boss")
    for path in ("/api/session", "/health", "/api/nothing"):
        answer = await http.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/api/worklist?sorted=deadline", 'there is no parameter "sorted"; did you mean "sort"?'),
        ("/api/worklist?sort=deadline&limits=3", 'did you mean "limit"?'),
        ("/api/worklist/counts?flow=request", 'there is no parameter "flow"; there are none here'),
        ("/api/instances?state=open", "state"),
        ("/api/events?instances=1", 'did you mean "instance"?'),
    ],
)
async def test_a_parameter_that_a_route_does_not_have_is_refused(site18: Site, address: str, says: str) -> None:
    answer = await (await site18.http("clerk_1")).get(address)
    assert (answer.status_code, answer.json()["code"]) == (422, "wrong_call")
    assert says in answer.json()["detail"]


async def test_every_parameter_that_is_described_is_known(site18: Site) -> None:
    http = await site18.http("boss")
    assert (await http.get("/health?now=1")).status_code == 200
    described = (await http.get("/api/openapi.json")).json()["paths"]
    for path, methods in described.items():
        names = [each["name"] for each in methods.get("get", {}).get("parameters", ()) if each["in"] == "query"]
        if names and "{" not in path and path != "/api/events":
            answer = await http.get(path, params=dict.fromkeys(names, "1"))
            assert "there is no parameter" not in answer.text, path
