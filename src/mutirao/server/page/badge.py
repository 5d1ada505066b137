"""The counts in the navigation: read by themselves, so that no page waits for them."""

from fastapi import Response

from mutirao.server.answer import answer
from mutirao.server.need import SignedIn
from mutirao.server.page.shell import pages

router = pages()


@router.get("/badges")
async def badges(who: SignedIn) -> Response:
    work = (await who.engine.worklists.size(who.id)).size
    messages = await who.engine.messages.unread(who.id)
    return answer({"work": work, "messages": messages, "exceptions": await who.sight.exception_count()})
