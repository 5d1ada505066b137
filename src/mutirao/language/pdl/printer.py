"""Model to text: the same definition comes back when it is read again.

A task says only what its task model does not say already, if that model is in the bundle.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mutirao.language.pdl.attribute import attribute_fields, attribute_keyword
from mutirao.language.pdl.clause import APPLICATION, ATTRIBUTES, FLOW, TASK, TASK_MODEL, ClauseRules
from mutirao.language.pdl.format import format_text
from mutirao.language.pdl.syntax import Source
from mutirao.language.pdl.task import model_settings, task_settings
from mutirao.language.pdl.text import label
from mutirao.language.pdl.value import write
from mutirao.model import Application, Attribute, Bundle, Definition, Ordering, Task, TaskModel


def to_pdl(bundle: Bundle) -> str:
    models = {model.name: model for model in bundle.models}
    parts = [
        *(_flow(flow, models) for flow in bundle.flows),
        *(_model(model) for model in bundle.models),
        *(_application(application) for application in bundle.applications),
        *(_ordering(ordering) for ordering in bundle.orderings),
    ]
    return format_text(Source("model", "\n\n".join("\n".join(part) for part in parts)))


def _flow(flow: Definition, models: Mapping[str, TaskModel]) -> Iterator[str]:
    yield f"WORKFLOW {label(flow.name)} {{"
    yield "\n\n".join("\n".join(part) for part in _flow_parts(flow, models) if part)
    yield "}"


def _flow_parts(flow: Definition, models: Mapping[str, TaskModel]) -> Iterator[list[str]]:
    ends = "quiet" if flow.final is None else "final"
    base = {"description": None, "creator": None, "final": None, "ends": ends, "firing_limit": _FIRING_LIMIT}
    yield list(_clauses(FLOW, {field: getattr(flow, field) for field in base}, base))
    yield [line for attribute in flow.attributes for line in _attribute(attribute)]
    yield [line for task in flow.tasks for line in _task(task, models)]


_FIRING_LIMIT = Definition(name="none").firing_limit


def _attribute(attribute: Attribute) -> Iterator[str]:
    keyword = attribute_keyword(attribute)
    said = attribute_fields(attribute)
    if not said:
        yield f"{keyword} {label(attribute.name)};"
        return
    yield f"{keyword} {label(attribute.name)} {{"
    for name, rule in ATTRIBUTES[keyword].items():
        if rule.field in said:
            text = f" {said['default']}" if rule.field == "default" else write(rule.kind, said[rule.field])
            yield f"{name}{text};"
    yield "}"


def _task(task: Task, models: Mapping[str, TaskModel]) -> Iterator[str]:
    said, base = task_settings(task), model_settings(models.get(task.model or ""))
    head = "" if task.model is None else f": {label(task.model)}"
    if task.model is None and task.child is not None:
        head = f": FLOW {label(task.child)}"
        said.pop("child")
    yield f"TASK {label(task.name)}{head} {{"
    if task.when == "true" and task.fires == "once":
        yield "DEPENDS;"
    yield from _clauses(TASK, said, base)
    yield "}"


def _model(model: TaskModel) -> Iterator[str]:
    base = model_settings(None)
    said = {rule.field: getattr(model, rule.field) for rule in TASK_MODEL.values()}
    yield f"TASK {label(model.name)} {{"
    if model.kind == "automatic":
        yield "TYPE AUTOMATIC;"
    yield from _clauses(TASK_MODEL, said, base)
    yield "}"


def _application(application: Application) -> Iterator[str]:
    said = {rule.field: getattr(application, rule.field) for rule in APPLICATION.values()}
    yield f"APPLICATION {label(application.name)} {{"
    yield from _clauses(APPLICATION, said, {"size": 0, "os": None, "cpu": None, "installer": None, "hosts": ()})
    yield "}"


def _ordering(ordering: Ordering) -> Iterator[str]:
    yield f"WORKFLOW_DEFINITIONS {label(ordering.first)}: {label(ordering.second)};"
    yield "RELATIVE_ORDER {"
    yield from (f"{label(first)}: {label(second)};" for first, second in ordering.pairs)
    if ordering.on is not None:
        yield f"ON {label(ordering.on)};"
    yield "}"


def _clauses(rules: ClauseRules, said: Mapping[str, Any], base: Mapping[str, Any]) -> Iterable[str]:
    """Those that say something else than is so anyway."""
    for keyword, rule in rules.items():
        if rule.field in said and (rule.field not in base or said[rule.field] != base[rule.field]):
            yield f"{keyword}{write(rule.kind, said[rule.field])};"
