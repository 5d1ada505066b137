"""Durable processes that span programs, people, devices and companies, on PostgreSQL alone."""

from typing import TYPE_CHECKING, Any

from mutirao.database.batch import Filter, Migration
from mutirao.database.bridge import blocking_engine
from mutirao.database.charge import Creation
from mutirao.database.engine import Engine
from mutirao.database.item import ItemFilter
from mutirao.database.record import Event, Instance, Sent
from mutirao.database.schedule import Schedule
from mutirao.errors import Failed, FlowError, LeaseLost, MutiraoError, OperatorError, RequestError
from mutirao.language import (
    Flow,
    FlowBuilder,
    Json,
    application,
    child,
    handles,
    not_as,
    same_as,
    searchable,
    task,
    wait,
    work,
)
from mutirao.model import Change, File, Job, Limit, Query
from mutirao.worker import Clock, Worker, WorkerOptions

if TYPE_CHECKING:
    from mutirao.server.client import Client, blocking_client

__all__ = [
    "Change",
    "Client",
    "Clock",
    "Creation",
    "Engine",
    "Event",
    "Failed",
    "File",
    "Filter",
    "Flow",
    "FlowBuilder",
    "FlowError",
    "Instance",
    "ItemFilter",
    "Job",
    "Json",
    "LeaseLost",
    "Limit",
    "Migration",
    "MutiraoError",
    "OperatorError",
    "Query",
    "RequestError",
    "Schedule",
    "Sent",
    "Worker",
    "WorkerOptions",
    "application",
    "blocking_client",
    "blocking_engine",
    "child",
    "handles",
    "not_as",
    "same_as",
    "searchable",
    "task",
    "wait",
    "work",
]

_OVER_HTTP = ("Client", "blocking_client")


def __getattr__(name: str) -> Any:
    """Who does not ask over HTTP does not wait for the import of what it takes."""
    if name in _OVER_HTTP:
        from mutirao.server import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
