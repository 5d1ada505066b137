"""Flows: those that one may start, and what each is."""

from fastapi import Request, Response

from mutirao.server.need import SignedIn
from mutirao.server.page.graph import drawing
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import FlowName

router = pages()


@router.get("/flows/{name}")
async def flow(request: Request, who: SignedIn, name: FlowName) -> Response:
    definition = await who.sight.definition(name)
    return render(request, "flow.html", flow=definition, drawing=drawing(definition, Reader.of(request)))
