"""Users who run mypy see the types of their flows."""

import re
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).parent / "typing" / "flows.py"
IGNORE = re.compile(r"  # type: ignore\[(?P<code>[a-z-]+)\]")


def mypy(file: Path, cache: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(cache), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_mypy_accepts_good_flows_and_refuses_exactly_the_listed_lines(tmp_path: Path) -> None:
    text = CASES.read_text()
    bare = tmp_path / "flows_without_ignores.py"
    bare.write_text(IGNORE.sub("", text))
    expected = {
        (number, match["code"]) for number, line in enumerate(text.splitlines(), 1) if (match := IGNORE.search(line))
    }

    output = mypy(bare, tmp_path / "cache")

    found = re.findall(r":(\d+): error: .*\[([a-z-]+)\]", output)
    assert {(int(number), code) for number, code in found} == expected, output
    assert len(expected) >= 10
