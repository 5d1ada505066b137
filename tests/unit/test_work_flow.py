"""Flows as Python classes whose tasks people do, or other flows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mutirao import Flow, FlowBuilder, FlowError, application, child, not_as, same_as, work
from mutirao.model import Offer, Policy, Term, from_document, to_document

MISSPELT: Any = {"dedline": 3}


def test_people_and_other_flows_do_tasks_that_have_no_function() -> None:
    class Purchase(Flow):
        """Somebody asks, somebody else approves."""

        creator = "clerk"
        approved: bool | None = None
        address: str | None = None

        ask = work("clerk", when="true", fires="once", policy="least_loaded", disconnected=True)
        approve = work(
            "manager", depends=ask, outputs=["approved"], policy=not_as(ask), deadline=timedelta(hours=48), priority=3
        )
        file_it = work("clerk", depends=approve.failed | ask, policy=same_as("ask"), kind="semi_automatic")
        ship = child("shipping", depends=approve, inputs=("address",), outputs=())
        label = application("Label", depends=ship, inputs=["address"], retries=1, timeout=timedelta(minutes=5))

    definition = Purchase.definition
    ask, approve, file_it, ship, label = definition.tasks
    assert definition.creator == "clerk"
    assert ask.offer == Offer(role="clerk", policy=Policy("least_loaded"), disconnected=True)
    assert approve.offer == Offer(role="manager", policy=Policy("not_as", "ask"), deadline=timedelta(hours=48))
    assert (approve.name, approve.outputs, approve.inputs, approve.priority) == ("approve", ("approved",), None, 3)
    assert (approve.depends, approve.fires) == (Term("ask", "succeeded"), "once")
    assert file_it.offer == Offer(role="clerk", kind="semi_automatic", policy=Policy("same_as", "ask"))
    assert (ship.child, ship.inputs, ship.outputs, ship.offer) == ("shipping", ("address",), (), None)
    assert (label.application, label.inputs, label.offer) == ("Label", ("address",), None)
    assert (label.retries, label.timeout, label.depends) == (1, timedelta(minutes=5), Term("ship", "succeeded"))
    assert Purchase.handlers == {}
    assert from_document(to_document(definition)) == definition
    built = (
        FlowBuilder("purchase", definition.description)
        .attribute("approved", "boolean")
        .attribute("address")
        .work("ask", "clerk", when="true", fires="once", policy="least_loaded", disconnected=True)
        .work(
            "approve",
            "manager",
            depends="ask",
            outputs=["approved"],
            policy=not_as("ask"),
            deadline=timedelta(hours=48),
            priority=3,
        )
        .work(
            "file_it", "clerk", depends=Term("approve", "failed") | "ask", policy=same_as("ask"), kind="semi_automatic"
        )
        .child("ship", "shipping", depends="approve", inputs=("address",), outputs=())
        .application("label", "Label", depends="ship", inputs=["address"], retries=1, timeout=timedelta(minutes=5))
        .creator("clerk")
    )
    assert built.build().definition == definition


def test_a_child_is_named_by_its_class_too() -> None:
    class Shipping(Flow):
        sent: bool = False
        send = work("clerk", when="not sent")

    class Order(Flow):
        sent: bool = False
        ship = child(Shipping, when="not sent")

    assert Order.definition.tasks[0].child == "shipping"


def test_an_attribute_may_be_called_creator() -> None:
    class Song(Flow):
        creator: str = "unknown"
        sing = work("singer", when="true", fires="once")

    assert Song.definition.creator is None
    assert Song(creator="nobody").creator == "nobody"


def test_a_creator_is_inherited() -> None:
    class Office(Flow, abstract=True):
        creator = "clerk"

    class Letter(Office):
        answer = work("clerk", when="true", fires="once")

    assert Letter.definition.creator == "clerk"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: work("clerk"), "work('clerk') has neither when nor depends; add when="),
        (lambda: application("Label"), "application('Label') has neither when nor depends; add when="),
        (lambda: child("shipping"), "child('shipping') has neither when nor depends; add when="),
        (lambda: work("clerk", when="true", **MISSPELT), 'unknown option "dedline"; did you mean "deadline"?'),
        (lambda: child("shipping", when="true", **MISSPELT), 'unknown option "dedline"'),
        (lambda: FlowBuilder("f").work("t", "clerk"), 'task "t" has neither when nor depends'),
    ],
)
def test_work_that_cannot_be_is_refused_where_it_stands(make: Callable[[], object], says: str) -> None:
    with pytest.raises(FlowError) as refusal:
        make()
    assert says in str(refusal.value)
    assert "test_work_flow.py" in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"policy": "whoever"}, "policy"),
        ({"policy": not_as("nothing")}, 'names the unknown task "nothing"'),
        ({"policy": "same_as"}, "name a task"),
        ({"deadline": timedelta(0)}, "deadline is more than zero"),
        ({"outputs": ("approve",)}, 'unknown attribute "approve"; did you mean "approved"?'),
        ({"kind": "by_hand"}, "kind"),
    ],
)
def test_an_offer_that_makes_no_sense_is_refused(options: dict[str, Any], says: str) -> None:
    build = FlowBuilder("f").attribute("approved", "boolean").work("t", "clerk", when="true", **options)
    with pytest.raises(FlowError) as refusal:
        build.build()
    assert says in str(refusal.value)
