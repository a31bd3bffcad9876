"""Rows of the comparison screen: columns that fit, run names above, a row per figure or setting."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.comparison.compare import measured_differently
from verl_tui.comparison.outcomes import (
    FIGURES,
    Figure,
    FigureKind,
    MeasuredRun,
    direction,
    incomparable,
    measure,
)
from verl_tui.comparison.run_columns import apart, text_of, value_of
from verl_tui.comparison.settings import differing_settings
from verl_tui.comparison.tables import UNKNOWN, setting_text, steps_text
from verl_tui.health.finding import weighty
from verl_tui.indicators import factor
from verl_tui.rendering.charts.sparkline import sparkline
from verl_tui.rendering.session.preferences import USUAL_COLUMNS
from verl_tui.rendering.session.run_order import without_shared_start
from verl_tui.rendering.session.snapshot import View, shown_state
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import (
    Pieces,
    TextRows,
    cells_of,
    fit,
    fit_left,
    middle,
    paragraph,
    printable,
)
from verl_tui.rendering.text.table import GAP, FittedTable, TextColumn
from verl_tui.rendering.verdict_row import open_findings
from verl_tui.runs.time.step_clocks import Alignment, stops
from verl_tui.runs.views.state import state_words, time_left
from verl_tui.times import clock_time, duration
from verl_tui.words import behind, figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.runs.run import Run

_MARKS = {"better": "✓", "worse": "✗", "": "="}
"""Signs of better, worse and the same."""
_LEGEND = "✓ better, ✗ worse than the baseline; = the same"
_MEANS = "means of the last {} values: final ones, throughput, lengths, step times"
_NUMBER = 7
"""Cells of a value."""
_LEAST = _NUMBER + 9
"""The same with a sign and a percentage."""
_MOST = 30
"""Largest width of a column, in cells."""
_WIDEST = 24
"""Most cells of a sparkline."""
_LONG = 1000
_LABEL = 20
"""Width of the row labels while columns need the rest, in cells."""


class _Row(NamedTuple):
    """One row of the table."""

    label: str
    cell: Callable[[int, int], Pieces]
    """Writes what stands in the column of a run, by its index, in so many cells."""
    unit: str = ""
    is_judged: bool = False
    """True if values may be better or worse than the baseline's."""


def comparison(
    view: View,
    runs: Sequence[Run],
    alignment: Alignment,
    width: int,
    current: int,
    *,
    sparks: bool = False,
) -> tuple[TextRows, TextRows]:
    """Return the heading and the rows of a comparison, each run up to a point.

    Args:
        view: The state to show.
        runs: The runs, the baseline first.
        alignment: Up to where they are compared.
        width: Cells of a row.
        current: Index of the run that must be in sight.
        sparks: Whether the course of each run's reward stands in the heading.
    """
    ends = stops(runs, alignment)
    found = measure(runs, ends, view.monitor.guide)
    figures = [*_figures(view, found, "" if alignment is Alignment.END else ", now")]
    settings, note = _settings(runs)
    table = _table(len(runs), width, current, [*figures, *settings])
    above = [*_names(view, runs, current, table)]
    if sparks:
        above += _sparks(view, runs, [end.step for end in ends])
    rows = [_heading("figures"), *map(table.row, figures)]
    if len(runs) > 1:
        rows += paragraph(_MEANS.format(found[0].count), "dim", width)
    if any(row.is_judged for row in figures):
        rows += paragraph(_LEGEND, "dim", width)
    for words in measured_differently(runs):
        rows += [[], _heading("measured differently"), *paragraph(words, "dim", width)]
    rows += [[], _heading("settings that differ"), *map(table.row, settings)]
    return [*map(table.row, above)], [*rows, *paragraph(note, "dim", width)]


def _heading(words: str) -> Pieces:
    return [(words, "heading")]


def where(runs: Sequence[Run], alignment: Alignment) -> str:
    """Describe the point up to which the runs are compared."""
    found = stops(runs, alignment)
    step = next((stop.step for stop in found if stop.step is not None), None)
    if alignment is Alignment.STEP and step is not None:
        return f"at step {step}"
    if alignment is not Alignment.TIME:
        return str(alignment.value)
    lasted = [stop.elapsed for stop in found if stop.elapsed is not None]
    known = f"{duration(max(lasted))} after their start" if lasted else ""
    return known or "no times are known"


