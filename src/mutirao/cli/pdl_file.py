"""PDL files as the command meets them: read, judged, and told what is wrong with them."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from mutirao.cli.invocation import calling
from mutirao.cli.output import console, progress
from mutirao.database.engine import Engine
from mutirao.errors import FlowError, RequestError
from mutirao.language.pdl import (
    Finding,
    PdlError,
    Reading,
    Source,
    check_size,
    examine,
    format_text,
    missing_classes,
    missing_roles,
)
from mutirao.model import Bundle, Inventory

REFUSED = 1


def read_file(file: Path) -> Source:
    try:
        check_size(str(file), file.stat().st_size)
        return Source(str(file), file.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FlowError("pdl_syntax", f"{file} is not a text in UTF-8: {error.reason}, byte {error.start}") from None
    except OSError as error:
        raise RequestError("no_such_file", f'"{file}" cannot be read: {error.strerror}') from None


def formatted(source: Source) -> str:
    try:
        return format_text(source)
    except PdlError as error:
        print_findings(error.findings, to_stderr=True)
        raise typer.Exit(REFUSED) from None


async def judge(engine: Engine, sources: Sequence[Source]) -> Reading:
    """PostgreSQL has a say about the conditions."""
    reading = examine(sources, await engine.library.inventory())
    await reading.judge(engine.library.try_out)
    return reading


def refuse(reading: Reading, advice: str = "") -> None:
    if reading.findings.errors:
        print_findings(reading.findings.errors, to_stderr=True)
        if advice:
            progress.print(Text(advice), soft_wrap=True)
        raise typer.Exit(REFUSED)


def still_to_make(bundle: Bundle, inventory: Inventory, database: str | None) -> str:
    """A role or a class that is not there may be misspelt, or still to be made: that is not done in the file."""
    missing = [
        *(f"role add {shlex.quote(role)}" for role in missing_roles(bundle, inventory)),
        *(f"class put {shlex.quote(name)}" for name in missing_classes(bundle, inventory)),
    ]
    if not missing:
        return ""
    making = " && ".join(calling(database)(command) for command in missing)
    return f"If {'that is' if len(missing) == 1 else 'these are'} still to be made: {making}"


def print_findings(findings: Iterable[Finding], *, to_stderr: bool = False) -> None:
    target = progress if to_stderr else console
    for each in findings:
        line, *rest = each.shown().split("\n")
        target.print(Text(line, "yellow" if each.is_warning else "red"), soft_wrap=True)
        for more in rest:
            target.print(Text(more), soft_wrap=True)


def as_json(finding: Finding) -> dict[str, Any]:
    at = finding.place
    return {
        "file": at.source.name,
        "line": at.line,
        "column": at.column,
        "code": finding.code,
        "message": finding.message,
        "warning": finding.is_warning,
    }
