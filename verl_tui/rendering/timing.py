"""The timing of a run as rows: parts of a step, progress and ETA, throughput, the newest steps."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.health.finding import Episode, Severity
from verl_tui.ledger import in_words, listed
from verl_tui.rendering.session.snapshot import View, shown_state
from verl_tui.rendering.text.hues import PARTS
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import (
    Pieces,
    TextRows,
    cut,
    fit,
    paragraph,
    printable,
)
from verl_tui.rendering.text.table import WIDEST, TextColumn, stacked, table_rows
from verl_tui.rendering.verdict_row import why_no_step
from verl_tui.runs.time.forecast import (
    next_occasions,
    pace,
    remaining_seconds,
    steps_per_minute,
    usual_times,
)
from verl_tui.runs.time.step_timing import (
    Breakdown,
    SpeedFigure,
    StepPart,
    breakdown,
    generation_latency,
    newest_steps,
    slowdown,
    throughput,
    waiting,
)
from verl_tui.runs.views.state import State, goes_on, state_words
from verl_tui.times import clock_time, duration
from verl_tui.words import behind, figure, percent_done

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.runs.run import Run

_WIDE, _NARROW = 72, 34
"""Widths from which notes and a bar fit, in cells."""
_SOLID = "▆"
"""Sign of every part where colours distinguish them: bars with a gap between the rows."""
_SIGNS = "█▓▄▒▌░"
"""Signs of the parts where colours do not."""
_SMALL = 0.005
"""Share of the step below which a part shares a row with others."""
_SLOWER, _QUICKER = 1.15, 0.87
"""Ratios of a trend from which it is shown."""
_STEPS = 8
"""Newest steps that are drawn one by one."""
_CLOCK = len("14:32")
_NO_PARTS = "The log times no parts of a step"


def timing_rows(view: View, width: int, *, solid: bool = False) -> TextRows:
    """Return the rows of the screen.

    Args:
        view: The state to show.
        width: Most cells a row may take.
        solid: Whether colours alone distinguish the parts of a step.
    """
    run = view.run
    if not run:
        return paragraph("No run yet, so nothing has taken any time.", "dim", width)
    found = breakdown(run)
    signs = _SOLID * len(_SIGNS) if solid else _SIGNS
    rates = [*filter(None, (steps_per_minute(run), generation_latency(run)))]
    parts = (
        _step_parts(run, found, view, width, signs),
        _progress(run, view, width),
        _speeds("throughput", [*rates, *throughput(run, found)], width),
        _speeds("generating and waiting", [*waiting(run, found)], width),
        _step_by_step(run, found, width, signs),
    )
    return [cut(row, width) for row in stacked(parts, apart=True)[0]]


def hours_rows(
    found: Mapping[str, Any] | None, width: int
) -> tuple[TextRows, list[int], list[Episode]]:
    """Return rows on where a run's hours went: below a heading those of each line, and in which
    row and at which step each line begins.
    """
    if not found:
        return [], [], []
    lines = listed(found)
    figures = [
        SpeedFigure(label, one["share"], "share", time)
        for one, (label, time, *_) in lines
    ]
    heading, *begins = _speeds(f"where the {found['unit']} went", figures, width)
    rows, starts = [heading], []
    for row, (_, (*_, note)) in zip(begins, lines, strict=True):
        starts.append(len(rows))
        rows += [row, *paragraph(note, "dim", width, ("  ", ""))]
    for sentence in in_words(found):
        rows += paragraph(sentence, "dim", width)
    begun = [
        Episode(one["finding"] or "", Severity.INFO, one["step"], None, key=key)
        for one, _ in lines
        for key, *_ in [(*one["figures"], None)]
    ]
    return [cut(row, width) for row in rows], starts, begun


def _short_time(seconds: float) -> str:
    """Return a time in three digits: `0.95 s`, `187 s`, `21.4 min`; a duration beyond 2 hours."""
    if seconds >= 7200:
        return duration(seconds)
    if seconds >= 1000:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.{2 - (seconds >= 10) - (seconds >= 100)}f} s"


# -- the parts of a step ---------------------------------------------------------------------------


class _PartRow(NamedTuple):
    """One row of the table of parts."""

    sign: str
    name: str
    seconds: float
    share: float
    trend: float | None
    note: str
    role: str


def _step_parts(
    run: Run, found: Breakdown | None, view: View, width: int, signs: str
) -> Iterator[Pieces]:
    """Yield the table of a step's parts, or why there is none."""
    if not found or not (found.parts or found.key):
        yield [("where a step's time goes", "heading")]
        yield from paragraph(_untimed(run, view), "dim", width)
        return
    where = "where a step's time goes: " if width >= _WIDE else ""
    title = f"{where}mean of steps {found.steps[0]}-{found.steps[-1]}"
    yield [(fit(title, width), "heading")]
    lines = [*_lines(run, found, signs)]
    most = max((line.share for line in lines[1:]), default=1.0)
    columns = [
        TextColumn("", lambda line, _: [(line.sign, line.role)], 1, 8),
        TextColumn("", _part_name, 14, 9, most=WIDEST, gap=1),
        TextColumn("", lambda line, _: [(_short_time(line.seconds), "value")], 8, 6, right=True),
        TextColumn("", lambda line, _: [(f"{line.share:.0%}", "value")], 4, 7, right=True, gap=1),
        TextColumn("", lambda line, n: _bar(line, most, n), 4, 4, most=24),
        TextColumn("", _trend, 7, 5, gap=1),
        TextColumn("", lambda line, n: [(fit(line.note, n), "dim")], 12, 1, most=width),
    ]  # fmt: skip
    yield from table_rows(lines, width, columns)
    if found.overlaps:
        more = _short_time(-found.rest)
        words = (
            f"Some parts run in parallel: together they take {more} more than the step."
        )
        yield from paragraph(words, "warning", width)
    if not found.parts:
        yield from paragraph(f"{_NO_PARTS}.", "dim", width)


