"""The outermost entries of the files, sorted by what they define. Each keeps the desk of its file."""

from dataclasses import dataclass, field

from lark import Token

from mutirao.language.pdl.block import Desk
from mutirao.language.pdl.clause import OUTERMOST
from mutirao.language.pdl.syntax import Block, Clause, Entry, Pair


@dataclass(slots=True)
class Outermost:
    models: list[tuple[Desk, Block]] = field(default_factory=list)
    applications: list[tuple[Desk, Block]] = field(default_factory=list)
    flows: list[tuple[Desk, Block]] = field(default_factory=list)
    orderings: list[tuple[Desk, Pair, Block]] = field(default_factory=list)

    def sort(self, desk: Desk) -> None:
        """An ordering is two entries, one behind the other."""
        ordered: Pair | None = None
        for entry in desk.tree.entries:
            if ordered is not None and isinstance(entry, Block) and entry.start.upper() == "RELATIVE_ORDER":
                self.orderings.append((desk, ordered, entry))
                ordered = None
                continue
            _refuse_half(desk, ordered)
            match entry:
                case Pair(keyword=Token() as word) if word.upper() == "WORKFLOW_DEFINITIONS":
                    ordered = entry
                case _:
                    ordered = None
                    self._sort_entry(desk, entry)
        _refuse_half(desk, ordered)

    def _sort_entry(self, desk: Desk, entry: Entry) -> None:
        kinds = {"WORKFLOW": self.flows, "TASK": self.models, "APPLICATION": self.applications}
        match entry, entry.start.upper():
            case Block(heading=(_,)) as block, word if word in kinds:
                kinds[word].append((desk, block))
            case Block(heading=(_, *_)), "TASK":
                desk.wrong("pdl_syntax", "a TASK that has a model stands in a WORKFLOW { … }", entry.start)
            case Block(), word if word in kinds:
                desk.wrong("pdl_syntax", f"{word} takes one name: {word} Name {{ … }}", entry.start)
            case Block(heading=()), "RELATIVE_ORDER":
                desk.wrong("pdl_syntax", "WORKFLOW_DEFINITIONS first: second; is missing before it", entry.start)
            case Clause(), "WORKFLOW_DEFINITIONS":
                desk.wrong("pdl_syntax", "WORKFLOW_DEFINITIONS takes two flows: P_1: P_2", entry.start)
            case _:
                desk.misplaced(entry, None, OUTERMOST)


def _refuse_half(desk: Desk, ordered: Pair | None) -> None:
    if ordered is not None:
        desk.wrong("pdl_syntax", "RELATIVE_ORDER { … } is missing behind it", ordered.start)
