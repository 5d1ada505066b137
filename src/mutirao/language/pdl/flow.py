"""A WORKFLOW block to a definition: every name that it refers to is looked up where it stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lark import Token

from mutirao.errors import FlowError
from mutirao.language.pdl.attribute import read_attribute
from mutirao.language.pdl.block import Desk, Said
from mutirao.language.pdl.clause import ATTRIBUTES, FLOW, TASK, WORKFLOW_BLOCKS
from mutirao.language.pdl.finding import WrongError
from mutirao.language.pdl.place import FlowSpots, Spot
from mutirao.language.pdl.syntax import Block, Clause, Entry, Pair, SyntaxGroup, SyntaxTerm, terms
from mutirao.language.pdl.task import OFFER_FIELDS, STAND_INS, kind_of, make_task, model_settings
from mutirao.language.pdl.text import snake_case
from mutirao.language.pdl.value import CRITICAL, atoms, name_of, text_of
from mutirao.model import Attribute, Definition, Offer, Policy, Task, TaskModel


@dataclass(frozen=True, slots=True)
class KnownModels:
    """The task models that a flow may use, None for one that is wrong itself; and what to do about one that is not there.

    Those in these files have a spot.
    """

    named: Mapping[str, TaskModel | None]
    spots: Mapping[str, Spot]
    advice: str = ""


@dataclass(frozen=True, slots=True)
class _TaskHead:
    name: Token
    model: Token | None
    child: Token | None


class FlowReader:
    """Reads one WORKFLOW block."""

    def __init__(self, desk: Desk, block: Block, models: KnownModels) -> None:
        self._desk = desk
        self._block = block
        self._models = models
        self._attributes: dict[str, Attribute | None] = {}
        self._tasks: dict[str, Task | None] = {}
        self._said: list[tuple[_TaskHead, Said]] = []
        self._stand_ins: set[str] = set()
        self._lacks_model = False
        self._has_gaps = False
        self._own = Said()
        self.spots = FlowSpots(desk.spot(block.heading[0]))

    def read(self) -> Definition | None:
        """The definition, or None if something is wrong with it: that has been noted then."""
        before = self._desk.findings.error_count
        said = self._own
        for entry in self._block.entries:
            word = entry.start.upper()
            if isinstance(entry, Block) and word == "TASK":
                self._read_task(entry)
            elif isinstance(entry, Block | Clause) and word in ATTRIBUTES:
                self._read_attribute(entry)
            elif isinstance(entry, Clause) and word in FLOW:
                self._desk.read_clause(said, self._block, entry, FLOW)
            else:
                self._desk.misplaced(entry, self._block, (*FLOW, *WORKFLOW_BLOCKS))
                self._lose(entry)
        self.spots.own.keep(said.clauses)
        self._check_names()
        is_wrong = self._lacks_model or self._desk.findings.error_count > before
        return None if is_wrong else self._define(said)

    def sketch(self) -> Definition | None:
        """Of one that is wrong, what can be judged all the same: its conditions, roles and classes. None if not even that.

        Where an attribute or a task cannot be read, conditions that speak of it would seem wrong.
        """
        if self._has_gaps:
            return None
        attributes = [each for each in self._attributes.values() if each is not None]
        tasks = [_sketched(name_of(head.name), said.values) for head, said in self._said]
        own = {each: self._own.values.get(each) for each in ("final", "creator")}
        try:
            return Definition(name=name_of(self._block.heading[0]), attributes=attributes, tasks=tasks, **own)  # type: ignore[arg-type]
        except FlowError:  # noted, or for those to find out who have mended the rest
            return None

    def _define(self, said: Said) -> Definition | None:
        given = said.values
        ends = given.get("ends") or ("quiet" if given.get("final") is None else "final")
        name = name_of(self._block.heading[0])
        try:
            return Definition(
                **given | {"ends": ends},
                name=name,
                attributes=tuple(each for each in self._attributes.values() if each is not None),
                tasks=tuple(self._standing_by(each) for each in self._tasks.values() if each is not None),
            )
        except FlowError as error:
            place, message = self.spots.of(
                error.message.removeprefix(f'flow "{name}", ').removeprefix(f'flow "{name}": ')
            )
            self._desk.findings.add(error.code, message, place)
            return None

    def _standing_by(self, task: Task) -> Task:
        """What another task names to take its place or undo it does not start by itself."""
        spot = self.spots.tasks[task.name]
        if task.name in self._stand_ins and not {"when", "depends"} & spot.said.keys():
            return replace(task, when=None)
        return task

    def _lose(self, entry: Entry) -> None:
        """It cannot be read. Whatever it was meant to define is there all the same for those who refer to it."""
        self._has_gaps = True
        self.spots.lost.update(snake_case(each.strip('"')) for each in _labels(entry))

    # Attributes

    def _read_attribute(self, entry: Block | Clause) -> None:
        desk = self._desk
        try:
            label = _attribute_label(entry)
            name = name_of(label)
            spot = self._spot("attribute", name, label, self.spots.attributes)
            said = desk.said(entry, ATTRIBUTES[entry.keyword.upper()]) if isinstance(entry, Block) else Said()
            spot.keep(said.clauses)
            self._attributes[name] = None  # known, even where its own clauses are wrong
            self._attributes[name] = read_attribute(entry.keyword, name, said.values)
        except WrongError as error:
            desk.note(error)
            self._lose(entry)

    def _spot(self, kind: str, name: str, label: Token, spots: dict[str, Spot]) -> Spot:
        if name in spots:
            first = spots[name].name.line
            text = f'the {kind} "{name}" stands in line {first} already; CamelCase and snake_case are one name'
            raise WrongError("duplicate_name", text, label)
        spots[name] = self._desk.spot(label)
        return spots[name]

    # Tasks

    def _read_task(self, block: Block) -> None:
        desk = self._desk
        try:
            head = _task_head(block)
            name = name_of(head.name)
            spot = self._spot("task", name, head.name, self.spots.tasks)
        except WrongError as error:
            self._lose(block)
            return desk.note(error)
        said = desk.said(block, TASK)
        spot.keep(said.clauses)
        if head.model is not None:
            spot.model = self._models.spots.get(text_of(head.model))
        if head.child is not None:
            spot.said.setdefault("child", head.child)
        self._said.append((head, said))
        self._stand_ins |= {said.values[each] for each in STAND_INS if said.values.get(each) is not None}
        self._tasks[name] = None
        try:
            self._tasks[name] = self._task(name, head, said)
        except WrongError as error:
            desk.note(error)
        return None

    def _task(self, name: str, head: _TaskHead, said: Said) -> Task | None:
        if head.model is None:
            return make_task(name, None, self._settings(head, None, said))
        wanted = text_of(head.model)
        if wanted not in self._models.named:
            hint = self._desk.findings.suggest(wanted, self._models.named) + self._models.advice
            raise WrongError("unknown_model", f'there is no task model "{wanted}"{hint}', head.model)
        model = self._models.named[wanted]
        if model is None:  # what is wrong with it has been noted; what follows from that need not be
            self._lacks_model = True
            return None
        return make_task(name, wanted, self._settings(head, model, said))

    def _settings(self, head: _TaskHead, model: TaskModel | None, said: Said) -> dict[str, Any]:
        settings = model_settings(model) | said.values
        if model is None and "kind" not in said.values:
            settings["kind"] = kind_of(said.values)
        if head.child is not None:
            if "child" in said.clauses:
                text = "which flow it runs stands behind its name already"
                raise WrongError("pdl_syntax", text, said.clauses["child"].keyword)
            settings["child"] = name_of(head.child)
        if said.values.get("depends") is not None and said.values.get("when") is not None:
            raise WrongError(
                "flow_invalid", "a task starts by DEPENDS or by WHEN, not by both", said.clauses["when"].keyword
            )
        warn_unused(self._desk, said, settings["kind"])
        if settings["kind"] != "automatic" and settings["role"] is None:
            at = said.clauses["kind"].keyword if "kind" in said.clauses else head.name
            raise WrongError("flow_invalid", f"a task for people ({settings['kind'].upper()}) needs a ROLE", at)
        return settings

    # Names that tasks refer to

    def _check_names(self) -> None:
        for head, said in self._said:
            for at in _named_attributes(said):
                self._look_up("unknown_attribute", "attribute", at, self._attributes)
            for each in ("inputs", "outputs"):
                self._refuse_twice(said.clauses[each] if said.values.get(each) else None)
            for at in _named_tasks(said):
                self._look_up("unknown_task", "task", at, self._tasks)
            task = self._tasks[name_of(head.name)]
            policy = Policy() if task is None or task.offer is None else task.offer.policy
            is_own = policy.task is None or "policy" in said.clauses
            if not is_own and policy.task not in self._tasks and policy.task not in self.spots.lost:
                text = f'its model\'s policy names the task "{policy.task}", which is not in this flow'
                self._desk.wrong("unknown_task", text, head.name)

    def _look_up(self, code: str, kind: str, at: Token, known: Mapping[str, Any]) -> None:
        name = snake_case(text_of(at))
        if name not in known and name not in self.spots.lost:
            near = self._desk.findings.suggest(name, known)
            self._desk.wrong(code, f'there is no {kind} "{text_of(at)}" in this flow{near}', at)

    def _refuse_twice(self, clause: Clause | None) -> None:
        names: set[str] = set()
        for atom in () if clause is None else atoms(clause):
            if isinstance(atom, Token) and (name := name_of(atom)) in names:
                self._desk.wrong("duplicate_name", f'"{text_of(atom)}" stands in this list already', atom)
            elif isinstance(atom, Token):
                names.add(name)


def _sketched(name: str, said: Mapping[str, Any]) -> Task:
    role = said.get("role")
    offer = None if role is None else Offer(role=role)
    return Task(name=name, when=said.get("when") or "false", offer=offer, task_class=said.get("task_class"))


def warn_unused(desk: Desk, said: Said, kind: str) -> None:
    """What a task or model of this kind says for nothing; that a clause says none of it is no harm."""
    for each in OFFER_FIELDS:
        if not said.values.get(each) or not said.clauses[each].arguments:
            continue
        word = said.clauses[each].keyword
        if kind == "automatic":
            desk.warn("pdl_unused", f"{word.upper()} is not used: this task is AUTOMATIC, and no person does it", word)
        elif each == "users" and kind != "cooperative":
            desk.warn(
                "pdl_unused",
                f"USERS is not used: only a COOPERATIVE task has a group, and this is {kind.upper()}",
                word,
            )


def _labels(entry: Entry) -> Iterator[Token]:
    """The words in it that may be what it defines."""
    match entry:
        case Block(heading=heading):
            yield from heading
        case Clause(arguments=arguments):
            yield from (atom for argument in arguments for atom in argument if isinstance(atom, Token))
        case Pair(first=first, second=second):
            yield from (first, second)


def _attribute_label(entry: Block | Clause) -> Token:
    match entry:
        case Block(heading=(label,)) | Clause(arguments=((Token(type="WORD" | "STRING") as label,),)):
            return label
    word = entry.keyword.upper()
    raise WrongError("pdl_syntax", f"{word} takes one name: {word} Price {{ … }}, or {word} Price;", entry.keyword)


def _task_head(block: Block) -> _TaskHead:
    match block.heading:
        case (name,):
            return _TaskHead(name, None, None)
        case (name, model):
            return _TaskHead(name, model, None)
        case (name, word, child) if word.upper() == "FLOW":
            return _TaskHead(name, None, child)
        case (_, word, _):
            raise WrongError(
                "pdl_syntax", f'after the colon stands a task model, or FLOW and a flow: not "{word}"', word
            )
    raise WrongError("pdl_syntax", "TASK takes a name: TASK Book { … }, or TASK Book: Model { … }", block.keyword)


def _named_attributes(said: Said) -> Iterator[Token]:
    for each in ("inputs", "outputs"):
        if said.values.get(each):
            yield from (atom for atom in atoms(said.clauses[each]) if isinstance(atom, Token))
    if said.values.get("wait"):
        yield from (atom for atom in atoms(said.clauses["wait"]) if isinstance(atom, Token))
    if said.values.get("limit") is not None:  # 1 PER customer
        yield from (argument[2] for argument in said.clauses["limit"].arguments if len(argument) > 2)  # type: ignore[misc]  # noqa: PLR2004


def _named_tasks(said: Said) -> Iterator[Token]:
    for atom in atoms(said.clauses["depends"]) if said.values.get("depends") is not None else ():
        if isinstance(atom, SyntaxTerm | SyntaxGroup):
            yield from (term.task for term in terms(atom))
    for each in STAND_INS:
        if said.values.get(each) not in (None, CRITICAL):
            yield from (atom for atom in atoms(said.clauses[each]) if isinstance(atom, Token))
    if "policy" in said.values and said.values["policy"].task is not None:
        yield list(atoms(said.clauses["policy"]))[-1]  # type: ignore[misc]
