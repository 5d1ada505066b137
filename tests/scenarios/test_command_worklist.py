"""`mutirao worklist`: an operator acts for persons, from the list to the finished item."""

from datetime import timedelta

import pytest
from command import answer, assert_refused, mutirao
from people import office_of_three  # noqa: F401 gives the fixture `office`

from mutirao import Creation, FlowBuilder
from mutirao.database.engine import Engine

Letter = (
    FlowBuilder("letter")
    .attribute("topic", searchable=True)
    .attribute("answer")
    .work(
        "reply",
        "clerk",
        when="answer is null",
        outputs=("answer",),
        deadline=timedelta(hours=30),
        disconnected=True,
        description="Reply to the letter",
    )
    .creator("manager")
    .final("answer is not null")
    .build()
)


@pytest.fixture(name="url")
async def office_with_letters(office: str) -> str:
    """Two letters for two clerks."""
    async with Engine(office, upgrade=False) as engine:
        await engine.apply(Letter)
        manager = await engine.persons.number("manager")
        for topic in ("tax", "roads"):
            await engine.charges.create(manager, Creation(flow="letter", state={"topic": topic}, key=f"file {topic}"))
    return office


def items(url: str, person: str, *words: str) -> list[int]:
    return [each["job"] for each in answer("worklist", "list", "--as", person, *words, "--database", url)["items"]]


def test_an_item_goes_from_the_list_to_its_end(url: str) -> None:
    first, second = items(url, "clerk_1", "--sort", "deadline")
    listed = mutirao("worklist", "list", "--as", "clerk_1", "--limit", 1, "--database", url, COLUMNS=140)
    assert "letter.reply" in listed.stdout
    assert "file tax" in listed.stdout
    assert "In all 2 items to do, 0 held, 0 overdue." in listed.stdout
    cursor = listed.stdout.split("--after ")[1].split()[0]
    assert items(url, "clerk_1", "--after", cursor) == [second]
    taken = answer("worklist", "select", first, "--as", "clerk_1", "--database", url)
    assert taken["job"] == first
    assert items(url, "clerk_2") == [second]
    mutirao("worklist", "comment", first, "who signs?", "--as", "clerk_1", "--database", url)
    shown = mutirao("worklist", "show", first, "--as", "clerk_1", "--database", url, COLUMNS=140).stdout
    for words in ("held by clerk_1", "Reply to the letter", "answer (text)", "clerk_1: who signs?", "topic", "manager"):
        assert words in shown
    assert_refused(mutirao("worklist", "select", first, "--as", "clerk_2", "--database", url), "item_taken")
    assert_refused(
        mutirao("worklist", "finish", second, "answer=yes", "--as", "clerk_1", "--database", url), "item_not_held"
    )
    said = mutirao("worklist", "finish", first, "answer=yes", "--as", "clerk_1", "--database", url)
    assert f"Item {first} is done." in said.stdout
    again = mutirao("worklist", "finish", first, "answer=no", "--as", "clerk_1", "--database", url)
    assert_refused(again, "item_finished")
    assert items(url, "clerk_1") == [second]


def test_items_are_handed_around(url: str) -> None:
    first, second = items(url, "clerk_1")
    for words in (
        ("lock", first, "--as", "clerk_1"),
        ("return", first, "--as", "clerk_1", "--reason", "no time"),
        ("next", "--as", "clerk_1", "--flow", "letter"),
        ("delegate", first, "clerk_2", "--as", "clerk_1"),
        ("insert", second, "manager", "--as", "manager"),
        ("remove", second, "clerk_1", "--as", "manager"),
    ):
        said = mutirao("worklist", *words, "--database", url)
        assert said.returncode == 0, said.stderr
    assert (items(url, "clerk_1"), items(url, "clerk_2"), items(url, "manager")) == ([], [first, second], [second])
    assert mutirao("worklist", "move", second, "--before", first, "--as", "clerk_2", "--database", url).returncode == 0
    assert items(url, "clerk_2", "--sort", "hand") == [second, first]
    assert mutirao("worklist", "move", second, "--swap", first, "--as", "clerk_2", "--database", url).returncode == 0
    assert items(url, "clerk_2", "--sort", "hand") == [first, second]
    assert answer("worklist", "next", "--as", "clerk_1", "--database", url) is None
    assert "There is nothing to do." in mutirao("worklist", "next", "--as", "clerk_1", "--database", url).stdout
    mutirao("worklist", "select", first, "--as", "clerk_2", "--database", url)
    said = mutirao("worklist", "fail", first, "--error", "it is empty", "--as", "clerk_2", "--database", url)
    assert f"Item {first} has failed." in said.stdout


