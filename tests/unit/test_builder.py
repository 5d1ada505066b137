"""Flows made by programs, and functions bound to flows that are defined in SQL."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from mutirao import Change, Flow, FlowBuilder, FlowError, Job, RequestError, handles, task
from mutirao.language.handler import handlers_of
from mutirao.model import Term

JOB = Job(id=1, instance_id=2, flow="travel", task="tr_a2", attempt=3)


def book(state: Any, suffix: str = "") -> Change:
    return {"hotel": state.stage + suffix}


class Charge:
    async def __call__(self, state: Any, job: Job) -> Change:
        return {"price": job.attempt, "stage": state.stage}


def travel() -> FlowBuilder:
    return (
        FlowBuilder("travel_by_train", "From A to B.")
        .attribute("stage", "text", default="requested", required=True)
        .attribute("hotel")
        .attribute("price", "number", searchable=True)
        .task("book_hotel", book, when="hotel is null", timeout=timedelta(minutes=5))
        .task("pay", Charge(), depends=Term("book_hotel") | "book_hotel.failed")
        .task("by_hand", depends="pay", priority=3)
        .firing_limit(50)
    )


def test_a_built_flow_equals_one_from_a_class() -> None:
    class TravelByTrain(Flow):
        """From A to B."""

        stage: str = "requested"
        hotel: str | None = None
        firing_limit = 50

        @task(when="hotel is null")
        def book_hotel(self) -> Change:
            return {}

    made = (
        FlowBuilder("travel_by_train", "From A to B.")
        .attribute("stage", "text", default="requested", required=True)
        .attribute("hotel", "text")
        .task("book_hotel", book, when="hotel is null")
        .firing_limit(50)
        .build()
    )
    assert made.definition == TravelByTrain.definition
    assert made.__name__ == "TravelByTrain"
    assert made.__doc__ == "From A to B."


async def test_a_built_flow_runs_its_functions() -> None:
    built = travel().final("stage = 'booked'").build()
    assert (built.definition.ends, built.definition.final) == ("final", "stage = 'booked'")
    assert list(built.handlers) == ["book_hotel", "pay"]
    book_hotel, pay = built.handlers.values()
    assert (book_hotel.is_async, pay.is_async, pay.wants_job) == (False, True, True)

    state = built.load_state(b'{"price":1.50}')
    assert book_hotel.call(state) == {"hotel": "requested"}
    assert await pay.call(state, JOB) == {"price": 3, "stage": "requested"}
    assert built.encode_change({"price": Decimal("1.50")}) == b'{"price":1.50}'
    with pytest.raises(RequestError, match='attribute "stage" of flow "travel_by_train" is a text: got null'):
        built.encode_change({"stage": None})
    assert built(stage="new") == built.load_state(b'{"stage":"new"}')


def test_a_built_flow_without_final_ends_when_quiet_unless_told() -> None:
    assert travel().build().definition.ends == "quiet"
    assert travel().ends("final").build().definition.ends == "final"


def test_one_builder_builds_several_flows() -> None:
    builder = FlowBuilder("travel").attribute("a")
    first = builder.build()
    second = builder.attribute("b").build()
    assert [len(flow.definition.attributes) for flow in (first, second)] == [1, 2]


def test_a_partial_function_may_run_a_task() -> None:
    built = FlowBuilder("travel").attribute("stage").task("go", partial(book, suffix="!"), when="true").build()
    assert built.handlers["go"].call(built(stage="x")) == {"hotel": "x!"}


def test_a_builder_refuses_what_a_class_would() -> None:
    with pytest.raises(FlowError, match='attribute_reserved: attribute "handlers"'):
        FlowBuilder("travel").attribute("handlers")
    with pytest.raises(FlowError, match='duplicate_name: flow "travel": attribute "a" is defined twice'):
        FlowBuilder("travel").attribute("a").attribute("a").build()
    with pytest.raises(FlowError, match=r'signature_invalid: task "go" \(.*test_builder.py:\d+\)'):
        FlowBuilder("travel").task("go", lambda: {"hotel": None}, when="true").build()
    with pytest.raises(FlowError, match=r'"timout"; did you mean "timeout"\? \(.*test_builder.py:\d+\)$'):
        FlowBuilder("travel").task("go", book, when="true", timout=None)  # type: ignore[call-arg]
    with pytest.raises(FlowError, match=r"signature_invalid: .* got int"):
        FlowBuilder("travel").task("go", 5, when="true").build()  # type: ignore[arg-type]


@handles("travel", "tr_a2")
@handles("travel", "tr_a3")
async def book_by_mapping(state: Mapping[str, Any], job: Job) -> Change:
    return {"hotel": state["stage"], "by": job.attempt}


async def test_a_function_is_bound_to_tasks_of_a_flow_in_sql() -> None:
    third, second = handlers_of(book_by_mapping)
    assert (second.flow, second.task, third.task) == ("travel", "tr_a2", "tr_a3")
    assert second.is_async
    state = second.load(b'{"stage":"new"}')
    change = await second.call(state, JOB)
    assert change == await book_by_mapping(state, JOB) == {"hotel": "new", "by": 3}
    assert second.encode_change(change) == b'{"hotel":"new","by":3}'


def test_a_bound_function_of_a_wrong_signature_is_refused() -> None:
    with pytest.raises(FlowError, match=r'signature_invalid: task "tr_a2" \(.*test_builder.py:\d+\): .* "amount'):

        @handles("travel", "tr_a2")
        def wrong(state: Mapping[str, Any], amount: int) -> Change:
            return {"x": (state, amount)}
