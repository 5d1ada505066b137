"""`mutirao instance` for people: started as a person, handed over, talked about; and files by command."""

import asyncio
import shlex
from pathlib import Path

import pytest
from command import answer, assert_refused, mutirao
from people import office_of_three  # noqa: F401 gives the fixture `office`

from mutirao import FlowBuilder
from mutirao.database.engine import Engine
from mutirao.errors import RequestError

House = (
    FlowBuilder("house")
    .attribute("plan", "file")
    .attribute("photo", "file")
    .work("draw", "clerk", when="photo is null", outputs=("photo",))
    .creator("manager")
    .final("photo is not null")
    .build()
)


@pytest.fixture(name="url")
async def office_for_houses(office: str) -> str:
    async with Engine(office, upgrade=False) as engine:
        await engine.apply(House)
    return office


def start(url: str, *words: str) -> int:
    [number] = answer("instance", "start", "house", *words, "--database", url)["instances"]
    return int(number)


def test_files_are_sent_shown_and_fetched(url: str, tmp_path: Path) -> None:
    plan, photo, fetched = tmp_path / "plan.pdf", tmp_path / "photo.jpg", tmp_path / "fetched.pdf"
    plan.write_bytes(b"a plan " * 100_000)
    photo.write_bytes(b"a photo")
    instance = start(url, f"plan=@{plan}")
    state = answer("instance", "show", instance, "--database", url)["instance"]["state"]
    assert (state["plan"]["name"], state["plan"]["size"]) == ("plan.pdf", 700_000)
    assert state["plan"]["media"] == "application/pdf"
    assert "plan.pdf (700.0 kB)" in mutirao("instance", "show", instance, "--database", url).stdout
    taken = answer("worklist", "next", "--as", "clerk_1", "--database", url)
    said = mutirao("worklist", "finish", taken["job"], f"photo=@{photo}", "--as", "clerk_1", "--database", url)
    assert said.returncode == 0, said.stderr
    said = mutirao("instance", "file", instance, "plan", "--out", fetched, "--database", url)
    assert said.stdout.replace("\n", "") == f"Saved to {fetched} (700.0 kB)."
    assert fetched.read_bytes() == plan.read_bytes()
    assert mutirao("instance", "file", instance, "photo", "--out", "-", "--database", url).stdout == "a photo"
    again = ("instance", "file", instance, "photo", "--out", fetched, "--database", url)
    assert_refused(mutirao(*again), "file_exists")
    assert mutirao(*again, "--force").returncode == 0
    assert fetched.read_bytes() == b"a photo"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fetched.pdf", "photo.jpg", "plan.pdf"]


