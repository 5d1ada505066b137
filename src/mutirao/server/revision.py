"""Changes that name what they were made for: by `If-Match`, or by a `revision` in the body.

When somebody else was quicker, the answer is 412 to the one and 409 to the other, and says what was changed since.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any

from mutirao.database.record import TraceRow
from mutirao.database.sight import Sight
from mutirao.errors import MutiraoError, RequestError
from mutirao.server.answer import BIGGEST
from mutirao.server.problem import Refused
from mutirao.server.who import Who

_BIGGEST = 2**31 - 1
_TOLD = 20


def seen(if_match: str | None, revision: int | None = None, *, biggest: int = _BIGGEST) -> int | None:
    """The revision that a request was made for; None: any."""
    if if_match is None or if_match.strip() == "*":
        return revision
    given = if_match.strip().removeprefix("W/").strip('"')
    if not given.isascii() or not given.isdigit() or len(given) > 19 or int(given) > biggest:  # noqa: PLR2004 digits of a bigint
        raise RequestError("wrong_call", 'If-Match is the ETag of what was read, such as "3"')
    return int(given)


@contextmanager
def concerning(if_match: str | None) -> Iterator[None]:
    """Around the change: the status that goes with how the revision was named."""
    try:
        yield
    except MutiraoError as error:
        if error.code != "changed_meanwhile":
            raise
        status = HTTPStatus.CONFLICT if if_match is None else HTTPStatus.PRECONDITION_FAILED
        raise Refused(error, status) from error


@asynccontextmanager
async def unless_changed(who: Who, instance: int, if_match: str | None, revision: int | None) -> AsyncIterator[None]:
    """Around what steers an instance: refused when a revision is named, and there is a newer one."""
    wanted = seen(if_match, revision, biggest=BIGGEST)
    with concerning(if_match):
        async with who.engine.together():
            if wanted is not None:
                await _check_unchanged(who.sight, instance, wanted)
            yield


async def _check_unchanged(sight: Sight, instance: int, revision: int) -> None:
    """Refuse a change of an instance that was changed since it was read, and tell what was, by whom and when."""
    try:
        await sight.check_unchanged(instance, revision)
    except MutiraoError as error:
        if error.code == "changed_meanwhile":
            rows = await sight.trace(instance, after=revision - 1, limit=_TOLD)
            told = [row for row in rows if row.state is not None or row.kind == "hand_over"]
            error.details["changes"] = list(_changes(told, revision))
        raise


def _changes(rows: list[TraceRow], revision: int) -> Iterator[dict[str, Any]]:
    before: dict[str, Any] = {}
    for row in rows:
        after = before if row.state is None else row.state
        if row.id != revision:
            differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
            changed = {name: {"before": before.get(name), "after": after.get(name)} for name in sorted(differing)}
            yield {"revision": row.id, "by": row.writer, "at": row.at, "what": row.kind, "attributes": changed}
        before = after
