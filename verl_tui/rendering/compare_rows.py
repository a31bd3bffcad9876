"""Rows of the comparison screen: columns that fit, run names above, a row per figure or setting."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.comparison.compare import measured_differently
from verl_tui.comparison.outcomes import (
    FIGURES,
    direction,
    incomparable,
    measure,
    weighty,
)
from verl_tui.comparison.settings import ABSENT, differing_settings
from verl_tui.indicators import factor
from verl_tui.rendering.charts.sparkline import spark_pieces, sparkline
from verl_tui.rendering.session.selection import LETTERS, without_shared_start
from verl_tui.rendering.session.source_status import shown_state
from verl_tui.rendering.text.hues import RUNS
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.printable import middle, printable, wrapped
from verl_tui.rendering.text.table import GAP, FittedTable, TextColumn
from verl_tui.rendering.text.wrap import fit, fit_left
from verl_tui.runs.time.step_clocks import Alignment, stops
from verl_tui.runs.views.identity import short
from verl_tui.runs.views.state import remaining
from verl_tui.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.comparison.outcomes import Figure, FigureKind, MeasuredRun
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

UNKNOWN = "–"
_MARKS = {"better": "✓", "worse": "✗", "": "="}
"""Signs of better, worse and the same."""
_LEGEND = "✓ better, ✗ worse than the baseline; = the same"
_NUMBER = 7
"""Cells of a value."""
_USUAL = _NUMBER + 9
"""Cells of a value with a sign and a percentage."""
_FULL = _USUAL + 9
"""The same with a difference."""
_MOST = 30
"""Largest width of a column, in cells."""
_SPARKS = "reward, own scales"
_WIDEST = 24
"""Most cells of a sparkline."""
_LABEL = 20
"""Width of the row labels while columns need the rest, in cells."""


class ComparedCell(NamedTuple):
    """A value of one run."""

    text: str = UNKNOWN
    number: float | None = None
    """The number compared with the baseline's, None if there is none."""
    unit: str = ""
    outside: bool | None = None
    """True beyond the healthy band, None where no band applies."""


class ComparisonRow(NamedTuple):
    """One row of the table."""

    label: str
    cells: Sequence[ComparedCell]
    """One for each run."""
    better: int = 0
    """1 where more is better, -1 where less is, 0 where neither is, or only the band decides."""
    is_setting: bool = False
    """True for settings; those unlike the baseline's are marked."""
    is_count: bool = False
    """True for small counts, of which percentages mean nothing."""

    @property
    def unit(self) -> str:
        """The unit, empty if the runs' units differ."""
        units = {cell.unit for cell in self.cells if cell.number is not None}
        return units.pop() if len(units) == 1 else ""

    @property
    def is_known(self) -> bool:
        """True if any run has a value."""
        return any(cell.text != UNKNOWN for cell in self.cells)

    @property
    def is_judged(self) -> bool:
        """True if values may be better or worse than the baseline's."""
        return bool(self.better) or any(cell.outside is not None for cell in self.cells)


class ComparisonSection(NamedTuple):
    """Rows below one heading, and a sentence below them."""

    heading: str
    rows: Sequence[ComparisonRow]
    note: str = ""


# -- content ---------------------------------------------------------------------------------------


def sections(
    view: View, runs: Sequence[Run], alignment: Alignment
) -> list[ComparisonSection]:
    """Return the comparison of runs, the baseline first, each up to a point."""
    found = measure(runs, stops(runs, alignment), view.monitor.guide)
    now = "" if alignment is Alignment.END else ", now"
    known = [row for row in _figures(view, found, now) if row.is_known]
    judged = any(row.is_judged for row in known)
    return [
        ComparisonSection("figures", known, _LEGEND if judged else ""),
        *(
            ComparisonSection("measured differently", (), sentence)
            for sentence in measured_differently(runs)
        ),
        _settings(runs),
    ]


def where(runs: Sequence[Run], alignment: Alignment) -> str:
    """Describe the point up to which the runs are compared."""
    if alignment is Alignment.END:
        return str(alignment.value)
    found = stops(runs, alignment)
    if alignment is Alignment.STEP:
        step = next((stop.step for stop in found if stop.step is not None), None)
        return str(alignment.value) if step is None else f"at step {step}"
    lasted = [stop.elapsed for stop in found if stop.elapsed is not None]
    if not lasted:
        return "no times are known"
    return f"{duration(max(lasted))} after their start"


def _figures(
    view: View, found: Sequence[MeasuredRun], now: str
) -> Iterator[ComparisonRow]:
    """Yield the rows on these runs; `now` follows the labels of values at each run's end."""
    yield _texts(f"state{now}", (shown_state(view, one.run).value for one in found))
    yield _texts("step", map(_steps, found))
    yield _texts("time so far", (duration(one.stop.elapsed) for one in found))
    for kind in FIGURES:
        if kind.indicator:
            yield from _of_kind(kind, found)
    ahead = (duration(remaining(one.run, view.now)) for one in found)
    yield _texts(f"ETA{now}", ahead)
    counts = [_findings(view, one.run) for one in found]
    yield ComparisonRow(f"findings{now}", counts, -1, is_count=True)


