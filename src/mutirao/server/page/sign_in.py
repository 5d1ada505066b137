"""Signing in. The form asks `POST /api/session`, as any client does."""

import re
from typing import Annotated

from fastapi import Query, Request, Response

from mutirao.server.need import Anybody
from mutirao.server.page.shell import pages, render

router = pages()

_FIRST = "/"
# Browsers read a backslash as a slash, and pass over tabs and newlines: "/", a tab and "/example.org" is another site.
_OURS = re.compile(r"/(?![/\\])[^\\\x00-\x20]*")


@router.get("/sign-in")
async def sign_in(
    request: Request,
    who: Anybody,  # noqa: ARG001 it says who may ask
    following: Annotated[str, Query(alias="next", max_length=2000)] = _FIRST,
) -> Response:
    """Afterwards one goes on to where one wanted to go: a page of ours, and nothing else."""
    return render(request, "sign_in.html", following=following if _OURS.fullmatch(following) else _FIRST)
