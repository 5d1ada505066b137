"""Ways out of an exception: what a person can do about it, as forms. Those of the command are in cli/reason.py."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from types import MappingProxyType
from typing import Any, Literal

from mutirao.database.record import Instance, JobRecord
from mutirao.model import Definition
from mutirao.server.page.form import Field, field_for, label_of
from mutirao.server.page.reason import Reason
from mutirao.server.page.value import pretty

WayKind = Literal["retry", "skip", "undone", "go_on", "repair", "start"]

EXCEPTION = "open.exception"
_OF_A_JOB = ("task_failed", "critical_task")


@dataclass(frozen=True, slots=True)
class Way:
    """Something to be done: with a job, by fields for attributes, or with one of these tasks, each beside its label."""

    kind: WayKind
    id: str
    job: int | None = None
    task: str = ""
    fields: tuple[Field, ...] = ()
    tasks: tuple[tuple[str, str], ...] = ()
    brought: str = ""
    """What the job writes unless it is skipped, as JSON."""
    is_brought_left_out: bool = False

    @property
    def label(self) -> str:
        return label_of(self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnField(Field):
    """One of a form among others that have fields of the same names."""

    form: str

    @property
    def id(self) -> str:
        return f"{self.form}-{self.name.replace('.', '-')}"


@dataclass(frozen=True)
class Ways:
    """The ways out of one instance's exception."""

    instance: Instance
    definition: Definition
    jobs: Sequence[JobRecord]
    zone: tzinfo

    def of(self, reasons: Iterable[Reason]) -> list[Way]:
        """The likeliest first, each once."""
        found: dict[str, Way] = {}
        for reason in reasons:
            for way in self._for(reason):
                found.setdefault(way.id, way)
        if self.instance.hold != "undoing" and {each.code for each in reasons} - {"wait_circle", "critical_task"}:
            found.setdefault(f"repair-{self.instance.id}", self._repair())
        return list(found.values())

    def _for(self, reason: Reason) -> Iterator[Way]:
        job = reason.job
        match reason.code:
            case "compensation_failed" if job:
                yield self._retry(job)
                yield Way("undone", f"undone-{job}", job, self._task(job))
            case "wait_circle" | "condition_failed" if job:
                yield self._skip(job)
            case code if code in _OF_A_JOB and job:
                yield self._retry(job)
                yield self._skip(job)
            case "final_blocked":
                yield from (self._skip(each.id) for each in self.jobs if each.status == "parked")
            case "runaway":
                yield Way("go_on", f"go-on-{self.instance.id}")
            case "nothing_fires":
                yield self._repair()
                yield self._start()

    def _retry(self, job: int) -> Way:
        return Way("retry", f"retry-{job}", job, self._task(job))

    def _skip(self, job: int) -> Way:
        form, task = f"skip-{job}", self._task(job)
        known = {each.name: each for each in self.definition.tasks}
        outputs = known[task].outputs if task in known else None
        found = next((each for each in self.jobs if each.id == job), None)
        brought = pretty(found.change) if found and found.change else ""
        return Way(
            "skip",
            form,
            job,
            task,
            self._fields(form, outputs, has_values=False),
            brought=brought,
            is_brought_left_out=found is not None and found.is_change_left_out,
        )

    def _repair(self) -> Way:
        form = f"repair-{self.instance.id}"
        return Way("repair", form, fields=self._fields(form, None, has_values=True))

    def _start(self) -> Way:
        stand_by = {name for each in self.definition.tasks for name in (each.recovery.compensation,) if name}
        names = [each.name for each in self.definition.tasks if each.enabled and each.name not in stand_by]
        return Way("start", f"start-{self.instance.id}", tasks=tuple((name, label_of(name)) for name in names))

    def _task(self, job: int) -> str:
        return next((each.task for each in self.jobs if each.id == job), "")

    def _fields(self, form: str, names: Sequence[str] | None, *, has_values: bool) -> tuple[Field, ...]:
        state = self.instance.state if has_values else {}
        return fields_of(self.definition, form, names, state=state, zone=self.zone)


def fields_of(
    definition: Definition,
    form: str,
    names: Collection[str] | None = None,
    *,
    state: Mapping[str, Any] = MappingProxyType({}),
    zone: tzinfo = UTC,
) -> tuple[Field, ...]:
    """For what a form changes: all attributes of a flow or some, with what they are now or empty."""
    return tuple(
        _own(field_for(each.name, each.type, within="change", value=state.get(each.name), zone=zone), form)
        for each in definition.attributes
        if names is None or each.name in names
    )


def _own(field: Field, form: str) -> OwnField:
    return OwnField(name=field.name, label=field.label, type=field.type, text=field.text, form=form)
