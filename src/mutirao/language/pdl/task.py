"""A task's clauses to the model and back. What it does not say itself, its task model says.

Between text and model, a task is a dict of settings, one for each field that a clause can fill; `kind`, `role` and what
else the model keeps in an offer stand beside the others.
"""

from dataclasses import fields
from typing import Any

from mutirao.language.pdl.value import CRITICAL
from mutirao.model import Offer, Recovery, Task, TaskModel

Settings = dict[str, Any]

_MODEL_FIELDS = tuple(each.name for each in fields(TaskModel) if each.name != "name")
OFFER_FIELDS = ("role", "deadline", "disconnected", "users", "policy")
_SHARED_FIELDS = ("description", "application", "priority", "retries", "timeout", "task_class")
_OWN_FIELDS = (
    "when",
    "depends",
    "inputs",
    "outputs",
    "child",
    "wait",
    "by_clock",
    "limit",
    "backoff",
    "transactional",
    "enabled",
    "time_to_wait",
)
_RECOVERY_FIELDS = ("on_failure", "force", "contingency", "compensation", "safe_point")
STAND_INS = ("contingency", "compensation")

# A task that says nothing about its data has none, as the seed has it; and one that says nothing of when it may start, starts at once.
_DEFAULTS: Settings = {
    **{name: getattr(Task(name="-"), name) for name in _OWN_FIELDS},
    **{name: getattr(TaskModel(name="-"), name) for name in _MODEL_FIELDS},
    **{name: getattr(Recovery(), name) for name in _RECOVERY_FIELDS},
    "inputs": (),
    "outputs": (),
}


def model_settings(model: TaskModel | None) -> Settings:
    """What a task says that says nothing itself."""
    said = {} if model is None else {name: getattr(model, name) for name in _MODEL_FIELDS}
    return _DEFAULTS | said


def make_task(name: str, model: str | None, settings: Settings) -> Task:
    own = {field: settings[field] for field in (*_OWN_FIELDS, *_SHARED_FIELDS)}
    if settings["kind"] != "automatic":
        offer = {field: settings[field] for field in OFFER_FIELDS}
        own["offer"] = Offer(kind=settings["kind"], **offer)
    if own["when"] is None and own["depends"] is None:
        own |= {"when": "true", "fires": "once"}
    if settings.get("fires") is not None:
        own["fires"] = settings["fires"]
    return Task(name=name, model=model, recovery=_recovery(settings), **own)


def _recovery(settings: Settings) -> Recovery:
    given = {field: settings[field] for field in _RECOVERY_FIELDS}
    if given["compensation"] == CRITICAL:
        given |= {"compensation": None, "critical": True}
    return Recovery(**given)


def task_settings(task: Task) -> Settings:
    """The other way: what the clauses of a task must say in all, with those of its model."""
    settings = {field: getattr(task, field) for field in (*_OWN_FIELDS, *_SHARED_FIELDS)}
    settings["kind"] = "automatic" if task.offer is None else task.offer.kind
    if task.offer is not None:
        settings |= {field: getattr(task.offer, field) for field in OFFER_FIELDS}
    settings |= {field: getattr(task.recovery, field) for field in _RECOVERY_FIELDS}
    if task.recovery.critical:
        settings["compensation"] = CRITICAL
    if (task.when, task.fires) == ("true", "once"):
        settings["when"] = None
    elif task.fires != Task(name="-", when=task.when, depends=task.depends, by_clock=task.by_clock).fires:
        settings["fires"] = task.fires
    return settings


def kind_of(said: Settings) -> str:
    """Of a task or model that does not say its TYPE: whoever has a role is a person."""
    if said.get("role") is None:
        return "automatic"
    return "manual" if said.get("application") is None else "semi_automatic"