def _part_name(line: _PartRow, cells: int) -> Pieces:
    role = "label" if line.role.startswith("part") else line.role
    return [(fit(line.name, cells), role)]


def _bar(line: _PartRow, most: float, cells: int) -> Pieces:
    filled = min(cells, max(1, round(line.share / most * cells)))
    return [(line.sign * filled, line.role)] if line.sign.strip() else []


def _trend(line: _PartRow, _: int) -> Pieces:
    ratio = line.trend
    if ratio is None or _QUICKER < ratio < _SLOWER:
        return []
    return [
        (f"↑ {ratio:.1f}×", "warning") if ratio > 1 else (f"↓ {ratio:.1f}×", "good")
    ]


def _untimed(run: Run, view: View) -> str:
    """Describe the time of a step whose parts are not timed."""
    known = pace(run)
    if known:
        seconds = _short_time(known.seconds)
        return f"{_NO_PARTS}; by the {known.origin} a step takes {seconds}."
    if run.step is None:
        return why_no_step(view, run)
    return "Nothing in the log says how long a step takes."


def _lines(run: Run, found: Breakdown, signs: str) -> Iterator[_PartRow]:
    since = found.steps[0]
    shown = [part for part in found.parts if part.share >= _SMALL][: len(signs)]
    small = found.parts[len(shown) :]
    key, whole = printable(found.key or ""), found.whole
    note = f"{key} {_short_time(found.step)}" if found.step < whole else ""
    trend = slowdown(run, found.key, since)
    yield _PartRow(" ", "step", whole, 1.0, trend, note, "label")
    for sign, role, part in zip(signs, PARTS, shown, strict=False):
        known = (part.seconds, part.share, slowdown(run, part.key, since))
        yield _PartRow(sign, _name(part), *known, _note(part, found, key), role)
    if small:
        seconds, names = sum(one.seconds for one in small), ", ".join(map(_name, small))
        yield _rest(f"{len(small)} more", seconds, whole, names)
    if all((found.key, found.parts, not found.overlaps)):
        yield _rest("unaccounted", max(0.0, found.rest), whole, "no timer")


def _rest(name: str, seconds: float, whole: float, note: str) -> _PartRow:
    share = seconds / whole if whole > 0 else seconds
    return _PartRow(" ", name, seconds, share, None, note, "dim")


def _name(part: StepPart) -> str:
    return printable(part.name.replace("_", " "))


def _note(part: StepPart, found: Breakdown, key: str) -> str:
    words, steps = [], len(found.steps)
    if part.times < steps:
        words.append(f"{_short_time(part.each)} on {part.times} of {steps} steps")
    if not part.inside:
        words.append(f"beside {key}")
    return ", ".join(words)


