"""Steering one instance: which acts make sense in the state it is in, and what each needs to know. Each is a dialog."""

from collections.abc import Sequence
from dataclasses import dataclass

from mutirao.database.record import JobRecord, TaskStanding
from mutirao.database.sight import SeenInstance
from mutirao.model import Definition
from mutirao.server.page.form import Field
from mutirao.server.page.graph import standing
from mutirao.server.page.reader import Reader
from mutirao.server.page.way import fields_of


@dataclass(frozen=True, slots=True)
class JobActs:
    """What can be done with a job under way; `fields` are the outputs of its task, for whoever skips it."""

    job: JobRecord
    retries: bool
    skips: bool
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Acts:
    """What the reader may do with an instance, as far as can be known before they try."""

    is_any: bool = False
    sets: bool = False
    repairs: bool = False
    suspends: bool = False
    resumes: bool = False
    cancels: bool = False
    rolls_back: bool = False
    hands_over: bool = False
    safe_points: tuple[str, ...] = ()
    """Those that it has passed: it may be rolled back to them."""
    startable: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    to_set: tuple[Field, ...] = ()
    to_repair: tuple[Field, ...] = ()


def acts_of(seen: SeenInstance, definition: Definition, standings: Sequence[TaskStanding], reader: Reader) -> Acts:
    if not (seen.may_steer and seen.is_open):
        return Acts()
    is_over = seen.hold in ("cancelled", "undoing")
    resting = [each.task for each in standings if each.job is None]
    ended = [each.task for each in standings if each.job is None and each.times]
    passed = {each.task for each in standings if each.state == "succeeded"}
    stand_by = standing(definition)
    return Acts(
        is_any=True,
        sets=not is_over,
        repairs=seen.status == "open.exception" and not is_over,
        suspends=seen.hold is None,
        resumes=seen.hold == "suspended",
        cancels=seen.hold != "cancelled",
        rolls_back=not is_over and seen.hold != "delayed",
        hands_over=True,
        safe_points=()
        if is_over
        else tuple(each.name for each in definition.tasks if each.recovery.safe_point and each.name in passed),
        startable=() if seen.hold else tuple(each for each in resting if each not in stand_by),
        ended=() if seen.hold else tuple(each for each in ended if each not in stand_by),
        to_set=fields_of(definition, "set", state=seen.state, zone=reader.zone),
        to_repair=fields_of(definition, "repair", state=seen.state, zone=reader.zone),
    )


def jobs_of(seen: SeenInstance, definition: Definition, jobs: Sequence[JobRecord], reader: Reader) -> list[JobActs]:
    """The jobs under way. The one that stands for the exception itself is none of them: to repair it is to end that."""
    outputs = {each.name: each.outputs for each in definition.tasks}
    may = seen.may_steer and seen.is_open and seen.hold is None
    found = []
    for job in jobs:
        if job.task.startswith("_"):
            continue
        names = outputs.get(job.task) or None
        fields = fields_of(definition, f"skip-{job.id}", names, zone=reader.zone) if may else ()
        found.append(JobActs(job, may and job.status == "failed", may, fields))
    return found
