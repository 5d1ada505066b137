"""The counts in the navigation: read by themselves, so that no page waits for them."""

from fastapi import Response

from mutirao.server.answer import answer
from mutirao.server.need import SignedIn
from mutirao.server.page.shell import pages

router = pages()


@router.get("/badges")
async def badges(who: SignedIn) -> Response:
    counts = await who.engine.worklists.counts(who.id)
    work = sum(each.ready + each.running for each in counts)
    messages = await who.engine.messages.unread(who.id)
    return answer({"work": work, "messages": messages, "exceptions": await who.sight.exception_count()})
