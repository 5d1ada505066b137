"""Imports point down: cli, server → worker, people, cooperation, partner, interop → database → model ← language."""

import ast
from pathlib import Path

import mutirao

PACKAGE = Path(mutirao.__file__).parent
DUTIES = {"worker", "people", "cooperation", "partner", "interop"}
MAY_IMPORT = {
    "model": set[str](),
    "language": {"model"},
    "database": {"model"},
    **{room: {"database", "model", "language"} for room in DUTIES},
    "server": {"database", "model", "language"} | DUTIES,
    "cli": {"database", "model", "language", "server", "testing"} | DUTIES,
    "testing": {"database", "model", "language", "server", "cli"} | DUTIES,
}


def rooms_imported_by(file: Path) -> set[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import():
                names += [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module), level=0):
                names += [module] if module != "mutirao" else [f"mutirao.{alias.name}" for alias in node.names]
    rooms = {name.split(".")[1] for name in names if name.startswith("mutirao.")}
    return rooms & MAY_IMPORT.keys()


def test_imports_point_down() -> None:
    wrong = [
        f"{file.relative_to(PACKAGE)} imports {room}"
        for here, allowed in MAY_IMPORT.items()
        for file in (PACKAGE / here).rglob("*.py")
        for room in rooms_imported_by(file) - allowed - {here}
    ]
    assert not wrong


def test_every_room_is_one_of_the_design() -> None:
    rooms = {folder.name for folder in PACKAGE.iterdir() if list(folder.glob("*.py"))}
    assert rooms <= MAY_IMPORT.keys()
