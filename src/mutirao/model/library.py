"""What flows share and refer to by name: task models, applications, and the relative order of two flows.

They are kept apart from flows, since many use the same one. A flow takes over what its task models say when it is put
in place; an application is looked up when a job needs it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from mutirao.model.definition import Definition
from mutirao.model.library_validation import check_application, check_ordering, check_task_model
from mutirao.model.offer import Policy

TaskKind = Literal["automatic", "semi_automatic", "cooperative", "manual"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskModel:
    """What tasks have in common, to be said once. Of an automatic one, role, policy, deadline and users are not used."""

    name: str
    kind: TaskKind = "automatic"
    role: str | None = None
    description: str | None = None
    application: str | None = None
    priority: int = 0
    deadline: timedelta | None = None
    disconnected: bool = False
    retries: int = 3
    timeout: timedelta | None = None
    users: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    task_class: str | None = None

    def __post_init__(self) -> None:
        check_task_model(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An executable, and where it may run: on which hosts, and on which system and processor they must have.

    `size`, in kB, is of all its files; the `installer` is kept for people to read, and never run.
    """

    name: str
    filename: str
    size: int = 0
    os: str | None = None
    cpu: str | None = None
    installer: str | None = None
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_application(self)


@dataclass(frozen=True, slots=True)
class Ordering:
    """Whichever of two flows' instances comes first does each of these pairs of tasks first.

    With `on`, only instances whose values of that attribute are equal are ordered.
    """

    first: str
    second: str
    pairs: tuple[tuple[str, str], ...]
    on: str | None = None

    def __post_init__(self) -> None:
        check_ordering(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What belongs together and is put in place together: all that the files of one project define."""

    applications: tuple[Application, ...] = ()
    models: tuple[TaskModel, ...] = ()
    flows: tuple[Definition, ...] = ()
    orderings: tuple[Ordering, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What an engine has in place, by name: of each flow its tasks, and the flows that it runs as children."""

    roles: Collection[str] = ()
    classes: Collection[str] = ()
    models: Mapping[str, TaskModel] = field(default_factory=dict)
    applications: Mapping[str, Application] = field(default_factory=dict)
    tasks: Mapping[str, Collection[str]] = field(default_factory=dict)
    children: Mapping[str, Collection[str]] = field(default_factory=dict)
