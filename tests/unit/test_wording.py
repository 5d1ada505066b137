"""What is wrong with a field is told in words of ours, whatever the framework says, and never with the value."""

from datetime import date
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from mutirao.server.wording import told


def even(number: int) -> int:
    if number % 2:
        raise ValueError("an even number is wanted")
    return number


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=3)] = "x"
    number: Annotated[int, Field(ge=1, le=5), AfterValidator(even)] = 2
    rate: Annotated[float, Field(gt=0)] = 1
    is_on: bool = True
    names: Annotated[list[str], Field(max_length=1)] = []
    state: dict[str, int] = {}
    sort: Literal["name", "age"] = "name"
    at: AwareDatetime | None = None
    on: date | None = None


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "", "it may not be empty"),
        ("name", "four", "it may have 3 characters at most"),
        ("name", None, "a text is wanted"),
        ("number", "x", "a whole number is wanted"),
        ("number", 1.5, "a whole number is wanted"),
        ("number", 0, "it is 1 at least"),
        ("number", 9, "it is 5 at most"),
        ("number", 3, "an even number is wanted"),
        ("rate", [], "a number is wanted"),
        ("rate", 0, "it is more than 0.0"),
        ("is_on", "maybe", "true or false is wanted"),
        ("names", 5, "a list is wanted: […]"),
        ("names", ["a", "b"], "there may be 1 at most"),
        ("state", 5, "an object is wanted: {…}"),
        ("sort", "size", "one of these is wanted: name or age"),
        ("at", "soon", "a time is wanted, with its zone: 2031-12-24T18:00:00Z"),
        ("at", "2031-12-24T18:00:00", "a time is wanted, with its zone: 2031-12-24T18:00:00Z"),
        ("on", "soon", "a date is wanted: 2031-12-24"),
        ("colour", "red", "there is no such field here"),
    ],
)
def test_each_kind_of_mistake_has_its_words(field: str, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Body.model_validate({field: value})
    assert [told(each) for each in refused.value.errors()] == [words]
