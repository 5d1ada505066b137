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

    async def __call__(self, request: Request) -> Who | None:
        if not self.is_signed_in:
            return None
        who = await who_asks(request)
        if self.is_administrator:
            who.check_administrator()
        return who


NOBODY = Need("nobody", is_signed_in=False)
SIGNED_IN = Need("signed in")
ADMINISTRATOR = Need("administrator", is_administrator=True)

Anybody = Annotated[None, Depends(NOBODY)]
SignedIn = Annotated[Who, Depends(SIGNED_IN)]
Administrator = Annotated[Who, Depends(ADMINISTRATOR)]


def need_of(route: APIRoute) -> Need:
    """What a route has said it needs; one that has said nothing is a mistake."""
    found = [each for each in _calls(route.dependant) if isinstance(each, Need)]
    if len(found) != 1:
        raise LookupError(f"{sorted(route.methods or ())} {route.path} does not say who may ask")
    return found[0]


def _calls(dependant: Dependant) -> list[object]:
    return [each.call for each in dependant.dependencies]
