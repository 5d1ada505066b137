"""Where things stand in the files, by their names in the model: for what is found out about them later."""

import re
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from lark import Token

from mutirao.language.pdl.syntax import Clause, Place, Tree, first_token
from mutirao.language.pdl.text import offset_of
from mutirao.model import Bundle, Definition, Task

_IN_QUOTES = re.compile(r'"[^"]*"')
_WORD = re.compile(r"\w+")
# How an engine tells what is wrong with a condition: of which task, and where in its text.
_CONDITION = re.compile(
    r'(?:condition of task "(?P<task>\w+)"|final condition)(?:, character (?P<at>\d+))?: (?P<what>.*)'
)
_ORDERING = re.compile(r'ordering of "(?P<first>\w+)" and "(?P<second>\w+)": (?P<what>.*)')
_PART = re.compile(
    r'flow "(?P<flow>\w+)": (?:condition of task "(?P<task>\w+)"|(?P<final>final condition)|attribute "(?P<attribute>\w+)")'
)


@dataclass(slots=True)
class Spot:
    """Where the name of a thing stands, and what its clauses say, by the fields of the model. A task has its model behind it."""

    tree: Tree
    name: Token
    said: dict[str, Token] = field(default_factory=dict)
    model: "Spot | None" = None

    @property
    def place(self) -> Place:
        return self.tree.place(self.name)

    def keep(self, clauses: dict[str, Clause]) -> None:
        for each, clause in clauses.items():
            self.said[each] = first_token(clause.arguments[0][0]) if clause.arguments else clause.keyword

    def at(self, field_name: str) -> Place:
        """Of what is said about a field, or else of the name."""
        if field_name not in self.said and self.model is not None and field_name in self.model.said:
            return self.model.at(field_name)
        return self.tree.place(self.said.get(field_name, self.name))

    def about(self, message: str) -> Place:
        """Of the first field that a refusal speaks of."""
        words = _WORD.findall(_IN_QUOTES.sub("", message))
        return self.at(next((word for word in words if word in self.said), ""))

    def inside(self, field_name: str, character: int) -> Place:
        """Of a word within a text, by the number of its first character."""
        text = self.said[field_name]
        begin = offset_of(text, character)
        ahead = text[:begin]
        width = len(found[0]) if (found := _WORD.match(text, begin)) else 1
        if "\n" not in ahead:
            return Place(self.tree.source, text.line or 1, (text.column or 1) + begin, width)
        line = (text.line or 1) + ahead.count("\n")
        return Place(self.tree.source, line, len(ahead) - ahead.rfind("\n"), width)


@dataclass(slots=True)
class FlowSpots:
    """Where a flow and its parts stand; and what parts may be called that cannot be read."""

    own: Spot
    tasks: dict[str, Spot] = field(default_factory=dict)
    attributes: dict[str, Spot] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    def of(self, message: str) -> tuple[Place, str]:
        """Of the part that a refusal is about, which names its task or attribute in quotes; and what it says of that part."""
        if (condition := _CONDITION.search(message)) is not None:
            return self._inside(condition), condition["what"]
        for kind, parts in (("task", self.tasks), ("attribute", self.attributes)):
            for name, spot in parts.items():
                _, label, rest = message.partition(f'{kind} "{name}"')
                if label and (kind == "task" or rest.startswith(":")):  # one that is only spoken of has no colon
                    return spot.about(rest), rest.removeprefix(": ") if rest.startswith(": ") else message
        return self.own.about(message), message

    def _inside(self, condition: re.Match[str]) -> Place:
        spot = self.own if condition["task"] is None else self.tasks[condition["task"]]
        text = "final" if condition["task"] is None else "when"
        if condition["at"] is None or text not in spot.said:
            return spot.at(text)
        return spot.inside(text, int(condition["at"]))


@dataclass(slots=True)
class OrderingSpots:
    """Where the two flows stand, the tasks by flow and name, and the attribute that it goes by."""

    first: Place
    second: Place
    tasks: dict[tuple[str, str], Place]
    on: Place | None

    def of(self, message: str) -> Place:
        for (flow, task), place in self.tasks.items():
            if f'flow "{flow}"' in message and f'task "{task}"' in message:
                return place
        return self.on if self.on is not None and "attribute" in message else self.first


OrderingKey: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class Places:
    flows: dict[str, FlowSpots] = field(default_factory=dict)
    models: dict[str, Spot] = field(default_factory=dict)
    applications: dict[str, Spot] = field(default_factory=dict)
    orderings: dict[OrderingKey, OrderingSpots] = field(default_factory=dict)

    def of(self, message: str) -> tuple[Place, str] | None:
        """Of what an engine's refusal is about, if it names one of these; and what it says of it."""
        if (ordered := _ORDERING.match(message)) is not None:
            own = self.orderings.get((ordered["first"], ordered["second"]))
            return None if own is None else (own.of(ordered["what"]), ordered["what"])
        for name, flow in self.flows.items():
            if (label := f'flow "{name}"') in message:
                return flow.of(message.removeprefix(f"{label}: "))
        for kind, spots in (("task model", self.models), ("application", self.applications)):
            for name, spot in spots.items():
                if (label := f'{kind} "{name}": ') in message:
                    return spot.about(message), message.removeprefix(label)
        return None


def without_refused(bundle: Bundle, message: str) -> Bundle | None:
    """What is left without the condition or the query that an engine refused; None where it was something else."""
    found = _PART.match(message)
    if found is None:
        return None
    flows = tuple(_without(flow, found) if flow.name == found["flow"] else flow for flow in bundle.flows)
    return None if flows == bundle.flows else replace(bundle, flows=flows)


def conditions_alone(flow: Definition) -> Definition:
    """The flow with nothing to be refused but its conditions and queries."""
    tasks = tuple(Task(name=task.name, when=task.when or "false") for task in flow.tasks)
    return Definition(name=flow.name, attributes=flow.attributes, tasks=tasks, final=flow.final)


def _without(flow: Definition, refused: re.Match[str]) -> Definition:
    if refused["final"]:
        return replace(flow, final="false")
    if refused["task"]:
        tasks = (replace(task, when="false") if task.name == refused["task"] else task for task in flow.tasks)
        return replace(flow, tasks=tuple(tasks))
    known = (replace(each, query=None) if each.name == refused["attribute"] else each for each in flow.attributes)
    return replace(flow, attributes=tuple(known))
