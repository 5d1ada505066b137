"""What a route needs of whoever asks: it stands in its signature, as the type of `who`.

    async def list_persons(who: Administrator, …)

Which objects a person may see and change is decided in SQL, by their number; this is only who may ask at all.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from mutirao.server.who import Who, who_asks


@dataclass(frozen=True)
class Need:
    """Calling it answers who asks, or refuses them."""

    name: str
    is_signed_in: bool = True
    is_administrator: bool = False
    is_in_session: bool = False
    """Not by a token: what outlasts it, a password or another token, would make one that leaks a way in for ever."""

    async def __call__(self, request: Request) -> Who | None:
        if not self.is_signed_in:
            return None
        who = await who_asks(request)
        if self.is_administrator:
            who.check_administrator()
        if self.is_in_session:
            who.check_session()
        return who


NOBODY = Need("nobody", is_signed_in=False)
SIGNED_IN = Need("signed in")
IN_SESSION = Need("signed in by a session", is_in_session=True)
ADMINISTRATOR = Need("administrator", is_administrator=True)
ADMINISTRATOR_IN_SESSION = Need("administrator by a session", is_administrator=True, is_in_session=True)

Anybody = Annotated[None, Depends(NOBODY)]
SignedIn = Annotated[Who, Depends(SIGNED_IN)]
InSession = Annotated[Who, Depends(IN_SESSION)]
Administrator = Annotated[Who, Depends(ADMINISTRATOR)]
AdministratorInSession = Annotated[Who, Depends(ADMINISTRATOR_IN_SESSION)]


def need_of(route: APIRoute) -> Need:
    """What a route has said it needs; one that has said nothing is a mistake."""
    found = [each for each in _calls(route.dependant) if isinstance(each, Need)]
    if len(found) != 1:
        raise LookupError(f"{sorted(route.methods or ())} {route.path} does not say who may ask")
    return found[0]


def _calls(dependant: Dependant) -> list[object]:
    return [each.call for each in dependant.dependencies]
