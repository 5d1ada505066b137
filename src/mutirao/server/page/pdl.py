"""Flows as text, and a new version from a text: it is checked while it is typed, by the API."""

from collections import OrderedDict
from typing import Annotated

from fastapi import Query, Request, Response

from mutirao.errors import RequestError
from mutirao.language.pdl import to_pdl
from mutirao.model import Bundle, Definition, encode_document
from mutirao.server.apart import Apart
from mutirao.server.need import Administrator
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import FlowName, Text

router = pages()

# A text of 200 tasks takes a fifth of a second to write, and a version never changes.
_WRITING = Apart("writing")
_MOST_KEPT = 50
_written: OrderedDict[bytes, str] = OrderedDict()

_EXAMPLE = """WORKFLOW Leave {
  DESCRIPTION "Days off, from the wish to the answer";

  NUMBER Days { REQUIRED; }
  STRING Answer;

  TASK Decide {
    DESCRIPTION "Say yes or no";
    DEPENDS;
    ROLE administrator;
    IN_CONTEXT Days;
    OUT_CONTEXT Answer;
  }
}
"""


async def pdl_of(definition: Definition) -> str:
    """A flow in the process language."""
    key = encode_document(definition)
    if key not in _written:
        _written[key] = await _WRITING.do(to_pdl, Bundle(flows=(definition,)))
        while len(_written) > _MOST_KEPT:
            _written.popitem(last=False)
    return _written[key]


@router.get("/flows/new-flow")
async def new(
    request: Request, who: Administrator, application: Annotated[Text | None, Query(max_length=200)] = None
) -> Response:
    """A flow that there is not yet; or the text of an application, to change it."""
    roles = await who.engine.roles.names()
    if application is None:
        return render(request, "flow_edit.html", flow=None, head=None, text=_EXAMPLE, roles=roles, draft="pdl")
    found = (await who.engine.library.applications()).get(application)
    if found is None:
        raise RequestError("unknown_application", f'there is no application "{application}"')
    text = to_pdl(Bundle(applications=(found,)))
    # No draft: what somebody typed for another text of it would hide what it says by now.
    return render(request, "flow_edit.html", flow=None, head=None, text=text, roles=[], draft="", entry=application)


@router.get("/flows/{name}/edit")
async def edit(request: Request, who: Administrator, name: FlowName) -> Response:
    """A new version of one. What was typed for an older one is not brought back over a newer."""
    definition = await who.sight.definition(name)
    [head] = await who.engine.flow_heads(name)
    roles = await who.engine.roles.names()
    text = await pdl_of(definition)
    draft = f"pdl/{name}/{head.version}"
    return render(request, "flow_edit.html", flow=definition, head=head, text=text, roles=roles, draft=draft)
