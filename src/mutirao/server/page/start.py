"""Starting an instance: a form made from the attributes of its flow."""

from fastapi import Request, Response

from mutirao.model import Attribute, Definition
from mutirao.server.need import SignedIn
from mutirao.server.page.form import Field, field_for
from mutirao.server.page.reader import Reader
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import FlowName

router = pages()


@router.get("/flows/{name}/start")
async def start(request: Request, who: SignedIn, name: FlowName) -> Response:
    """For whoever may start it."""
    definition = await who.sight.definition(name)
    reader = Reader.of(request)
    asked, later = _parted(definition)
    return render(
        request,
        "flow_start.html",
        flow=definition,
        asked=[_field(each, reader) for each in asked],
        later=[_field(each, reader) for each in later],
    )


def _parted(definition: Definition) -> tuple[list[Attribute], list[Attribute]]:
    """What one is asked for, the necessary first; and what tasks will write, which may be known already."""
    written = {name for task in definition.tasks for name in task.outputs or ()}
    given = [each for each in definition.attributes if each.query is None]
    asked = [each for each in given if each.required or each.name not in written]
    return sorted(asked, key=lambda each: not each.required), [each for each in given if each not in asked]


def _field(attribute: Attribute, reader: Reader) -> Field:
    """A default stands there already; unless it is changed, it is not sent."""
    needed, default = attribute.required, attribute.default
    return field_for(attribute.name, attribute.type, within="state", required=needed, value=default, zone=reader.zone)
