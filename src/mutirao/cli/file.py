"""Files by command: `plan=@plan.pdf` puts one where an attribute is given, `mutirao instance file` fetches one.

They go in pieces, and are never wholly in memory.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from mimetypes import guess_type
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
import typer
from rich.text import Text

from mutirao.cli import render
from mutirao.cli.arguments import InstanceId
from mutirao.cli.assignment import read_assignments
from mutirao.cli.options import Database
from mutirao.cli.output import console, counting
from mutirao.cli.session import visit
from mutirao.database.engine import Engine
from mutirao.database.file import CHUNK
from mutirao.errors import RequestError
from mutirao.model import Definition
from mutirao.model.file import ANY_MEDIA, File
from mutirao.model.name import suggest

_STDOUT = Path("-")


async def read_change(
    engine: Engine, definition: Definition, words: Sequence[str] | None, actor: int | None = None
) -> dict[str, Any]:
    """The change that the words mean. Files are put into the store for the actor, when all the rest is right."""
    files = {each.name for each in definition.attributes if each.type == "file"}
    paths: dict[str, Path] = {}
    plain: list[str] = []
    for word in words or ():
        name, _, path = word.partition("=@")
        if path and name in files and name not in paths:
            paths[name] = Path(path)
        else:
            plain.append(word)
    change = read_assignments(definition, plain)
    if twice := paths.keys() & change.keys():
        raise RequestError("wrong_call", f'attribute "{min(twice)}" is given twice')
    with ExitStack() as held:
        opened = {name: held.enter_context(_open(path)) for name, path in paths.items()}
        for name, source in opened.items():
            change[name] = await _put(engine, paths[name], source, actor)
    return change


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise RequestError("no_such_file", f'"{path}" cannot be read: {error.strerror}') from None


async def _put(engine: Engine, path: Path, source: IO[bytes], actor: int | None) -> File:
    media = guess_type(path.name)[0] or ANY_MEDIA
    with counting(f"Sending {path.name}", os.fstat(source.fileno()).st_size) as advance:
        return await engine.files.upload(_pieces(source, advance), path.name, media=media, actor=actor)


async def _pieces(source: IO[bytes], advance: Callable[[int], None]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(source.read, CHUNK):
        yield piece
        advance(len(piece))


def fetch(
    instance: InstanceId,
    attribute: Annotated[str, typer.Argument(metavar="ATTR", help="An attribute of type file.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write it; - is stdout. Default: its name.")
    ] = None,
    attachment: Annotated[
        int | None, typer.Option("--attachment", metavar="ID", help="Of this result that came too late.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    database: Database = None,
) -> None:
    """Fetch a file of an instance, open or closed.

    Example: mutirao instance file 17 plan --out plan.pdf
    """

    async def save(engine: Engine) -> tuple[File, Path]:
        file = await _file(engine, instance, attribute, attachment)
        target = out or Path(file.name)
        if target == _STDOUT:
            await _write(engine, file, sys.stdout.buffer)
        elif target.exists() and not force:
            raise RequestError("file_exists", f'"{target}" is there already: say --force to replace it, or --out')
        else:
            with _replacing(target) as opened:
                await _write(engine, file, opened)
        return file, target

    file, target = visit(database, save, must_exist=True)
    if target != _STDOUT:
        console.print(Text(f"Saved to {target} ({render.size(file.size)})."))


async def _file(engine: Engine, instance: int, attribute: str, attachment: int | None) -> File:
    found = await engine.instance(instance)
    definition = await engine.definition(found.flow, found.version)
    files = [each.name for each in definition.attributes if each.type == "file"]
    if attribute not in files:
        raise RequestError(
            "unknown_attribute", f'flow "{found.flow}" has no file "{attribute}"{suggest(attribute, files)}'
        )
    values = found.state if attachment is None else await _late(engine, instance, attachment)
    if values.get(attribute) is None:
        raise RequestError("unknown_file", f'instance {instance} has nothing in "{attribute}"')
    return msgspec.convert(values[attribute], File)


async def _late(engine: Engine, instance: int, attachment: int) -> dict[str, Any]:
    for each in await engine.worklists.attachments(None, instance, after=attachment - 1, limit=1):
        if each.id == attachment:
            return dict(each.content.get("change") or {})
    raise RequestError("unknown_file", f"instance {instance} has no attachment {attachment}")


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """What was there stays until all of the new one has come."""
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as opened:
            yield opened
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


async def _write(engine: Engine, file: File, target: IO[bytes]) -> None:
    with counting(f"Fetching {file.name}", file.size) as advance:
        async for piece in engine.files.open(file):
            await asyncio.to_thread(target.write, piece)
            advance(len(piece))
        target.flush()
