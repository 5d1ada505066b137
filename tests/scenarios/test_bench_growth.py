"""`python -m benchmarks.growth`, with next to nothing to do: what it writes is whole, whatever the figures are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = {
    "finished": {"rate", "p50", "p99"},
    "open": {"rate", "p50", "p99"},
    "queue": {"rate"},
    "conditions": {"rate", "p50", "p99", "apply_seconds"},
    "spread": {"rate"},
    "workers": {"rate", "p50", "p99", "idle_cpu", "connections"},
}


def grow(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.growth", *words]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)


@pytest.mark.timeout(300)
def test_every_curve_is_measured_drawn_and_written(tmp_path: Path) -> None:
    ran = grow("--tiny", "--runs", "2", "--results", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    [written] = tmp_path.glob("growth-*.json")
    curves = {curve["name"]: curve for curve in json.loads(written.read_text("utf-8"))["curves"]}
    assert curves.keys() == FIGURES.keys()
    for name, curve in curves.items():
        assert curve["title"] in ran.stdout
        assert len(curve["points"]) == 2
        for point in curve["points"]:
            assert point["medians"].keys() == FIGURES[name]
            assert all(value > 0 for figure, value in point["medians"].items() if figure != "idle_cpu")
            assert len(point["runs"]) == 2
        picture = written.with_name(f"{written.stem}-{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")


def test_what_cannot_be_done_is_said_in_one_line() -> None:
    ran = grow("--runs", "0")
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].endswith("argument --runs: at least 1")
