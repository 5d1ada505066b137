"""`mutirao server`: the pages, the HTTP API and its events."""

from contextlib import AsyncExitStack
from typing import Annotated

import typer

from mutirao.cli.door import open_door
from mutirao.cli.invocation import calling
from mutirao.cli.logs import set_up_logs
from mutirao.cli.observe import LogFormatOption, LogLevelOption, Wanted
from mutirao.cli.options import Database
from mutirao.cli.service import run_service, serve
from mutirao.cli.session import open_engine
from mutirao.people.webhook import WebhookSender
from mutirao.server.options import PATIENCE, ServerOptions

app = typer.Typer(add_completion=False)

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; 0.0.0.0: everywhere.")]
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="The port to listen on; 0: a free one.")
]
Proxy = Annotated[
    list[str] | None,
    typer.Option("--proxy", metavar="ADDRESS", help="A proxy whose X-Forwarded headers are true. May be repeated."),
]
Origin = Annotated[
    list[str] | None,
    typer.Option("--origin", metavar="URL", help="Another origin whose pages may write. May be repeated."),
]


@app.command()
def server(
    host: Host = "127.0.0.1",
    port: Port = 8321,
    proxy: Proxy = None,
    origin: Origin = None,
    database: Database = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
) -> None:
    """Serve the pages and the HTTP API, and send messages on to webhooks, until SIGTERM or Ctrl-C.

    The API's description is at /api/openapi.json. Where there is no administrator, one is made and shown once.

    Example: mutirao server --host 0.0.0.0 --port 8321 --proxy 10.0.0.1
    """
    set_up_logs(log_format, log_level)
    options = ServerOptions(host=host, port=port, proxies=tuple(proxy or ()), origins=tuple(origin or ()))
    run_service(_serve(database, options, Wanted(log_format=log_format)))


async def _serve(database: str | None, options: ServerOptions, wanted: Wanted) -> None:
    from mutirao.server.service import Server  # noqa: PLC0415 half a second that other commands need not wait

    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(database, "server", patience=PATIENCE))
        served = Server(engine, options)
        door = await open_door(engine)
        if door.password is not None:
            wanted.say(door.line(calling(database)))
        wanted.say(f"The server is ready: {served.url}; its API: {served.url}/api/openapi.json; {engine}")
        await serve([served, WebhookSender(engine)], wanted.say)
    wanted.say("Stopped.")
