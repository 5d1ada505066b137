"""What is left of a bundle without what an engine refused, so that it can be asked about the rest."""

import pytest

from mutirao.language.pdl.place import without_refused
from mutirao.model import Attribute, Bundle, Definition, Query, Task

FLOW = Definition(
    name="trip",
    attributes=(Attribute("rows", "json", query=Query("guide", "select 1")), Attribute("city", "text")),
    tasks=(Task(name="book", when="citi = 'x'"),),
    final="nonsense",
)
BUNDLE = Bundle(flows=(FLOW,))


def left(message: str) -> Definition:
    found = without_refused(BUNDLE, message)
    assert found is not None
    [flow] = found.flows
    return flow


def test_only_what_was_refused_is_left_out() -> None:
    assert left('flow "trip": condition of task "book", character 1: no').tasks[0].when == "false"
    assert left('flow "trip": final condition: no').final == "false"
    assert left('flow "trip": attribute "rows": there is no database "guide"').attributes[0].query is None


@pytest.mark.parametrize(
    "message", ["the role is not there", 'flow "trip": attribute "city": no', 'flow "other": final condition: no']
)
def test_what_cannot_be_left_out_is_not_asked_again(message: str) -> None:
    assert without_refused(BUNDLE, message) is None
