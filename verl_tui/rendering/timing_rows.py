"""Rows of the timing screen: parts of a step, progress and ETA, throughput, the newest steps."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.session.shown_state import shown_state
from verl_tui.rendering.text.numbers import compact, percent_done
from verl_tui.rendering.text.part_colours import PARTS
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut, printable, wrapped
from verl_tui.rendering.text.wrap import ellipsis, fit
from verl_tui.runs.time.forecast import (
    NextOccasions,
    next_occasions,
    remaining_steps,
    usual_times,
)
from verl_tui.runs.time.pace import pace
from verl_tui.runs.time.rates import rates
from verl_tui.runs.time.step_timing import breakdown, history
from verl_tui.runs.time.throughput import bubble, throughput, waiting
from verl_tui.runs.views.state import State, goes_on, is_evaluation
from verl_tui.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Breakdown, StepPart
    from verl_tui.runs.time.throughput import SpeedFigure

_SIGNS, _ASCII_SIGNS = "█▓▄▒▌░", "#%=+o:"
"""Signs of the parts where colours do not tell them apart."""
_SOLID = "▆"
"""Sign of every part where they do: bars with a gap between the rows."""
ROLES = (
    "heading",
    "label",
    "value",
    "dim",
    "good",
    "warning",
    *PARTS,
)
"""Roles of the pieces of text."""
_SMALL = 0.005
"""Share of the step below which a part shares a row with others."""
_SLOWER, _QUICKER = 1.15, 0.87
"""Ratios of a trend from which on it is shown."""
_WIDE, _NARROW = 72, 34
"""Widths from which on notes and a bar fit, in cells."""
_STEPS = 8
"""Newest steps that are drawn one by one."""
_CALLS = "profiling/"
_WEEK = 6 * 86400.0


def timing_rows(view: View, width: int, *, solid: bool = False) -> list[Pieces]:
    """Return the rows of the screen.

    Args:
        view: The state to show.
        width: Most cells a row may take.
        solid: Whether colours alone tell the parts of a step apart.
    """
    run = view.run
    if run is None:
        return [
            [(line, "dim")] for line in wrapped("No run yet, so nothing has taken any time.", width)
        ]
    found = breakdown(run)
    signs = _SOLID * len(_SIGNS) if solid else _SIGNS
    if view.ascii_only:
        signs = _ASCII_SIGNS
    parts = (
        _where(run, found, view, width, signs),
        _progress(run, view, width),
        _figures(
            "throughput", [*rates(run), *throughput(run, found)], width, ascii_only=view.ascii_only
        ),
        _figures("generating and waiting", _waits(run, found), width, ascii_only=view.ascii_only),
        _each_step(run, found, width, signs),
    )
    rows: list[Pieces] = []
    for part in filter(None, map(list, parts)):
        if rows:
            rows.append([])
        rows += part
    mark = ellipsis(ascii_only=view.ascii_only)
    return [cut(row, width, mark) for row in rows]


def _heading(words: str) -> Pieces:
    return [(words, "heading")]


# -- where the time goes ---------------------------------------------------------------------------


class _PartRow(NamedTuple):
    """One row of the table of parts."""

    sign: str
    name: str
    seconds: float
    share: float
    trend: float | None
    note: str
    role: str


def _where(
    run: Run, found: Breakdown | None, view: View, width: int, signs: str
) -> Iterator[Pieces]:
    ascii_only = view.ascii_only
    if found is None or not (found.parts or found.key):
        yield _heading("where a step's time goes")
        yield from _wrapped(_untimed(run, view), "dim", width)
        return
    where = "where a step's time goes: " if width >= _WIDE else ""
    heading = f"{where}mean of steps {found.steps[0]}-{found.steps[-1]}"
    yield _heading(fit(heading, width, ellipsis(ascii_only=ascii_only)))
    yield from _table(list(_lines(found, signs)), width, ascii_only=ascii_only)
    if found.overlaps:
        more = _seconds(-found.rest)
        words = f"Some parts run in parallel: together they take {more} more than the step."
        yield from _wrapped(words, "warning", width)
    if not found.parts:
        yield from _wrapped(f"{_no_parts(run)}.", "dim", width)


def _table(lines: Sequence[_PartRow], width: int, *, ascii_only: bool) -> Iterator[Pieces]:
    longest = max(cell_len(line.name) for line in lines)
    name = min(longest, max(6, width - (24 if width >= _NARROW else 8)))
    most = max((line.share for line in lines[1:]), default=1.0)
    for line in lines:
        yield _table_row(line, name, most, width, ascii_only=ascii_only)


def _no_parts(run: Run) -> str:
    """Say that the log has no timers, or none that parts of a step could be made of: TRL's are of
    single calls, several in a step, within each other.
    """
    if any(key.startswith(_CALLS) for key in run.keys):
        return f"The log times single calls ({_CALLS}…), no parts of a step"
    return "The log times no parts of a step"


def _untimed(run: Run, view: View) -> str:
    """Describe the time of a step whose parts are not timed."""
    known = pace(run)
    if known is not None:
        seconds = _seconds(known.seconds)
        return f"{_no_parts(run)}; by the {known.origin} a step takes {seconds}."
    if run.step is None:
        return _stepless(run, view)
    return "Nothing in the log says how long a step takes."


def _wrapped(text: str, role: str, width: int) -> list[Pieces]:
    return [[(line, role)] for line in wrapped(text, width)]


def _stepless(run: Run, view: View) -> str:
    """Say why there is no step."""
    if is_evaluation(run):
        return "An evaluation makes no steps."
    over = shown_state(view, run) in (State.FINISHED, State.CRASHED, State.ENDED)
    return "It ended before its first step." if over else "No step yet."


def _lines(found: Breakdown, signs: str) -> Iterator[_PartRow]:
    shown = [part for part in found.parts if part.share >= _SMALL][: len(signs)]
    note = f"{printable(found.key)} {_seconds(found.step)}" if found.step < found.whole else ""
    yield _PartRow(" ", "step", found.whole, 1.0, found.trend, note, "label")
    for at, (sign, part) in enumerate(zip(signs, shown, strict=False)):
        note = _note(part, found)
        yield _PartRow(sign, _name(part), part.seconds, part.share, part.trend, note, PARTS[at])
    small = found.parts[len(shown) :]
    whole = found.whole if found.whole > 0 else 1.0
    if small:
        seconds = sum(part.seconds for part in small)
        names = ", ".join(map(_name, small))
        yield _PartRow(" ", f"{len(small)} more", seconds, seconds / whole, None, names, "dim")
    if not found.overlaps and _is_partly_timed(found):
        rest = max(0.0, found.rest)
        yield _PartRow(" ", "unaccounted", rest, rest / whole, None, "no timer", "dim")


def _is_partly_timed(found: Breakdown) -> bool:
    return bool(found.key and found.parts)


def _name(part: StepPart) -> str:
    return printable(part.name.replace("_", " "))


def _note(part: StepPart, found: Breakdown) -> str:
    words = []
    if part.times < len(found.steps):
        words.append(f"{_seconds(part.each)} on {part.times} of {len(found.steps)} steps")
    if not part.inside:
        words.append(f"beside {printable(found.key)}")
    return ", ".join(words)


def _table_row(line: _PartRow, name: int, most: float, width: int, *, ascii_only: bool) -> Pieces:
    share = f"{line.share:.0%}".rjust(4)
    label = fit(line.name, name)
    role = "label" if line.role.startswith("part") else line.role
    row: Pieces = [(f"{line.sign} ", line.role), (label + " " * (name - cell_len(label)), role)]
    if width < _NARROW:
        return [*row, (share, "value")]
    row += [(_seconds(line.seconds).rjust(8), "value"), (share.rjust(5), "value"), (" ", "")]
    trend, tone = _trend(line.trend, ascii_only=ascii_only)
    room = width - cells_of(row) - 8
    bar = max(0, min(24, room // 2 if width >= _WIDE else room))
    filled = min(bar, max(1, round(line.share / most * bar))) if line.sign.strip() else 0
    row += [
        (line.sign * filled, line.role),
        (" " * (bar - filled), ""),
        (f" {trend}".ljust(8), tone),
    ]
    left = width - cells_of(row)
    if width >= _WIDE:
        row.append((fit(line.note, left, ellipsis(ascii_only=ascii_only)), "dim"))
    return row


def _trend(ratio: float | None, *, ascii_only: bool) -> tuple[str, str]:
    if ratio is None or _QUICKER < ratio < _SLOWER:
        return "", "dim"
    up, down = ("^", "v") if ascii_only else ("↑", "↓")
    return f"{up if ratio > 1 else down} {ratio:.1f}×", "warning" if ratio > 1 else "good"


def _each_step(run: Run, found: Breakdown | None, width: int, signs: str) -> Iterator[Pieces]:
    """Draw the newest steps one by one, each part as long as it took."""
    if found is None or len(found.parts) < 2 or width < _NARROW:
        return
    steps = history(run, found, _STEPS)
    longest = max((sum(seconds) for _, seconds in steps), default=0.0)
    if not 0 < longest < inf:
        return
    yield _heading("step by step")
    small = (_SOLID if signs[0] == _SOLID else ".", "dim")
    drawn = [
        (sign, role) if part.share >= _SMALL else small
        for sign, role, part in zip(signs, PARTS, found.parts, strict=False)
    ]
    size = len(str(steps[-1][0]))
    room = width - size - 11
    for step, seconds in steps:
        bar = _stacked(seconds, longest, room, [*drawn, small])
        total = f" {_seconds(sum(seconds))}"
        yield [(f"{str(step).rjust(size)} ", "dim"), *bar, (total, "value")]


def _stacked(
    seconds: Sequence[float], longest: float, room: int, signs: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Draw the parts of a step side by side, those behind the last sign with that; the longest step
    fills the room.
    """
    row: list[tuple[str, str]] = []
    drawn, taken = 0, 0.0
    for at, part in enumerate(seconds):
        taken += part
        cells = round(taken / longest * room) - drawn
        drawn += cells
        sign, role = signs[min(at, len(signs) - 1)]
        row.append((sign * cells, role))
    return row


