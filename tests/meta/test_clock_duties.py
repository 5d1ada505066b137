"""What clocks do is listed three times: in SQL, in Python, and for readers. The lists agree."""

import re
from pathlib import Path

from mutirao.worker.clock import _DUTIES

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "src/mutirao/database/sql/functions"


def documented() -> dict[str, list[str]]:
    """Each duty with the files that the page names for it."""
    page = (ROOT / "docs/how-it-works.md").read_text("utf-8")
    table = page.split("## What clocks do", 1)[1].split("##", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (`.*`) \|$", table, re.MULTILINE)
    return {duty: re.findall(r"`(\w+)`", files) for duty, files in rows}


def test_every_duty_is_known_to_sql_to_python_and_to_readers() -> None:
    in_sql = re.search(r"clock_duties\(\).*?array\[(.*?)\]", (FUNCTIONS / "12_time.sql").read_text("utf-8"), re.DOTALL)
    assert in_sql is not None
    assert set(re.findall(r"'(\w+)'", in_sql[1])) == set(_DUTIES) == set(documented())


def test_the_files_that_readers_are_sent_to_have_the_duty() -> None:
    for duty, files in documented().items():
        texts = [(FUNCTIONS / f"{name}.sql").read_text("utf-8") for name in files]
        assert any(f"mutirao.clock_{duty}(" in text for text in texts), duty