def _step_by_step(
    run: Run, found: Breakdown | None, width: int, signs: str
) -> Iterator[Pieces]:
    """Draw the newest steps one by one, each part as long as it took; the longest step fills the
    room.
    """
    if not found or len(found.parts) < 2 or width < _NARROW:
        return
    steps = newest_steps(run, found, _STEPS)
    longest = max((sum(seconds) for _, seconds in steps), default=0.0)
    if not 0 < longest < inf:
        return
    yield [("step by step", "heading")]
    small = (_SOLID if signs[0] == _SOLID else ".", "dim")
    pairs = zip(zip(signs, PARTS, strict=True), found.parts, strict=False)
    looks = [look if part.share >= _SMALL else small for look, part in pairs]
    looks += [small] * len(steps[0][1])
    size = len(str(steps[-1][0]))
    room = width - size - 11
    for step, seconds in steps:
        bar = _stacked(seconds, room / longest, looks)
        total = f" {_short_time(sum(seconds))}"
        yield [(f"{str(step).rjust(size)} ", "dim"), *bar, (total, "value")]


def _stacked(
    seconds: Sequence[float], cells_each: float, looks: Sequence[tuple[str, str]]
) -> Pieces:
    """Draw the parts of a step side by side."""
    ends = [0, *(round(taken * cells_each) for taken in accumulate(seconds))]
    return [
        (sign * (end - begin), role)
        for (begin, end), (sign, role) in zip(pairwise(ends), looks, strict=False)
    ]


# -- progress --------------------------------------------------------------------------------------


def _progress(run: Run, view: View, width: int) -> Iterator[Pieces]:
    """Yield the step reached, the time of each kind of step, the ETA, and what is next."""
    total, step = run.total_steps, run.step
    if step is None:
        return
    yield [("progress", "heading")]
    share = (
        f" of {total} ({percent_done(step / total)})" if total else ", total unknown"
    )
    yield [("step ", "label"), (f"{step}{share}", "value")]
    yield from _paces(run)
    for text, role in _end(run, view):
        yield from paragraph(text, role, width)
    if shown_state(view, run) in (State.RUNNING, State.STALLED, State.WAITING):
        words = [f"{name} at step {at}" for name, at in next_occasions(run).items()]
        if words:
            yield [("next ", "label"), (" · ".join(words), "value")]


def _paces(run: Run) -> Iterator[Pieces]:
    """Yield the time of each kind of step, or of a step on average."""
    usual = [
        (one.words, one.seconds, f"median of {one.times}" if one.times > 1 else "seen once")
        for one in usual_times(run)
    ]  # fmt: skip
    if not usual and (known := pace(run)):
        usual = [("a step", known.seconds, known.origin)]
    for kind, seconds, origin in usual:
        time = _short_time(seconds)
        yield [(f"{kind} ", "label"), (time, "value"), (f"  {origin}", "dim")]


def _end(run: Run, view: View) -> Iterator[tuple[str, str]]:
    current, now = shown_state(view, run), view.now
    if current is not State.RUNNING:
        words = f"no ETA: {state_words(run, current)}"
        if current is State.FINISHED:
            words = "finished: nothing to wait for"
        yield words, "dim"
    elif not goes_on(run, now):
        yield "no ETA: no more records are coming", "dim"
    elif (coming := remaining_seconds(run)) is None:
        missing = "number of steps" if run.total_steps is None else "time of a step"
        yield f"no ETA: the {missing} is unknown", "dim"
    else:
        when = clock_time((run.last_record or now) + coming, now)
        at = f", {'at ' * (len(when) == _CLOCK)}{when}" if when else ""
        yield f"done in {duration(coming)}{at}", "good"


# -- throughput ------------------------------------------------------------------------------------


def _speeds(title: str, figures: Sequence[SpeedFigure], width: int) -> Iterator[Pieces]:
    """Yield a heading and one row for each figure; nothing without figures."""
    columns = [
        TextColumn("", lambda one, n: [(fit(printable(one.label), n), "label")], 8, 9, WIDEST),
        TextColumn("", lambda one, _: [(_speed(one), "value")], WIDEST, 10),
        TextColumn("", _key, _WIDE // 3, 1, most=width),
    ]  # fmt: skip
    if figures:
        yield [(title, "heading")]
    yield from table_rows(figures, width, columns)


def _key(figure: SpeedFigure, cells: int) -> Pieces:
    unknown = figure.label.startswith("MFU") and figure.value == 0
    note = "0: unknown model or GPU" if unknown else printable(figure.key)
    return [(fit(note, cells), "dim")]


def _speed(one: SpeedFigure) -> str:
    if one.unit == "s":
        return _short_time(one.value)
    return figure(one.value, one.unit, compact) + behind(one.unit)