def test_files_are_sent_wherever_an_attribute_is_given(url: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    instance = start(url, "--key", "one")
    for said, words in (
        ("set", ("instance", "set", instance)),
        ("sent", ("event", "send", "house", "one")),
    ):
        plan.write_text(said)
        done = mutirao(*words, f"plan=@{plan}", "--database", url)
        assert done.returncode == 0, done.stderr
        assert mutirao("instance", "file", instance, "plan", "--out", "-", "--database", url).stdout == said


def test_files_that_are_not_there_are_refused(url: str, tmp_path: Path) -> None:
    for words, code in (
        ((f"plan=@{tmp_path / 'none.pdf'}",), "no_such_file"),
        ((f"plan=@{tmp_path}",), "no_such_file"),
        (("plan=plan.pdf",), "wrong_type"),
        (("plan=@a", "plan=@b"), "wrong_type"),
    ):
        assert_refused(mutirao("instance", "start", "house", *words, "--database", url), code)
    instance = start(url)
    for wrong, code in (
        ((instance, "plan"), "unknown_file"),
        ((instance, "plam"), "unknown_attribute"),
        ((instance, "plan", "--attachment", 1), "unknown_file"),
        ((999, "plan"), "unknown_instance"),
    ):
        assert_refused(mutirao("instance", "file", *wrong, "--database", url), code)


def test_a_late_result_is_shown_and_its_file_fetched(url: str, tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(b"too late")
    instance = start(url, "--as", "manager")
    taken = answer("worklist", "next", "--as", "clerk_1", "--database", url)
    job = taken["job"]
    mutirao("worklist", "delegate", job, "clerk_2", "--as", "manager", "--database", url)
    # Whoever comes late knows the attempt: over HTTP, from a page that was open all the time.
    late(url, job, taken["attempt"], photo)
    shown = mutirao("worklist", "show", job, "--as", "clerk_2", "--database", url).stdout
    assert "clerk_1, too late: photo photo.jpg (8 bytes)" in shown
    mutirao("worklist", "select", job, "--as", "clerk_2", "--database", url)
    mutirao("instance", "cancel", instance, "--database", url)
    mutirao("worklist", "return", job, "--as", "clerk_2", "--database", url)
    told = answer("instance", "show", instance, "--database", url)
    assert told["instance"]["status"] == "closed.aborted"
    [kept] = told["attachments"]
    assert (
        "clerk_1, too late: photo photo.jpg (8 bytes)"
        in mutirao("instance", "show", instance, "--database", url).stdout
    )
    fetch = ("instance", "file", instance, "photo", "--attachment", kept["id"], "--out", "-", "--database", url)
    assert mutirao(*fetch).stdout == "too late"


def late(url: str, job: int, attempt: int, photo: Path) -> None:
    async def finish() -> None:
        async with Engine(url, upgrade=False) as engine:
            clerk = await engine.persons.number("clerk_1")
            file = await engine.files.upload_from(photo, actor=clerk)
            with pytest.raises(RequestError, match="kept as attachment"):
                await engine.worklists.finish(clerk, job, attempt, {"photo": file})

    asyncio.run(finish())


def test_a_person_starts_it_and_is_in_charge(url: str) -> None:
    instance = start(url, "--as", "manager", "--policy", "draw=least_loaded", "--reason", "by phone")
    assert "manager" in mutirao("instance", "show", instance, "--database", url).stdout
    items = [answer("worklist", "list", "--as", each, "--database", url)["items"] for each in ("clerk_1", "clerk_2")]
    assert sorted(map(len, items)) == [0, 1]
    words = ("instance", "start", "house", "--database", url)
    assert_refused(mutirao(*words, "--as", "clerk_1"), "forbidden")
    assert_refused(mutirao(*words, "--policy", "draw=least_loaded"), "usage", 2)
    assert_refused(mutirao(*words, "--as", "manager", "--policy", "draw=least_loadet"), "usage", 2)
    assert_refused(mutirao(*words, "--as", "manager", "--policy", "drew=round_robin"), "unknown_task")
    other = start(url, "--as", "manager", "--in-charge", "clerk_2", "--key", "one")
    assert start(url, "--as", "manager", "--key", "one") == other
    [mine] = answer("instance", "list", "--as", "clerk_2", "--database", url)
    assert (mine["id"], mine["in_charge"]) == (other, "clerk_2")


def test_it_is_handed_over_and_talked_about(url: str) -> None:
    instance = start(url, "--as", "manager")
    hand_over = ("instance", "hand-over", instance, "clerk_2", "--reason", "on leave", "--database", url)
    assert_refused(mutirao(*hand_over, "--as", "clerk_1"), "forbidden")
    assert mutirao(*hand_over, "--as", "manager").stdout == f"clerk_2 is in charge of instance {instance}.\n"
    said = mutirao("instance", "comment", instance, "who signs?", "--as", "clerk_2", "--database", url)
    assert said.returncode == 0, said.stderr
    shown = mutirao("instance", "show", instance, "--database", url).stdout
    for words in ("in charge", "clerk_2: who signs?", "handed over to clerk_2", "on leave", "for clerk"):
        assert words in shown
    [comment] = answer("instance", "show", instance, "--database", url)["comments"]
    remove = ("instance", "remove-comment", comment["id"], "--database", url)
    assert_refused(mutirao(*remove, "--as", "manager"), "forbidden")
    assert mutirao(*remove, "--as", "clerk_2").stdout == f"Comment {comment['id']} is removed.\n"


def test_one_that_is_being_cancelled_says_so(url: str) -> None:
    instance = start(url, "--as", "manager")
    answer("worklist", "next", "--as", "clerk_1", "--database", url)
    said = mutirao("instance", "cancel", instance, "--database", url)
    assert said.stdout == f"Instance {instance} is open.running, being cancelled.\n"
    for words in (("instance", "list"), ("instance", "show", instance)):
        assert "being cancelled" in mutirao(*words, "--database", url).stdout
    shown = mutirao("instance", "show", instance, "--database", url).stdout
    assert "held by clerk_1, of clerk" in shown
    assert "draw taken" in shown


def test_what_is_advised_can_be_copied(url: str) -> None:
    said = mutirao("person", "add", "the 'new' clerk", "--role", "clerk", "--database", url)
    [line] = [each for each in said.stdout.splitlines() if each.startswith("No password yet: ")]
    assert shlex.split(line)[-4:] == ["password", "the 'new' clerk", "--database", url]
    start(url)
    [item] = answer("worklist", "list", "--as", "clerk_1", "--database", url)["items"]
    finish = ("worklist", "finish", item["job"], "--as", "the 'new' clerk", "--database", url)
    refused = mutirao(*finish)
    assert_refused(refused, "item_not_held")
    assert shlex.split(refused.stderr)[-4:] == ["--as", "the 'new' clerk", "--database", url]


async def test_a_childs_job_names_the_instance_that_does_it(url: str) -> None:
    async with Engine(url, upgrade=False) as engine:
        street = FlowBuilder("street").attribute("photo", "file").final("photo is not null")
        await engine.apply(street.child("build", "house", when="photo is null", outputs=("photo",)).build())
        [parent] = await engine.start_named("street", [{}])
        async with engine.connection() as connection:
            await connection.execute("select mutirao.turn_clock(duty => 'children')")
        [child] = (await engine.instance(parent)).children
        [job] = await engine.jobs(parent)
    assert f"instance {child} does it" in mutirao("instance", "show", parent, "--database", url).stdout
    assert f"instance {child}" in mutirao("job", "show", job.id, "--database", url).stdout
    assert f"instance {parent}" in mutirao("instance", "show", child, "--database", url).stdout
