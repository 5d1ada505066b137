"""What `mutirao flow check` finds: of each flow whether it would be accepted, else why not, and where in which file."""

import importlib
import inspect
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import mutirao
from mutirao.database.engine import Engine
from mutirao.errors import FlowError, MutiraoError, OperatorError
from mutirao.language import Flow, load_flows

# What an import passes through before it comes to the user's own lines.
_ON_THE_WAY = (str(Path(mutirao.__file__).parent), str(Path(importlib.__file__).parent), "<")


@dataclass(frozen=True)
class Spot:
    """A line of a file, as far as it is known."""

    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Verdict:
    ok: bool
    place: str
    """The flow's address, as it was given."""
    flow: str | None
    code: str | None
    message: str | None
    file: str | None
    line: int | None


async def judge(engine: Engine, addresses: Sequence[str]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    seen: dict[str, type[Flow]] = {}
    for address in addresses:
        try:
            loaded = load_flows(address)
        except MutiraoError as error:
            verdicts.append(_refused(address, None, error, _spot_of_load(address, error)))
            continue
        verdicts += [
            await _judge(engine, address, flow, seen.setdefault(flow.definition.name, flow)) for flow in loaded
        ]
    return verdicts


async def _judge(engine: Engine, address: str, flow: type[Flow], first: type[Flow]) -> Verdict:
    """`first` is the flow that was the first of all to have this name."""
    name = flow.definition.name
    try:
        _refuse_twin(first, flow)
        await engine.check(flow)
    except OperatorError:
        raise
    except MutiraoError as error:
        return _refused(address, name, error, _spot_of_flow(flow, error))
    spot = _spot_of_class(flow)
    return Verdict(True, address, name, None, None, spot.file, spot.line)


def _refuse_twin(first: type[Flow], flow: type[Flow]) -> None:
    if first is not flow:
        places = " and ".join(f"{each.__module__}:{each.__qualname__}" for each in (first, flow))
        name = flow.definition.name
        text = f'two flows have the name "{name}": {places}; give one another name, by name = "…" in its class'
        raise FlowError("duplicate_name", text)


def _refused(address: str, flow: str | None, error: MutiraoError, spot: Spot) -> Verdict:
    return Verdict(False, address, flow, error.code, error.message, spot.file, spot.line)


def _spot_of_load(address: str, error: MutiraoError) -> Spot:
    """Where the file was being run: in the file that was asked for, else in the last one that is the user's."""
    cause = error.__cause__ or error
    if isinstance(cause, SyntaxError):
        return Spot(cause.filename, cause.lineno)
    spots = _spots(cause.__traceback__)
    path = Path(address.partition(":")[0])
    file = str(path.resolve()) if path.suffix == ".py" and path.is_file() else None
    inside = [spot for spot in spots if spot.file == file] or spots
    return inside[-1] if inside else Spot(file)


def _spots(trace: TracebackType | None) -> list[Spot]:
    frames = traceback.extract_tb(trace)
    return [Spot(each.filename, each.lineno) for each in frames if not each.filename.startswith(_ON_THE_WAY)]


def _spot_of_flow(flow: type[Flow], error: MutiraoError) -> Spot:
    """The function of the task that the refusal names, else the class."""
    for handler in flow.handlers.values():
        if f'task "{handler.task}"' in error.message and hasattr(handler.function, "__code__"):
            code = handler.function.__code__
            return Spot(code.co_filename, code.co_firstlineno)
    return _spot_of_class(flow)


def _spot_of_class(flow: type[Flow]) -> Spot:
    """What a builder made has no lines of its own."""
    try:
        return Spot(inspect.getsourcefile(flow), inspect.getsourcelines(flow)[1])
    except (OSError, TypeError):
        return Spot()
