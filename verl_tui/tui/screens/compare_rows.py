"""What the comparison says: figures and settings of several runs side by side, held against the first."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size

from verl_tui.health.finding import Severity
from verl_tui.health.silence import bounded
from verl_tui.indicators import INDICATORS, factor
from verl_tui.metrics import describe
from verl_tui.runs.alignment import Alignment, extreme, recent, seconds_per_step, stops, value
from verl_tui.runs.best import is_better_low
from verl_tui.runs.difference import ABSENT, alike, difference
from verl_tui.runs.identity import identity, said
from verl_tui.runs.remember import while_unchanged
from verl_tui.runs.state import remaining, state
from verl_tui.times import duration
from verl_tui.tui.selection import LETTERS, apart
from verl_tui.tui.widgets.numbers import compact, exact_step
from verl_tui.tui.widgets.palette import RUNS
from verl_tui.tui.widgets.words import middle, printable, wrapped
from verl_tui.tui.widgets.wrap import fit, fit_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.runs.alignment import Stop
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Point, Series
    from verl_tui.tui.view import View
    from verl_tui.tui.widgets.words import Pieces

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
_UNKNOWN = "–"


class Cell(NamedTuple):
    """What is said of one run in one row."""

    text: str = _UNKNOWN
    number: float | None = None
    """What is held against the first run's, None where there is no number."""
    unit: str = ""
    outside: bool | None = None
    """Whether it lies beyond its healthy band, None where it is not judged by a band."""


class Line(NamedTuple):
    """One row of the table."""

    label: str
    cells: tuple[Cell, ...]
    """One for each run that is seen."""
    way: int = 0
    """1 where more is better, -1 where less is, 0 where neither, or where only the healthy band tells."""
    counts: bool = False
    """Whether it counts things: of so few a share says nothing."""
    setting: bool = False
    """Whether it is a setting: what differs from the first run's stands out."""


class Section(NamedTuple):
    """Rows below one heading; without rows, what is said in their place."""

    heading: str
    lines: tuple[Line, ...]
    otherwise: str = ""


class Columns(NamedTuple):
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


# -- what there is ----------------------------------------------------------------------------------------------------


def fit_columns(count: int, width: int, current: int, longest: int = _LABEL) -> Columns:
    """Return which of so many columns are seen: always the first, the current one, and as many as fit.

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
        return Columns(label, size, (0, current), hidden=True) if current else Columns(label, size, (0,))
    first = min(max(1, current - (fitting - 2)), count - fitting + 1)
    return Columns(label, size, (0, *range(first, first + fitting - 1)))


def sections(view: View, runs: Sequence[Run], alignment: Alignment, seen: Sequence[int]) -> list[Section]:
    """Return what is said of the runs in the columns that are seen.

    Args:
        view: What there is.
        runs: All runs that are compared, the baseline first.
        alignment: Up to where each of them counts.
        seen: Indices of the runs to be shown.
    """
    counted = stops(runs, alignment)
    found = [(runs[at], counted[at]) for at in seen]
    # What no run has a word on would only push away what they have.
    told = (line for line in _figures(view, found) if any(cell.text != _UNKNOWN for cell in line.cells))
    return [Section("figures", tuple(told)), _settings(runs, seen)]


def where(runs: Sequence[Run], alignment: Alignment) -> str:
    """Say up to where the runs count."""
    found = stops(runs, alignment)
    if alignment is Alignment.STEP:
        step = next((stop.step for stop in found if stop.step is not None), None)
        return str(alignment.value) if step is None else f"at step {step}"
    if alignment is Alignment.TIME:
        lasted = [stop.elapsed for stop in found if stop.elapsed is not None]
        return f"{duration(max(lasted))} after their start" if lasted else "no times are known"
    return str(alignment.value)


def _figures(view: View, found: Sequence[tuple[Run, Stop]]) -> Iterator[Line]:
    def line(label: str, make: Callable[[Run, Stop], Cell], way: int = 0, *, counts: bool = False) -> Line:
        return Line(label, tuple(make(run, stop) for run, stop in found), way, counts)

    yield line("state", lambda run, _: Cell(state(run, view.now).value))
    yield line("step", _steps)
    yield line("time so far", lambda _, stop: Cell(duration(stop.elapsed)))
    for indicator in ("reward", "validation"):
        low = _lowest(found, indicator)
        way = 0 if indicator == "reward" and not _one_scale(found) else -1 if low else 1
        yield line(f"{indicator}, last", partial(_last, indicator), way)
        yield line(f"{indicator}, best", partial(_best, indicator), way)
        yield line(f"{indicator}, best at step", partial(_best_step, indicator))
    for indicator in ("policy_kl", "reference_kl"):
        label = f"highest {INDICATORS[indicator].label}"
        yield line(label, partial(_peak, view, indicator))
    yield line("throughput", partial(_mean, "throughput"), 1)
    yield line("step time", _step_time, -1)
    yield line("ETA", lambda run, _: Cell(duration(remaining(run, view.now))))
    yield line("findings", lambda run, _: _findings(view, run), -1, counts=True)


def _lowest(found: Sequence[tuple[Run, Stop]], indicator: str) -> bool:
    """Return whether less of an indicator is better, as the first run's key has it."""
    keys = (run.indicators.get(indicator) for run, _ in found)
    key = next((key for key in keys if key is not None), None)
    return key is not None and is_better_low(indicator, key)


