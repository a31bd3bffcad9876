"""Lays the comparison out: which columns are seen, the names above them, a row for each figure and
setting.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.compare_figures import UNKNOWN
from verl_tui.rendering.session.selection import LETTERS, without_shared_start
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.printable import middle, printable, wrapped
from verl_tui.rendering.text.run_colours import RUNS
from verl_tui.rendering.text.wrap import fit, fit_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.compare_figures import ComparedCell, ComparisonRow, ComparisonSection
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

T = TypeVar("T")
ROLES = ("heading", "label", "value", "dim", "better", "worse", "differs", "current", *RUNS)
"""What a piece of text is for."""
_MARKS = {"better": ("✓", "o"), "worse": ("✗", "X")}
"""Signs of better and worse, in Unicode and in ASCII."""
_GAP = 2
_NUMBER, _CHANGE, _SHARE = 7, 8, 6
"""Cells of a value, of a difference and of a percentage."""
_MARKED = 2
"""Cells of the sign between them."""
_USUAL = _NUMBER + 1 + _SHARE + _MARKED
_FULL = _USUAL + 1 + _CHANGE
_MOST = 30
"""Cells of a column at most: what belongs together stands together."""
_LABEL = 20
"""Cells of the names of rows where columns want the rest."""


class ComparisonColumns(NamedTuple):
    """Which columns are seen, and how wide they are."""

    label: int
    size: int
    """Cells of a column, with the gap before it."""
    seen: tuple[int, ...]
    """The first one, the baseline, then others from some place on."""
    hidden: bool = False
    """Whether the baseline has no room: others are held against it all the same."""

    def of(self, things: Sequence[T]) -> Sequence[T]:
        """Return those of the columns that have room, of one thing for each column."""
        return things[1:] if self.hidden else things


def fit_columns(count: int, width: int, current: int, longest: int = _LABEL) -> ComparisonColumns:
    """Return which of so many columns are seen: always the first, the current one, and as many as
    fit.

    Args:
        count: How many there are.
        width: Cells of a row.
        current: The one that has to be seen.
        longest: Cells of the longest name of a row, which gets what room the columns leave.
    """
    label = min(_LABEL, max(6, width * 2 // 5))
    room = max(1, width - label)
    size = _FULL + _GAP if count * (_FULL + _GAP) <= room else _USUAL + _GAP
    fitting = max(1, min(count, room // size))
    size = min(_MOST + _GAP, room // fitting)
    label = min(longest, width - size * fitting)
    if fitting == 1:
        return (
            ComparisonColumns(label, size, (0, current), hidden=True)
            if current
            else ComparisonColumns(label, size, (0,))
        )
    first = min(max(1, current - (fitting - 2)), count - fitting + 1)
    return ComparisonColumns(label, size, (0, *range(first, first + fitting - 1)))


def heading_rows(
    view: View, runs: Sequence[Run], columns: ComparisonColumns, current: int
) -> list[Pieces]:
    """Return the names of the runs, and below them which one is the baseline."""
    names = without_shared_start([run.name for run in runs])
    row: Pieces = [(" " * columns.label, "")]
    below: Pieces = [(" " * columns.label, "")]
    for at in columns.of(columns.seen):
        place = view.selection.place(runs[at].name)
        pointer = (">" if view.ascii else "▸") if at == current else " "
        letter = f"{LETTERS[place]} " if place is not None else ""
        room = max(1, columns.size - _GAP - len(letter))
        name = middle(names[at], room, ascii_only=view.ascii)
        row += [(" " + pointer, "current"), (letter, "" if place is None else RUNS[place])]
        row.append((set_cell_size(name, room), "current" if at == current else "label"))
        word = f"against {names[0]}" if columns.hidden else "baseline" if not at else ""
        word = printable(word, ascii_only=view.ascii)
        below.append((" " * _GAP + _sized(word, columns.size - _GAP, ascii_only=view.ascii), "dim"))
    return [row, below]


def table_rows(
    found: Sequence[ComparisonSection], columns: ComparisonColumns, width: int, *, ascii_only: bool
) -> list[Pieces]:
    """Return the rows of the table below its heading."""
    rows: list[Pieces] = []
    for section in found:
        rows += [[]] if rows else []
        rows.append([(fit(section.heading, width, "~" if ascii_only else "…"), "heading")])
        rows += [_row(line, columns, ascii_only=ascii_only) for line in section.lines]
        if not section.lines:
            rows += [
                [(part, "dim")] for part in wrapped(section.otherwise, width, ascii_only=ascii_only)
            ]
        elif any(
            line.way or any(cell.outside is not None for cell in line.cells)
            for line in section.lines
        ):
            better, worse = (_MARKS[word][ascii_only] for word in ("better", "worse"))
            words = f"{better} better, {worse} worse than the baseline; = the same"
            rows += [[(part, "dim")] for part in wrapped(words, width)]
    return rows


def longest(found: Sequence[ComparisonSection]) -> int:
    """Return the cells of the longest name of a row, with its unit."""
    lines = [line for section in found for line in section.lines]
    return max((_label_cells(line) for line in lines), default=0)


def _label_cells(line: ComparisonRow) -> int:
    unit = _unit(line)
    return cell_len(printable(line.label)) + (len(unit) + 2 if unit else 0)


def _unit(line: ComparisonRow) -> str:
    """Return the unit of a row, empty where the runs' units differ."""
    units = {cell.unit for cell in line.cells if cell.number is not None}
    return next(iter(units)) if len(units) == 1 else ""


