"""What is wrong with failure actions, undoing, classes and orderings, told under the word that is wrong."""

import pytest

from mutirao.language.pdl import Source, examine
from mutirao.model import Inventory

KNOWN = Inventory(classes=["crane"], tasks={"delivery": ["pack", "send"], "returns": ["check"]})


def in_flow(tasks: str) -> str:
    return f"WORKFLOW Travel {{\n  STRING Stage;\n{tasks}\n}}\n"


def in_ordering(pairs: str, flows: str = "Delivery: Returns") -> str:
    return f"WORKFLOW_DEFINITIONS {flows};\nRELATIVE_ORDER {{\n{pairs}\n}}\n"


A_DEPENDS = "  TASK A { DEPENDS; }\n"
TWO = "WORKFLOW P1 { STRING Place; TASK a { DEPENDS; } }\nWORKFLOW P2 { STRING Plaice; TASK b { DEPENDS; } }\n"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (in_flow("  TASK A { DEPENDS; COMPENSATION B; }\n  TASK B { COMPENSATION «C»; }\n  TASK C { }"), "flow_invalid", "it undoes another task, so it has no compensation"),
        (in_flow("  TASK A { DEPENDS; COMPENSATION B; }\n  TASK B { CONTINGENCY «C»; }\n  TASK C { }"), "flow_invalid", "it undoes another task"),
        (in_flow("  TASK A { DEPENDS; COMPENSATION B; }\n  TASK B { «SAFE_POINT»; }"), "flow_invalid", "it undoes another task"),
        (in_flow("  TASK A { DEPENDS; COMPENSATION B; }\n  TASK B { COMPENSATION «CRITICAL»; }"), "flow_invalid", "it undoes another task"),
        (in_flow("  TASK A { DEPENDS; CONTINGENCY B; }\n  TASK B { CONTINGENCY «C»; }\n  TASK C { CONTINGENCY B; }"), "flow_invalid", "leads back to it: b → c → b"),
        (in_flow("  TASK A { DEPENDS; CONTINGENCY «A»; }"), "flow_invalid", "leads back to it: a → a"),
        (in_flow("  TASK A { DEPENDS; CONTINGENCY C; }\n  TASK B { DEPENDS; CONTINGENCY «C»; }\n  TASK C { }"), "flow_invalid", 'its contingency "c" is that of "a"'),
        (in_flow("  TASK A { DEPENDS; CONTINGENCY «Bee»; }\n  TASK Be { DEPENDS; }"), "unknown_task", 'did you mean "be"?'),
        (in_flow("  TASK A { DEPENDS; COMPENSATION «Bee»; }\n  TASK Be { DEPENDS; }"), "unknown_task", 'did you mean "be"?'),
        (in_flow("  TASK A { DEPENDS; CONTINGENCY «B»; }\n  TASK B { DEPENDS A -> FAILED; }"), "flow_invalid", "has a when or depends of its own"),
        (in_flow("  TASK A { DEPENDS; COMPENSATION B; CONTINGENCY «B»; }\n  TASK B { }"), "flow_invalid", '"b" is both its contingency and its compensation'),
        (in_flow('  TASK A { WHEN "true"; TIME_TO_WAIT «1» HOUR; }'), "flow_invalid", "time_to_wait goes with depends"),
        (in_flow("  TASK A { DEPENDS; TIME_TO_WAIT «1» HOUR; }"), "flow_invalid", "time_to_wait goes with depends"),
        (in_flow(A_DEPENDS + "  TASK B { DEPENDS A -> FAILED; TIME_TO_WAIT «-1» HOUR; }"), "pdl_syntax", "nothing takes so long as -1"),
        (in_flow(A_DEPENDS + "  TASK B { DEPENDS A -> FAILED; TIME_TO_WAIT «0» HOURS; }"), "flow_invalid", "more than zero"),
        (in_flow("  TASK A { DEPENDS; TIMEOUT «-1» HOUR; }"), "pdl_syntax", "nothing takes so long as -1"),
        (in_flow("  TASK A { DEPENDS; FORCE; CONTINGENCY «B»; }\n  TASK B { }"), "flow_invalid", "tried until it succeeds"),
        (in_flow("  TASK A { DEPENDS; FORCE; ON_FAILURE «RELEASE»; }"), "flow_invalid", "tried until it succeeds"),
        (in_flow("  TASK A { DEPENDS; CONTINGENCY «B»; ON_FAILURE RELEASE; }\n  TASK B { }"), "flow_invalid", "choose one"),
        (in_flow("  TASK A { DEPENDS; ON_FAILURE «RELASE»; }"), "pdl_syntax", 'did you mean "RELEASE"?'),
        (in_flow("  TASK A { DEPENDS; TASK_CLASS «cran»; }"), "unknown_class", 'did you mean "crane"?'),
        (in_ordering("  pack: check;\n  «sent»: check;"), "unknown_task", 'did you mean "send"?'),
        (in_ordering("  pack: «chek»;"), "unknown_task", 'did you mean "check"?'),
        (in_ordering("  pack: check;", "Delivery: «Retruns»"), "unknown_flow", 'did you mean "returns"?'),
        (in_ordering("  pack: check;\n  pack: check;").replace(";\n  pack", ";\n  «pack»"), "duplicate_name", "stands in line 3 already"),
        (in_ordering("  pack: check;\n  ON a;\n  «ON» b;"), "pdl_syntax", "ON stands here twice"),
        (TWO + in_ordering("  a: b;\n  ON «Place»;", "P1: P2"), "unknown_attribute", 'the flow "p2" has no attribute "place"; did you mean "plaice"?'),
    ],
)  # fmt: skip
def test_it_is_told_under_the_word_that_is_wrong(text: str, code: str, says: str) -> None:
    before, word, _ = text.replace("»", "«").split("«")
    [found] = examine([Source("shop.pdl", text.replace("«", "").replace("»", ""))], KNOWN).findings.errors
    assert found.code == code, found.shown()
    assert says in found.message
    assert (found.place.line, found.place.column) == (before.count("\n") + 1, len(before.split("\n")[-1]) + 1)
    assert found.shown().splitlines()[-1].strip() == "^" * len(word)
