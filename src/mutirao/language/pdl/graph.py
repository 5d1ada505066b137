"""What a flow's dependencies say about it before it ever runs: which tasks could start, and which never will.

A task can start if it begins by a condition, since nobody knows here what the state will be, or if its rule can hold by what
tasks that can start can reach. That is found by adding tasks until there are no more to add; what is left over never runs.
"""

from collections.abc import Iterable, Mapping

from mutirao.model import AllOf, AnyOf, Definition, Dependency, Task, Term
from mutirao.model.dependency import walk

# A task that only waits for a time is done by nobody, so nobody can have it or fail.
_NEVER_REACHED_BY_CLOCK = frozenset({"running", "failed"})


def can_start(flow: Definition) -> set[str]:
    tasks = {task.name: task for task in flow.tasks}
    waiting: dict[str, list[str]] = {name: [] for name in tasks}
    for task in flow.tasks:
        for name in _waited_for(task):
            waiting[name].append(task.name)
    startable: set[str] = set()
    rest = list(tasks)
    while rest:
        name = rest.pop()
        if name not in startable and _may_start(tasks[name], tasks, startable):
            startable.add(name)
            rest += waiting[name]
    return startable


def cycles(flow: Definition, stuck: set[str]) -> list[list[str]]:
    """The circles in which stuck tasks wait for one another, each once; it begins with the task that stands first."""
    waits_for = {task.name: _waited_for(task) & stuck for task in flow.tasks if task.name in stuck}
    return circles(waits_for)


def circles(leads_to: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Circles in a graph, going along each edge once; of those that share a node, one is enough."""
    found: list[list[str]] = []
    in_circles: set[str] = set()
    done: set[str] = set()
    for start in leads_to:
        path = {} if start in done else {start: iter(sorted(leads_to[start]))}
        while path:
            here = next(reversed(path))
            there = next(path[here], None)
            if there is None:
                done.add(here)
                del path[here]
            elif there not in path and there not in done:
                path[there] = iter(sorted(leads_to.get(there, ())))
            elif there in path and there not in in_circles:
                circle = list(path)[list(path).index(there) :]
                if in_circles.isdisjoint(circle):
                    found.append(circle)
                    in_circles.update(circle)
    return found


def why_stuck(task: Task, flow: Definition, startable: set[str]) -> str:
    """Which term of its rule can never hold."""
    tasks = {each.name: each for each in flow.tasks}
    if task.depends is None:
        return "its condition is false"
    for node, _ in walk(task.depends):
        if isinstance(node, Term) and not _may_hold(node, tasks, startable):
            if node.task not in startable:
                return f'it depends on "{node.task}", which can never run'
            return f'it depends on "{node.task}" being {node.state.upper()}, which that task never is'
    return "its rule can never hold"


def _may_start(task: Task, tasks: Mapping[str, Task], startable: set[str]) -> bool:
    if not task.enabled:
        return False
    if task.depends is None and task.when is None:
        return True  # it stands by for a task; whether that one can start is that one's matter
    if task.depends is None:
        return (task.when or "").strip().lower() != "false"
    return _may_hold(task.depends, tasks, startable)


def _may_hold(rule: Dependency, tasks: Mapping[str, Task], startable: set[str]) -> bool:
    match rule:
        case AllOf(parts):
            return all(_may_hold(part, tasks, startable) for part in parts)
        case AnyOf(parts):
            return any(_may_hold(part, tasks, startable) for part in parts)
        case Term(task, state):
            return task in startable and not (tasks[task].by_clock and state in _NEVER_REACHED_BY_CLOCK)
    raise TypeError(rule)


def _waited_for(task: Task) -> set[str]:
    if task.depends is None or not task.enabled:
        return set()
    return {node.task for node, _ in walk(task.depends) if isinstance(node, Term)}
