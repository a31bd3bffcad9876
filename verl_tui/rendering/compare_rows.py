"""Rows of the comparison screen: columns that fit, run names above, a row per figure or setting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size

from verl_tui.indicators import factor
from verl_tui.rendering.charts.sparkline import spark_pieces, sparkline
from verl_tui.rendering.compare_figures import UNKNOWN
from verl_tui.rendering.session.selection import LETTERS, without_shared_start
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.printable import middle, printable, wrapped
from verl_tui.rendering.text.run_colours import RUNS
from verl_tui.rendering.text.wrap import fit, fit_left
from verl_tui.runs.views.alignment import stops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.compare_figures import (
        ComparedCell,
        ComparisonRow,
        ComparisonSection,
    )
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.views.alignment import Alignment

T = TypeVar("T")
_MARKS = {"better": "✓", "worse": "✗"}
"""Signs of better and worse."""
_GAP = 2
_NUMBER, _CHANGE, _SHARE = 7, 8, 6
"""Cells of a value, of a difference and of a percentage."""
_MARKED = 2
"""Cells of the sign between them."""
_USUAL = _NUMBER + 1 + _SHARE + _MARKED
_FULL = _USUAL + 1 + _CHANGE
_MOST = 30
"""Largest width of a column, in cells."""
_SPARKS = "reward, own scales"
_WIDEST = 24
"""Most cells of a sparkline."""
_LABEL = 20
"""Width of the row labels while columns need the rest, in cells."""


class ComparisonColumns(NamedTuple):
    """The columns in sight and their widths."""

    label: int
    size: int
    """Cells of a column, with the gap before it."""
    seen: tuple[int, ...]
    """Indices of the runs: the baseline, then consecutive others."""
    hidden: bool = False
    """True if the baseline has no room; the others are still compared with it."""

    def of(self, things: Sequence[T]) -> Sequence[T]:
        """Return the things of the columns that have room, given one for each in `seen`."""
        return things[1:] if self.hidden else things


def fit_columns(
    count: int, width: int, current: int, longest: int = _LABEL
) -> ComparisonColumns:
    """Return the columns that fit, always with the baseline and the current one.

    Args:
        count: Number of runs.
        width: Cells of a row.
        current: Index of the run that must be in sight.
        longest: Cells of the longest row label, which gets the room that the columns leave.
    """
    label = min(_LABEL, max(6, width * 2 // 5))
    room = max(1, width - label)
    size = _FULL + _GAP if count * (_FULL + _GAP) <= room else _USUAL + _GAP
    fitting = max(1, min(count, room // size))
    size = min(_MOST + _GAP, room // fitting)
    label = min(longest, width - size * fitting)
    if fitting == 1:
        return ComparisonColumns(
            label, size, (0, current) if current else (0,), bool(current)
        )
    first = min(max(1, current - (fitting - 2)), count - fitting + 1)
    return ComparisonColumns(label, size, (0, *range(first, first + fitting - 1)))


def heading_rows(
    view: View, runs: Sequence[Run], columns: ComparisonColumns, current: int
) -> list[Pieces]:
    """Return a row of run names and one that marks the baseline."""
    names = without_shared_start([run.name for run in runs])
    row: Pieces = [(" " * columns.label, "")]
    below: Pieces = [(" " * columns.label, "")]
    for at in columns.of(columns.seen):
        place = view.selection.place(runs[at].name)
        letter, colour = (
            (f"{LETTERS[place]} ", RUNS[place]) if place is not None else ("", "")
        )
        pointer, role = ("▸", "current") if at == current else (" ", "label")
        room = max(1, columns.size - _GAP - len(letter))
        name = middle(names[at], room)
        row += [
            (" " + pointer, "current"),
            (letter, colour),
            (set_cell_size(name, room), role),
        ]
        word = "baseline" if at == 0 else ""
        word = printable(f"against {names[0]}" if columns.hidden else word)
        below.append((" " * _GAP + _sized(word, columns.size - _GAP), "dim"))
    return [row, below]


def reward_row(
    view: View, runs: Sequence[Run], columns: ComparisonColumns, alignment: Alignment
) -> Pieces:
    """Return a row with a sparkline of each run's reward, each on its own scale, up to the step
    that is compared. Empty where no run in sight has a reward.
    """
    ends = stops(runs, alignment)
    row: Pieces = [(_sized(_SPARKS, columns.label), "label")]
    for at in columns.of(columns.seen):
        room = columns.size - _GAP
        place = view.selection.place(runs[at].name)
        role = RUNS[place] if place is not None else "spark"
        cells = min(room - 1, _WIDEST)
        line = _spark(runs[at], ends[at].step, cells)
        row.append((" " * _GAP, ""))
        row += spark_pieces(line, role, broken="worse")
        row.append((" " * (room - len(line)), ""))
    if not any(text.strip() for text, _ in row[1:]):
        return []
    return row


def _spark(run: Run, step: int | None, cells: int) -> str:
    series = run.present(run.indicators.get("reward"))
    if series is None or step is None or factor("reward", series.key) < 0:
        return ""
    return sparkline(series, cells, ends=(None, step))


def table_rows(
    found: Sequence[ComparisonSection], columns: ComparisonColumns, width: int
) -> list[Pieces]:
    """Return the rows of the table below its heading."""
    rows: list[Pieces] = []
    for section in found:
        if rows:
            rows.append([])
        rows.append([(fit(section.heading, width), "heading")])
        rows += [_row(line, columns) for line in section.lines]
        note = _legend(section) if section.lines else section.otherwise
        rows += [[(part, "dim")] for part in wrapped(note, width)]
    return rows


def _legend(section: ComparisonSection) -> str:
    """Explain the marks of better and worse, if the section has any."""
    if not any(_is_judged(line) for line in section.lines):
        return ""
    better, worse = _MARKS["better"], _MARKS["worse"]
    return f"{better} better, {worse} worse than the baseline; = the same"


def _is_judged(line: ComparisonRow) -> bool:
    return line.better != 0 or any(cell.outside is not None for cell in line.cells)


def longest(found: Sequence[ComparisonSection]) -> int:
    """Return the width of the longest row label with its unit, in cells."""
    lines = [line for section in found for line in section.lines]
    return max((_label_cells(line) for line in lines), default=0)


def _label_cells(line: ComparisonRow) -> int:
    unit = _unit(line)
    return cell_len(printable(line.label)) + (len(unit) + 2 if unit else 0)


def _unit(line: ComparisonRow) -> str:
    """Return the unit of a row, empty if the runs' units differ."""
    units = {cell.unit for cell in line.cells if cell.number is not None}
    if len(units) != 1:
        return ""
    return next(iter(units))


