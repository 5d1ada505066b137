"""A flow as nodes and edges, as web/src/graph.ts draws them; and what is said of each task. Pure.

{"nodes": [{"id", "label", "kind", "marks", "notes", "href"}], "edges": [{"from", "to", "kind", "label"}], "words": {…}}
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from mutirao.model import AllOf, AnyOf, Definition, Dependency, Limit, Recovery, Task, Term
from mutirao.server.page.catalogue import marked
from mutirao.server.page.edge import Edge, edges, final_id, start_id
from mutirao.server.page.reader import Reader

KINDS = {
    "person": marked("done by people"),
    "program": marked("done by a worker"),
    "application": marked("runs an application"),
    "child": marked("runs another flow"),
    "clock": marked("waits for a time"),
}
MARKS = {
    "contingency": marked("takes the place of a task that failed"),
    "compensation": marked("undoes a task"),
    "safe-point": marked("safe-point: a rollback may stop here"),
    "critical": marked("critical: cannot be undone"),
    "disabled": marked("switched off"),
}
STATES = {
    "not_ready": marked("not ready"),
    "synchronizing": marked("waiting for its turn"),
    "ready": marked("ready"),
    "running": marked("in work"),
    "succeeded": marked("succeeded"),
    "failed": marked("failed"),
    "aborted": marked("aborted"),
    "blocked": marked("blocked"),
    "compensated": marked("undone"),
    # What a page says of tasks that are not ready: instance_task.py.
    "not_done": marked("not done"),
    "passed_over": marked("passed over"),
    "stands_by": marked("stands by"),
}
_ON_FAILURE = {
    "release": marked("If it fails, what depends on it goes on"),
    "roll_back": marked("If it fails, everything is rolled back"),
    "safe_point": marked("If it fails, it is rolled back to the safe-point"),
}
_LONGEST_LABEL = 2


def drawing(
    definition: Definition, reader: Reader, *, found: Sequence[Edge] | None = None, href: str = "#task-"
) -> dict[str, Any]:
    """The picture of a flow, with its edges if they were found before. A task leads to `href` and its name."""
    stand_by = standing(definition)
    nodes = [_end(start_id(), "start", reader.say("start"))]
    nodes += [_node(task, stand_by, definition, reader, href) for task in definition.tasks]
    found = edges(definition) if found is None else found
    if any(edge.target == final_id() for edge in found):
        notes = [definition.final] if definition.final else [reader.say("when nothing is left to do")]
        nodes.append(_end(final_id(), "final", reader.say("end"), notes))
    kinds = {node["kind"] for node in nodes}
    marks = {mark for node in nodes for mark in node["marks"]}
    return {
        "nodes": nodes,
        "edges": [_edge(each, reader) for each in found],
        "kinds": {kind: reader.say(word) for kind, word in KINDS.items() if kind in kinds},
        "marks": {mark: reader.say(word) for mark, word in MARKS.items() if mark in marks},
        "words": {state: reader.say(word) for state, word in STATES.items()},
        "breadth": breadth(found),
    }


def breadth(found: Sequence[Edge]) -> int:
    """How many tasks stand side by side at most: by it a page keeps room before the picture is drawn."""
    following: defaultdict[str, set[str]] = defaultdict(set)
    for edge in found:
        following[edge.source].add(edge.target)
    layer, seen, widest = {start_id()}, {start_id()}, 1
    while layer:
        widest = max(widest, len(layer))
        layer = {target for source in layer for target in following[source]} - seen
        seen |= layer
    return widest


def kind_of(task: Task) -> str:
    """Who does it."""
    if task.offer is not None:
        return "person"
    if task.child is not None:
        return "child"
    if task.application is not None:
        return "application"
    return "clock" if task.by_clock else "program"


def marks_of(task: Task, stand_by: dict[str, str]) -> list[str]:
    said = {
        stand_by.get(task.name, ""): task.name in stand_by,
        "safe-point": task.recovery.safe_point,
        "critical": task.recovery.critical,
        "disabled": not task.enabled,
    }
    return [mark for mark, is_so in said.items() if is_so]


def standing(definition: Definition) -> dict[str, str]:
    """Tasks that start in the place of another, or to undo it."""
    found = {each.recovery.contingency: "contingency" for each in definition.tasks}
    found |= {each.recovery.compensation: "compensation" for each in definition.tasks}
    return {task: mark for task, mark in found.items() if task is not None}


def _end(name: str, kind: str, label: str, notes: list[str] | None = None) -> dict[str, Any]:
    return {"id": name, "label": label, "kind": kind, "marks": [], "notes": notes or [], "href": ""}


def _node(task: Task, stand_by: dict[str, str], definition: Definition, reader: Reader, href: str) -> dict[str, Any]:
    marks = marks_of(task, stand_by)
    return {
        "id": task.name,
        "label": task.name,
        "kind": kind_of(task),
        "marks": marks,
        "notes": [*notes(task, definition, reader), *(reader.say(MARKS[mark]) for mark in marks)],
        "href": href + task.name,
    }


def _edge(edge: Edge, reader: Reader) -> dict[str, str]:
    match edge.kind:
        case "depends" | "seen":
            states = [reader.say(STATES.get(each, each)) for each in edge.about if each != "succeeded"]
            label = ", ".join(states)
        case "contingency":
            label = reader.say("failed")
        case "compensation":
            label = reader.say("to undo")
        case _:
            more = "…" if len(edge.about) > _LONGEST_LABEL else ""
            label = ", ".join(edge.about[:_LONGEST_LABEL]) + more
    return {"from": edge.source, "to": edge.target, "kind": edge.kind, "label": label}


def notes(task: Task, definition: Definition, reader: Reader) -> list[str]:
    """What stands behind a task, line by line: what it is, when it starts, who does it, what becomes of it."""
    said = [task.description or "", condition(task, definition, reader), doer(task, reader), *terms(task, reader)]
    return [each for each in said if each]


def condition(task: Task, definition: Definition, reader: Reader) -> str:
    """When it starts."""
    if task.depends is not None:
        text = f"{reader.say('after')} {_rule(task.depends, reader)}"
    elif task.when == "true":
        text = reader.say("at once")
    elif task.when is not None:
        text = f"{reader.say('when')} {' '.join(task.when.split())}"
    else:
        failing = [each.name for each in definition.tasks if each.recovery.contingency == task.name]
        undone = [each.name for each in definition.tasks if each.recovery.compensation == task.name]
        text = reader.say("in place of") if failing else reader.say("to undo")
        text = f"{text} {', '.join(failing or undone)}"
    if task.time_to_wait is not None:
        later = reader.say("or {time} after those have started")
        text += f", {later.format(time=reader.duration(task.time_to_wait))}"
    return text


def doer(task: Task, reader: Reader) -> str:
    """Who does it."""
    match kind_of(task):
        case "person" if task.offer is not None:
            return f"{reader.say('done by')} {task.offer.role}"
        case "child":
            return f"{reader.say('runs the flow')} {task.child}"
        case "application":
            return f"{reader.say('runs')} {task.application}"
        case "clock":
            return f"{reader.say('waits until')} {task.wait}"
    return ""


def terms(task: Task, reader: Reader) -> Iterator[str]:
    """On what terms it runs, where those are not the usual ones."""
    if task.wait is not None and not task.by_clock:
        yield f"{reader.say('not before')} {task.wait}"
    if task.outputs:
        yield f"{reader.say('writes')} {', '.join(task.outputs)}"
    if task.timeout is not None:
        yield f"{reader.say('timeout')} {reader.duration(task.timeout)}"
    if task.offer is not None and task.offer.deadline is not None:
        yield f"{reader.say('deadline')} {reader.duration(task.offer.deadline)}"
    if task.task_class is not None:
        yield f"{reader.say('class')} {task.task_class}"
    if task.limit is not None:
        yield from _limit(task.limit, reader)
    yield from _recovery(task.recovery, reader)


def _limit(limit: Limit, reader: Reader) -> Iterator[str]:
    if limit.at_once is not None:
        yield f"{reader.say('at most at once:')} {reader.number(limit.at_once)}"
    if limit.per_second is not None:
        yield f"{reader.say('at most in a second:')} {reader.number(limit.per_second)}"
    if limit.per is not None:
        yield f"{reader.say('at most at once for each')} {limit.per}: {reader.number(limit.each)}"


def _recovery(recovery: Recovery, reader: Reader) -> Iterator[str]:
    if recovery.contingency is not None:
        yield f"{reader.say('if it fails:')} {recovery.contingency}"
    if recovery.on_failure in _ON_FAILURE:
        yield reader.say(_ON_FAILURE[recovery.on_failure])
    if recovery.force:
        yield reader.say("tried until it succeeds")
    if recovery.compensation is not None:
        yield f"{reader.say('undone by')} {recovery.compensation}"


def _rule(node: Dependency, reader: Reader) -> str:
    match node:
        case Term(task, "succeeded"):
            return task
        case Term(task, state):
            return f"{task} {reader.say(STATES.get(state, state))}"
        case AllOf(parts):
            return f" {reader.say('and')} ".join(_part(part, reader) for part in parts)
        case AnyOf(parts):
            return f" {reader.say('or')} ".join(_part(part, reader) for part in parts)
    raise TypeError(node)


def _part(node: Dependency, reader: Reader) -> str:
    return _rule(node, reader) if isinstance(node, Term) else f"({_rule(node, reader)})"
