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
from mutirao.errors import FlowError, MutiraoError, OperatorError, RequestError
from mutirao.language.pdl import Finding, PdlError, Reading, Source, check_size, examine, format_text, missing_roles
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
    """PostgreSQL has a say about the conditions, if nothing else is wrong."""
    reading = examine(sources, await engine.library.inventory())
    if not reading.findings.errors:
        try:
            await engine.library.apply(reading.bundle, is_trial=True)
        except OperatorError:
            raise
        except MutiraoError as error:
            note(reading, error)
            if not reading.findings.errors:
                raise
    return reading


def note(reading: Reading, error: MutiraoError) -> None:
    place = reading.places.of(error.code, error.message)
    if place is not None:
        reading.findings.add(error.code, error.message, place)


def refuse(reading: Reading, missing: str | None) -> None:
    """Where only roles are missing, what to do is not to be done in the file: one line for all of them."""
    if missing is not None and all(each.code == "unknown_role" for each in reading.findings.errors):
        raise FlowError("unknown_role", missing)
    if reading.findings.errors:
        print_findings(reading.findings.errors, to_stderr=True)
        raise typer.Exit(REFUSED)


def told_missing(bundle: Bundle, inventory: Inventory, database: str | None) -> str | None:
    missing = missing_roles(bundle, inventory)
    if not missing:
        return None
    call = calling(database)
    making = " && ".join(call(f"role add {shlex.quote(role)}") for role in missing)
    named = ", ".join(f'"{role}"' for role in missing)
    if len(missing) == 1:
        return f"there is no role {named}; make it first: {making}"
    return f"these roles are not there: {named}; make them first: {making}"


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
