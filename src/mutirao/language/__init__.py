"""From what people write to the model, and back. Here are flows as Python classes; other languages join as modules."""

from mutirao.language.annotation import Json, searchable
from mutirao.language.builder import FlowBuilder
from mutirao.language.handler import Handler, handles
from mutirao.language.load import Loaded, load, load_flows
from mutirao.language.python import Flow
from mutirao.language.task import task, wait
from mutirao.language.work import application, child, not_as, same_as, work

__all__ = [
    "Flow",
    "FlowBuilder",
    "Handler",
    "Json",
    "Loaded",
    "application",
    "child",
    "handles",
    "load",
    "load_flows",
    "not_as",
    "same_as",
    "searchable",
    "task",
    "wait",
    "work",
]
