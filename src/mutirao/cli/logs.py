"""What a program of ours writes to its log: lines for people on a terminal, JSON for programs elsewhere.

The library logs as any other does, by `logging`, with the job's fields in `extra`. Here, and only here, it is decided how
that looks; lines of user code get the fields of the job that they were written for. Where a flow's module has set up
logging itself, that stands.
"""

import logging
import sys
from collections.abc import Callable, MutableMapping, Sequence
from enum import StrEnum
from typing import Any

import structlog
from rich.text import Text
from structlog.stdlib import ProcessorFormatter

from mutirao.cli.output import console, progress
from mutirao.worker.running import current

log = logging.getLogger(__name__)

Line = MutableMapping[str, Any]

_FIRST = ("timestamp", "level", "event")


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def set_up_logs(form: LogFormat | None = None, level: LogLevel | None = None) -> None:
    """Nothing said: text on a terminal and JSON elsewhere, from `info` on."""
    number = logging.getLevelNamesMapping()[(level or LogLevel.INFO).upper()]
    quiet_pool()
    root = logging.getLogger()
    if root.handlers and form is None:
        if level is not None:
            logging.getLogger("mutirao").setLevel(number)
        return
    form = form or (LogFormat.TEXT if progress.is_terminal else LogFormat.JSON)
    chain = _chain(form)
    handler = _AboveTheDisplay() if progress.is_terminal else logging.StreamHandler(sys.stderr)
    handler.setFormatter(ProcessorFormatter(foreign_pre_chain=chain, processors=_rendered(form)))
    root.handlers = [handler]
    root.setLevel(number)
    if not structlog.is_configured():  # user code may use it as well
        structlog.configure(
            processors=[structlog.stdlib.filter_by_level, *chain, ProcessorFormatter.wrap_for_formatter],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
        )


def voice(form: LogFormat | None) -> Callable[[str], None]:
    """How a program says what it does: plainly; or in the log, where JSON was asked for and nothing else may be there."""
    if form is LogFormat.JSON:
        return lambda line: log.info("%s", line)
    return lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True)


def log_mistakes() -> None:
    """For a program that shows all that matters by itself: only what a page says is in the log, a mistake of ours, is logged."""
    logging.getLogger("mutirao").handlers = [logging.NullHandler()]
    handler = _AboveTheDisplay() if progress.is_terminal else logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.ERROR)
    form = LogFormat.TEXT
    handler.setFormatter(ProcessorFormatter(foreign_pre_chain=_chain(form), processors=_rendered(form)))
    logging.getLogger("mutirao.server").handlers = [handler]
    quiet_pool()


def quiet_pool() -> None:
    """The pool warns of each connection that it loses; whoever needed it is told by an error of ours."""
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)


def _chain(form: LogFormat) -> list[Any]:
    is_text = form is LogFormat.TEXT
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.PositionalArgumentsFormatter(),
        *([] if is_text else [structlog.stdlib.add_logger_name]),
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper("%H:%M:%S" if is_text else "iso", utc=not is_text),
        _add_job,
    ]


def _rendered(form: LogFormat) -> Sequence[Any]:
    if form is LogFormat.JSON:
        last = [structlog.processors.format_exc_info, _in_order, structlog.processors.JSONRenderer(ensure_ascii=False)]
    else:
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=progress.is_terminal, exception_formatter=plain)]
    return [ProcessorFormatter.remove_processors_meta, *last]


def _add_job(_logger: object, _method: str, line: Line) -> Line:
    """Of a line that user code wrote: the job it was written for."""
    running = current()
    if running is not None:
        for name, value in running.extra.items():
            line.setdefault(name, value)
    return line


def _in_order(_logger: object, _method: str, line: Line) -> Line:
    return {**{name: line[name] for name in _FIRST if name in line}, **line}


class _AboveTheDisplay(logging.Handler):
    """Through rich, so that lines go above a live display and not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            progress.print(Text.from_ansi(self.format(record)), soft_wrap=True)
        except Exception:  # noqa: BLE001 as every handler does
            self.handleError(record)
