"""What a flow is: frozen dataclasses, their validation, and their values. Pure: no I/O, no SQL.

`definition` holds a flow's `attribute`s and `task`s, `dependency` what a task waits for, `offer` how people are asked to
do it, `recovery` what becomes of it when it fails or is undone, `library` what flows share; `validation` says what is wrong with one; `document` is its JSON form, and
`library_document` that of what flows share. An instance's data goes to JSON and back by `state` (or `plain`, for a flow
that is not known here), value by value by `value`, as far as `accept` allows. How people write flows is the duty of
`mutirao.language`.
"""

from mutirao.model.attribute import Attribute, AttributeType, Query
from mutirao.model.definition import Definition, Ends
from mutirao.model.dependency import TASK_STATES, AllOf, AnyOf, Dependency, TaskState, Term
from mutirao.model.document import decode_document, encode_document, from_document, to_document
from mutirao.model.file import File
from mutirao.model.job import Job
from mutirao.model.library import Application, Bundle, Inventory, Ordering, TaskKind, TaskModel
from mutirao.model.offer import Offer, Policy, PolicyKind, WorkKind
from mutirao.model.recovery import OnFailure, Recovery
from mutirao.model.state import Change, StateCodec
from mutirao.model.task import Fires, Limit, Task

__all__ = [
    "TASK_STATES",
    "AllOf",
    "AnyOf",
    "Application",
    "Attribute",
    "AttributeType",
    "Bundle",
    "Change",
    "Definition",
    "Dependency",
    "Ends",
    "File",
    "Fires",
    "Inventory",
    "Job",
    "Limit",
    "Offer",
    "OnFailure",
    "Ordering",
    "Policy",
    "PolicyKind",
    "Query",
    "Recovery",
    "StateCodec",
    "Task",
    "TaskKind",
    "TaskModel",
    "TaskState",
    "Term",
    "WorkKind",
    "decode_document",
    "encode_document",
    "from_document",
    "to_document",
]
