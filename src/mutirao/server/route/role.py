"""Roles and their members."""

from typing import Annotated, cast

from fastapi import Path, Response
from pydantic import BaseModel, Field

from mutirao.database.role import RoleChange, RoleRecord, RoleUse
from mutirao.server.answer import answer, done
from mutirao.server.need import Administrator, SignedIn
from mutirao.server.revision import concerning, seen
from mutirao.server.route.parts import Body, IfMatch, Text, routes
from mutirao.server.route.person import Revision
from mutirao.server.routing import creates

router = routes("role", "/roles")

Name = Annotated[Text, Field(min_length=1, max_length=100, examples=["clerk"])]
Description = Annotated[Text | None, Field(max_length=2000)]
Role = Annotated[Text, Path(min_length=1, max_length=100, description="The name of a role.", examples=["clerk"])]


class AddRole(Body):
    name: Name
    description: Description = None


class ChangeRole(Body):
    """What is to be changed; what is not named stays."""

    name: Name | None = None
    description: Description = None
    revision: Revision = None


class Members(Body):
    persons: Annotated[list[Name], Field(min_length=1, max_length=1000, examples=[["clerk_1", "clerk_2"]])]


class Moved(BaseModel):
    count: Annotated[int, Field(description="How many this made a difference to.")]


def _answer(found: RoleRecord, status: int = 200) -> Response:
    return answer(found, status=status, revision=found.revision)


@router.get("", response_model=list[RoleRecord])
async def all_roles(who: SignedIn) -> Response:
    """All roles, by name."""
    return answer(await who.engine.roles.all(who.id))


@router.post("", status_code=201, response_model=RoleRecord)
@creates
async def add(who: Administrator, body: AddRole) -> Response:
    """Add a role."""
    return _answer(await who.engine.roles.add(who.id, body.name, description=body.description), status=201)


@router.get("/{role}", response_model=RoleRecord)
async def show(who: SignedIn, role: Role) -> Response:
    """One role."""
    return _answer(await who.engine.roles.get(who.id, role))


@router.get("/{role}/uses", response_model=list[RoleUse])
async def uses(who: Administrator, role: Role) -> Response:
    """The flows that its members may start, and the tasks that they may do; a flow without a task is started by them."""
    return answer(await who.engine.roles.uses(role))


@router.patch("/{role}", response_model=RoleRecord)
async def change(who: Administrator, role: Role, body: ChangeRole, if_match: IfMatch = None) -> Response:
    """Change its name or description."""
    wanted = cast("RoleChange", body.model_dump(exclude_unset=True, exclude={"revision"}))
    with concerning(if_match):
        return _answer(await who.engine.roles.change(who.id, role, wanted, revision=seen(if_match, body.revision)))


@router.delete("/{role}", status_code=204)
async def remove(who: Administrator, role: Role, if_match: IfMatch = None) -> Response:
    """Remove a role that no flow and no open work item needs."""
    with concerning(if_match):
        await who.engine.roles.remove(who.id, role, revision=seen(if_match))
    return done()


@router.post("/{role}/members", response_model=Moved)
async def put_in(who: Administrator, role: Role, body: Members) -> Response:
    """Put persons into a role."""
    return answer({"count": await who.engine.roles.put(who.id, role, body.persons)})


@router.post("/{role}/members/remove", response_model=Moved)
async def take_out(who: Administrator, role: Role, body: Members) -> Response:
    """Take persons out of a role, and what they hold of it out of their hands."""
    return answer({"count": await who.engine.roles.take(who.id, role, body.persons)})
