"""What bodies and answers look like: one example for each model of the document, put together from those of its fields.

What a field says of itself stands with it. Here is what is left: words that mean the same wherever they stand, and models
that need words of their own.
"""

from collections.abc import Iterator
from typing import Any

_JSON = "application/json"
_REF = "#/components/schemas/"
_AT = "2031-12-01T09:00:00Z"
_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
_SECRET = "shown-here-and-nowhere-else"  # noqa: S105 an example

_WORDS: dict[str, Any] = {
    "address": "192.0.2.7",
    "attempt": 1042,
    "code": "instance_closed",
    "count": 3,
    "delivery": 311,
    "email": "clerk_1@example.org",
    "flow": "travel",
    "full_name": "Clerk of the first floor",
    "host": "host-1",
    "id": 17,
    "instance": 17,
    "job": 42,
    "key": "order-4711",
    "made_by": "manager",
    "message": "instance 17 is closed",
    "note": None,
    "person": "clerk_1",
    "reason": "the customer called",
    "revision": 3,
    "role": "clerk",
    "roles": ["clerk"],
    "secret": _SECRET,
    "set_by": "manager",
    "sha256": _SHA256,
    "state": {"destination": "Recife", "days": 3},
    "task": "book_hotel",
    "version": 2,
    "writer": "clerk_1",
}
"""Of fields that are always there."""

_WEBHOOK = {"url": "https://chat.example.org/hooks/4711", "secret": f"whsec_{_SECRET}"}
_CONDITION = {"kind": "part", "text": "paid > 100", "holds": False, "values": {"paid": 30}}
_FILE = {"name": "report.pdf", "media": "application/pdf", "size": 5}
_COUNTS = {"ready": 5, "running": 2, "waiting": 0, "stuck": 0, "overdue": 1, "open": 12, "exceptions": 1, "closed": 340}
_SETTING = {"name": "transfer", "value": 24, "before": 24, "after": 12}
_INSTANCE: dict[str, Any] = {
    "status": "open.running",
    "reasons": None,
    "priority": 0,
    "closed_at": None,
    "children": [],
    "in_charge": "manager",
}
_PACE = {"done": 1200, "failed": 1, "p50": 0.012, "p95": 0.08}
_LIMIT = {"at_once": 5, "per_second": 0.5, "per": "customer", "each": 1, "by_hand": True}

