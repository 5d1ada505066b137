"""What the files say as a whole: whether every flow can start and every task can run, and whether all is there that they name.

What the files do not define is looked up in what an engine has in place. Where nobody knows, an application or a child that is in
none of the files is a warning, and roles and classes are not looked at.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from mutirao.errors import FlowError
from mutirao.language.pdl.build import Reading
from mutirao.language.pdl.graph import can_start, circles, cycles, why_stuck
from mutirao.language.pdl.place import Spot
from mutirao.language.pdl.syntax import Place
from mutirao.model import Bundle, Definition, Inventory, Ordering, Task
from mutirao.model.name import suggest


def check(reading: Reading, known: Inventory | None) -> None:
    """Note all that is wrong in the reading's findings."""
    for flow in reading.bundle.flows:
        _check_start(flow, reading)
    checker = _Checker(reading, known)
    checker.check_roles()
    checker.check_classes()
    checker.check_applications()
    checker.check_children()
    checker.check_handed_over()
    for ordering in reading.bundle.orderings:
        checker.check_ordering(ordering)


def missing_roles(bundle: Bundle, known: Inventory) -> list[str]:
    """Those that the flows name and nobody has made yet, each once."""
    named = [role for flow in bundle.flows for role, _ in _roles(flow)]
    return [role for role in dict.fromkeys(named) if role not in known.roles]


def missing_classes(bundle: Bundle, known: Inventory) -> list[str]:
    named = [task.task_class for flow in bundle.flows for task in flow.tasks if task.task_class is not None]
    return [name for name in dict.fromkeys(named) if name not in known.classes]


def with_creator(bundle: Bundle, creator: str | None, known: Inventory) -> Bundle:
    """Whoever puts it in place says who may create instances of the flows that do not say so."""
    if creator is None:
        return bundle
    if creator not in known.roles:
        raise FlowError("unknown_role", f'creator: there is no role "{creator}"{suggest(creator, known.roles)}')
    return replace(bundle, flows=tuple(replace(flow, creator=flow.creator or creator) for flow in bundle.flows))


def _check_start(flow: Definition, reading: Reading) -> None:
    spots, findings = reading.places.flows[flow.name], reading.findings
    startable = can_start(flow)
    stuck = {task.name for task in flow.tasks if task.enabled} - startable
    if not startable:
        why = "it has no task" if not flow.tasks else "none of its tasks can be the first"
        findings.add("never_starts", f'nothing can start the flow "{flow.name}": {why}', spots.own.place)
    in_circles: set[str] = set()
    for circle in cycles(flow, stuck):
        in_circles.update(circle)
        told = " waits for ".join([*circle, circle[0]])
        findings.add(
            "dependency_cycle", f"these tasks wait for one another: {told}", spots.tasks[circle[0]].at("depends")
        )
    for task in flow.tasks:
        if task.name in stuck - in_circles:
            why = why_stuck(task, flow, startable)
            place = spots.tasks[task.name].at("when" if task.depends is None else "depends")
            findings.add("never_runs", f'the task "{task.name}" can never run: {why}', place)


