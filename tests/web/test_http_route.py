"""Rules that hold for every route: it says who may ask, and is described; every code has a status."""

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from mutirao.database.engine import Engine
from mutirao.server.app import make_app
from mutirao.server.need import ADMINISTRATOR, NOBODY, need_of
from mutirao.server.openapi import api_routes
from mutirao.server.route.parts import routes
from mutirao.server.routing import is_creation
from mutirao.server.status import ELSEWHERE, STATUSES

ROOT = Path(__file__).parents[2]
APP = make_app(Engine("postgresql://nobody@127.0.0.1:1/none"))
ROUTES = api_routes(APP)
OPEN = {"/health", "/ready", "/metrics", "/api/openapi.json", "/api/session"}


def named(route: APIRoute) -> str:
    return f"{'/'.join(sorted(route.methods or ()))} {route.path}"


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_every_route_says_who_may_ask(route: APIRoute) -> None:
    need = need_of(route)
    if need is NOBODY:
        assert route.path in OPEN


def test_a_route_that_says_nothing_is_found_out() -> None:
    router = routes("flow", "/x")

    @router.get("")
    async def forgotten() -> None: ...

    with pytest.raises(LookupError, match=r"GET.* /api/x does not say who may ask"):
        need_of(next(route for route in router.routes if isinstance(route, APIRoute)))


def test_definitions_persons_and_engine_wide_lists_are_for_administrators() -> None:
    paths = {named(route) for route in ROUTES if need_of(route) is ADMINISTRATOR}
    assert {
        "POST /api/flows",
        "GET /api/overview",
        "GET /api/jobs",
        "POST /api/persons",
        "POST /api/roles",
        "POST /api/pdl",
        "GET /api/schedules",
        "GET /api/batches",
    } <= paths


def document() -> dict[str, Any]:
    return APP.openapi()


def operations() -> list[Any]:
    found = [
        pytest.param(operation, id=f"{method.upper()} {path}")
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(found) > 60
    return found


@pytest.mark.parametrize("operation", operations())
def test_every_operation_is_described(operation: dict[str, Any]) -> None:
    assert operation["tags"][0] in {tag["name"] for tag in document()["tags"]}
    assert operation["summary"], "the function says nothing of itself"
    for status in ("422", "503"):
        assert operation["responses"][status]["$ref"] == f"#/components/responses/Refusal{status}"
    if "security" in operation:
        assert {"401", "403", "404"} <= operation["responses"].keys()


@pytest.mark.parametrize("operation", operations())
def test_what_is_sent_and_answered_is_shown_by_an_example(operation: dict[str, Any]) -> None:
    """One that its own schema allows."""
    for said in (operation.get("requestBody", {}), *operation["responses"].values()):
        content = said.get("content", {}).get("application/json")
        if content is not None:
            check(content["schema"], example(content))


def example(content: dict[str, Any]) -> Any:
    """Of a list it stands here, of a model with the model."""
    if "$ref" in content["schema"]:
        content = document()["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        assert content["examples"][0], "an empty example shows nothing"
        return content["examples"][0]
    return content["example"]


def check(schema: dict[str, Any], shown: Any) -> None:
    whole = {**schema, "components": document()["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(shown)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.body_field], ids=named)
def test_what_is_shown_would_be_taken(route: APIRoute) -> None:
    """Also by what a schema does not tell."""
    for method in route.methods or ():
        content = document()["paths"][route.path][method.lower()]["requestBody"]["content"]["application/json"]
        kind: Any = route.body_field and route.body_field.field_info.annotation
        TypeAdapter(kind).validate_python(example(content))


def test_the_document_is_openapi_3_1_with_both_ways_in() -> None:
    found = document()
    assert found["openapi"].startswith("3.1")
    assert found["components"]["securitySchemes"].keys() == {"token", "session"}
    assert "application/problem+json" in found["components"]["responses"]["Refusal404"]["content"]


def test_names_of_operations_are_unique() -> None:
    names = [operation["operationId"] for methods in document()["paths"].values() for operation in methods.values()]
    assert sorted(set(names)) == sorted(names)


def test_names_of_schemas_are_words() -> None:
    """Two of one name would be told apart by where they stand in the program, which is nobody's business."""
    names = document()["components"]["schemas"]
    assert [name for name in names if "__" in name or "-" in name] == []


def test_what_creates_takes_an_idempotency_key() -> None:
    for route in ROUTES:
        for method in route.methods or ():
            operation = document()["paths"].get(route.path, {}).get(method.lower(), {})
            given = {each["name"] for each in operation.get("parameters", ())}
            assert ("Idempotency-Key" in given) == is_creation(route), named(route)
            if (
                method == "POST"
                and "201" in operation["responses"]
                and route.path not in ("/api/session", "/api/files")
            ):
                assert is_creation(route), named(route)


def test_every_code_has_a_status_or_is_met_elsewhere() -> None:
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert not STATUSES.keys() & ELSEWHERE
    assert STATUSES.keys() | ELSEWHERE == documented