def _one_scale(found: Sequence[tuple[Run, Stop]]) -> bool:
    """Return whether rewards can be held against each other: a score from 0 to 1 says nothing beside an open scale."""
    return len({_is_bounded(run) for run, _ in found if run.indicator("reward") is not None}) < 2


@while_unchanged
def _is_bounded(run: Run) -> bool:
    return bounded(run) is not None


def _steps(run: Run, stop: Stop) -> Cell:
    if stop.step is None:
        return Cell()
    total = run.total_steps
    return Cell(exact_step(stop.step) + (f"/{exact_step(total)}" if total and stop.step == run.step else ""))


def _cell(series: Series | None, number: float | None, indicator: str) -> Cell:
    if series is None or number is None:
        return Cell()
    number *= factor(indicator, series.key)
    return Cell(compact(number), number, describe(series.key).unit)


def _last(indicator: str, run: Run, stop: Stop) -> Cell:
    series = run.indicator(indicator)
    return _cell(series, value(series, stop), indicator)


def _top(indicator: str, run: Run, stop: Stop) -> tuple[Series, Point] | None:
    """Return where an indicator was best."""
    series = run.indicator(indicator)
    if series is None:
        return None
    # Of a negated series the lowest is the highest.
    lowest = is_better_low(indicator, series.key) is (factor(indicator, series.key) > 0)
    point = extreme(series, stop, lowest=lowest)
    return (series, point) if point is not None else None


def _best(indicator: str, run: Run, stop: Stop) -> Cell:
    found = _top(indicator, run, stop)
    return _cell(found[0], found[1].value, indicator) if found is not None else Cell()


def _best_step(indicator: str, run: Run, stop: Stop) -> Cell:
    found = _top(indicator, run, stop)
    return Cell(exact_step(found[1].step)) if found is not None else Cell()


def _peak(view: View, indicator: str, run: Run, stop: Stop) -> Cell:
    series = run.indicator(indicator)
    point = extreme(series, stop)
    cell = _cell(series, None if point is None else point.value, indicator)
    band = view.monitor.guide.band(indicator, run.dialect)
    high = band[1] if band is not None else None
    return cell if cell.number is None or high is None else cell._replace(outside=cell.number > high)


def _mean(indicator: str, run: Run, stop: Stop) -> Cell:
    series = run.indicator(indicator)
    return _cell(series, recent(series, stop), indicator)


def _step_time(run: Run, stop: Stop) -> Cell:
    known = _mean("step_time", run, stop)
    seconds = seconds_per_step(run, stop) if known.number is None else None
    return known if seconds is None else Cell(compact(seconds), seconds, "s")


def _findings(view: View, run: Run) -> Cell:
    verdict = view.monitor.verdicts.get(run.name)
    if verdict is None:
        return Cell()
    count = sum(finding.severity > Severity.INFO for finding in view.attention.open(run.name, verdict.findings))
    return Cell(str(count), float(count))


def _settings(runs: Sequence[Run], seen: Sequence[int]) -> Section:
    rows = _differing(_Configs(runs))
    lines = tuple(Line(label, tuple(Cell(_shown(values[at])) for at in seen), setting=True) for label, values in rows)
    if len(runs) == 1:
        return Section("settings that differ", (), "One run alone differs from nothing: select more runs with space.")
    silent = sum(not run.settings for run in runs)
    otherwise = "All settings that are known are the same." if silent < len(runs) - 1 else "No settings are known."
    return Section("settings that differ", lines, otherwise)


