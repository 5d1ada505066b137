"""The routes, one file per noun. What each needs of whoever asks is the type of its `who` (need.py)."""

from mutirao.server.route import (
    batch,
    event,
    flow,
    health,
    instance,
    job,
    library,
    limit,
    person,
    role,
    schedule,
    session,
    token,
)

_SESSIONS = (session, token, person, role)
_FLOWS = (flow, limit, library, instance, job)
_WORK = (event, schedule, batch, health)

ROUTERS = tuple(module.router for module in (*_SESSIONS, *_FLOWS, *_WORK))
