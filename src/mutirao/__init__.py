"""Durable processes that span programs, people, devices and companies, on PostgreSQL alone."""

from mutirao.errors import Failed, FlowError, LeaseLost, MutiraoError, OperatorError, RequestError
from mutirao.language import Flow, FlowBuilder, Json, handles, searchable, task
from mutirao.model import Change, Job

__all__ = [
    "Change",
    "Failed",
    "Flow",
    "FlowBuilder",
    "FlowError",
    "Job",
    "Json",
    "LeaseLost",
    "MutiraoError",
    "OperatorError",
    "RequestError",
    "handles",
    "searchable",
    "task",
]
