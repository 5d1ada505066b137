"""The expression of a query: which colons are parameters, and that it is one statement."""

import pytest

from mutirao.errors import FlowError
from mutirao.model import Attribute, Definition, Query, Task
from mutirao.model.query import Statement, read_expression

KNOWN = ("city", "n")


@pytest.mark.parametrize(
    ("expression", "text", "parameters"),
    [
        ("select 1", "select 1", ()),
        ("select :city, :n, :city", "select $1, $2, $1", ("city", "n")),
        ("select :n::text ; ", "select $1::text", ("n",)),
        ("select ':city', e'\\':city', \":city\"", "select ':city', e'\\':city', \":city\"", ()),
        ("select 'it''s :city' || :city", "select 'it''s :city' || $1", ("city",)),
        ("select $$ :city; $$, $x$ :n $$ $x$", "select $$ :city; $$, $x$ :n $$ $x$", ()),
        ("select 1 -- :city;\n, :n", "select 1 -- :city;\n, $1", ("n",)),
        ("select /* :city; */ :n", "select /* :city; */ $1", ("n",)),
        ("select '%s %(a)s' || '%'", "select '%s %(a)s' || '%'", ()),
    ],
)
def test_only_attributes_outside_of_texts_and_comments_are_parameters(
    expression: str, text: str, parameters: tuple[str, ...]
) -> None:
    assert read_expression("here", expression, KNOWN) == Statement(text, parameters)


@pytest.mark.parametrize(
    ("expression", "code", "says"),
    [
        ("select 1; drop table x", "flow_invalid", "one statement"),
        ("select :town", "unknown_attribute", 'unknown attribute "town"'),
        ("select $1", "flow_invalid", "not $1"),
    ],
)
def test_what_is_wrong_is_told_when_the_flow_is_defined(expression: str, code: str, says: str) -> None:
    with pytest.raises(FlowError, match=f"(?s){says.replace('$', '[$]')}") as refusal:
        Definition(
            name="trip",
            attributes=(Attribute("city", "text"), Attribute("hotels", "json", query=Query("guide", expression))),
            tasks=(Task(name="book", when="true"),),
        )
    assert refusal.value.code == code