class _Configs:
    """Runs with the revisions of their settings: equal to others as long as no setting of a run has changed."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._key = tuple((id(run), run.config.revision) for run in runs)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Configs) and self._key == other._key


@lru_cache(4)
def _differing(configs: _Configs) -> list[tuple[str, tuple[Any, ...]]]:
    """Return in what runs differ: as people put it, then the settings that all of them state."""
    facts = [{fact.label: fact.value for fact in identity(run).facts} for run in configs.runs]
    labels = dict.fromkeys(label for known in facts for label in known)
    told = [(label, tuple(known.get(label, ABSENT) for known in facts)) for label in labels]
    told = [(label, values) for label, values in told if any(not alike(values[0], one) for one in values)]
    known = {key for run in configs.runs for fact in identity(run).facts for key in fact.key.split(", ")}
    rows = difference([run.settings for run in configs.runs])
    return [*told, *((row.key, row.values) for row in rows if not (row.naming or row.silent or row.key in known))]


def _shown(setting: object) -> str:
    if setting is ABSENT:
        return _UNKNOWN
    return "null" if setting is None else said(setting)


# -- rows -------------------------------------------------------------------------------------------------------------


def heading_rows(view: View, runs: Sequence[Run], columns: Columns, current: int) -> list[Pieces]:
    """Return the names of the runs, and below them which one is the baseline."""
    names = apart([run.name for run in runs])
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


def table_rows(found: Sequence[Section], columns: Columns, width: int, *, ascii_only: bool) -> list[Pieces]:
    """Return the rows of the table below its heading."""
    rows: list[Pieces] = []
    for section in found:
        rows += [[]] if rows else []
        rows.append([(fit(section.heading, width, "~" if ascii_only else "…"), "heading")])
        rows += [_row(line, columns, ascii_only=ascii_only) for line in section.lines]
        if not section.lines:
            rows += [[(part, "dim")] for part in wrapped(section.otherwise, width, ascii_only=ascii_only)]
        elif any(line.way or any(cell.outside is not None for cell in line.cells) for line in section.lines):
            better, worse = (_MARKS[word][ascii_only] for word in ("better", "worse"))
            words = f"{better} better, {worse} worse than the baseline; = the same"
            rows += [[(part, "dim")] for part in wrapped(words, width)]
    return rows


def longest(found: Sequence[Section]) -> int:
    """Return the cells of the longest name of a row, with its unit."""
    lines = [line for section in found for line in section.lines]
    return max((cell_len(printable(line.label)) + (len(unit) + 2 if (unit := _unit(line)) else 0) for line in lines),
               default=0)  # fmt: skip


def _unit(line: Line) -> str:
    """Return the unit of a row, empty where the runs' units differ."""
    units = {cell.unit for cell in line.cells if cell.number is not None}
    return next(iter(units)) if len(units) == 1 else ""


def _row(line: Line, columns: Columns, *, ascii_only: bool) -> Pieces:
    unit = _unit(line)
    label = printable(line.label, ascii_only=ascii_only)
    if line.setting:  # of a dotted name the end tells most
        label = fit_left(label, columns.label, "~" if ascii_only else "…")
    told = f"{label}, {unit}" if unit and cell_len(label) + len(unit) + 2 <= columns.label else label
    row: Pieces = [(_sized(told, columns.label, ascii_only=ascii_only), "label")]
    base = line.cells[0]
    for at, cell in zip(columns.of(columns.seen), columns.of(line.cells), strict=True):
        row.append((" " * _GAP, ""))
        room = columns.size - _GAP
        if line.setting:
            role = "differs" if cell.text != base.text else "value"
            row.append((_sized(middle(cell.text, room, ascii_only=ascii_only), room, ascii_only=ascii_only), role))
        else:
            held = base if at and base.unit == cell.unit else None
            row += _compared(cell, held, line, room, ascii_only=ascii_only)
    return row


def _role(cell: Cell, base: Cell | None, way: int) -> str | None:
    """Return whether a figure is better or worse than the baseline's, empty if the same, None where that is open."""
    if base is None or cell.number is None or base.number is None:
        return None
    if way:
        change = cell.number - base.number
        return "" if not change else "better" if change * way > 0 else "worse"
    if cell.outside is base.outside or None in (cell.outside, base.outside):
        return None
    return "worse" if cell.outside else "better"


def _compared(cell: Cell, base: Cell | None, line: Line, room: int, *, ascii_only: bool) -> Pieces:
    """Write a value with its change against the baseline, as far as there is room, in exactly `room` cells."""
    text = printable(cell.text, ascii_only=ascii_only)
    role = _role(cell, base, line.way)
    if role is None or base is None or cell.number is None or base.number is None:
        return [(_sized(text, room, ascii_only=ascii_only), "dim" if cell.text == _UNKNOWN else "value")]
    change = cell.number - base.number
    sign = _MARKS[role][ascii_only] if role else "="
    row = text.ljust(_NUMBER)
    words = [sign]
    if role and room >= _USUAL:
        words += [signed(change)] if room >= _FULL or line.counts else []
        words += [share(change, base.number)] if not line.counts else []
    told = " " + " ".join(words)
    if room < _NUMBER + _MARKED:
        row = text[: max(1, room - _MARKED)].ljust(max(1, room - _MARKED))
    return [(row, "value"), (_sized(told, max(0, room - len(row)), ascii_only=ascii_only), role or "dim")]


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
