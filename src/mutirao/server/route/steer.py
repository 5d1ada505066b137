"""Steering: what the person in charge of an instance and administrators do with it and with its jobs."""

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from mutirao.database.charge import Creation, Undone
from mutirao.database.sight import SeenInstance
from mutirao.model.offer import Policy, PolicyKind
from mutirao.server.answer import answer
from mutirao.server.need import SignedIn
from mutirao.server.revision import unless_changed
from mutirao.server.route.parts import At, Because, Body, IfMatch, Number, Priority, State, Steer, Text, routes
from mutirao.server.routing import creates
from mutirao.server.who import Who

router = routes("instance", "/instances")


TaskName = Annotated[Text, Field(min_length=1, max_length=100, examples=["book_hotel"])]
SafePoint = Annotated[Text | None, Query(max_length=100, description="Back to this one. Nothing: all of it.")]
PersonName = Annotated[Text, Field(min_length=1, max_length=100, examples=["manager"])]


class TaskPolicy(Body):
    kind: PolicyKind
    task: Annotated[Text | None, Field(max_length=100, description="The earlier task of same_as and not_as.")] = None

    def policy(self) -> Policy:
        return Policy(self.kind, self.task)


class Create(Because):
    flow: Annotated[Text, Field(max_length=100, examples=["travel"])]
    state: State = {}
    key: Annotated[
        Text | None, Field(max_length=1000, description="A key that has an instance starts none, and answers that.")
    ] = None
    in_charge: Annotated[PersonName | None, Field(description="Nothing: you.")] = None
    policies: Annotated[
        dict[str, TaskPolicy] | None,
        Field(
            max_length=1000,
            description="For single tasks, whom their items are offered to.",
            examples=[{"approve": {"kind": "least_loaded"}}],
        ),
    ] = None
    priority: Priority = 0
    at: At = None


class ChangeState(Steer):
    change: State


class Repair(Steer):
    change: State = {}


class Cancel(Steer):
    undo: Annotated[bool, Field(description="Undo what it has done, by the compensations of its tasks.")] = False


class RollBack(Steer):
    safe_point: Annotated[TaskName | None, Field(description="Back to this one. Nothing: all of it.")] = None


class OfTask(Steer):
    task: TaskName


class HandOver(Steer):
    to: PersonName


@router.post("", status_code=201, response_model=SeenInstance)
@creates
async def create(who: SignedIn, body: Create) -> Response:
    """Start an instance of a flow whose creator role you are in; you are in charge of it, unless you name somebody."""
    policies = {task: each.policy() for task, each in (body.policies or {}).items()}
    wanted = Creation(
        flow=body.flow,
        state=body.state,
        key=body.key,
        policies=policies,
        in_charge=body.in_charge,
        priority=body.priority,
        at=body.at,
    )
    number = await who.engine.charges.create(who.id, wanted, reason=body.reason)
    found = await who.sight.instance(number)
    return answer(found, status=201, revision=found.revision, headers={"Location": f"/api/instances/{number}"})


@router.post("/{instance}/set", response_model=SeenInstance)
async def set_attributes(who: SignedIn, instance: Number, body: ChangeState, if_match: IfMatch = None) -> Response:
    """Correct attributes; conditions are looked at again. For the person in charge and administrators, as all that follows."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.set(who.id, instance, body.change, reason=body.reason)
    return await _answer(who, instance)


@router.post("/{instance}/repair", response_model=SeenInstance)
async def repair(who: SignedIn, instance: Number, body: Repair = Repair(), if_match: IfMatch = None) -> Response:
    """Correct an instance that is an exception. Failed jobs go, and fire again where their conditions hold."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.repair(who.id, instance, body.change, reason=body.reason)
    return await _answer(who, instance)


@router.post("/{instance}/suspend", response_model=SeenInstance)
async def suspend(who: SignedIn, instance: Number, body: Steer = Steer(), if_match: IfMatch = None) -> Response:
    """Interrupt it: what runs may finish, nothing else starts until it is resumed."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.suspend(who.id, instance, reason=body.reason)
    return await _answer(who, instance)


@router.post("/{instance}/resume", response_model=SeenInstance)
async def resume(who: SignedIn, instance: Number, body: Steer = Steer(), if_match: IfMatch = None) -> Response:
    """Go on with it."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.resume(who.id, instance, reason=body.reason)
    return await _answer(who, instance)


@router.post("/{instance}/cancel", response_model=SeenInstance)
async def cancel(who: SignedIn, instance: Number, body: Cancel = Cancel(), if_match: IfMatch = None) -> Response:
    """Stop it: what runs may finish, nothing else starts. Until it has, `hold` is cancelled; with `undo`, undoing."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.cancel(who.id, instance, undo=body.undo, reason=body.reason)
    return await _answer(who, instance)


@router.post("/{instance}/roll_back", response_model=SeenInstance)
async def roll_back(who: SignedIn, instance: Number, body: RollBack = RollBack(), if_match: IfMatch = None) -> Response:
    """Undo what it has done, the last first: all of it, and it ends; or back to a safe-point, and it goes on from there."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.roll_back(who.id, instance, body.safe_point, reason=body.reason)
    return await _answer(who, instance)


@router.get("/{instance}/roll_back", response_model=list[Undone])
async def preview_roll_back(who: SignedIn, instance: Number, safe_point: SafePoint = None) -> Response:
    """What that would undo, task by task, the last first. Nothing is changed."""
    return answer(await who.engine.charges.preview_roll_back(who.id, instance, safe_point))


@router.post("/{instance}/start_task", response_model=SeenInstance)
async def start_task(who: SignedIn, instance: Number, body: OfTask, if_match: IfMatch = None) -> Response:
    """Start a task by hand, whether or not its condition holds."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.start_task(who.id, instance, body.task, reason=body.reason)
    return await _answer(who, instance)


@router.post("/{instance}/go_back", response_model=SeenInstance)
async def go_back(who: SignedIn, instance: Number, body: OfTask, if_match: IfMatch = None) -> Response:
    """Start a task again that has ended, as if nothing had followed it. Nothing is undone."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.go_back(who.id, instance, body.task, reason=body.reason)
    return await _answer(who, instance)


@router.post("/{instance}/hand_over", response_model=SeenInstance)
async def hand_over(who: SignedIn, instance: Number, body: HandOver, if_match: IfMatch = None) -> Response:
    """Put somebody else in charge."""
    async with unless_changed(who, instance, if_match, body.revision):
        await who.engine.charges.hand_over(who.id, instance, body.to, reason=body.reason)
    return await _answer(who, instance)


async def _answer(who: Who, instance: int) -> Response:
    found = await who.sight.instance(instance)
    return answer(found, revision=found.revision)
