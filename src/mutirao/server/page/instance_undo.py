"""What a rollback of an instance would undo: read into its dialog when somebody opens it, or chooses how far."""

from fastapi import Request, Response

from mutirao.server.need import SignedIn
from mutirao.server.page.form import label_of
from mutirao.server.page.shell import pages, render
from mutirao.server.route.parts import Number
from mutirao.server.route.steer import SafePoint

router = pages()


@router.get("/instances/{instance}/roll_back")
async def roll_back(request: Request, who: SignedIn, instance: Number, safe_point: SafePoint = None) -> Response:
    seen = await who.sight.instance(instance)
    found = await who.engine.charges.preview_roll_back(who.id, instance, safe_point or None)
    return render(request, "instance_undo.html", seen=seen, safe_point=safe_point, tasks=found, label_of=label_of)
