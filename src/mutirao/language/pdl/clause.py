"""Which clauses there are, where they stand, what they take and which field of the model they fill.

The reader, the printer and the formatter all go by these tables; docs/pdl.md says them in words.
"""

from dataclasses import dataclass
from typing import TypeAlias

from mutirao.language.pdl.value import (
    COMPENSATION,
    DURATION,
    FLAG,
    FLAG_OFF,
    INTEGER,
    LABEL,
    LABELS,
    LIMIT,
    NAME,
    NAMES,
    POLICY,
    REQUIRED,
    RULE,
    TEXT,
    TEXTS,
    Kind,
    choice,
)
from mutirao.model import AttributeType


@dataclass(frozen=True, slots=True)
class ClauseRule:
    """The field that a clause fills, and the kind of its value."""

    field: str
    kind: Kind


ClauseRules: TypeAlias = dict[str, ClauseRule]


def _rules(**kinds: tuple[str, Kind]) -> ClauseRules:
    return {keyword: ClauseRule(field, kind) for keyword, (field, kind) in kinds.items()}


FLOW = _rules(
    DESCRIPTION=("description", TEXT),
    CREATOR=("creator", LABEL),
    FINAL=("final", TEXT),
    ENDS=("ends", choice("FINAL", "QUIET")),
    FIRING_LIMIT=("firing_limit", INTEGER),
)

TASK_MODEL = _rules(
    TYPE=("kind", choice("AUTOMATIC", "SEMI_AUTOMATIC", "COOPERATIVE", "MANUAL")),
    ROLE=("role", LABEL),
    DESCRIPTION=("description", TEXT),
    APPLICATION=("application", LABEL),
    PRIORITY=("priority", INTEGER),
    DEADLINE=("deadline", DURATION),
    DISCONNECTED_OPERATION=("disconnected", FLAG_OFF),
    RETRIES=("retries", INTEGER),
    TIMEOUT=("timeout", DURATION),
    USERS=("users", LABELS),
    POLICY=("policy", POLICY),
    TASK_CLASS=("task_class", LABEL),
)

_OF_TASKS_ALONE = _rules(
    DEPENDS=("depends", RULE),
    WHEN=("when", TEXT),
    FIRES=("fires", choice("EACH", "ONCE")),
    IN_CONTEXT=("inputs", NAMES),
    OUT_CONTEXT=("outputs", NAMES),
    FLOW=("child", NAME),
    WAIT=("wait", NAME),
    BY_CLOCK=("by_clock", FLAG),
    LIMIT=("limit", LIMIT),
    BACKOFF=("backoff", DURATION),
    TRANSACTIONAL=("transactional", FLAG),
    ENABLED=("enabled", FLAG),
    TIME_TO_WAIT=("time_to_wait", DURATION),
    ON_FAILURE=("on_failure", choice("BLOCK", "RELEASE", "ROLL_BACK", "SAFE_POINT")),
    FORCE=("force", FLAG),
    CONTINGENCY=("contingency", NAME),
    COMPENSATION=("compensation", COMPENSATION),
    SAFE_POINT=("safe_point", FLAG),
)

TASK = _OF_TASKS_ALONE | TASK_MODEL

APPLICATION = _rules(
    FILENAME=("filename", TEXT),
    SIZE=("size", INTEGER),
    OS=("os", TEXT),
    CPU=("cpu", TEXT),
    INSTALLER=("installer", TEXT),
    HOSTS=("hosts", TEXTS),
)

# What a value is, its attribute's type says: attribute.py reads the clause itself.
_VALUE = Kind("one value", lambda clause: clause, str, empty=REQUIRED)

_OF_ATTRIBUTES = _rules(VALUE=("default", _VALUE), SEARCHABLE=("searchable", FLAG), REQUIRED=("required", FLAG))

ATTRIBUTE_KEYWORDS: dict[str, AttributeType] = {
    "FILE": "file",
    "QUERY": "json",
    "STRING": "text",
    "NUMBER": "number",
    "INTEGER": "integer",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "JSON": "json",
}

FILE = _rules(NAME=("filename", TEXT)) | _OF_ATTRIBUTES
QUERY = _rules(DATABASE=("database", LABEL), EXPRESSION=("expression", TEXT)) | _OF_ATTRIBUTES

ATTRIBUTES: dict[str, ClauseRules] = {
    keyword: {"FILE": FILE, "QUERY": QUERY}.get(keyword, _OF_ATTRIBUTES) for keyword in ATTRIBUTE_KEYWORDS
}

# What a file may hold at its outermost level.
OUTERMOST = ("WORKFLOW", "TASK", "APPLICATION", "WORKFLOW_DEFINITIONS", "RELATIVE_ORDER")
WORKFLOW_BLOCKS = (*ATTRIBUTE_KEYWORDS, "TASK")

# The seed's grammar has NAME for a file and FILENAME for an application, and its examples have NAME for both.
ALIASES = {"NAME": "FILENAME", "FILENAME": "NAME"}
