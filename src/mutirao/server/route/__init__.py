"""The routes, one file per noun. What each needs of whoever asks is the type of its `who` (need.py)."""

from mutirao.server.route import (
    batch,
    comment,
    database,
    event,
    exception,
    file,
    flow,
    health,
    instance,
    item,
    job,
    library,
    limit,
    meeting,
    message,
    person,
    role,
    schedule,
    session,
    setting,
    steer,
    token,
    webhook,
    worklist,
)

# Looked through in this order: what is asked most comes first.
_WORK = (worklist, item, message, event, session, instance, steer, comment, file)
_FLOWS = (flow, limit, library, meeting, job, schedule, batch, exception)
_PEOPLE = (token, person, role, webhook, setting, database)

ROUTERS = tuple(module.router for module in (*_WORK, *_FLOWS, *_PEOPLE, health))