def _row(line: ComparisonRow, columns: ComparisonColumns, *, ascii_only: bool) -> Pieces:
    unit = _unit(line)
    label = printable(line.label, ascii_only=ascii_only)
    if line.setting:  # of a dotted name the end tells most
        label = fit_left(label, columns.label, "~" if ascii_only else "…")
    told = (
        f"{label}, {unit}" if unit and cell_len(label) + len(unit) + 2 <= columns.label else label
    )
    row: Pieces = [(_sized(told, columns.label, ascii_only=ascii_only), "label")]
    base = line.cells[0]
    for at, cell in zip(columns.of(columns.seen), columns.of(line.cells), strict=True):
        row.append((" " * _GAP, ""))
        room = columns.size - _GAP
        if line.setting:
            role = "differs" if cell.text != base.text else "value"
            row.append(
                (
                    _sized(
                        middle(cell.text, room, ascii_only=ascii_only), room, ascii_only=ascii_only
                    ),
                    role,
                )
            )
        else:
            held = base if at and base.unit == cell.unit else None
            row += _compared(cell, held, line, room, ascii_only=ascii_only)
    return row


def _role(cell: ComparedCell, base: ComparedCell | None, way: int) -> str | None:
    """Return `better` or `worse` than the baseline's, empty if the same, None where that is open.

    What reads the same is called so: a change behind the last digit tells nobody anything.
    """
    if base is None or cell.number is None or base.number is None:
        return None
    if way:
        change = cell.number - base.number
        if not change or cell.text == base.text:
            return ""
        return "better" if change * way > 0 else "worse"
    if cell.outside is base.outside or None in (cell.outside, base.outside):
        return None
    return "worse" if cell.outside else "better"


def _compared(
    cell: ComparedCell,
    base: ComparedCell | None,
    line: ComparisonRow,
    room: int,
    *,
    ascii_only: bool,
) -> Pieces:
    """Write a value with its change against the baseline, in exactly `room` cells."""
    text = printable(cell.text, ascii_only=ascii_only)
    role = _role(cell, base, line.way)
    if role is None or base is None or cell.number is None or base.number is None:
        plain = _sized(text, room, ascii_only=ascii_only)
        return [(plain, "dim" if cell.text == UNKNOWN else "value")]
    words = [_MARKS[role][ascii_only] if role else "="]
    if role and room >= _USUAL:
        change = cell.number - base.number
        words += [signed(change)] if line.counts or room >= _FULL else []
        words += [] if line.counts else [share(change, base.number)]
    value = text.ljust(_NUMBER)
    if room < _NUMBER + _MARKED:
        least = max(1, room - _MARKED)
        value = text[:least].ljust(least)
    rest = max(0, room - len(value))
    return [
        (value, "value"),
        (_sized(f" {' '.join(words)}", rest, ascii_only=ascii_only), role or "dim"),
    ]


def signed(change: float) -> str:
    """Write a difference with its sign."""
    return ("+" if change > 0 else "") + compact(change)


def share(change: float, base: float) -> str:
    """Write a difference as a share of what it is held against, in at most six characters."""
    percent = 100 * change / abs(base) if base else math.nan
    if not math.isfinite(percent):
        return ""
    if abs(percent) >= 1000:
        return ">+999%" if percent > 0 else "<-999%"
    return f"{percent:+.1f}%" if abs(percent) < 99.95 else f"{percent:+.0f}%"


def _sized(text: str, cells: int, *, ascii_only: bool) -> str:
    """Return text on exactly so many cells."""
    return set_cell_size(fit(text, cells, "~" if ascii_only else "…"), max(0, cells))
