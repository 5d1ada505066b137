"""What of it stands in the docs: the pictures, and the figures between two marks of docs/growth.md."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.growth.curve import Curve
from benchmarks.growth.plot import draw
from benchmarks.growth.report import figure, heading, noise, verdict
from benchmarks.server import machine

DOCS = Path(__file__).parents[2] / "docs"


def write(curves: Sequence[Curve], docs: Path = DOCS) -> None:
    """Curves that were not measured this time keep their pictures and figures."""
    page = docs / "growth.md"
    text = page.read_text("utf-8")
    for curve in curves:
        draw(curve, docs / "images" / f"growth-{curve.name}.png")
        text = _between(text, curve.name, _figures(curve))
    page.write_text(text, "utf-8")


def _between(text: str, name: str, figures: str) -> str:
    begin, end = f"<!-- figures of {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"docs/growth.md lacks the marks {begin.strip()} and {end.strip()}")
    return f"{before}{begin}{figures}{end}{after}"


def _figures(curve: Curve) -> str:
    here = machine()
    rows = [
        f"| {curve.axis} | {' | '.join(map(heading, curve.figures))} | noise |",
        "|" + "---:|" * (len(curve.figures) + 2),
        *(
            f"| {size:,} | {' | '.join(figure(curve.median(name, size)) for name in curve.figures)} | {noise(curve, size)} |"
            for size in curve.points
        ),
    ]
    said = f"{verdict(curve)}. Measured on {here['cores']} cores, {here['processor']}, {here['memory_gb']} GB."
    return "\n".join([*rows, "", said, ""])
