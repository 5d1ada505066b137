"""What no page may do: show what belongs to others, change anything by being read, or run what is not ours."""

import re

import pytest
from every_page import SECRET, addresses, lively, whole_pages
from page_kit import Place, a_place  # noqa: F401 gives the fixture
from test_http_outsider import everything

from mutirao.server.need import NOBODY, SignedIn, need_of
from mutirao.server.openapi import page_routes
from mutirao.server.page.shell import pages

pytestmark = pytest.mark.asyncio(loop_scope="session")

_INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", re.IGNORECASE)


async def test_every_page_forbids_what_is_not_ours_and_has_none_of_it(place: Place) -> None:
    known = await lively(place)
    http = await place.site.http("boss")
    for path in addresses(place, known):
        answer = await http.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:2000]}"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        found = _INLINE.search(answer.text)
        assert found is None, f"{path} has {answer.text[found.start() : found.start() + 80]}"


async def test_reading_pages_changes_nothing(place: Place) -> None:
    known = await lively(place)
    http = await place.site.http("boss")
    before = await everything(place.site)
    for path in addresses(place, known):
        await http.get(path)
    assert await everything(place.site) == before


SEEN = {
    "outsider": set[str](),
    "clerk_2": {"/items/{job}"},  # it is for all clerks
    "clerk_1": {"/items/{job}", "/instances/{instance}", "/exceptions", "/exceptions/{instance}"},
}
"""Who finds the secret where."""


async def test_an_outsider_finds_nothing_of_others_in_any_page(place: Place) -> None:
    known = await lively(place)
    for person, expected in SEEN.items():
        http = await place.site.http(person)
        shown = set()
        for route, path in zip(whole_pages(place), addresses(place, known), strict=True):
            answer = await http.get(path, headers={"Accept": "text/html"})
            if need_of(route).is_administrator:
                assert answer.status_code == 403, f"{person} {path}"
            else:
                assert answer.status_code in (200, 404), f"{person} {path}: {answer.text}"
            if SECRET in answer.text:
                shown.add(route.path)
        assert shown == expected, person


async def test_nobody_sees_a_page_without_signing_in(place: Place) -> None:
    known = await lively(place)
    http = await place.site.http()
    for route in page_routes(place.site.server.app):
        if need_of(route) is NOBODY or ("{name}" in route.path and route.path.startswith("/asset")):
            continue
        path = route.path.format(**known)
        answer = await http.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 303, f"{path}: {answer.status_code}"
        assert answer.headers["location"].startswith("/sign-in")
        part = await http.get(path, headers={"HX-Request": "true"})
        assert part.status_code == 401, path


async def test_no_page_answers_what_changes_something(place: Place) -> None:
    assert {method for route in page_routes(place.site.server.app) for method in route.methods or ()} == {"GET"}


async def test_a_forged_request_of_another_page_is_refused(place: Place) -> None:
    """The cookie alone is not enough, whoever sends it."""
    page = await place.visit("clerk_1", "/work")
    _, job = await place.site.item(city="Recife")
    answers = await page.evaluate(
        """async (job) => {
          const ask = (headers) => fetch(`/api/items/${job}/select`, {method: "POST", body: "{}", headers});
          return [(await ask({"Content-Type": "application/json"})).status,
                  (await ask({"Content-Type": "application/json", "X-CSRF-Token": "guessed"})).status];
        }""",
        job,
    )
    assert answers == [403, 403]
    [item] = [each async for each in (await place.site.client("clerk_2")).worklist.all()]
    assert item.status == "ready"


async def test_a_mistake_of_ours_tells_nothing_of_what_is_inside(place: Place) -> None:
    broken = pages()

    @broken.get("/broken")
    async def fail(who: SignedIn) -> None:
        raise ValueError(f"what only {who.name} knows")

    place.site.server.app.include_router(broken)
    page = await place.visit("clerk_1", "/broken")
    assert await page.get_by_role("heading", level=1).inner_text() == "That did not work"
    text = await page.locator("main").inner_text()
    assert "the server's log tells what, by" in text
    assert "knows" not in text


async def test_what_people_write_is_shown_and_never_run(place: Place) -> None:
    clerk = await place.site.client("clerk_1")
    instance, job = await place.site.item(city="<script>document.title = 'broken'</script>")
    await clerk.comments.add(instance, "<img src=x onerror=\"document.title = 'broken'\">")
    for path in ("/work", f"/items/{job}", f"/instances/{instance}", "/instances?everybody=true"):
        page = await place.visit("boss" if "instances" in path else "clerk_1", path)
        assert "broken" not in await page.title()
        assert await page.locator("main script, main img[src=x]").count() == 0
