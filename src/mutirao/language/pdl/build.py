"""Files to a bundle: task models, applications, flows and orderings, with everything that is wrong with them."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from lark import Token

from mutirao.errors import FlowError
from mutirao.language.pdl.block import Desk, Said
from mutirao.language.pdl.clause import APPLICATION, TASK_MODEL
from mutirao.language.pdl.finding import Findings, WrongError
from mutirao.language.pdl.flow import FlowReader, KnownModels, warn_unused
from mutirao.language.pdl.outermost import Outermost
from mutirao.language.pdl.place import Places
from mutirao.language.pdl.syntax import Block, Entry, Pair, Place, Tree
from mutirao.language.pdl.task import kind_of
from mutirao.language.pdl.value import name_of, text_of
from mutirao.model import Application, Bundle, Definition, Inventory, Ordering, TaskModel

_Made = TypeVar("_Made")

_WITHOUT_ENGINE = "; give the file that defines it as well, or --database to look it up in an engine"


@dataclass(slots=True)
class Reading:
    """What was read, as far as it could be; and the text of what goes to the library, by `kind name`."""

    bundle: Bundle
    places: Places
    findings: Findings
    texts: dict[str, str]


def build(trees: Iterable[Tree], inventory: Inventory | None, findings: Findings) -> Reading:
    """Read the trees together: what one defines, all know. What is in place already they know too, if it is given."""
    found = Outermost()
    for tree in trees:
        found.sort(Desk(tree, findings))
    places = Places()
    own = {name: _model(desk, block) for name, desk, block in _named(found.models, "task model", places.models)}
    applications = _named(found.applications, "application", places.applications)
    made = [_application(desk, block) for _, desk, block in applications]
    known = KnownModels({**inventory.models, **own}) if inventory else KnownModels(own, _WITHOUT_ENGINE)
    flows = [_flow(desk, block, known, places) for desk, block in found.flows]
    orderings = [_ordering(desk, pair, block, places) for desk, pair, block in found.orderings]
    bundle = Bundle(
        applications=_present(made), models=_present(own.values()), flows=_present(flows), orderings=_present(orderings)
    )
    return Reading(bundle, places, findings, _texts(found))


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


def _named(blocks: Iterable[tuple[Desk, Block]], kind: str, places: dict[str, Place]) -> list[tuple[str, Desk, Block]]:
    """Without those whose name is taken."""
    found = []
    for desk, block in blocks:
        try:
            name = text_of(block.heading[0])
            _refuse_twin(desk, kind, name, block.heading[0], places)
            found.append((name, desk, block))
        except WrongError as error:
            desk.note(error)
    return found


def _refuse_twin(desk: Desk, kind: str, name: Any, at: Token, places: dict[Any, Place]) -> None:
    first = places.setdefault(name, desk.place(at))
    if first != desk.place(at):
        shown = ": ".join(name) if isinstance(name, tuple) else name
        text = f'the {kind} "{shown}" is defined already: {first.source.name}, line {first.line}'
        raise WrongError("duplicate_name", text, at)


def _model(desk: Desk, block: Block) -> TaskModel | None:
    said = desk.said(block, TASK_MODEL)
    given = {"kind": kind_of(said.values)} | said.values
    warn_unused(desk, said, given["kind"])
    return _make(desk, block, said, TaskModel, given)


def _application(desk: Desk, block: Block) -> Application | None:
    said = desk.said(block, APPLICATION)
    if said.values.get("filename") is None and "filename" not in said.clauses:
        desk.wrong("pdl_syntax", "an APPLICATION needs the FILENAME of its executable", block.heading[0])
        return None
    return _make(desk, block, said, Application, said.values)


def _make(desk: Desk, block: Block, said: Said, kind: Callable[..., _Made], given: dict[str, Any]) -> _Made | None:
    if len(said.values) < len(said.clauses):
        return None  # what could not be read has been noted
    try:
        return kind(name=text_of(block.heading[0]), **given)
    except FlowError as error:
        _, _, message = error.message.partition(": ")
        desk.wrong(error.code, message, block.heading[0])
        return None


def _flow(desk: Desk, block: Block, models: KnownModels, places: Places) -> Definition | None:
    try:
        name = name_of(block.heading[0])
        _refuse_twin(desk, "flow", name, block.heading[0], {each: at.name for each, at in places.flows.items()})
    except WrongError as error:
        desk.note(error)
        return None
    reader = FlowReader(desk, block, models)
    places.flows[name] = reader.places
    return reader.read()


def _ordering(desk: Desk, pair: Pair, block: Block, places: Places) -> Ordering | None:
    try:
        first, second = name_of(pair.first), name_of(pair.second)
        _refuse_twin(desk, "ordering", (first, second), pair.first, places.orderings)
        return Ordering(first, second, tuple(_task_pair(entry) for entry in block.entries))
    except WrongError as error:
        desk.note(error)
    except FlowError as error:
        _, _, message = error.message.rpartition(": ")
        desk.wrong(error.code, message, pair.first)
    return None


def _task_pair(entry: Entry) -> tuple[str, str]:
    if isinstance(entry, Pair) and entry.keyword is None:
        return name_of(entry.first), name_of(entry.second)
    text = f"RELATIVE_ORDER takes pairs of tasks, such as T_11: T_21; and here is {entry.start}"
    raise WrongError("pdl_syntax", text, entry.start)
