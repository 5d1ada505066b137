"""Durable processes that span programs, people, devices and companies, on PostgreSQL alone."""

from mutirao.database.batch import Filter, Migration
from mutirao.database.bridge import blocking_engine
from mutirao.database.engine import Engine
from mutirao.database.record import Event, Instance, Sent
from mutirao.database.schedule import Schedule
from mutirao.errors import Failed, FlowError, LeaseLost, MutiraoError, OperatorError, RequestError
from mutirao.language import Flow, FlowBuilder, Json, handles, searchable, task, wait
from mutirao.model import Change, File, Job, Limit, Query
from mutirao.worker import Clock, Worker, WorkerOptions

__all__ = [
    "Change",
    "Clock",
    "Engine",
    "Event",
    "Failed",
    "File",
    "Filter",
    "Flow",
    "FlowBuilder",
    "FlowError",
    "Instance",
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
    "blocking_engine",
    "handles",
    "searchable",
    "task",
    "wait",
]
