"""The story of an instance as plain text, for a test that fails: what happened, how it stands, what it waits for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mutirao.database.engine import DECODER, Engine
from mutirao.database.explanation import Why
from mutirao.database.record import Instance
from mutirao.database.story import Event, in_words, tell
from mutirao.errors import RequestError
from mutirao.model import Definition, wording
from mutirao.model.name import suggest
from mutirao.model.plain import encode_plain

_MOST_STORIES = 5
_MOST_EVENTS = 40
_LONG_NOTE = 200
_TIME = 8


class StoryError(AssertionError):
    """What was expected, and the story of what happened instead; `told` are the instances that it tells of."""

    def __init__(self, problem: str, story: str, told: Sequence[int] | None = None) -> None:
        super().__init__(f"{problem}\n\n{story}" if story else problem)
        self.told = told
        """None: of all of them."""


StoryError.__module__ = "mutirao.testing"  # where users find it, and what a report prints in front of each


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as they come back from the database: dates as texts, numbers exact."""
    decoded: dict[str, Any] = DECODER.decode(encode_plain(values))
    return decoded


async def check_attributes(engine: Engine, instance: int, names: Iterable[str]) -> None:
    """Refuse a name that is no attribute: it would be waited or asked for in vain."""
    wanted = list(names)
    if wanted:
        found = await engine.instance(instance)
        known = [each.name for each in (await engine.definition(found.flow, found.version)).attributes]
        for name in wanted:
            if name not in known:
                text = f'flow "{found.flow}" has no attribute "{name}"{suggest(name, known)}'
                raise RequestError("unknown_attribute", text)


async def tell_all(engine: Engine, instances: Sequence[int] | None = None, *, but: Iterable[int] = ()) -> str:
    """The stories of these instances, or of all that there are but those; only the first few."""
    chosen = list(instances) if instances is not None else []
    more = 0
    if instances is None:
        there = [each.id for each in await engine.instances(limit=1000)]
        wanted = sorted(set(there) - set(but))
        chosen, more = wanted[:_MOST_STORIES], len(wanted[_MOST_STORIES:])
    stories = [await tell_instance(engine, each) for each in chosen]
    if more:
        stories.append(f"and {more} more instances")
    return "\n\n".join(stories)


async def tell_instance(engine: Engine, instance: int) -> str:
    found = await engine.instance(instance)
    definition = await engine.definition(found.flow, found.version)
    events = tell(await engine.trace(instance), definition)
    answers = [why for why in await engine.why(instance) if why.task is not None] if found.is_open else []
    return "\n".join([_title(found), *_told(events), *_standing(found, definition, answers)])


def _title(found: Instance) -> str:
    return f"instance {found.id} of {found.flow} is {found.status}"


def _told(events: Sequence[Event]) -> Iterator[str]:
    if len(events) > _MOST_EVENTS:
        yield _line("…", f"{len(events) - _MOST_EVENTS} steps before these")
    for event in events[-_MOST_EVENTS:]:
        who = f", by {event.who}" if event.who else ""
        yield _line(wording.span(event.at - events[0].at), f"{event.what}{who}")
        for name, (old, new) in event.changed.items():
            was = "" if old is None else f"{wording.value(old)} → "
            yield _line("", f"  {name} = {was}{wording.value(new)}")
        if event.note:
            yield _line("", f"  {wording.shortened(event.note, _LONG_NOTE)}")
        if event.fired:
            yield _line("", f"  sets off {', '.join(event.fired)}")
        if event.status and event.status != "open.running":
            yield _line("", f"  is {event.status}")


def _standing(found: Instance, definition: Definition, answers: Sequence[Why]) -> Iterator[str]:
    """Why it is an exception, what its jobs wait for, and why tasks that never ran did not."""
    for reason in found.reasons or ():
        yield _line("because", f"{reason['code']}: {wording.shortened(in_words(reason, found.state), _LONG_NOTE)}")
    for why in answers:
        if why.job is not None and why.stands != "failed":
            yield _line("now", wording.shortened(why.answer, _LONG_NOTE))
    for why in answers:
        if why.stands == "condition" and why.fired is None:
            yield _line("why", wording.shortened(why.answer, _LONG_NOTE))
    known = wording.ordered(found.state, definition)
    yield _line("state", ", ".join(f"{name} = {wording.value(given)}" for name, given in known.items()))


def _line(left: str, text: str) -> str:
    return f"  {left:>{_TIME}}  {text}".rstrip()
