"""`mutirao flow`: the definitions."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import FlowAddresses
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.measure import read_size
from mutirao.cli.migrate import migrate
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, print_json
from mutirao.cli.session import visit
from mutirao.cli.usage import Group
from mutirao.cli.verdict import Verdict, judge
from mutirao.database.engine import Engine
from mutirao.database.record import FlowRecord, VersionRecord
from mutirao.errors import RequestError
from mutirao.language import load_flows
from mutirao.model import AllOf, AnyOf, Definition, Dependency, Recovery, Task, Term, encode_document

app = typer.Typer(cls=Group, add_completion=False, help="The definitions. Example: mutirao flow list")

REFUSED = 1

_ON_FAILURE = {
    "release": "what depends on it goes on",
    "roll_back": "roll back",
    "safe_point": "roll back to the safe-point",
}

app.command()(migrate)


@app.command("list")
def list_flows(database: Database = None, json: Json = False) -> None:
    """List the flows and what is going on in each.

    Example: mutirao flow list
    """
    found = visit(database, lambda engine: engine.flows(), must_exist=True)
    if json:
        return print_json(found)
    if not found:
        line = f"There are no flows yet. Make one known: {calling(database)('flow apply FILE.py')}"
        return console.print(line, highlight=False, markup=False, soft_wrap=True)
    listing = Listing(
        "flow", "version", "tasks", "open", "exceptions", "closed", "defined in", "since",
        numbers=("version", "tasks", "open", "exceptions", "closed"), spare=("since", "defined in", "tasks"),
    )  # fmt: skip
    for flow in found:
        exceptions = Text(f"{flow.exceptions:,}", "bold red" if flow.exceptions else "")
        counts = (str(flow.version), str(flow.tasks), f"{flow.open:,}", exceptions, f"{flow.closed:,}")
        listing.add_row(Text(flow.name), *counts, _home(flow), render.moment(flow.made_at))
    return console.print(listing)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The flow's name.")],
    version: Annotated[int | None, typer.Option("--version", help="An earlier version. Default: the newest.")] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Show a flow: its attributes, its tasks with their conditions, its versions.

    Example: mutirao flow show travel
    """

    async def look(engine: Engine) -> tuple[Definition, FlowRecord, list[VersionRecord]]:
        newest = await engine.definition(name)
        [record] = await engine.flows(name)
        versions = await engine.versions(name)
        if version is None:
            return newest, record, versions
        if not 1 <= version <= record.version:
            raise RequestError(
                "unknown_version", f'flow "{name}" has the versions 1 to {record.version}: got {version}'
            )
        return await engine.definition(name, version), record, versions

    definition, record, versions = visit(database, look, must_exist=True)
    if json:
        document = msgspec.json.decode(encode_document(definition))
        return print_json({"version": version or record.version, "live": record.live, **document})
    facts = _facts(definition, record, version or record.version)
    for part in (facts, _attributes(definition), _tasks(definition), _versions(versions)):
        console.print(part, end="\n\n")
    return None


@app.command()
def check(flows: FlowAddresses, database: Database = None, json: Json = False) -> None:
    """Say of each flow whether it would be accepted. PostgreSQL judges the conditions; nothing is changed.

    Example: mutirao flow check travel.py
    """
    verdicts = visit(database, lambda engine: judge(engine, flows))
    if json:
        print_json(verdicts)
    else:
        for verdict in verdicts:
            console.print(_verdict_line(verdict), soft_wrap=True)
    if not all(verdict.ok for verdict in verdicts):
        raise typer.Exit(REFUSED)


@app.command()
def apply(flows: FlowAddresses, database: Database = None) -> None:
    """Put flows in place: a new version of each that has changed.

    Example: mutirao flow apply travel.py:Travel
    """
    loaded = load_flows(*flows)

    async def put(engine: Engine) -> None:
        before = {record.name: record.version for record in await engine.flows()}
        for flow in loaded:
            name = flow.definition.name
            version = await engine.apply(flow)
            news = "applied" if version != before.get(name) else "unchanged"
            console.print(f"{name}: {news}, version {version}", highlight=False)

    visit(database, put)


@app.command()
def size(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")],
    state: Annotated[str | None, typer.Option("--state", metavar="SIZE", help="Of a whole state, such as 2MB.")] = None,
    change: Annotated[str | None, typer.Option("--change", metavar="SIZE", help="Of one change.")] = None,
    trace: Annotated[
        int | None, typer.Option("--trace", metavar="ROWS", help="Of a trace, after which nothing is set from outside.")
    ] = None,
    database: Database = None,
) -> None:
    """Set how large a state, a change and a trace of a flow may be; what is larger is refused.

    Unless set, a state and a change have up to 1 MB each, and a trace 100,000 rows.

    Example: mutirao flow size travel --state 2MB --change 500kB --trace 5000
    """
    if state is None and change is None and trace is None:
        raise RequestError("wrong_call", "nothing to set: give --state SIZE, --change SIZE, --trace ROWS, or several")
    limits = {what: read_size(given) for what, given in (("state", state), ("change", change)) if given is not None}
    told = [f"a {what} of at most {render.size(bytes_)}" for what, bytes_ in limits.items()]
    if trace is not None:
        limits["trace"] = trace
        told.append(f"a trace of at most {trace:,} rows")
    visit(database, lambda engine: engine.limit_size(flow, **limits), must_exist=True)
    console.print(f"{flow} takes {' and '.join(told)} from now on.", highlight=False)