def _table(
    count: int, width: int, current: int, rows: Sequence[_Row]
) -> FittedTable[_Row]:
    """Return the columns that fit, always with the current run and, if two have room, the baseline;
    labels get the room that the columns leave.
    """
    least = max(6, min(_LABEL, width - _LEAST - GAP))
    fitting = max(1, min(count, (width - least) // (_LEAST + GAP)))
    most = min(_MOST, (width - least) // fitting - GAP)
    longest = max([cells_of(_label(row, _LONG)) for row in rows], default=0)
    label = min(longest, width - fitting * (most + GAP))
    columns = [TextColumn("label", _label, least, 1000, label)]
    for at in range(count):
        rank = 900 if at == current else 800 if at == 0 else 700 - abs(at - current)
        columns.append(TextColumn(str(at), partial(_cell, at), _LEAST, rank, most))
    return FittedTable(columns, width)


def _label(row: _Row, cells: int) -> Pieces:
    """Write a label with its unit, if both fit; the end of a setting's dotted name says most."""
    label = printable(row.label)
    whole = f"{label},{row.unit}" if row.unit else label
    shorter = (fit_left if "." in label else fit)(label, cells)
    return [(whole if cell_len(whole) <= cells else shorter, "label")]


def _cell(at: int, row: _Row, cells: int) -> Pieces:
    return row.cell(at, cells)


# -- the heading -----------------------------------------------------------------------------------


def _names(
    view: View, runs: Sequence[Run], current: int, table: FittedTable[_Row]
) -> Iterator[_Row]:
    """Yield a row of run names and one that marks the baseline."""
    names = without_shared_start([run.name for run in runs])
    hidden = all(column.title != "0" for column, _ in table.columns)

    def name(at: int, cells: int) -> Pieces:
        letter, colour = view.selection.letter(runs[at].name) or ("", "")
        letter += " " * bool(letter)
        pointer, role = ("▸", "current") if at == current else ("", "label")
        text = middle(names[at], max(1, cells - len(letter) - len(pointer)))
        return [(pointer, "current"), (letter, colour), (text, role)]

    def baseline(at: int, cells: int) -> Pieces:
        words = f"against {names[0]}" if hidden else "baseline" * (at == 0)
        return [(fit(printable(words), cells), "dim")]

    yield _Row("", name)
    yield _Row("", baseline)


def _sparks(
    view: View, runs: Sequence[Run], ends: Sequence[int | None]
) -> Iterator[_Row]:
    """Yield a row with a sparkline of each run's reward, each on its own scale, up to the step that
    is compared; nothing where no run has a reward.
    """

    def spark(at: int, cells: int) -> Pieces:
        run, step = runs[at], ends[at]
        series = run.present(run.indicators.get("reward"))
        if not series or step is None or factor("reward", series.key) < 0:
            return []
        _, role = view.selection.letter(run.name) or ("", "spark")
        cells = min(cells, _WIDEST)
        return sparkline(series, cells, role, broken="worse", ends=(None, step))

    if any(spark(at, 1) for at in range(len(runs))):
        yield _Row("reward, own scales", spark)


# -- settings --------------------------------------------------------------------------------------


def _settings(runs: Sequence[Run]) -> tuple[list[_Row], str]:
    """Return the settings that differ, or why there is none."""
    rows = []
    for setting in differing_settings(runs):
        texts = [*map(setting_text, setting.values)]
        rows.append(_Row(setting.label, partial(_setting, texts)))
    if rows:
        return rows, ""
    if len(runs) == 1:
        return [], "There is only one run, so nothing differs."
    known = sum(bool(run.settings) for run in runs) > 1
    return [], "All known settings are the same." if known else "No settings are known."


def _setting(texts: Sequence[str], at: int, cells: int) -> Pieces:
    return [(middle(texts[at], cells), "differs" if texts[at] != texts[0] else "value")]


# -- figures ---------------------------------------------------------------------------------------


def _figures(view: View, found: Sequence[MeasuredRun], now: str) -> Iterator[_Row]:
    """Yield the rows on these runs, but for those that no run has a value of; `now` follows the
    labels of values at each run's end.
    """
    yield from _chosen(view, found, now)
    runs = [one.run for one in found]
    states = (state_words(run, shown_state(view, run)) for run in runs)
    yield from _texts(f"state{now}", states)
    yield from _texts("step", map(steps_text, found))
    yield from _texts("time so far", (duration(one.stop.elapsed) for one in found))
    for kind in FIGURES:
        if kind.indicator:
            yield from _of_kind(kind, found)
    yield from _texts(f"ETA{now}", (_end(one.run, view.now) for one in found))
    yield from _texts(f"findings{now}", (_found(view, run) for run in runs))


def _found(view: View, run: Run) -> str:
    if run.name not in view.monitor.verdicts:
        return UNKNOWN
    found = weighty(open_findings(view, run))
    return f"{len(found)} ({found[0].severity.word})" if found else "0"


def _end(run: Run, now: float) -> str:
    """Return how long a run takes from now on, and when it ends, as far as that is known."""
    left = time_left(run, now)
    if left is None:
        return UNKNOWN
    return f"{duration(left)}, {clock_time(now + left, now)}"


def _chosen(view: View, found: Sequence[MeasuredRun], now: str) -> Iterator[_Row]:
    """Yield the columns that the user has chosen for the list of runs."""
    runs = [one.run for one in found]
    chosen = (one for one in view.listing.kept.run_columns if one not in USUAL_COLUMNS)
    for title in apart(chosen, runs):
        values = (value_of(title, run, view.moment) for run in runs)
        yield from _texts(title + now, (text_of(one) or UNKNOWN for one in values))


def _of_kind(kind: FigureKind, found: Sequence[MeasuredRun]) -> Iterator[_Row]:
    """Yield a row with a figure, and one with its step if it is the best."""
    known = [one.figures[kind.id] for one in found]
    figures = [one._replace(unit=one.unit or kind.unit) for one in known]
    better = 0 if incomparable(kind, found) else direction(kind, found)
    yield from _values(kind.label, figures, better)
    if kind.of == "best":
        steps = (UNKNOWN if one.step is None else str(one.step) for one in figures)
        yield from _texts(f"{kind.label} at step", steps)


def _texts(label: str, words: Iterable[str]) -> Iterator[_Row]:
    texts = [*map(printable, words)]
    if {*texts} != {UNKNOWN}:
        yield _Row(label, partial(_text, texts))


def _text(texts: Sequence[str], at: int, cells: int) -> Pieces:
    text = texts[at]
    return [(fit(text, cells), "dim" if text == UNKNOWN else "value")]


def _values(label: str, values: Sequence[Figure], better: int) -> Iterator[_Row]:
    """Yield a row of values, nothing without any.

    Args:
        label: What they are.
        values: One for each run.
        better: 1 where more is better, -1 where less is, 0 where neither is, or only the band
            decides.
    """
    texts = [*map(_number, values)]
    units = {one.unit or "" for one in values if one.value is not None}
    judged = bool(better) or any(one.outside_band is not None for one in values)

    def cell(at: int, room: int) -> Pieces:
        one, base = values[at], values[0]
        role = _judged(one, base, better) if at else None
        if role is None:
            return _text(texts, at, room)
        cells = max(1, min(max(_NUMBER, len(texts[at])), room - 2))
        mark = f" {_MARKS[role]}"
        if role and one.value is not None and base.value is not None:
            change = _change(one.value - base.value, base.value)
            mark += f" {change}" * (len(mark) + 1 + len(change) <= room - cells)
        return [(texts[at][:cells].ljust(cells), "value"), (mark, role or "dim")]

    if units:
        unit = units.pop() if len(units) == 1 else ""
        yield _Row(label, cell, behind(unit), is_judged=judged)


def _number(one: Figure) -> str:
    return UNKNOWN if one.value is None else figure(one.value, one.unit or "", compact)


def _judged(one: Figure, base: Figure, better: int) -> str | None:
    """Return how a value is against the baseline's: `better`, `worse`, empty for the same; None
    where nothing can be said. Values that read the same are the same; without a better side only
    the edge of the healthy band is judged.
    """
    if one.value is None or base.value is None or one.unit != base.unit:
        return None
    if better:
        if compact(one.value) == compact(base.value):
            return ""
        return "better" if (one.value - base.value) * better > 0 else "worse"
    outside, before = one.outside_band, base.outside_band
    if None in (outside, before) or outside is before:
        return None
    return "worse" if outside else "better"


def _change(change: float, base: float) -> str:
    """Write a change as a percentage of the baseline's value, or where that means nothing as a
    number, in at most eight characters.
    """
    percent = 100 * change / abs(base) if base else math.nan
    if not math.isfinite(percent):
        return ("+" if change > 0 else "") + compact(change)
    if abs(percent) >= 1000:
        return ">+999%" if percent > 0 else "<-999%"
    return f"{percent:+.1f}%" if abs(percent) < 99.95 else f"{percent:+.0f}%"