def _row(line: ComparisonRow, columns: ComparisonColumns) -> Pieces:
    unit = _unit(line)
    label = printable(line.label)
    if line.is_setting:  # the end of a dotted name is the most informative part
        label = fit_left(label, columns.label)
    if unit and cell_len(label) + len(unit) + 2 <= columns.label:
        label = f"{label}, {unit}"
    row: Pieces = [(_sized(label, columns.label), "label")]
    base = line.cells[0]
    room = columns.size - _GAP
    cells = columns.of(line.cells)
    for at, cell in zip(columns.of(columns.seen), cells, strict=True):
        row.append((" " * _GAP, ""))
        if line.is_setting:
            text = middle(cell.text, room)
            role = "differs" if cell.text != base.text else "value"
            row.append((_sized(text, room), role))
        else:
            baseline = base if at and base.unit == cell.unit else None
            row += _value_pieces(cell, baseline, line, room)
    return row


class _Change(NamedTuple):
    """A value's change against the baseline."""

    role: str
    """`better`, `worse`, or empty for no change."""
    absolute: float
    base: float


def _change(
    cell: ComparedCell, base: ComparedCell | None, better: int
) -> _Change | None:
    """Return the change against the baseline, None if it cannot be judged.

    Values that read the same count as unchanged.
    """
    if base is None or cell.number is None or base.number is None:
        return None
    change = cell.number - base.number
    if not better:
        role = _band_role(cell.outside, base.outside)
        if not role:
            return None
        return _Change(role, change, base.number)
    if not change or cell.text == base.text:
        return _Change("", change, base.number)
    return _Change("better" if change * better > 0 else "worse", change, base.number)


def _band_role(outside: bool | None, base_outside: bool | None) -> str:
    """Judge a change across the edge of the healthy band, empty if there is none."""
    if outside is None or base_outside is None or outside is base_outside:
        return ""
    return "worse" if outside else "better"


def _value_pieces(
    cell: ComparedCell, base: ComparedCell | None, line: ComparisonRow, room: int
) -> Pieces:
    """Write a value with its change against the baseline, in exactly `room` cells."""
    text = printable(cell.text)
    change = _change(cell, base, line.better)
    if change is None:
        plain = _sized(text, room)
        return [(plain, "dim" if cell.text == UNKNOWN else "value")]
    value = text.ljust(_NUMBER)
    if room < _NUMBER + _MARKED:
        least = max(1, room - _MARKED)
        value = text[:least].ljust(least)
    words = _change_words(change, room, is_count=line.is_count)
    rest = max(0, room - len(value))
    return [(value, "value"), (_sized(f" {words}", rest), change.role or "dim")]


def _change_words(change: _Change, room: int, *, is_count: bool) -> str:
    """Write a change as a mark, a difference and a percentage, as far as there is room."""
    if not change.role:
        return "="
    words = [_MARKS[change.role]]
    if room >= _USUAL and (is_count or room >= _FULL):
        words.append(signed(change.absolute))
    if room >= _USUAL and not is_count:
        words.append(percentage(change.absolute, change.base))
    return " ".join(words)


def signed(change: float) -> str:
    """Write a difference with its sign."""
    return ("+" if change > 0 else "") + compact(change)


def percentage(change: float, base: float) -> str:
    """Write a difference as a percentage of the baseline's value, in at most six characters."""
    percent = 100 * change / abs(base) if base else math.nan
    if not math.isfinite(percent):
        return ""
    if abs(percent) >= 1000:
        return ">+999%" if percent > 0 else "<-999%"
    return f"{percent:+.1f}%" if abs(percent) < 99.95 else f"{percent:+.0f}%"


def _sized(text: str, cells: int) -> str:
    """Return text padded or cut to exactly `cells` cells."""
    return set_cell_size(fit(text, cells), max(0, cells))
