"""The application: all routes around one engine."""

from datetime import timedelta
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.routing import APIRoute

from mutirao.database.engine import Engine
from mutirao.server.guard import Guard
from mutirao.server.hub import Hub
from mutirao.server.metrics import ServerMetrics
from mutirao.server.openapi import TAGS, describe
from mutirao.server.options import ServerOptions
from mutirao.server.page import PAGES
from mutirao.server.page.shell import missing
from mutirao.server.problem import tell_problems
from mutirao.server.revive import Reviver
from mutirao.server.route import ROUTERS

_SUMMARY = "Durable processes that span programs, people, devices and companies."


def make_app(engine: Engine, options: ServerOptions | None = None, hub: Hub | None = None) -> FastAPI:
    """The engine must be open for as long as this is served; the hub is to run beside it."""
    app = FastAPI(
        title="Mutirão",
        summary=_SUMMARY,
        version=version("mutirao"),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        openapi_tags=TAGS,
        generate_unique_id_function=_operation,
    )
    app.state.engine = engine
    app.state.options = options or ServerOptions()
    app.state.hub = hub or Hub(engine)
    app.state.reviver = Reviver(engine)
    app.state.metrics = ServerMetrics(engine, app.state.hub)
    app.state.ahead = timedelta()  # tests move the engine's clock, and ours with it
    for router in (*ROUTERS, *PAGES):
        app.include_router(router)
    describe(app)
    tell_problems(app, missing)
    app.add_middleware(Guard, metrics=app.state.metrics)
    return app


def _operation(route: APIRoute) -> str:
    """A name that generators of clients make a method of."""
    return f"{route.tags[0] if route.tags else 'server'}_{route.name}"
