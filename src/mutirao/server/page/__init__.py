"""Pages: what people see and do in a browser.

A page is read from the server, with the same calls as the API's (`who.sight`, `who.engine`), so it shows what its reader may
see and no more. It changes nothing by itself: its forms and buttons ask the API (web/src/api.ts). It is live by being read
again when the event stream hints that something has changed.

    shell      what all pages have around them; how one is answered, refused, or sent to sign in first
    reader     the person's language, zone and theme, and how values are written for them
    catalogue  all texts, in all languages
    form       fields for attributes
    graph      a flow as nodes and edges, drawn in the browser
    …          one module for each page, beside its template
"""

from mutirao.server.page import (
    asset,
    badge,
    batch,
    database,
    exception,
    first,
    flow,
    instance,
    instance_list,
    instance_undo,
    item,
    message,
    pdl,
    person,
    role,
    schedule,
    setting,
    sign_in,
    start,
    waiting,
    work,
    worker,
)

_WORK = (first, sign_in, work, item, message)
_FLOWS = (pdl, start, flow, instance, instance_list, instance_undo, batch, exception, waiting)
_ENGINE = (person, role, schedule, database, setting, worker)

PAGES = tuple(module.router for module in (asset, badge, *_WORK, *_FLOWS, *_ENGINE))
