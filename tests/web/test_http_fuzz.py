"""Requests that nobody thought of: schemathesis over the whole API, as an administrator by a session and as a clerk by a token.

No answer is a 5xx, and each is what the description says. What a path names is there every other time. No route is left
out; of the stream of hints, which does not end, only the beginning is read. That a mistake would be found is tried, too.
"""

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Annotated, Any, Literal

import pytest
import requests
import schemathesis
from fastapi import Response
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok
from served import PASSWORD
from site_kit import Site, serving

from mutirao.database.bridge import Wait, loop_beside
from mutirao.people import add_token, set_password, sign_in
from mutirao.server.answer import answer
from mutirao.server.cookie import CSRF_HEADER
from mutirao.server.need import SignedIn
from mutirao.server.route.parts import routes
from mutirao.testing.database import TestServer

SEEDS = (1, 2, 3, 4, 5)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 3
ANSWER_WITHIN = 30
STREAMS = "/api/events"
BOSS, CLERK = "boss", "clerk_1"


Proof = dict[Literal["headers", "cookies"], dict[str, str]]
"""Who asks, as a request tells it."""


class Fuzzed:
    """A server in another thread, and known things to ask for."""

    def __init__(self, site: Site, wait: Wait) -> None:
        self.site = site
        self._wait = wait
        self._session = requests.Session()
        self._session.trust_env = False
        instance, job = wait(site.item(city="Recife"))
        upload = wait(site.engine.files.begin("a.bin", actor=wait(site.engine.persons.number("clerk_1"))))
        self._known = {"person": "clerk_1", "role": "clerk", "flow": "request", "task": "approve", "upload": upload}
        self._known |= {"instance": instance, "job": job, "name": "known", "batch": 1, "number": 0}
        self._signed_in: dict[str, Proof] = {}
        self._made = 0
        self.answers: Counter[int] = Counter()

    def place(self, case: Case[Any]) -> None:
        for name in case.path_parameters:
            if name in self._known:
                case.path_parameters[name] = self._known[name]

    def ask(self, case: Case[Any], person: str) -> None:
        ask = self._ask_stream if case.operation.path == STREAMS else self._ask
        response = ask(case, self._signed_in.get(person) or self._sign_in(person))
        if response.status_code == requests.codes.unauthorized:  # some other case was to end it
            response = ask(case, self._sign_in(person))
        self.answers[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    def _ask(self, case: Case[Any], proof: Proof) -> requests.Response:
        return case.call(self.site.url, self._session, **deepcopy(proof), timeout=ANSWER_WITHIN)  # type: ignore[return-value]

    def _ask_stream(self, case: Case[Any], proof: Proof) -> requests.Response:
        """As far as the first piece: it would not end."""
        asked = case.as_transport_kwargs(base_url=self.site.url, headers=dict(proof["headers"]))
        asked["cookies"] = {**(asked.get("cookies") or {}), **proof["cookies"]}
        with self._session.request(**asked, stream=True, timeout=ANSWER_WITHIN) as response:
            response._content = next(response.iter_content(None))  # noqa: SLF001 what it answers as its content
        return response

    def _sign_in(self, person: str) -> Proof:
        """What sessions alone may do is for the administrator; and a token's person may be disabled by then."""
        self._made += 1
        self._signed_in[person] = self._wait(self._session_of(person) if person == BOSS else self._token_of(person))
        return self._signed_in[person]

    async def _session_of(self, person: str) -> Proof:
        await set_password(self.site.engine, None, person, PASSWORD)
        session = await sign_in(self.site.engine, person, PASSWORD)
        csrf = session.identity.csrf or ""
        return {"headers": {CSRF_HEADER: csrf}, "cookies": {"mutirao_session": session.secret}}

    async def _token_of(self, person: str) -> Proof:
        await self.site.engine.persons.enable(None, person)
        made = await add_token(self.site.engine, None, person, f"fresh {self._made}")
        return {"headers": {"Authorization": f"Bearer {made.secret}"}, "cookies": {}}


@pytest.fixture
def fuzzed(servers: dict[str, TestServer]) -> Iterator[Fuzzed]:
    with loop_beside() as wait, wait.inside(servers["pg18"].clone()) as url, wait.inside(serving(url)) as site:
        yield Fuzzed(site, wait)


@pytest.mark.timeout(300)
def test_no_request_to_one_half_brings_it_down(fuzzed: Fuzzed) -> None:
    """The other half is at the end of the file, so that each has a core of its own."""
    play_half(fuzzed, 0)


def play_half(fuzzed: Fuzzed, half: int) -> None:
    operations = [found.ok() for found in described(fuzzed).get_all_operations() if isinstance(found, Ok)]
    assert len(operations) > 90
    for operation in operations[half::2]:
        play(fuzzed, operation)
    # Not all of it is refused, or little would be seen of what lies behind.
    assert fuzzed.answers[200] + fuzzed.answers[201] + fuzzed.answers[204] > sum(fuzzed.answers.values()) / 10
    assert {403, 404, 422} <= fuzzed.answers.keys()


def described(fuzzed: Fuzzed) -> Any:
    """Without how one signs in: or it would make up tokens beside ours."""
    document = deepcopy(fuzzed.site.server.app.openapi())
    for operations in document["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
    return schemathesis.openapi.from_dict(document)


class Planted(BaseModel):
    number: Annotated[int, Field(ge=0, le=10)]
    title: str = ""


async def divide(who: SignedIn, body: Planted) -> Response:
    return answer([who.id, 1 // body.number])


async def ask_wrongly(who: SignedIn, body: Planted) -> Response:
    """What a caller sends reaches the database as it is."""
    await who.engine.persons.page(who.id, limit=-body.number)
    return answer([])


async def promise_a_list(who: SignedIn, body: Planted) -> Response:
    return answer({"id": who.id, "number": body.number})


@pytest.mark.parametrize("mistake", [divide, ask_wrongly, promise_a_list])
def test_a_mistake_is_found(fuzzed: Fuzzed, mistake: Any) -> None:
    router = routes("health", "")
    router.post("/planted", response_model=list[int])(mistake)
    fuzzed.site.server.app.include_router(router)
    schema = described(fuzzed)
    with pytest.raises(BaseExceptionGroup) as caught:
        play(fuzzed, schema["/api/planted"]["POST"])
    assert caught.value.exceptions


def play(fuzzed: Fuzzed, operation: APIOperation[Any, Any, Any, Any]) -> None:
    cases = operation.as_strategy(GenerationMode.POSITIVE)
    if operation.path_parameters or operation.query or operation.body:
        cases |= operation.as_strategy(GenerationMode.NEGATIVE)
    for number in SEEDS:  # what a strategy costs is to make it
        run_with(number, fuzzed, cases)


def run_with(number: int, fuzzed: Fuzzed, cases: Any) -> None:
    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, person=st.sampled_from((BOSS, CLERK)), is_known=st.booleans())
    def run(case: Case[Any], person: str, is_known: bool) -> None:
        if is_known:
            fuzzed.place(case)
        fuzzed.ask(case, person)

    run()


@pytest.mark.timeout(300)
def test_no_request_to_the_other_half_brings_it_down(fuzzed: Fuzzed) -> None:
    play_half(fuzzed, 1)
