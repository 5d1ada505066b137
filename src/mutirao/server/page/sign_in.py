"""Signing in. The form asks `POST /api/session`, as any client does."""

from typing import Annotated

from fastapi import Query, Request, Response

from mutirao.server.need import Anybody
from mutirao.server.page.shell import pages, render

router = pages()

_FIRST = "/"


@router.get("/sign-in")
async def sign_in(
    request: Request,
    who: Anybody,  # noqa: ARG001 it says who may ask
    following: Annotated[str, Query(alias="next", max_length=2000)] = _FIRST,
) -> Response:
    """Afterwards one goes on to where one wanted to go: a page of ours, and nothing else."""
    is_ours = following.startswith("/") and not following.startswith(("//", "/\\"))
    return render(request, "sign_in.html", following=following if is_ours else _FIRST)
