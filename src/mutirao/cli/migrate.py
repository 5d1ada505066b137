"""`mutirao flow migrate`: instances of a flow to another of its versions, with a look at what would happen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import Reason, Where, Yes
from mutirao.cli.invocation import calling
from mutirao.cli.listing import Listing
from mutirao.cli.many import ask, follow
from mutirao.cli.options import Database, Json
from mutirao.cli.output import console, counted, counting, print_json
from mutirao.cli.session import visit
from mutirao.database.batch import Filter, Foretold, Migration
from mutirao.database.engine import Engine
from mutirao.errors import RequestError

_SOME = 5
_URGENT = ("refused", "exception")
_WORDS = {
    "running": "go on",
    "completed": "would be completed",
    "exception": "would be exceptions",
    "suspended": "stay suspended",
    "delayed": "still wait for their start",
    "refused": "would be refused and stay",
}


@dataclass(frozen=True)
class Fate:
    """What many instances may have in common."""

    version: int
    outcome: str
    fires: str
    removes: str
    why: str

    @classmethod
    def of(cls, each: Foretold) -> "Fate":
        lost = "" if each.outcome == "refused" else ", ".join(each.removes)
        return cls(each.version, each.outcome, ", ".join(each.fires), lost, _reason(each))

    @property
    def urgency(self) -> int:
        return _URGENT.index(self.outcome) if self.outcome in _URGENT else len(_URGENT)


@dataclass
class Sum:
    """What a migration would do to all of them."""

    instances: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    fires: Counter[str] = field(default_factory=Counter)
    removes: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)
    alike: dict["Fate", list[int]] = field(default_factory=dict)

    def add(self, each: Foretold) -> None:
        self.instances += 1
        self.outcomes[each.outcome] += 1
        if each.why:
            self.why[_reason(each)] += 1
        self.alike.setdefault(Fate.of(each), []).append(each.instance)
        if each.outcome != "refused":  # such a one stays as it is
            self.fires.update(each.fires)
            self.removes.update(each.removes)
            self.moves.update(f"{old} becomes {new}" for old, new in each.moves.items())

    def line(self) -> str:
        parts = (f"{number:,} {_WORDS[outcome]}" for outcome, number in self.outcomes.most_common())
        return f"{counted(self.instances, 'instance')}: {', '.join(parts)}."


def migrate(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")],
    to: Annotated[int | None, typer.Option("--to", metavar="N", help="Default: the newest version.")] = None,
    leaving: Annotated[int | None, typer.Option("--from", metavar="N", help="Default: all others.")] = None,
    tasks: Annotated[
        list[str] | None, typer.Option("--map", metavar="OLD=NEW", help="What a task becomes; repeat it.")
    ] = None,
    attributes: Annotated[
        list[str] | None, typer.Option("--rename", metavar="OLD=NEW", help="What an attribute is called; repeat it.")
    ] = None,
    where: Where = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; nothing changes.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Of a dry run: so many kinds of outcome.")] = 20,
    reason: Reason = None,
    yes: Yes = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Move the open instances of a flow that a program defines to another of its versions, or back.

    Example: mutirao flow migrate travel --map book=book_flight --dry-run
    """
    wanted = Migration(
        flow=flow,
        to=to,
        leaving=leaving,
        tasks=_mapping("--map", tasks),
        attributes=_mapping("--rename", attributes),
        filter=Filter(where=where),
    )

    async def go(engine: Engine) -> None:
        if dry_run:
            total, each = await _foresee(engine, wanted)
            return print_json({**_plain(total), "each": each}) if json else _print(total, limit)
        if not yes:
            total, _ = await _foresee(engine, wanted)
            if not total.instances:
                return console.print("No instances are in another version.", highlight=False)
            ask(total.line(), yes=yes)
        return await follow(engine, await engine.migrate(wanted, reason=reason), calling(database))

    visit(database, go, must_exist=True)


def _mapping(option: str, words: Sequence[str] | None) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for word in words or ():
        old, equals, new = word.partition("=")
        if not (old and equals and new):
            raise RequestError("wrong_call", f'{option} "{word}": write old=new')
        mapping[old] = new
    return mapping


async def _foresee(engine: Engine, wanted: Migration) -> tuple[Sum, list[Foretold]]:
    """The sum, and one by one."""
    total, one_by_one = Sum(), list[Foretold]()
    records = await engine.flows(wanted.flow)
    with counting("Looking", sum(each.open for each in records)) as advance:
        async for each in engine.preview_migration(wanted):
            total.add(each)
            advance(1)
            one_by_one.append(each)
    return total, one_by_one


def _plain(total: Sum) -> dict[str, Any]:
    names = ("outcomes", "fires", "removes", "moves", "why")
    return {"instances": total.instances, **{name: dict(getattr(total, name)) for name in names}}


def _print(total: Sum, most: int) -> None:
    if not total.instances:
        return console.print("No instances are in another version.", highlight=False)
    console.print(total.line(), highlight=False)
    for title, counts in (
        ("Refusals and exceptions", total.why),
        ("Jobs that become others", total.moves),
        ("Tasks that would fire", total.fires),
        ("Jobs that would be removed", total.removes),
    ):
        if counts:
            console.print(f"\n[bold]{title}[/bold]")
            console.print(render.facts({name: f"{number:,}" for name, number in counts.most_common(50)}))
    if most:
        console.print("\n[bold]Those that fare alike[/bold]")
        console.print(_listing(total, most))
    if len(total.alike) > most:
        console.print(f"and {len(total.alike) - most:,} more kinds; one by one: --json", style="dim", highlight=False)
    return None


def _reason(each: Foretold) -> str:
    return (each.why or "").removeprefix(f"instance {each.instance}: ")


def _listing(total: Sum, most: int) -> Listing:
    listing = Listing(
        "instances", "from", "would", "fire", "lose", "because", "which",
        numbers=("instances", "from"), loose=("because", "which"),
    )  # fmt: skip
    would = {
        "running": "go on",
        "completed": "be completed",
        "exception": "be an exception",
        "refused": "be refused",
    }
    ranked = sorted(total.alike.items(), key=lambda each: (each[0].urgency, -len(each[1])))
    for fate, instances in ranked[:most]:
        which = ", ".join(map(str, instances[:_SOME])) + (", …" if len(instances) > _SOME else "")
        about = (Text(fate.fires), Text(fate.removes), Text(fate.why), which)
        word = would.get(fate.outcome, f"stay {fate.outcome}")
        listing.add_row(f"{len(instances):,}", str(fate.version), word, *about)
    return listing
