"""Which names an attribute may have: those that a condition can say."""

import re

import pytest
from conditions import Connection
from psycopg import Error

from mutirao.errors import FlowError
from mutirao.model.name import check_attribute_name
from mutirao.model.reserved import HIDDEN_COLUMNS, SQL_WORDS


@pytest.mark.parametrize(
    "name",
    ["a1", "stage", "hotel_name", "x" * 48, "name", "type", "status", "date", "text", "day", "version", "length"],
)
async def test_plain_names_may_be_attributes(connection: Connection, name: str) -> None:
    await connection.execute("select mutirao.check_attribute_name(%s)", (name,))
    made = await connection.execute(
        "select mutirao.condition_function('here', %s, array[%s], '{text}')",
        (f"{name} is not null and length({name}) > 1", name),
    )
    assert await made.fetchone() is not None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("select", "SQL reserves this word; choose another, such as select_"),
        ("user", "SQL reserves this word"),
        ("left", "SQL reserves this word"),
        ("between", "SQL reserves this word"),
        ("time", "SQL reserves this word"),
        ("json", "SQL reserves this word"),
        ("system_user", "SQL reserves this word"),
        ("task_book", "the states of tasks"),
        ("wid", "the instance's own number"),
        ("ctid", "a hidden column"),
        ("tableoid", "a hidden column"),
        ("", "a name is a lowercase letter"),
        ("A1", "a name is a lowercase letter"),
        ("1a", "a name is a lowercase letter"),
        ("_a", "a name is a lowercase letter"),
        ("a b", "a name is a lowercase letter"),
        ("a\n", "a name is a lowercase letter"),
        ("a;drop", "a name is a lowercase letter"),
        ("ação", "a name is a lowercase letter"),
        ("x" * 49, "at most 47"),
        (None, "a name is a lowercase letter"),
    ],
)
async def test_names_that_are_taken_are_refused(connection: Connection, name: str | None, says: str) -> None:
    with pytest.raises(Error) as refused:
        await connection.execute("select mutirao.check_attribute_name(%s)", (name,))
    assert refused.value.sqlstate == "MU106"
    message = refused.value.diag.message_primary or ""
    assert message.startswith("attribute_reserved: ")
    assert says in message


async def test_a_definition_is_refused_the_same_words_without_an_engine(connection: Connection) -> None:
    """What servers of other versions reserve is refused everywhere, so both lists are the same on all of them."""
    found = await connection.execute("select word from pg_get_keywords() where catcode <> 'U'")
    assert {word for (word,) in await found.fetchall()} <= SQL_WORDS
    for word in sorted(SQL_WORDS | HIDDEN_COLUMNS):
        with pytest.raises(FlowError) as refused:
            check_attribute_name(f'attribute "{word}"', word)
        with pytest.raises(Error, match=re.escape(str(refused.value))):
            await connection.execute("select mutirao.check_attribute_name(%s)", (word,))