_MODELS: dict[str, dict[str, Any]] = {
    "AddRole": {"description": "Those at the counter."},
    "AddToken": {"expires_at": _AT},
    "AddedWebhook": {"secret": _WEBHOOK["secret"]},
    "Attachment": {"kind": "late_result", "content": {"granted": True}},
    "Backlog": {**_COUNTS, "oldest": 12.5},
    "Health": {"schema": 30, "overdue": {"retry": 2.5}},
    "MinutePace": _PACE,
    "Queue": {**_COUNTS, "oldest": 12.5, "workers": 2, "done": 340},
    "ServerFacts": {
        "server": "18.1",
        "database": "mutirao",
        "bytes": 80_000_000,
        "connections": 12,
        "most_connections": 100,
        "oldest_transaction": None,
        "oldest_of": None,
    },
    "TaskPace": _PACE,
    "Batch": {
        "kind": "cancel",
        "filter": {"flow": "travel", "status": "open.exception"},
        "arguments": {},
        "status": "running",
        "total": 120,
        "done": 80,
        "skipped": 3,
        "refused": 1,
        "ended_at": None,
    },
    "Begin": {"size": 5, "sha256": _SHA256},
    "Begun": {"upload": 7},
    "ChangeRole": {"description": "Those at the counter."},
    "Checked": {"ok": True},
    "ChosenInstances": {"flow": "travel"},
    "ClassRecord": {
        "name": "crane",
        "description": "One load at a time.",
        "conflicts": ["crane"],
        "holding": 1,
        "waiting": 2,
        "waits_since": _AT,
        "flows": ["lift"],
    },
    "Comment": {"author": "clerk_1", "text": "The customer will call back."},
    "Create": {"key": "order-4711", "in_charge": "manager", "priority": 10, "at": _AT},
    "DeliveryRecord": {
        "message": 4711,
        "kind": "deadline",
        "status": "sent",
        "tries": 1,
        "due_at": None,
        "answer": 204,
        "error": None,
    },
    "ExceptionKind": {
        "flow": "travel",
        "code": "task_failed",
        "task": "book_flight",
        "error": "ConnectionError: timeout",
        "instances": 1204,
        "since": _AT,
        "latest": _AT,
        "example": 17,
        "repair": "retry",
        "chosen": {"flow": "travel", "task": "book_flight", "error": "ConnectionError: timeout"},
    },
    "Exchange": {"other": 43},
    "File": _FILE,
    "InstanceCounts": {
        **_COUNTS,
        "is_exact": True,
        "statuses": {"open.running": 11, "open.exception": 1, "closed.completed": 340},
    },
    "FlowRecord": {**_COUNTS, "name": "travel", "live": False, "description": None, "tasks": 6},
    "Found": {
        "code": "pdl_unused",
        "message": "nothing uses the attribute Days",
        "line": 3,
        "column": 10,
        "is_warning": True,
    },
    "GoAway": {"from_at": _AT, "until_at": "2031-12-15T09:00:00Z", "substitute": "clerk_2"},
    "Happened": {"id": "payment-9"},
    "Instance": _INSTANCE,
    "Item": {
        "description": "Book a room near the customer.",
        "kind": "manual",
        "status": "ready",
        "holder": None,
        "attempt": None,
        "priority": 0,
        "finish_by": "2031-12-24T18:00:00Z",
        "size": 480,
        "application": None,
        "disconnected": False,
        "locked": False,
        "alone": False,
        "instead_of": None,
        "comments": 1,
    },
    "ItemCount": _COUNTS,
    "ItemFilter": {"sort": "deadline", "flow": "travel", "attributes": {"city": "Recife"}},
    "ItemView": {
        "inputs": {"destination": "Recife"},
        "in_charge": "manager",
        "reminders": ["2031-12-23T18:00:00Z"],
    },
    "JobRecord": {
        "status": "running",
        "priority": 0,
        "worker": "host-1:4242",
        "failures": 0,
        "lease_until": "2031-12-01T09:00:30Z",
        "due_at": None,
        "error": None,
        "since": _AT,
    },
    "LibraryRecord": {
        "kind": "application",
        "name": "Editor",
        "document": {"name": "Editor", "file": "/usr/bin/edit"},
        "source": None,
        "used_by": ["travel"],
    },
    "LimitRecord": {**_LIMIT, **_COUNTS},
    "LimitTo": {"per_second": 0.5},
    "MakeBatch": {"kind": "cancel"},
    "Me": {"person": 7, "is_administrator": False, "csrf": _SECRET},
    "MessageRecord": {
        "kind": "deadline",
        "sender": "order-4711",
        "text": "book_hotel is to be done within 24 hours",
        "read_at": None,
    },
    "Migrate": {"to": 2, "leaving": 1, "attributes": {"city": "destination"}, "chosen": {"status": "open"}},
    "Move": {"before": 43},
    "NewPassword": {"new": "another long and secret one"},
    "Next": {"chosen": {"sort": "deadline", "flow": "travel"}},
    "Output": {"name": "granted", "type": "boolean", "required": False},
    "Part": {"kind": "all", "text": "paid > 100", "holds": False, "parts": [_CONDITION]},
    "PersonRecord": {
        "name": "clerk_1",
        "disabled_at": None,
        "away_from": None,
        "away_until": None,
        "substitute": None,
        "here": True,
        "holds": 2,
        "offered": 1,
    },
    "Read": {"up_to": 4711},
    "Rename": {"name": "soon"},
    "Retry": {"delivery": 311},
    "RetentionRecord": {"status": "closed.completed", "period": "P90D", "action": "drop"},
    "RoleRecord": {"name": "clerk", "description": "Those at the counter.", "members": 12},
    "SavedFilter": {"name": "urgent"},
    "ScheduleRecord": {
        "name": "every_morning",
        "flow": "report",
        "cron": "0 8 * * mon-fri",
        "zone": "America/Recife",
        "priority": 0,
        "missed": "once",
        "overlap": "allow",
        "time_to": None,
        "paused": False,
        "last_instance": 17,
        "runs": 40,
        "problem": None,
    },
    "SeenException": {**_INSTANCE, "status": "open.exception", "may_steer": True, "revision": 1042},
    "SeenFlow": {"name": "travel", "description": "A journey, from the request to the bill.", "creator_role": "clerk"},
    "SeenInstance": {**_INSTANCE, "may_steer": True, "revision": 1042},
    "SeenPerson": {"revision": 3},
    "Sent": {"event": "payment-9", "outcome": "done", "code": None, "message": None, "saw": None},
    "SessionRecord": {"agent": "Firefox on Linux"},
    "SettingChange": _SETTING,
    "SettingRecord": _SETTING,
    "ShownPassword": {"password": _SECRET},
    "ShownToken": {"name": "nightly import"},
    "StoryRow": {"kind": "select"},
    "TaskStanding": {"state": "running", "since": _AT, "times": 1},
    "TokenRecord": {"name": "nightly import"},
    "TraceRow": {"kind": "finish", "cause": 1041, "status": "open.running", "fired": ["send_bill"]},
    "Undone": {
        "task": "book_hotel",
        "times": 1,
        "compensation": "free_hotel",
        "is_critical": False,
        "by_child": False,
        "is_running": False,
    },
    "Upload": {**_FILE, "finished": False, "received": 0, "missing": [0]},
    "VersionRecord": {**_COUNTS, "number": 2, "newest": True},
    "Wait": {
        "class_name": "crane",
        "since": _AT,
        "place": 1,
        "kind": "class",
        "held_by": 41,
        "holder_instance": 16,
        "holder_task": "lift",
        "ordering": None,
    },
    "WebhookAddress": _WEBHOOK,
    "WebhookRecord": {
        "target": "https://chat.example.org",
        "kinds": ["deadline"],
        "paused": False,
        "waiting": 0,
        "given_up": 0,
    },
    "Why": {
        "answer": "book_hotel waits until paid > 100 holds",
        "stands": "condition",
        "holds": False,
        "condition": _CONDITION,
    },
    "WorkerRecord": {
        "name": "host-1:4242",
        "program": "mutirao 1.0",
        "stopped_at": None,
        "alive": True,
        "tasks": ["travel.book_hotel"],
        "running": 2,
    },
    "Written": {"text": "WORKFLOW Leave {\n  CREATOR employee;\n  TASK Decide { DEPENDS; ROLE manager; }\n}\n"},
}