def test_the_list_is_filtered(url: str) -> None:
    first, second = items(url, "clerk_1")
    assert items(url, "clerk_1", "--where", "topic=roads") == [second]
    assert items(url, "clerk_1", "--search", "file t") == [first]
    assert items(url, "clerk_1", "--overdue") == []
    assert items(url, "clerk_1", "--status", "running") == []
    assert items(url, "clerk_1", "--due-before", "2100-01-01", "--role", "clerk", "--descending") == [second, first]
    assert "No items." in mutirao("worklist", "list", "--as", "manager", "--database", url).stdout
    for words, code in ((("--where", "answer=x"), "not_searchable"), (("--sort", "shape"), "wrong_call")):
        assert_refused(mutirao("worklist", "list", "--as", "clerk_1", *words, "--database", url), code)
    assert_refused(mutirao("worklist", "list", "--as", "clerk_1", "--where", "topic", "--database", url), "usage", 2)
    assert_refused(mutirao("worklist", "list", "--as", "clerk_9", "--database", url), "unknown_person")
    assert_refused(mutirao("worklist", "move", first, "--as", "clerk_1", "--database", url), "usage", 2)


def test_an_item_is_given_more_time(url: str) -> None:
    first, _ = items(url, "clerk_1")
    said = mutirao("worklist", "extend", first, "--at", "2100-01-01T12:00Z", "--as", "manager", "--database", url)
    assert f"Item {first} is to be done by 2" in said.stdout
    shown = answer("worklist", "show", first, "--as", "clerk_1", "--database", url)
    assert shown["item"]["finish_by"].startswith("2100-01-01T12:00")
    assert mutirao("worklist", "extend", first, "--in", "3d", "--as", "manager", "--database", url).returncode == 0
    assert_refused(
        mutirao("worklist", "extend", first, "--in", "3d", "--as", "clerk_1", "--database", url), "forbidden"
    )
    assert_refused(mutirao("worklist", "extend", first, "--as", "manager", "--database", url), "usage", 2)


def test_filters_are_saved_used_and_removed(url: str) -> None:
    first, second = items(url, "clerk_1")
    where = ("--where", "topic=roads", "--sort", "deadline")
    assert items(url, "clerk_1", *where, "--save", "roads") == [second]
    assert items(url, "clerk_1", "--filter", "roads") == [second]
    assert items(url, "clerk_1", "--filter", "roads", "--where", "topic=tax") == [first]
    listed = mutirao("worklist", "filter", "list", "--as", "clerk_1", "--database", url).stdout
    assert "roads" in listed
    assert "sort deadline" in listed
    [saved] = answer("worklist", "filter", "list", "--as", "clerk_1", "--database", url)
    assert saved["filter"]["attributes"] == {"topic": "roads"}
    mutirao("worklist", "filter", "rename", "roads", "my roads", "--as", "clerk_1", "--database", url)
    assert_refused(
        mutirao("worklist", "list", "--as", "clerk_1", "--filter", "roads", "--database", url), "unknown_filter"
    )
    taken = answer("worklist", "next", "--as", "clerk_1", "--filter", "my roads", "--database", url)
    assert taken["job"] == second
    said = mutirao("worklist", "filter", "remove", "my roads", "--as", "clerk_1", "--database", url)
    assert said.stdout == "Filter my roads is removed.\n"
    assert "No filters." in mutirao("worklist", "filter", "list", "--as", "clerk_1", "--database", url).stdout
    for words, code in ((("--where", "answer=x", "--save", "x"), "not_searchable"), (("--sort", "up"), "wrong_call")):
        assert_refused(mutirao("worklist", "list", "--as", "clerk_1", *words, "--database", url), code)
