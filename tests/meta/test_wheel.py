"""What is installed is whole: pages with their scripts, styles and texts, built from what the lock file pins, and small."""

import gzip
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_SCRIPT = 120_000


def test_the_wheel_brings_the_pages_and_needs_no_node(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in tracked.split("\0"):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/", "benchmarks/")):
            (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "tree" / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=tmp_path / "tree", check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        page = "mutirao/server/page"
        assert {f"{page}/asset/{name}" for name in ("app.js", "graph.js", "style.css")} <= names
        assert {f"{page}/template/base.html", f"{page}/locale/pt_BR.po", f"{page}/picture/icon.svg"} <= names
        assert not [name for name in names if "node_modules" in name or name.endswith(".ts")]
        scripts = [packed.read(name) for name in names if name.endswith(".js")]
    assert sum(len(gzip.compress(script, 9)) for script in scripts) <= MOST_SCRIPT