def _verdict_line(verdict: Verdict) -> Text:
    if verdict.ok:
        return Text("ok", "green").append(f" {verdict.flow} ({verdict.place})", "default")
    line = Text("refused", "red").append(f" {verdict.flow or ''}".rstrip(), "default")
    why = " ".join(f"{verdict.code}: {verdict.message}".split())
    return line.append(f" ({verdict.place}): {why}", "default")


def _home(record: FlowRecord) -> str:
    return "SQL, live" if record.live else "a program"


def _facts(definition: Definition, record: FlowRecord, version: int) -> Any:
    ends = "when the final condition holds" if definition.ends == "final" else "when nothing is left to do"
    if definition.ends == "final" and definition.final is None:
        ends = "never by itself: it has no final condition, and comes to rest in an exception"
    return render.facts(
        {
            "flow": definition.name,
            **({"about": definition.description} if definition.description else {}),
            "version": f"{version} of {record.version}; the newest since {render.moment(record.made_at)}, by {record.made_by}",
            "defined in": _home(record),
            **({"created by": f"the role {definition.creator}"} if definition.creator else {}),
            "ends": ends,
            "final": definition.final or "no condition",
            "instances": f"{record.open:,} open, {record.exceptions:,} of them exceptions; {record.closed:,} closed",
        }
    )


def _attributes(definition: Definition) -> Any:
    table = render.table("attribute", "type", "default", "must be given", "searchable")
    for each in definition.attributes:
        kind = each.type if each.required else f"{each.type} or null"
        default = "" if each.default is None else render.value(each.default)
        is_needed = each.required and each.default is None
        table.add_row(
            Text(each.name), kind, Text(default), *("yes" if is_so else "" for is_so in (is_needed, each.searchable))
        )
    return table


def _tasks(definition: Definition) -> Any:
    table = render.table(
        "task", "fires", "retries", "timeout", "priority", "condition", numbers=("retries", "priority")
    )
    table.columns[-1].no_wrap = False
    for task in definition.tasks:
        timeout = render.duration(task.timeout) if task.timeout else ""
        numbers = (str(task.retries), timeout, str(task.priority) if task.priority else "")
        table.add_row(Text(task.name), task.fires, *numbers, Text(_condition(task, definition)))
    return table


def _versions(versions: Sequence[VersionRecord]) -> Any:
    table = render.table("version", "made", "by", "open instances", numbers=("version", "open instances"))
    for each in versions:
        table.add_row(str(each.number), render.moment(each.made_at), Text(each.made_by), f"{each.open:,}")
    return table


def _condition(task: Task, definition: Definition) -> str:
    text = task.when if task.depends is None else f"after {_dependency(task.depends)}"
    more = (
        _doer(task),
        f"starts after {render.duration(task.time_to_wait)} whatever they do" if task.time_to_wait else None,
        f"class {task.task_class}" if task.task_class is not None else None,
        *_recovery(task.recovery),
        f"waits for {task.wait}" if task.wait is not None else None,
        f"at most {render.limit(task.limit)}" if task.limit is not None else None,
        None if task.enabled else "switched off",
    )
    text = _stand_by(task, definition) if text is None else text
    return "".join([" ".join(text.split()), *(f"  ({each})" for each in more if each is not None)])


def _stand_by(task: Task, definition: Definition) -> str:
    failing = [each.name for each in definition.tasks if each.recovery.contingency == task.name]
    undone = [each.name for each in definition.tasks if each.recovery.compensation == task.name]
    return f"in place of {', '.join(failing)}" if failing else f"to undo {', '.join(undone)}" if undone else ""


def _recovery(recovery: Recovery) -> Iterator[str]:
    """What becomes of it when it fails, and when it is to be undone."""
    if recovery.contingency is not None:
        yield f"if it fails, {recovery.contingency}"
    if recovery.on_failure != "block":
        yield f"if it fails, {_ON_FAILURE[recovery.on_failure]}"
    if recovery.force:
        yield "tried until it succeeds"
    if recovery.compensation is not None:
        yield f"undone by {recovery.compensation}"
    if recovery.critical:
        yield "critical"
    if recovery.safe_point:
        yield "safe-point"


def _doer(task: Task) -> str | None:
    """Who does it, unless it is a worker's function."""
    if task.offer is not None:
        by = "" if task.offer.deadline is None else f", within {render.duration(task.offer.deadline)}"
        return f"done by {task.offer.role}{by}"
    if task.child is not None:
        return f"runs the flow {task.child}"
    return None if task.application is None else f"runs {task.application}"


def _dependency(node: Dependency) -> str:
    match node:
        case Term(task, "succeeded"):
            return task
        case Term(task, state):
            return f"{task} {state}"
        case AllOf(parts):
            return " and ".join(_nested(part) for part in parts)
        case AnyOf(parts):
            return " or ".join(_nested(part) for part in parts)
    raise TypeError(node)


def _nested(node: Dependency) -> str:
    return _dependency(node) if isinstance(node, Term) else f"({_dependency(node)})"
