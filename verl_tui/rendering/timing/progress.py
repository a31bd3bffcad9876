"""Rows on how far a run is, how long its steps take, and when it will be done."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from verl_tui.rendering.session.shown_state import shown_state
from verl_tui.rendering.text.numbers import percent_done
from verl_tui.rendering.timing.wording import heading, no_step, short_time, wrapped_rows
from verl_tui.runs.time.forecast import (
    NextOccasions,
    next_occasions,
    pace,
    remaining_steps,
    usual_times,
)
from verl_tui.runs.views.state import State, goes_on
from verl_tui.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

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
        yield [(f"{usual.kind.words} ", "label"), (seconds, "value"), (times, "dim")]
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
            f"{round(count)} × {short_time(usual.seconds)} {_extra(usual.kind.words)}"
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
