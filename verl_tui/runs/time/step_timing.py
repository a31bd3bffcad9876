"""The parts of recent steps, by the timers that a trainer logs."""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.time.excluded_parts import (
    COMPARED,
    LOOK_BACK,
    excluded_parts,
    first_compared,
    valid_durations,
)
from verl_tui.runs.time.timers import step_timers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

WINDOW = 20
"""Newest steps that are averaged; more where a part comes more rarely, so that each counts with its
due share.
"""
_PAST = 200
"""Steps before the window that make the usual time of a part."""
_LEAST_PAST = 4
_OVERLAP = 0.02
"""Share of the step by which its parts may exceed it before that is called an overlap: clocks are
read one by one.
"""
_LARGEST_SHARE = 100.0
"""A part a hundred times as long as its step only shows that the step's own time is wrong."""


class StepPart(NamedTuple):
    """One part of the step."""

    name: str
    key: str
    seconds: float
    """A step, as a mean over all steps of the window."""
    share: float
    """Share of the whole step, 0..1; more if it runs beside a shorter step."""
    each: float
    """Seconds where it happens."""
    times: int
    """Steps of the window in which it happens."""
    trend: float | None
    """How many times as long as in the run's own past; None where there is too little of one."""
    inside: bool
    """True if the step's own time includes it."""


class Breakdown(NamedTuple):
    """The time of recent steps, by its parts."""

    steps: tuple[int, ...]
    """Those that were averaged."""
    key: str
    """Metric that holds the step's own time, empty where none does."""
    step: float
    """The step's own time in seconds."""
    whole: float
    """Together with what the step's own time leaves out."""
    parts: tuple[StepPart, ...]
    """The longest first."""
    rest: float
    """Seconds that no part accounts for; below 0 where parts run side by side."""
    trend: float | None
    """How many times as long the step is as in the run's own past."""

    @property
    def overlaps(self) -> bool:
        """True if the parts together take longer than the step: some run at the same time."""
        return self.rest < -_OVERLAP * self.whole


def breakdown(run: Run, window: int = WINDOW) -> Breakdown | None:
    """Return how the time of recent steps was spent, None where the log has no timers."""
    step, parts = _timers(run)
    timed = step or max(parts.values(), key=len, default=None)
    if not timed:
        return None
    steps = _window(timed, list(parts.values()), window)
    seconds = _durations(parts, steps[0])
    taken = {name: sum(found.values()) / len(steps) for name, found in seconds.items()}
    excluded = _excluded(step, parts) & seconds.keys()
    own = _own_time(step, steps)
    mean = own if own is not None else sum(taken.values())
    whole = mean + sum(map(taken.__getitem__, excluded))
    made = [
        StepPart(
            name,
            parts[name].key,
            taken[name],
            _share(taken[name], whole),
            average(found.values()),
            len(found),
            slowdown(parts[name], steps[0]),
            name not in excluded,
        )
        for name, found in seconds.items()
    ]
    key = ""
    longer = None
    if step is not None:
        key = step.key
        longer = slowdown(step, steps[0])
    longest_first = tuple(sorted(made, key=lambda part: -part.seconds))
    rest = whole - sum(part.seconds for part in made)
    return Breakdown(tuple(steps), key, mean, whole, longest_first, rest, longer)


def _timers(run: Run) -> tuple[Series | None, dict[str, Series]]:
    """Return the step's own time, and its parts by their names."""
    timers = step_timers(run)
    present = {name: run.present(key) for name, key in timers.parts.items()}
    parts = {name: series for name, series in present.items() if series is not None}
    return run.present(timers.whole), parts


def _durations(
    parts: Mapping[str, Series], since: int
) -> dict[str, Mapping[int, float]]:
    """Return the valid durations of parts from a step on, of those that have any."""
    found = {name: valid_durations(timer.since(since)) for name, timer in parts.items()}
    return {name: seconds for name, seconds in found.items() if seconds}


def _share(seconds: float, whole: float) -> float:
    if whole > 0:
        return min(seconds / whole, _LARGEST_SHARE)
    return 0.0


def _own_time(step: Series | None, steps: Sequence[int]) -> float | None:
    """Return the mean of the step's own time over these steps, None where it is not logged."""
    if step is None:
        return None
    own = valid_durations(step.since(steps[0]))
    known = [own[at] for at in steps if at in own]
    return average(known) if known else None


def _excluded(step: Series | None, parts: Mapping[str, Series]) -> set[str]:
    """Return the names of the parts that the step's own time leaves out."""
    if step is None:
        return set()
    since = first_compared(step)
    seconds = {
        name: valid_durations(series.since(since)) for name, series in parts.items()
    }
    return excluded_parts(valid_durations(step.since(since)), seconds)


def newest_steps(
    run: Run, found: Breakdown, count: int
) -> list[tuple[int, list[float]]]:
    """Return the newest steps, each with the seconds of the breakdown's parts and of what they
    leave.
    """
    step = run.present(found.key)
    steps = list(found.steps[-count:])
    own: Mapping[int, float] = {}
    if step is not None:
        steps = _window(step, (), count)
        own = valid_durations(step.since(steps[0]))
    known = [run.present(part.key) for part in found.parts]
    parts = [
        valid_durations(series.since(steps[0]))
        for series in known
        if series is not None
    ]
    rows = []
    for at in steps:
        seconds = [taken.get(at, 0.0) for taken in parts]
        pairs = zip(seconds, found.parts, strict=True)
        inside = sum(spent for spent, part in pairs if part.inside)
        left = max(0.0, own.get(at, inside) - inside)
        rows.append((at, [*seconds, left]))
    return rows


def slowdown(series: Series, since: int) -> float | None:
    """Return by which factor a timer is longer from a step on than before; None if too little is
    known.
    """
    first = bisect_left(series.steps, since)
    newest = series.values[max(first, len(series) - WINDOW) :]
    now = list(filter(math.isfinite, newest))
    # The run's very first step compiles and warms up.
    earlier = series.values[max(1, first - _PAST) : first]
    past = list(filter(math.isfinite, earlier))
    usual = median(past) if len(past) >= _LEAST_PAST else 0.0
    if usual > 0 and len(now) >= 2:
        return median(now) / usual
    return None


def _window(timed: Series, parts: Sequence[Series], least: int) -> list[int]:
    """Return the steps to average: as many as the rarest part needs to count with its due share."""
    count = least
    for part in parts:
        recent = part.steps[-COMPARED:]
        if len(recent) > 1 and part.steps[-1] >= timed.steps[-1] - LOOK_BACK:
            apart = round((recent[-1] - recent[0]) / (len(recent) - 1))
            count = max(count, min(LOOK_BACK, apart))
    start = max(0, len(timed) - count)
    if not start and len(timed) > 2:
        start = 1  # the run's very first step compiles and warms up
    return list(timed.steps[start:])


def average(values: Collection[float]) -> float:
    """Return the mean of numbers of any size."""
    try:
        return fmean(values)
    except OverflowError:
        return sum(value / len(values) for value in values)
