"""Any definition, and any bundle of what flows share: whatever the model accepts, hypothesis may make."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mutirao.model import (
    TASK_STATES,
    AllOf,
    AnyOf,
    Application,
    Attribute,
    AttributeType,
    Bundle,
    Definition,
    Dependency,
    Limit,
    Offer,
    Ordering,
    Policy,
    Query,
    Recovery,
    Task,
    TaskModel,
    Term,
)
from mutirao.model.check import MAX_TIMEOUT
from mutirao.model.file import File, is_file_name
from mutirao.model.reserved import SQL_WORDS
from mutirao.model.task import MAX_BACKOFF

# What takes long here is to think them out, beside other tests on the same cores.
patient = settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
conditions = text.filter(str.strip) | st.sampled_from(["true", "stage = 'new'"])
# One statement, without parameters.
expressions = conditions.filter(lambda each: not set(each) & set(":;$")) | st.just("select 'a;b' as \"c:d\"")
labels = (
    st.text(min_size=1, max_size=20).filter(lambda each: each == each.strip() and each.isprintable())
    | st.from_regex(r"\A[A-Za-z][A-Za-z_]{0,20}\Z")
    | st.sampled_from(["ALL", "and", "FLOW", "TASK", 'a "quoted" name', "back\\slash", "a-b.c"])
)
counts = st.integers(1, 2**31 - 1)
durations = st.timedeltas(timedelta(microseconds=1), MAX_TIMEOUT) | st.integers(1, 800).map(
    lambda n: timedelta(hours=n)
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DEFAULTS: dict[AttributeType, st.SearchStrategy[Any]] = {
    "text": text,
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.decimals(allow_nan=False, allow_infinity=False) | st.integers() | st.floats(-1e300, 1e300),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1), timezones=zones | st.just(UTC)),  # noqa: DTZ001
    "json": json_values,
    "file": st.builds(
        File,
        sha256=st.binary(min_size=32, max_size=32).map(bytes.hex),
        name=st.sampled_from(["report.txt", 'a "quoted" name', "relatório.pdf", "back\\slash"]).filter(is_file_name),
        size=st.integers(0, 2**53),
        media=st.sampled_from(["text/plain", "application/octet-stream"]),
    ),
}


def names(size: int, least: int = 0) -> st.SearchStrategy[list[str]]:
    regular = st.from_regex(r"\A[a-s][a-z0-9_]{0,47}\Z").filter(lambda name: name not in SQL_WORDS)
    regular |= st.sampled_from(["role", "task", "flow"])
    return st.lists(regular, min_size=least, max_size=size, unique=True)


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    kind = draw(st.sampled_from(list(DEFAULTS)))
    query = draw(st.none() | st.builds(Query, labels, expressions)) if kind == "json" else None
    if kind == "file":
        return Attribute(name, kind, required=draw(st.booleans()), filename=draw(st.none() | text))
    flags = draw(st.booleans()), draw(st.booleans())
    return Attribute(name, kind, draw(st.none() | DEFAULTS[kind]), *flags, query)


def dependencies(tasks: list[str]) -> st.SearchStrategy[Dependency]:
    terms: st.SearchStrategy[Dependency] = st.builds(Term, st.sampled_from(tasks), st.sampled_from(TASK_STATES))
    return st.recursive(terms, lambda inner: _groups(AllOf, inner) | _groups(AnyOf, inner), max_leaves=6)


def _groups(kind: type[AllOf | AnyOf], inner: st.SearchStrategy[Dependency]) -> st.SearchStrategy[Dependency]:
    return st.lists(inner, min_size=1, max_size=3).map(lambda parts: kind(tuple(parts)))


def policies(tasks: list[str]) -> st.SearchStrategy[Policy]:
    plain = st.sampled_from([Policy("everyone"), Policy("least_loaded"), Policy("round_robin")])
    about = st.builds(Policy, st.sampled_from(("same_as", "not_as")), st.sampled_from(tasks))
    return plain | about


def _offers(tasks: list[str]) -> st.SearchStrategy[Offer]:
    return st.builds(
        Offer,
        role=labels,
        kind=st.sampled_from(("semi_automatic", "cooperative", "manual")),
        policy=policies(tasks),
        deadline=st.none() | durations,
        disconnected=st.booleans(),
        users=st.lists(labels, max_size=3, unique=True).map(tuple),
    )


@st.composite
def limits(draw: st.DrawFn, attributes: list[str]) -> Limit:
    at_once, rate = draw(st.none() | counts), draw(st.none() | st.floats(1e-6, 1e6))
    is_by_value = bool(attributes) and (draw(st.booleans()) or at_once == rate)
    by_value = (draw(st.sampled_from(attributes)), draw(counts)) if is_by_value else (None, None)
    if (at_once, rate, *by_value) == (None, None, None, None):
        at_once = draw(counts)
    return Limit(at_once=at_once, per_second=rate, per=by_value[0], each=by_value[1])


@st.composite
def tasks(draw: st.DrawFn, name: str, known: list[str], attributes: tuple[Attribute, ...], models: list[str]) -> Task:
    by_condition = draw(st.booleans())
    named = [each.name for each in attributes]
    lists = (
        st.none() | st.lists(st.sampled_from(named), max_size=3, unique=True).map(tuple)
        if named
        else st.none() | st.just(())
    )
    times = [each.name for each in attributes if each.type in ("timestamp", "date")]
    task = Task(
        name=name,
        when=draw(conditions) if by_condition else None,
        depends=None if by_condition else draw(dependencies(known)),
        fires=draw(st.sampled_from(("each", "once"))),
        timeout=draw(st.none() | durations),
        retries=draw(st.integers(0, 2**31 - 1)),
        backoff=draw(st.timedeltas(timedelta(0), MAX_BACKOFF)),
        priority=draw(st.integers(-1000, 1000)),
        enabled=draw(st.booleans()),
        description=draw(st.none() | text),
        wait=draw(st.none() | st.sampled_from(times)) if times else None,
        limit=draw(st.none() | limits(named)),
        inputs=draw(lists),
        outputs=draw(lists),
        model=draw(st.none() | st.sampled_from(models)) if models else None,
        task_class=draw(st.none() | labels),
    )
    return draw(_with_doer(task, known))


def _with_doer(task: Task, known: list[str]) -> st.SearchStrategy[Task]:
    """One thing does a task; people may have an application to help them, unless they work by hand."""
    of_people = st.builds(
        lambda offer, application: replace(
            task, offer=offer, application=None if offer.kind == "manual" else application
        ),
        _offers(known),
        st.none() | labels,
    )
    done_by = [
        st.just(task),
        st.just(replace(task, transactional=True)),
        st.builds(lambda name: replace(task, application=name), labels),
        st.builds(lambda name: replace(task, child=name, wait=None), st.from_regex(r"\A[a-s][a-z0-9_]{0,47}\Z")),
        of_people,
        *([st.just(replace(task, by_clock=True, task_class=None))] if task.wait else []),
    ]
    return st.one_of(done_by)


@st.composite
def _recovering(draw: st.DrawFn, made: tuple[Task, ...]) -> tuple[Task, ...]:
    """Some of them stand by for others, and those say what becomes of them."""
    split = draw(st.integers(0, len(made)))
    acting, standing = made[:split], [replace(each, when=None, depends=None, by_clock=False) for each in made[split:]]
    if not acting or any(each.wait for each in standing):
        return made
    stand_ins = dict.fromkeys(each.name for each in standing)
    kinds = {name: draw(st.sampled_from(("contingency", "compensation"))) for name in stand_ins}
    named: dict[str, dict[str, Any]] = {each.name: {} for each in acting}
    for name, kind in kinds.items():
        free = [task for task, given in named.items() if kind not in given]
        if not free:
            return made
        named[draw(st.sampled_from(free))][kind] = name
    return tuple(replace(each, **draw(_recoveries(each, named[each.name]))) for each in acting) + tuple(standing)


@st.composite
def _recoveries(draw: st.DrawFn, task: Task, named: dict[str, Any]) -> dict[str, Any]:
    acts = (
        st.just("block") if "contingency" in named else st.sampled_from(("block", "release", "roll_back", "safe_point"))
    )
    action: Any = draw(acts)
    recovery = Recovery(
        on_failure=action,
        force=draw(st.booleans()) if action == "block" and "contingency" not in named else False,
        critical=draw(st.booleans()) if "compensation" not in named else False,
        safe_point=draw(st.booleans()),
        **named,
    )
    waits = task.depends is not None and task.fires == "once"
    return {"recovery": recovery, "time_to_wait": draw(st.none() | durations) if waits else None}


@st.composite
def definitions(draw: st.DrawFn, models: tuple[str, ...] = ()) -> Definition:
    known = draw(names(4))
    has = tuple(draw(attributes(name)) for name in draw(names(4)))
    return Definition(
        name=draw(st.from_regex(r"\Aflow_[a-z0-9_]{0,40}\Z")),
        attributes=has,
        tasks=draw(_recovering(tuple(draw(tasks(name, known, has, list(models))) for name in known))),
        final=draw(st.none() | conditions),
        ends=draw(st.sampled_from(("final", "quiet"))),
        firing_limit=draw(counts),
        description=draw(st.none() | text),
        creator=draw(st.none() | labels),
    )


@st.composite
def task_models(draw: st.DrawFn, name: str) -> TaskModel:
    kind = draw(st.sampled_from(("automatic", "semi_automatic", "cooperative", "manual")))
    return TaskModel(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        role=draw(st.none() | labels),
        description=draw(st.none() | text),
        application=None if kind == "manual" else draw(st.none() | labels),
        priority=draw(st.integers(-1000, 1000)),
        deadline=draw(st.none() | durations),
        disconnected=draw(st.booleans()),
        retries=draw(st.integers(0, 2**31 - 1)),
        timeout=draw(st.none() | durations),
        users=tuple(draw(st.lists(labels, max_size=3, unique=True))),
        policy=draw(policies(["book", "pay"])),
        task_class=draw(st.none() | labels),
    )


applications = st.builds(
    Application,
    name=labels,
    filename=text.filter(bool),
    size=st.integers(0, 2**31 - 1),
    os=st.none() | text,
    cpu=st.none() | text,
    installer=st.none() | text,
    hosts=st.lists(labels, max_size=3).map(tuple),
)
task_pairs = st.tuples(*[st.from_regex(r"\A[a-s][a-z0-9_]{0,47}\Z")] * 2)
orderings = st.builds(
    Ordering,
    st.from_regex(r"\A[a-s][a-z0-9_]{0,47}\Z"),
    st.from_regex(r"\A[a-s][a-z0-9_]{0,47}\Z"),
    st.lists(task_pairs, min_size=1, max_size=3, unique=True).map(tuple),
    st.none() | st.sampled_from(["site", "customer"]),
)


@st.composite
def bundles(draw: st.DrawFn) -> Bundle:
    models = tuple(draw(task_models(name)) for name in draw(st.lists(labels, max_size=3, unique=True)))
    known = tuple(model.name for model in models)
    return Bundle(
        applications=tuple(draw(st.lists(applications, max_size=2, unique_by=lambda each: each.name))),
        models=models,
        flows=tuple(draw(st.lists(definitions(known), max_size=2, unique_by=lambda each: each.name))),
        orderings=tuple(draw(st.lists(orderings, max_size=2, unique_by=lambda each: (each.first, each.second)))),
    )
