"""Files over HTTP: streamed in and out, in chunks that may be resumed, and for those alone who see the instance."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import quote

import pytest
from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures

from mutirao.database.file import CHUNK
from mutirao.model import Attribute, Definition, Offer, Task
from mutirao.model.file import File

CONTENT = bytes(range(256)) * 3000  # a few chunks

REPORT = Definition(
    name="report",
    creator="clerk",
    attributes=(Attribute("paper", "file"), Attribute("read", "boolean")),
    tasks=(Task(name="look", when="read is null", offer=Offer(role="clerk"), outputs=("read",)),),
    final="read",
)


async def pieces() -> AsyncIterator[bytes]:
    for at in range(0, len(CONTENT), 100_000):
        yield CONTENT[at : at + 100_000]


async def with_file(site: Site) -> tuple[int, File]:
    await site.engine.apply(REPORT)
    clerk = await site.client("clerk_1")
    file = await clerk.files.put(pieces(), "the paper.pdf", media="application/pdf")
    instance = await clerk.instances.create("report", {"paper": vars_of(file)})
    return instance.id, file


def vars_of(file: File) -> dict[str, object]:
    return {"sha256": file.sha256, "name": file.name, "size": file.size, "media": file.media}


async def test_a_file_goes_in_and_comes_out(site: Site) -> None:
    instance, file = await with_file(site)
    assert (file.sha256, file.size) == (hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    other = await site.client("clerk_2")
    assert b"".join([part async for part in other.files.open(instance, file)]) == CONTENT
    part = [part async for part in other.files.open(instance, file, offset=CHUNK - 5, length=10)]
    assert b"".join(part) == CONTENT[CHUNK - 5 : CHUNK + 5]


async def test_a_file_is_for_those_who_see_the_instance(site: Site) -> None:
    instance, file = await with_file(site)
    async with refused("unknown_file", 404):
        await anext((await site.client("outsider")).files.open(instance, file))
    async with refused("unknown_file", 404):
        await anext((await site.client("outsider")).files.open(instance + 1, file))


async def test_ranges_are_answered_as_http_has_them(site18: Site) -> None:
    instance, file = await with_file(site18)
    http = await site18.http("clerk_1")
    path = f"/api/instances/{instance}/files/{file.sha256}?name=the%20paper.pdf"
    whole = await http.get(path)
    assert whole.headers["content-disposition"] == "attachment; filename*=UTF-8''the%20paper.pdf"
    assert (whole.status_code, whole.headers["content-type"]) == (200, "application/octet-stream")
    named = await http.get(path.partition("?")[0])
    assert named.headers["content-disposition"] == f"attachment; filename*=UTF-8''{quote(file.name)}"
    last = await http.get(path, headers={"Range": "bytes=-5"})
    assert (last.status_code, last.content) == (206, CONTENT[-5:])
    size = len(CONTENT)
    assert last.headers["content-range"] == f"bytes {size - 5}-{size - 1}/{size}"
    assert (await http.get(path, headers={"Range": f"bytes={size}-"})).status_code == 416
    assert (await http.get(path, headers={"Range": "lines=1-2"})).status_code == 200


async def test_an_upload_is_resumed(site: Site) -> None:
    clerk, other = await site.client("clerk_1"), await site.client("clerk_2")
    begun = await clerk.files.begin("a.bin", size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(), key="one")
    assert (
        await clerk.files.begin("a.bin", size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(), key="one")
    ) == begun
    chunks = [CONTENT[at : at + begun.chunk] for at in range(0, len(CONTENT), begun.chunk)]
    await clerk.files.put_chunk(begun.upload, 1, chunks[1])
    async with refused("upload_incomplete", 409):
        await clerk.files.finish(begun.upload)
    async with refused("unknown_upload", 404):
        await other.files.put_chunk(begun.upload, 0, chunks[0])
    for number in (await clerk.files.progress(begun.upload)).missing:
        await clerk.files.put_chunk(begun.upload, number, chunks[number])
    assert (await clerk.files.finish(begun.upload)).size == len(CONTENT)
    async with refused("unknown_upload", 404):
        await other.files.abandon(begun.upload)


async def test_what_a_person_leaves_unused_has_a_limit(site: Site) -> None:
    boss, clerk, other = [await site.client(name) for name in ("boss", "clerk_1", "clerk_2")]
    await boss.settings.set({"unused_limit": 5_000_000})
    kept = await clerk.files.put(b"x" * 3_000_000, "a.bin")
    async with refused("too_many", 409, "unused_limit"):
        await clerk.files.begin("b.bin", size=2_000_001)
    begun = await clerk.files.begin("b.bin", size=2_000_000)
    async with refused("too_many", 409):
        await clerk.files.begin("c.bin")
    await other.files.put(b"y" * 4_000_000, "a.bin")
    await clerk.files.abandon(begun.upload)
    await clerk.files.begin("c.bin", size=2_000_000)
    assert kept.size == 3_000_000


async def test_a_body_of_unknown_length_is_counted_as_it_comes(site: Site) -> None:
    await site.engine.settings.set(None, {"unused_limit": 6_000_000})
    clerk = await site.client("clerk_1")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    async with refused("too_many", 409):
        await clerk.files.put(endless(), "a.bin")


async def test_a_file_larger_than_the_limit_is_refused(site: Site) -> None:
    await site.engine.settings.set(None, {"file_limit": 1000})
    clerk = await site.client("clerk_1")
    async with refused("file_too_large", 413):
        await clerk.files.put(b"x" * 1001, "a.bin")
    async with refused("file_too_large", 413):
        await clerk.files.put(pieces(), "a.bin")
    async with refused("file_too_large", 413):
        await clerk.files.begin("a.bin", size=1001)


@pytest.mark.parametrize("name", ["..", "a/b", "a\nb", "é" * 200])
async def test_a_file_has_a_plain_name(site18: Site, name: str) -> None:
    async with refused("wrong_type", 422):
        await (await site18.client("clerk_1")).files.put(b"x", name)


async def test_finishing_an_upload_may_take_longer_than_any_other_answer(site18: Site) -> None:
    """Its file is read once more, and may be large."""
    clerk, http = await site18.client("clerk_1"), await site18.http("clerk_1")
    upload = (await clerk.files.begin("large.bin")).upload
    await clerk.files.put_chunk(upload, 0, b"large")
    state = site18.server.app.state
    state.options = replace(state.options, answer_within=0.0)
    assert (await http.get(f"/api/uploads/{upload}")).json()["code"] == "took_too_long"
    finished = await http.post(f"/api/uploads/{upload}/finish")
    assert (finished.status_code, finished.json()["name"]) == (200, "large.bin")
