"""Flows by their address: `module:Flow`, `path/file.py:Flow`, or a whole `module` or `path/file.py`."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mutirao.errors import FlowError, MutiraoError
from mutirao.language.handler import Handler, handlers_of
from mutirao.language.python import Flow
from mutirao.model.name import suggest


@dataclass(frozen=True, slots=True)
class Loaded:
    """Flows, and the handlers of all tasks: those of the flows, and those that `@handles` binds to flows in SQL."""

    flows: tuple[type[Flow], ...]
    handlers: tuple[Handler, ...]


def load_flows(*addresses: str) -> list[type[Flow]]:
    flows = load(*addresses).flows
    if not flows:
        raise FlowError("not_a_flow", f"{', '.join(addresses)}: there are only functions bound by @handles, no flow")
    return list(flows)


def load(*addresses: str) -> Loaded:
    """All that the addresses name, each once. Modules are also looked for in the current folder."""
    found = _once(thing for address in addresses for thing in _find(address))
    flows = tuple(thing for thing in found if _is_flow(thing))
    _check_flows(flows)
    handlers = [handler for flow in flows for handler in flow.handlers.values()]
    handlers += [handler for thing in found for handler in handlers_of(thing)]
    _check_handlers(handlers)
    return Loaded(flows, tuple(handlers))


def _find(address: str) -> Sequence[Any]:
    place, _, name = address.partition(":")
    module = _import_file(Path(place)) if place.endswith(".py") else _import_module(place)
    if not name:
        things = [thing for thing in vars(module).values() if _belongs(thing, module)]
        if not things:
            raise FlowError("not_a_flow", f'"{address}" defines no flow; write a class Name(Flow)')
        return things
    if not hasattr(module, name):
        known = (key for key, thing in vars(module).items() if _is_flow(thing) or handlers_of(thing))
        raise FlowError("flow_not_found", f'"{place}" has no "{name}"{suggest(name, known)}')
    thing = getattr(module, name)
    if not _is_flow(thing) and not handlers_of(thing):
        right = "a flow is a class Name(Flow) that is not abstract, or what FlowBuilder builds"
        raise FlowError("not_a_flow", f'"{address}" is not a flow but {_kind(thing)}; {right}')
    return [thing]


def _import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise _not_found(name)
    _look_in(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise _not_found(error.name) from error
    except MutiraoError:
        raise
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _import_file(path: Path) -> ModuleType:
    """The file as a module, with its neighbours importable, as if it were run."""
    file = path.resolve()
    if not file.is_file():
        raise FlowError("module_not_found", f'there is no file "{path}"')
    name = _module_name(file)
    known = sys.modules.get(name)
    return known if known is not None else _execute(name, file)


def _module_name(file: Path) -> str:
    """Its own, so that a neighbour who imports it gets the same module; with its path if another has that name."""
    known = sys.modules.get(file.stem)
    if known is None or getattr(known, "__file__", None) == str(file):
        return file.stem
    return f"{file.stem} in {file.parent}"


def _execute(name: str, file: Path) -> ModuleType:
    _look_in(file.parent)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise FlowError("module_broken", f'"{file}" is not a Python file')
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, MutiraoError):
            raise
        raise _broken(str(file), error) from error
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()


def _not_found(module: str) -> FlowError:
    return FlowError("module_not_found", f'there is no module "{module}"; write module:Flow or path/file.py:Flow')


def _broken(name: str, error: BaseException) -> FlowError:
    """With the line that was being run, unless it is deep inside of Python's import system."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if len(frames) > 1 else ""
    return FlowError("module_broken", f'module "{name}" cannot be imported{place}: {type(error).__name__}: {error}')


def _is_flow(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Flow) and "definition" in vars(thing)


def _belongs(thing: Any, module: ModuleType) -> bool:
    """What was imported from its own module is that module's business; but a package may show what its parts define."""
    if not _is_flow(thing) and not handlers_of(thing):
        return False
    home = sys.modules.get(thing.__module__, module)
    is_elsewhere = home is not module and any(thing is other for other in vars(home).values())
    return not is_elsewhere or thing.__module__.startswith(f"{module.__name__}.")


def _once(things: Iterable[Any]) -> list[Any]:
    return list({id(thing): thing for thing in things}.values())


def _check_flows(flows: Iterable[type[Flow]]) -> None:
    seen: dict[str, type[Flow]] = {}
    for flow in flows:
        name = flow.definition.name
        other = seen.setdefault(name, flow)
        if other is not flow:
            where = f"{_address(other)} and {_address(flow)}"
            raise FlowError(
                "duplicate_name",
                f'two flows have the name "{name}": {where}; give one another name, by name = "…" in its class',
            )


def _check_handlers(handlers: Iterable[Handler]) -> None:
    seen: set[tuple[str, str]] = set()
    for handler in handlers:
        key = (handler.flow, handler.task)
        if key in seen:
            text = f'task "{handler.task}" of flow "{handler.flow}" has two functions; a task has one'
            raise FlowError("duplicate_name", text)
        seen.add(key)


def _address(flow: type[Flow]) -> str:
    return f"{flow.__module__}:{flow.__qualname__}"


def _kind(thing: Any) -> str:
    return f"a class {thing.__name__}" if isinstance(thing, type) else f"of type {type(thing).__name__}"
