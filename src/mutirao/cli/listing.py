"""A table of many things that stays readable on a narrow terminal: it cuts words and leaves columns out, never letters."""

from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from mutirao.cli import render

# What a column that may be cut keeps at least, before others are left out for it.
_ROOM = 18
_NARROWEST = 4


class Listing:
    """Rows of one line each, under a head.

    When they are too wide, the `loose` columns are cut, then the `spare` ones are left out in the order given, and then
    whatever is widest is cut. Columns that are in `wraps` go on in another line instead of being cut.
    """

    def __init__(
        self,
        *columns: str,
        numbers: Iterable[str] = (),
        loose: Iterable[str] = (),
        spare: Iterable[str] = (),
        wraps: Iterable[str] = (),
    ) -> None:
        self._columns: dict[str, list[Text]] = {name: [] for name in columns}
        self._numbers = frozenset(numbers)
        self._loose = frozenset(loose)
        self._spare = tuple(spare)
        self._wraps = frozenset(wraps)

    def add_row(self, *cells: Text | str) -> None:
        for column, cell in zip(self._columns.values(), cells, strict=True):
            column.append(cell if isinstance(cell, Text) else Text(cell))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        widths = self._widths(options.max_width)
        table = render.table()
        for name, width in widths.items():
            wraps = name in self._wraps
            table.add_column(
                name,
                width=width,
                justify="right" if name in self._numbers else "left",
                no_wrap=not wraps,
                overflow="fold" if wraps else "ellipsis",
            )
        for row in zip(*(self._columns[name] for name in widths), strict=True):
            table.add_row(*row)
        yield table

    def _widths(self, width: int) -> dict[str, int]:
        """The columns that are shown, and how wide."""
        wanted = {name: max(map(_cells, [Text(name), *cells])) for name, cells in self._columns.items()}
        widths = {name: min(each, _ROOM) if name in self._loose else each for name, each in wanted.items()}
        for name in self._spare:
            if _total(widths) > width:
                del widths[name]
        while _total(widths) > width and max(widths.values()) > _NARROWEST:
            widths[max(widths, key=widths.__getitem__)] -= 1
        for name in self._loose & widths.keys():
            widths[name] += max(0, min(wanted[name] - widths[name], width - _total(widths)))
        return widths


def _cells(text: Text) -> int:
    return text.cell_len


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + render.GAP * (len(widths) - 1)
