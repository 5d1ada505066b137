"""`mutirao export`: from the command to the file, and clear words for what cannot be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import assert_refused, mutirao
from command_flows import Order

from mutirao.database.engine import Engine


@pytest.fixture
async def orders(database_url: str) -> str:
    """Three orders that were cancelled."""
    async with Engine(database_url, upgrade=False) as engine:
        await engine.apply(Order)
        for instance in await engine.start_many([Order() for _ in range(3)]):
            await engine.cancel(instance)
    return database_url


def test_export_writes_and_drops(orders: str, tmp_path: Path) -> None:
    said = mutirao("export", "order", "--to", tmp_path, "--closed-before", "1h", "--database", orders)
    assert (
        said.stdout
        == "Nothing to export: every finished instance of order that was chosen is in a file already, or there is none.\n"
    )
    said = mutirao("export", "order", "--to", tmp_path, "--drop", "--database", orders)
    assert "3 instances of order in 1 file" in said.stdout
    assert "Dropped: 3." in said.stdout
    [file] = tmp_path.iterdir()
    assert [json.loads(line)["status"] for line in file.read_text("utf-8").splitlines()] == ["closed.aborted"] * 3


def test_a_full_disk_is_one_line(orders: str, tmp_path: Path) -> None:
    # A limit that the shell sets for its child: no file above one block of 512 bytes.
    words = [sys.executable, "-m", "mutirao", "export", "order", "--to", str(tmp_path), "--drop", "--database", orders]
    said = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *words], capture_output=True, text=True, check=False
    )
    assert_refused(said, "disk_full", 3)
    assert list(tmp_path.iterdir()) == []
    assert "3 instances" in mutirao("export", "order", "--to", tmp_path, "--database", orders).stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("nowhere", "--to", "."), "unknown_flow"),
        (("order", "--to", "/dev/null"), "wrong_call"),
        (("order", "--to", ".", "--closed-before", "the flood"), "wrong_call"),
        (("order", "--to", ".", "--format", "stone"), "usage"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(orders: str, words: tuple[str, ...], code: str) -> None:
    assert_refused(mutirao("export", *words, "--database", orders), code, 2 if code == "usage" else 1)
