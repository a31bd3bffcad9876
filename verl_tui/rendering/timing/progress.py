"""Rows on how far a run is, how long its steps take, and when it will be done."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from verl_tui.rendering.session.source_status import shown_state
from verl_tui.rendering.text.numbers import compact, percent_done
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import printable, wrapped
from verl_tui.rendering.text.wrap import fit
from verl_tui.runs.time.forecast import (
    NextOccasions,
    next_occasions,
    pace,
    remaining_steps,
    usual_times,
)
from verl_tui.runs.views.state import State, goes_on, is_evaluation
from verl_tui.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import SpeedFigure


_WEEK = 6 * 86400.0


def progress(run: Run, view: View, width: int) -> Iterator[Pieces]:
    """Yield the step reached, the time of each kind of step, the ETA, and what is next."""
    total = run.total_steps
    step = run.step
    yield heading("progress")
    if step is None:
        yield [(no_step(run, view).rstrip(".").lower(), "dim")]
        return
    share = (
        f" of {total} ({percent_done(step / total)})" if total else ", total unknown"
    )
    yield [("step ", "label"), (f"{step}{share}", "value")]
    yield from _paces(run)
    for text, role in _end(run, view):
        yield from wrapped_rows(text, role, width)
    if shown_state(view, run) in (State.RUNNING, State.STALLED, State.WAITING):
        yield from _next(next_occasions(run))


def _paces(run: Run) -> Iterator[Pieces]:
    """Yield the time of each kind of step, or of a step on average."""
    for usual in usual_times(run):
        seconds = short_time(usual.seconds)
        times = f"  {_times(usual.times)}"
        yield [(f"{usual.words} ", "label"), (seconds, "value"), (times, "dim")]
    if not usual_times(run) and (known := pace(run)) is not None:
        seconds = short_time(known.seconds)
        origin = f"  {known.origin}"
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
    current = shown_state(view, run)
    now = view.now
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
            f"{round(count)} × {short_time(usual.seconds)} {_extra(usual.words)}"
            for usual, count in coming.kinds
        )
        yield f"{coming.steps} steps ahead: {', '.join(kinds)}", "dim"


def _extra(words: str) -> str:
    return (
        words.removeprefix("a ").removeprefix("plain step").removeprefix("step ")
        or "plain"
    )


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


WIDE, NARROW = 72, 34
"""Widths from which on notes and a bar fit, in cells."""


def heading(words: str) -> Pieces:
    """Return a heading as a row."""
    return [(words, "heading")]


def wrapped_rows(text: str, role: str, width: int) -> list[Pieces]:
    """Return a text as rows of at most `width` cells, in one role."""
    return [[(line, role)] for line in wrapped(text, width)]


def no_step(run: Run, view: View) -> str:
    """Say why there is no step."""
    if is_evaluation(run):
        return "An evaluation makes no steps."
    over = shown_state(view, run) in (State.FINISHED, State.CRASHED, State.ENDED)
    return "It ended before its first step." if over else "No step yet."


def short_time(seconds: float) -> str:
    """Return a time in three digits: `0.95 s`, `187 s`, `21.4 min`; a duration beyond 2 hours."""
    if seconds >= 7200:
        return duration(seconds)
    if seconds >= 1000:
        return f"{seconds / 60:.1f} min"
    if seconds >= 100:
        return f"{seconds:.0f} s"
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s"


def speed_rows(
    title: str, figures: Sequence[SpeedFigure], width: int
) -> Iterator[Pieces]:
    """Yield a heading and one row for each figure; nothing without figures."""
    if not figures:
        return
    yield heading(title)
    label = min(max(len(figure.label) for figure in figures), max(8, width - 12))
    value = max(len(_value(figure)) for figure in figures)
    for figure in figures:
        row: Pieces = [
            (fit(printable(figure.label), label).ljust(label + 2), "label"),
            (_value(figure).ljust(value), "value"),
        ]
        if width >= WIDE:
            if figure.label.startswith("MFU") and figure.value == 0:
                note = "0: unknown model or GPU"
            else:
                note = printable(figure.key)
            left = width - cells_of(row) - 2
            row.append((f"  {fit(note, left, '…')}", "dim"))
        yield row


def _value(figure: SpeedFigure) -> str:
    if figure.unit == "share":
        return f"{figure.value:.1%}"
    if figure.unit == "s":
        return short_time(figure.value)
    return f"{compact(figure.value)} {figure.unit}".rstrip()