class _Checker:
    """Looks up what the files name, in themselves and in what is known besides."""

    def __init__(self, reading: Reading, known: Inventory | None) -> None:
        self._bundle, self._places, self._findings = reading.bundle, reading.places, reading.findings
        self._flows = reading.flows
        self._is_alone = known is None
        self._known = known or Inventory()

    def check_roles(self) -> None:
        if self._is_alone:
            return
        roles = self._known.roles
        for flow in self._flows:
            spots = self._places.flows[flow.name]
            for role, task in _roles(flow):
                if role not in roles:
                    place = spots.own.at("creator") if task is None else spots.tasks[task].at("role")
                    self._findings.add(
                        "unknown_role", f'there is no role "{role}"{self._findings.suggest(role, roles)}', place
                    )

    def check_classes(self) -> None:
        if self._is_alone:
            return
        classes = self._known.classes
        for flow in self._flows:
            for task in flow.tasks:
                if (name := task.task_class) is not None and name not in classes:
                    place = self._places.flows[flow.name].tasks[task.name].at("task_class")
                    self._findings.add(
                        "unknown_class", f'there is no class "{name}"{self._findings.suggest(name, classes)}', place
                    )

    def check_applications(self) -> None:
        there = {*self._places.applications, *self._known.applications}
        for name, place in self._applications():
            if name not in there:
                self._note_missing(
                    "unknown_application", f'application "{name}"', place, self._findings.suggest(name, there)
                )

    def check_children(self) -> None:
        """A flow may run another, and that another; but none may come back to itself, or it would never end."""
        own = {flow.name: {task.child: task.name for task in flow.tasks if task.child} for flow in self._bundle.flows}
        there = {*self._places.flows, *self._known.tasks}
        for flow, children in own.items():
            for child, task in children.items():
                if child not in there:
                    place = self._places.flows[flow].tasks[task].at("child")
                    self._note_missing("unknown_flow", f'flow "{child}"', place, self._findings.suggest(child, there))
        runs: dict[str, Iterable[str]] = {**self._known.children, **own}
        for circle in circles(runs):
            told = " runs ".join([*circle, circle[0]])
            steps = [step for step in pairwise([*circle, circle[0]]) if step[0] in own]
            for here, there_ in steps[:1]:
                place = self._places.flows[here].tasks[own[here][there_]].at("child")
                self._findings.add("child_circle", f"a flow that runs itself would never end: {told}", place)

    def check_handed_over(self) -> None:
        """What a child gets and gives back, where the child is in these files too."""
        flows = {flow.name: flow for flow in self._bundle.flows}
        for flow in self._bundle.flows:
            for task in flow.tasks:
                if task.child in flows:
                    spot = self._places.flows[flow.name].tasks[task.name]
                    self._check_handed_over(flow, task, flows[task.child], spot)

    def _check_handed_over(self, flow: Definition, task: Task, child: Definition, spot: Spot) -> None:
        known = {each.name for each in child.attributes}
        for name in dict.fromkeys((*(task.inputs or ()), *(task.outputs or ()))):
            if name not in known:
                text = f'"{name}" is not handed over: the flow "{child.name}" has no such attribute{self._findings.suggest(name, known)}'
                field = "inputs" if name in (task.inputs or ()) else "outputs"
                self._findings.warn("unknown_attribute", text, spot.at(field))
        given = {each.name for each in flow.attributes} if task.inputs is None else set(task.inputs)
        for each in child.attributes:
            if each.required and each.default is None and each.name not in given:
                text = f'the flow "{child.name}" cannot start without "{each.name}", which is not in its IN_CONTEXT'
                self._findings.add("missing_attribute", text, spot.at("inputs" if "inputs" in spot.said else "child"))

    def check_ordering(self, ordering: Ordering) -> None:
        spots = self._places.orderings[ordering.first, ordering.second]
        tasks = {**self._known.tasks, **{name: flow.tasks for name, flow in self._places.flows.items()}}
        for flow, place in ((ordering.first, spots.first), (ordering.second, spots.second)):
            if flow not in tasks:
                self._note_missing("unknown_flow", f'flow "{flow}"', place, self._findings.suggest(flow, tasks))
        for (flow, name), place in spots.tasks.items():
            if flow in tasks and name not in tasks[flow] and not self._is_lost(flow, name):
                text = f'the flow "{flow}" has no task "{name}"{self._findings.suggest(name, tasks[flow])}'
                self._findings.add("unknown_task", text, place)
        if ordering.on is not None and spots.on is not None:
            for flow in sorted(
                {ordering.first, ordering.second} & self._places.flows.keys()
            ):  # an engine speaks for its own
                self._check_ordered_on(flow, ordering.on, spots.on)

    def _check_ordered_on(self, flow: str, name: str, place: Place) -> None:
        known = self._places.flows[flow].attributes
        if name not in known and not self._is_lost(flow, name):
            text = f'the flow "{flow}" has no attribute "{name}"{self._findings.suggest(name, known)}'
            self._findings.add("unknown_attribute", text, place)

    def _is_lost(self, flow: str, name: str) -> bool:
        return flow in self._places.flows and name in self._places.flows[flow].lost

    def _note_missing(self, code: str, what: str, place: Place, hint: str) -> None:
        if self._is_alone:
            text = f"the {what} is in none of these files; with --database it is looked up in the engine"
            self._findings.warn(code, text, place)
        else:
            self._findings.add(code, f"there is no {what}{hint}", place)

    def _applications(self) -> Iterator[tuple[str, Place]]:
        """Who says so: a model, or a task that says something else than its model."""
        said = {model.name: model.application for model in self._bundle.models}
        for model in self._bundle.models:
            if model.application is not None:
                yield model.application, self._places.models[model.name].at("application")
        for flow in self._bundle.flows:
            for task in flow.tasks:
                if task.application is not None and said.get(task.model or "") != task.application:
                    yield task.application, self._places.flows[flow.name].tasks[task.name].at("application")


def _roles(flow: Definition) -> Iterator[tuple[str, str | None]]:
    """Each with the task that is for it; the creators' role has none."""
    if flow.creator is not None:
        yield flow.creator, None
    yield from ((task.offer.role, task.name) for task in flow.tasks if task.offer is not None)
