"""The names of a chart's lines at the right of its title, with their values at the cursor."""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.charts.downsample import value_at
from verl_tui.rendering.charts.picture import signs
from verl_tui.rendering.charts.symbols import SYMBOLS, fit
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.units import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
    from verl_tui.rendering.text.piece import Pieces

LEAST_LETTERS = 3
"""Cells of a name that are better than no name."""


def has_several(data: ChartData) -> bool:
    """Return whether a chart has several lines of a kind, which are named without a cursor, too."""
    kinds = [line.kind for line in data.all_lines]
    return len(set(kinds)) < len(kinds)


def names_or_key(
    data: ChartData, cursor: int | None, least: int, room: int
) -> list[Pieces]:
    """Return the names of the lines as long as fit, but of `least` cells; where they need none the
    metric's key.
    """
    if not _names(data, cursor, least):
        if data.title == data.key:
            return []
        return [[(fit(data.key, len(data.key)), "key")]]
    longest = max(cell_len(line.label) for line in data.all_lines)
    sizes = range(max(longest, least), least - 1, -1)
    at = bisect_left(
        sizes, -room, key=lambda cells: -cells_of(_names(data, cursor, cells))
    )
    return [_names(data, cursor, cells) for cells in sizes[at : at + 1]]


def _at(data: ChartData, line: ChartLine, cursor: int | None) -> str:
    """Return a line's value at the cursor."""
    found = value_at(line.points, cursor) if cursor is not None else None
    metric = data.right if line.right and data.right is not None else data
    return f" {in_words(found[1], metric.unit)[0]}" if found else ""


def _names(data: ChartData, cursor: int | None, letters: int) -> Pieces:
    """Write the signs of the lines in their colours, and their names as text, which needs more
    contrast than hues of curves have on every ground.
    """
    if cursor is None and not has_several(data):
        return []
    names: Pieces = []
    # Runs stand in the order of their letters, whichever of them is shown.
    for line, sign in sorted(signs(data), key=lambda pair: pair[0].sign or "~"):
        if not sign:
            continue
        value = (" right" if line.right else "") + _at(data, line, cursor)
        gap = "  " if names else ""
        names.append((gap + sign, line.role))
        names.append((f" {_short(line, letters)}{value}", "value"))
    return names


def _short(line: ChartLine, cells: int) -> str:
    """Return a line's name in little room: names of runs differ at their ends."""
    if line.sign:
        return middle(line.label, cells)
    return fit(line.label, cells)


def runs_at_cursor(
    data: ChartData, width: int, cursor: int | None
) -> tuple[Pieces, Pieces]:
    """Return where the cursor is, and the values of several runs there, as many as fit.

    Both are empty where not even one value fits.
    """
    runs = [line for line in data.lines if line.sign and line.kind == "line"]
    main = data.main
    if cursor is None or main is None or len(runs) < 2:
        return [], []
    runs.sort(key=lambda line: line.sign)
    own = value_at(main.points, cursor)
    at = [(f"@ {data.axis.read(own[0] if own else cursor)}", "cursor")]
    room = width - cell_len(data.title) - cells_of(at) - 4
    named = names_or_key(data, cursor, LEAST_LETTERS, room)
    values = _first_that_fits(
        chain(named, _lettered(runs, main, data.unit, cursor)), room
    )
    if values:
        return (at, values)
    return ([], [])


def _first_that_fits(ways: Iterable[Pieces], room: int) -> Pieces:
    """Return the first that takes no more than so many cells, empty where none does."""
    return next((way for way in ways if cells_of(way) <= room), [])


def _lettered(
    runs: Sequence[ChartLine], main: ChartLine, unit: str, cursor: int
) -> Iterator[Pieces]:
    """Yield the values of the runs behind their letters: of all, then of fewer and fewer."""
    for count in range(len(runs), 0, -1):
        for gap in ("  ", " "):
            yield _lettered_values(runs, main, count, gap, unit, cursor)


def _lettered_values(
    runs: Sequence[ChartLine],
    main: ChartLine,
    count: int,
    gap: str,
    unit: str,
    cursor: int,
) -> Pieces:
    """Write values of so many runs behind their letters, the shown one's among them."""
    kept = [main, *(line for line in runs if line is not main)][:count]
    side: Pieces = []
    for line in (line for line in runs if line in kept):
        found = value_at(line.points, cursor)
        side += [
            (gap if side else "", ""),
            (line.sign, line.role),
            (f" {in_words(found[1], unit)[0] if found else '-'}", "value"),
        ]
    if len(kept) == len(runs):
        return side
    return [*side, (f" {SYMBOLS.ellipsis}", "key")]
