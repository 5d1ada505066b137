"""Files to a bundle: task models, applications, flows and orderings, with everything that is wrong with them."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from lark import Token

from mutirao.errors import FlowError, MutiraoError, OperatorError
from mutirao.language.pdl.block import Desk, Said
from mutirao.language.pdl.clause import APPLICATION, TASK_MODEL
from mutirao.language.pdl.finding import MOST_FINDINGS, Findings, WrongError
from mutirao.language.pdl.flow import FlowReader, KnownModels, warn_unused
from mutirao.language.pdl.outermost import Outermost
from mutirao.language.pdl.place import OrderingSpots, Places, Spot, conditions_alone, without_refused
from mutirao.language.pdl.syntax import Block, Clause, Entry, Pair, Place, Tree, first_token
from mutirao.language.pdl.task import kind_of
from mutirao.language.pdl.value import NAME, name_of, read, text_of
from mutirao.model import Application, Bundle, Definition, Inventory, Ordering, TaskModel

_Made = TypeVar("_Made")

_WITHOUT_ENGINE = "; give the file that defines it as well, or --database to look it up in an engine"


@dataclass(slots=True)
class Reading:
    """What was read, as far as it could be; and the text of what goes to the library, by `kind name`.

    `sketches` are of flows that are wrong and so not in the bundle.
    """

    bundle: Bundle
    places: Places
    findings: Findings
    texts: dict[str, str]
    sketches: tuple[Definition, ...] = ()

    @property
    def flows(self) -> tuple[Definition, ...]:
        return (*self.bundle.flows, *self.sketches)

    def note(self, error: MutiraoError) -> None:
        """What an engine refused, at its place; raised again if it has none in these files."""
        found = self.places.of(error.message)
        if found is None:
            raise error
        place, message = found
        self.findings.add(error.code, message, place)

    async def judge(self, try_out: Callable[[Bundle], Awaitable[object]]) -> None:
        """Note what an engine refuses. It tells one thing at a time: so it is asked again without that.

        Where something is wrong already, only conditions are judged: the rest would be refused for what is known.
        """
        left: Bundle | None = self.bundle
        if self.findings.errors:
            left = Bundle(flows=tuple(conditions_alone(flow) for flow in self.flows))
        while left is not None and self.findings.error_count < MOST_FINDINGS:
            try:
                await try_out(left)
            except OperatorError:
                raise
            except MutiraoError as error:
                self.note(error)
                left = without_refused(left, error.message)
            else:
                left = None


def build(trees: Iterable[Tree], inventory: Inventory | None, findings: Findings) -> Reading:
    """Read the trees together: what one defines, all know. What is in place already they know too, if it is given."""
    found = Outermost()
    for tree in trees:
        found.sort(Desk(tree, findings))
    places = Places()
    models = _named(found.models, "task model", places.models)
    own = {name: _model(desk, block, places.models[name]) for name, desk, block in models}
    applications = _named(found.applications, "application", places.applications)
    made = [_application(desk, block, places.applications[name]) for name, desk, block in applications]
    known = KnownModels(own, places.models, _WITHOUT_ENGINE)
    if inventory is not None:
        known = KnownModels({**inventory.models, **own}, places.models)
    readers = _present([_flow(desk, block, known, places) for desk, block in found.flows])
    flows = [(reader, reader.read()) for reader in readers]
    orderings = [_ordering(desk, pair, block, places) for desk, pair, block in found.orderings]
    bundle = Bundle(
        applications=_present(made),
        models=_present(own.values()),
        flows=_present(flow for _, flow in flows),
        orderings=_present(orderings),
    )
    sketches = _present(reader.sketch() for reader, flow in flows if flow is None)
    return Reading(bundle, places, findings, _texts(found), sketches)


def _texts(found: Outermost) -> dict[str, str]:
    """Each as its author wrote it."""
    texts: dict[str, str] = {}
    with suppress(WrongError):  # noted when the name was read; nothing of this will be put in place
        for kind, blocks in (("task_model", found.models), ("application", found.applications)):
            for desk, block in blocks:
                texts[f"{kind} {text_of(block.heading[0])}"] = desk.text(block.start, block.end)
        for desk, pair, block in found.orderings:
            texts[f"ordering {name_of(pair.first)}: {name_of(pair.second)}"] = desk.text(pair.start, block.end)
    return texts


def _present(made: Iterable[_Made | None]) -> tuple[_Made, ...]:
    return tuple(each for each in made if each is not None)


def _named(blocks: Iterable[tuple[Desk, Block]], kind: str, spots: dict[str, Spot]) -> list[tuple[str, Desk, Block]]:
    """Without those whose name is taken."""
    found = []
    for desk, block in blocks:
        try:
            name = text_of(block.heading[0])
            if name in spots:
                raise _twin(kind, name, block.heading[0], spots[name].place)
            spots[name] = desk.spot(block.heading[0])
            found.append((name, desk, block))
        except WrongError as error:
            desk.note(error)
    return found


def _twin(kind: str, name: str, at: Token, first: Place) -> WrongError:
    text = f'the {kind} "{name}" is defined already: {first.source.name}, line {first.line}'
    return WrongError("duplicate_name", text, at)


def _model(desk: Desk, block: Block, spot: Spot) -> TaskModel | None:
    said = desk.said(block, TASK_MODEL)
    given = {"kind": kind_of(said.values)} | said.values
    warn_unused(desk, said, given["kind"])
    return _make(desk, spot, said, TaskModel, given)


def _application(desk: Desk, block: Block, spot: Spot) -> Application | None:
    before = desk.findings.error_count
    said = desk.said(block, APPLICATION)
    if desk.findings.error_count > before:
        return None
    if said.values.get("filename") is None:
        desk.wrong("pdl_syntax", "an APPLICATION needs the FILENAME of its executable", block.heading[0])
        return None
    return _make(desk, spot, said, Application, said.values)


def _make(desk: Desk, spot: Spot, said: Said, kind: Callable[..., _Made], given: dict[str, Any]) -> _Made | None:
    spot.keep(said.clauses)
    if len(said.values) < len(said.clauses):
        return None  # what could not be read has been noted
    try:
        return kind(name=text_of(spot.name), **given)
    except FlowError as error:
        _, _, message = error.message.partition(": ")
        desk.findings.add(error.code, message, spot.about(message))
        return None


def _flow(desk: Desk, block: Block, models: KnownModels, places: Places) -> FlowReader | None:
    try:
        name = name_of(block.heading[0])
        if name in places.flows:
            raise _twin("flow", name, block.heading[0], places.flows[name].own.place)
    except WrongError as error:
        desk.note(error)
        return None
    reader = FlowReader(desk, block, models)
    places.flows[name] = reader.spots
    return reader


def _ordering(desk: Desk, pair: Pair, block: Block, places: Places) -> Ordering | None:
    try:
        key = name_of(pair.first), name_of(pair.second)
        if key in places.orderings:
            raise _twin("ordering", ": ".join(key), pair.first, places.orderings[key].first)
        pairs = [_task_pair(entry) for entry in block.entries if not _is_on(entry)]
        on = _ordered_on(block)
        sides = ((key[0], [each.first for each in pairs]), (key[1], [each.second for each in pairs]))
        places.orderings[key] = OrderingSpots(
            first=desk.place(pair.first),
            second=desk.place(pair.second),
            tasks={(flow, name_of(token)): desk.place(token) for flow, tokens in sides for token in tokens},
            on=None if on is None else desk.place(on),
        )
        return Ordering(*key, _different(pairs, block.keyword), on and name_of(on))
    except WrongError as error:
        desk.note(error)
    return None


def _different(pairs: list[Pair], keyword: Token) -> tuple[tuple[str, str], ...]:
    if not pairs:
        raise WrongError("pdl_syntax", "RELATIVE_ORDER takes at least one pair of tasks: T_11: T_21;", keyword)
    found: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        key = name_of(pair.first), name_of(pair.second)
        if key in found:
            text = f"the pair {pair.first}: {pair.second} stands in line {found[key].first.line} already"
            raise WrongError("duplicate_name", text, pair.first)
        found[key] = pair
    return tuple(found)


def _is_on(entry: Entry) -> bool:
    return isinstance(entry, Clause) and entry.keyword.upper() == "ON"


def _ordered_on(block: Block) -> Token | None:
    """ON site; stands among the pairs."""
    said = [entry for entry in block.entries if isinstance(entry, Clause) and _is_on(entry)]
    if len(said) > 1:
        raise WrongError("pdl_syntax", "ON stands here twice: an ordering goes by one attribute", said[1].keyword)
    if not said:
        return None
    read(NAME, said[0])
    return first_token(said[0].arguments[0][0])


def _task_pair(entry: Entry) -> Pair:
    if isinstance(entry, Pair) and entry.keyword is None:
        return entry
    text = f"RELATIVE_ORDER takes pairs of tasks, such as T_11: T_21; and here is {entry.start}"
    raise WrongError("pdl_syntax", text, entry.start)