def _texts(label: str, words: Iterable[str]) -> ComparisonRow:
    return ComparisonRow(label, [ComparedCell(word) for word in words])


def _of_kind(kind: FigureKind, found: Sequence[MeasuredRun]) -> Iterator[ComparisonRow]:
    """Yield a row with a figure, and one with its step if it is the best."""
    figures = [one.figures[kind.id] for one in found]
    better = 0 if incomparable(kind, found) else direction(kind, found)
    yield ComparisonRow(kind.label, [_figure(one, kind) for one in figures], better)
    if kind.of == "best":
        steps = (UNKNOWN if one.step is None else str(one.step) for one in figures)
        yield _texts(f"{kind.label} at step", steps)


def _figure(one: Figure, kind: FigureKind) -> ComparedCell:
    if one.value is None:
        return ComparedCell()
    unit = one.unit or kind.unit
    return ComparedCell(compact(one.value), one.value, unit, one.outside_band)


def _steps(one: MeasuredRun) -> str:
    if one.stop.step is None:
        return UNKNOWN
    total = one.run.total_steps
    shown = f"/{exact_step(total)}" if total and one.stop.step == one.run.step else ""
    return exact_step(one.stop.step) + shown


def _findings(view: View, run: Run) -> ComparedCell:
    verdict = view.monitor.verdicts.get(run.name)
    if verdict is None:
        return ComparedCell()
    count = len(weighty(view.acknowledgements.open(run.name, verdict.primary)))
    return ComparedCell(str(count), float(count))


def _settings(runs: Sequence[Run]) -> ComparisonSection:
    heading = "settings that differ"
    if len(runs) == 1:
        note = "There is only one run, so nothing differs."
        return ComparisonSection(heading, (), note)
    rows = [
        ComparisonRow(
            setting.label,
            [ComparedCell(_shown(value)) for value in setting.values],
            is_setting=True,
        )
        for setting in differing_settings(runs)
    ]
    if rows:
        return ComparisonSection(heading, rows)
    known = sum(bool(run.settings) for run in runs) > 1
    note = "All known settings are the same." if known else "No settings are known."
    return ComparisonSection(heading, rows, note)


def _shown(setting: object) -> str:
    if setting is ABSENT:
        return UNKNOWN
    return "null" if setting is None else short(setting)


# -- columns ---------------------------------------------------------------------------------------


CellWriter = Callable[[int | None, int], "Pieces"]
"""Writes the cell of the run at an index, None for the label, in so many cells."""