# -- progress --------------------------------------------------------------------------------------


def _progress(run: Run, view: View, width: int) -> Iterator[Pieces]:
    total, step = run.total_steps, run.step
    yield _heading("progress")
    if step is None:
        yield [(_stepless(run, view).rstrip(".").lower(), "dim")]
        return
    share = f" of {total} ({percent_done(step / total)})" if total else ", total unknown"
    yield [("step ", "label"), (f"{step}{share}", "value")]
    yield from _paces(run)
    for text, role in _end(run, view):
        yield from _wrapped(text, role, width)
    if shown_state(view, run) in (State.RUNNING, State.STALLED, State.WAITING):
        yield from _next(next_occasions(run))


def _paces(run: Run) -> Iterator[Pieces]:
    """Yield the time of each kind of step, or of a step on average."""
    for usual in usual_times(run):
        seconds, times = _seconds(usual.seconds), f"  {_times(usual.times)}"
        yield [(f"{usual.kind.words} ", "label"), (seconds, "value"), (times, "dim")]
    if not usual_times(run) and (known := pace(run)) is not None:
        seconds, origin = _seconds(known.seconds), f"  {known.origin}"
        yield [("a step ", "label"), (seconds, "value"), (origin, "dim")]


def _next(coming: NextOccasions) -> Iterator[Pieces]:
    """Yield the steps of the next validation and the next checkpoint."""
    steps = zip(coming._fields, coming, strict=True)
    words = [f"{name} at step {at}" for name, at in steps if at is not None]
    if words:
        yield [("next ", "label"), (" · ".join(words), "value")]