def give_examples(document: dict[str, Any]) -> None:
    """To every model that is sent or answered, and to what is sent or answered without one, such as lists of models."""
    schemas = document["components"]["schemas"]
    for content in _contents(document):
        schema = content["schema"]
        if "$ref" in schema:
            named = schemas[_name(schema)]
            named["examples"] = [_model(_name(schema), schemas)]
        else:
            content["example"] = _value(schema, schemas)


def _contents(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        for operation in methods.values():
            for said in (operation.get("requestBody", {}), *operation["responses"].values()):
                if _JSON in said.get("content", {}):
                    yield said["content"][_JSON]


def _name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).removeprefix(_REF)


def _model(name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    own, always = _MODELS.get(name, {}), schemas[name].get("required", ())
    found: dict[str, Any] = {}
    for field, schema in schemas[name]["properties"].items():
        if field in own:
            found[field] = own[field]
        elif field in always or "examples" in schema or schema.get("default") is not None:
            found[field] = _field(field, schema, schemas)
    return found


def _field(name: str, schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    if "examples" not in schema and name in _WORDS:
        return _WORDS[name]
    return _value(schema, schemas)


def _value(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    default = schema.get("default")
    known = [*schema.get("examples", ()), *(() if default is None else (default,)), *schema.get("enum", ())]
    if known:
        return known[0]
    if "$ref" in schema:
        return _model(_name(schema), schemas)
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], schemas)
    if schema.get("type") == "array":
        return [_value(schema["items"], schemas)]
    return _AT if schema.get("format") == "date-time" else None