def fit_table(
    count: int, width: int, current: int, found: Sequence[ComparisonSection]
) -> FittedTable[CellWriter]:
    """Return the columns that fit, always with the current run and, if two have room, the baseline.

    Args:
        count: Number of runs.
        width: Cells of a row.
        current: Index of the run that must be in sight.
        found: The rows, whose labels get the room that the columns leave.
    """
    labels = [_label(row) for section in found for row in section.rows]
    room = max(1, width - min(_LABEL, max(6, width * 2 // 5)))
    least = _FULL + GAP if count * (_FULL + GAP) <= room else _USUAL + GAP
    fitting = max(1, min(count, room // least))
    size = min(_MOST + GAP, room // fitting)
    label = min(max(map(cell_len, labels), default=0), width - size * fitting)
    columns: list[TextColumn[CellWriter]] = [
        TextColumn("label", lambda line, cells: line(None, cells), max(1, label), 1000)
    ]
    for at in range(count):
        rank = 900 if at == current else 800 if at == 0 else 700 - abs(at - current)
        columns.append(TextColumn(str(at), partial(_call, at=at), size - GAP, rank))
    return FittedTable(columns, width)


def _call(line: CellWriter, cells: int, at: int) -> Pieces:
    return line(at, cells)


# -- rows ------------------------------------------------------------------------------------------


def heading_rows(
    view: View, runs: Sequence[Run], table: FittedTable[CellWriter], current: int
) -> list[Pieces]:
    """Return a row of run names and one that marks the baseline."""
    names = without_shared_start([run.name for run in runs])
    hidden = all(column.title != "0" for column, _ in table.columns)

    def name(at: int | None, cells: int) -> Pieces:
        if at is None:
            return []
        place = view.selection.place(runs[at].name)
        letter = f"{LETTERS[place]} " if place is not None else ""
        pointer, role = ("▸", "current") if at == current else ("", "label")
        text = middle(names[at], max(1, cells - len(letter) - len(pointer)))
        colour = RUNS[place] if place is not None else ""
        return [(pointer, "current"), (letter, colour), (text, role)]

    def baseline(at: int | None, cells: int) -> Pieces:
        words = "baseline" * (at == 0)
        if hidden and at is not None:
            words = f"against {names[0]}"
        return [(fit(printable(words), cells), "dim")]

    return [table.row(name), table.row(baseline)]


def reward_row(
    view: View,
    runs: Sequence[Run],
    table: FittedTable[CellWriter],
    alignment: Alignment,
) -> Pieces:
    """Return a row with a sparkline of each run's reward, each on its own scale, up to the step
    that is compared. Empty where no run has a reward.
    """
    ends = stops(runs, alignment)
    if not any(_spark(run, end.step, 1) for run, end in zip(runs, ends, strict=True)):
        return []

    def spark(at: int | None, cells: int) -> Pieces:
        if at is None:
            return [(_SPARKS, "label")]
        place = view.selection.place(runs[at].name)
        role = RUNS[place] if place is not None else "spark"
        line = _spark(runs[at], ends[at].step, min(cells, _WIDEST))
        return spark_pieces(line, role, broken="worse")

    return table.row(spark)


def _spark(run: Run, step: int | None, cells: int) -> str:
    series = run.present(run.indicators.get("reward"))
    if series is None or step is None or factor("reward", series.key) < 0:
        return ""
    return sparkline(series, cells, ends=(None, step))


def table_rows(
    found: Sequence[ComparisonSection], table: FittedTable[CellWriter], width: int
) -> list[Pieces]:
    """Return the rows of the table below its heading."""
    rows: list[Pieces] = []
    for section in found:
        if rows:
            rows.append([])
        rows.append([(fit(section.heading, width), "heading")])
        rows += [table.row(partial(_cell, row)) for row in section.rows]
        rows += [[(part, "dim")] for part in wrapped(section.note, width)]
    return rows


def _label(row: ComparisonRow) -> str:
    return printable(row.label) + (f", {row.unit}" if row.unit else "")


def _cell(row: ComparisonRow, at: int | None, cells: int) -> Pieces:
    if at is None:
        label = _label(row)
        if row.is_setting:  # the end of a dotted name is the most informative part
            label = fit_left(label, cells)
        return [(label if cell_len(label) <= cells else printable(row.label), "label")]
    cell = row.cells[at]
    if row.is_setting:
        role = "differs" if cell.text != row.cells[0].text else "value"
        return [(middle(cell.text, cells), role)]
    return _value_pieces(row, cell, cells)


def _judged(cell: ComparedCell, base: ComparedCell, better: int) -> str | None:
    """Return how a value is against the baseline's: `better`, `worse`, empty for the same; None
    where nothing can be said. Values that read the same are the same; without a better side only
    the edge of the healthy band is judged.
    """
    if cell.number is None or base.number is None or cell.unit != base.unit:
        return None
    if better:
        if cell.text == base.text:
            return ""
        return "better" if (cell.number - base.number) * better > 0 else "worse"
    if None in (cell.outside, base.outside) or cell.outside is base.outside:
        return None
    return "worse" if cell.outside else "better"


def _value_pieces(row: ComparisonRow, cell: ComparedCell, room: int) -> Pieces:
    """Write a value with its change against the baseline."""
    base = row.cells[0]
    text = printable(cell.text)
    role = None if cell is base else _judged(cell, base, row.better)
    if role is None:
        return [(fit(text, room), "dim" if text == UNKNOWN else "value")]
    cells = max(1, min(max(_NUMBER, len(text)), room - 2))
    words = _change_words(row, cell, role)
    fitting = next((one for one in words if len(one) < room - cells), words[-1])
    return [(text[:cells].ljust(cells), "value"), (f" {fitting}", role or "dim")]


def _change_words(row: ComparisonRow, cell: ComparedCell, role: str) -> list[str]:
    """Return the ways to write a change against the baseline: a sign with a difference and a
    percentage, with one of them, alone.
    """
    mark, base = _MARKS[role], row.cells[0].number
    if not role or cell.number is None or base is None:
        return [mark]
    change = cell.number - base
    difference = ("+" if change > 0 else "") + compact(change)
    percent = "" if row.is_count else percentage(change, base)
    return [
        f"{mark} {difference} {percent}".rstrip(),
        f"{mark} {percent or difference}",
        mark,
    ]


def percentage(change: float, base: float) -> str:
    """Write a difference as a percentage of the baseline's value, in at most six characters."""
    percent = 100 * change / abs(base) if base else math.nan
    if not math.isfinite(percent):
        return ""
    if abs(percent) >= 1000:
        return ">+999%" if percent > 0 else "<-999%"
    return f"{percent:+.1f}%" if abs(percent) < 99.95 else f"{percent:+.0f}%"