def _times(count: int) -> str:
    return f"median of {count}" if count > 1 else "seen once"


def _end(run: Run, view: View) -> Iterator[tuple[str, str]]:
    current, now = shown_state(view, run), view.now
    if current is not State.RUNNING:
        outlook = "nothing to wait for" if current is State.FINISHED else "no ETA"
        yield f"{current.value}: {outlook}", "dim"
        return
    if not goes_on(run, now):
        yield "no ETA: no more records are coming", "dim"
        return
    coming = remaining_steps(run)
    if coming is None:
        missing = "number of steps" if run.total_steps is None else "time of a step"
        yield f"no ETA: the {missing} is unknown", "dim"
        return
    end = (run.last_record or now) + coming.seconds
    yield f"done in {duration(coming.seconds)}{_at(end, now)}", "good"
    if len(coming.kinds) > 1:
        kinds = (
            f"{round(count)} × {_seconds(usual.seconds)} {_extra(usual.kind.words)}"
            for usual, count in coming.kinds
        )
        yield f"{coming.steps} steps ahead: {', '.join(kinds)}", "dim"


def _extra(words: str) -> str:
    return words.removeprefix("a ").removeprefix("plain step").removeprefix("step ") or "plain"


def _at(moment: float, now: float) -> str:
    """Return the local time of a moment, with as much of the date as needed."""
    try:
        then = datetime.fromtimestamp(moment)  # noqa: DTZ006 - the reader's own clock
        today = datetime.fromtimestamp(now)  # noqa: DTZ006
    except (OverflowError, OSError, ValueError):
        return ""
    if then.date() == today.date():
        return f", at {then:%H:%M}"
    return f", {then:%a %H:%M}" if moment - now < _WEEK else f", {then:%d %b %H:%M}"


# -- figures ---------------------------------------------------------------------------------------


def _waits(run: Run, found: Breakdown | None) -> list[SpeedFigure]:
    share = bubble(run, found) if found is not None else None
    return [*([share] if share is not None else []), *waiting(run, found)]


def _figures(
    heading: str, figures: Sequence[SpeedFigure], width: int, *, ascii_only: bool
) -> Iterator[Pieces]:
    if not figures:
        return
    yield _heading(heading)
    label = min(max(len(figure.label) for figure in figures), max(8, width - 12))
    value = max(len(_value(figure)) for figure in figures)
    for figure in figures:
        row: Pieces = [
            (fit(printable(figure.label), label).ljust(label + 2), "label"),
            (_value(figure).ljust(value), "value"),
        ]
        if width >= _WIDE:
            if figure.label.startswith("MFU") and figure.value == 0:
                note = "0: unknown model or GPU"
            else:
                note = printable(figure.key)
            left = width - cells_of(row) - 2
            row.append((f"  {fit(note, left, '~' if ascii_only else '…')}", "dim"))
        yield row


def _value(figure: SpeedFigure) -> str:
    if figure.unit == "share":
        return f"{figure.value:.1%}"
    if figure.unit == "s":
        return _seconds(figure.value)
    return f"{compact(figure.value)} {figure.unit}".rstrip()


def _seconds(seconds: float) -> str:
    """Return a time in three digits: `0.95 s`, `187 s`, `21.4 min`; a duration beyond 2 hours."""
    if seconds >= 7200:
        return duration(seconds)
    if seconds >= 1000:
        return f"{seconds / 60:.1f} min"
    if seconds >= 100:
        return f"{seconds:.0f} s"
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s"
