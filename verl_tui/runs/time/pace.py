"""The usual time from step to step, learned from the run itself."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.time.step_clocks import clocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

RECENT_GAPS = 30
"""Recent gaps between steps that make the pace."""
_DATED = ("reward", "policy_loss", "response_length", "entropy")
"""Indicators whose records date the steps, the first to try first."""


class Pace(NamedTuple):
    """How long a step takes."""

    seconds: float
    """Seconds from one step to the next."""
    origin: str
    """The evidence for it, in words."""


@cached_by_revision
def pace(run: Run) -> Pace | None:
    """Return the run's usual time from step to step, None where it is unknown."""
    return (
        _clocked_pace(dated_series(run))
        or _timer_pace(run)
        or _clocked_pace(clocks(run))
    )


def dated_series(run: Run) -> Iterator[Series]:
    """Yield metrics of training with enough records to show the time from step to step."""
    for indicator in _DATED:
        series = run.present(run.indicators.get(indicator))
        if series is not None and len(series) >= 3:
            yield series


def _clocked_pace(dated: Iterable[Series | Clock]) -> Pace | None:
    """Return the pace by the first of these whose records have times of their own."""
    for one in dated:
        gaps = _gaps(one.steps[-RECENT_GAPS:], one.times[-RECENT_GAPS:])
        if len(gaps) >= 2:
            origin = one.origin if isinstance(one, Clock) else "times of the records"
            return Pace(median(gaps), origin)
    return None


def _gaps(steps: Sequence[int], times: Sequence[float]) -> list[float]:
    """Return the seconds of a step between records; those that came together count as one."""
    moments: list[tuple[int, float]] = []
    for step, time in zip(steps, times, strict=True):
        if moments and time == moments[-1][1]:
            moments.pop()
        if math.isfinite(time):
            moments.append((step, time))
    return [
        (time - since) / (step - before)
        for (before, since), (step, time) in pairwise(moments)
        if time > since and step > before
    ]


def _timer_pace(run: Run) -> Pace | None:
    """Return the pace by the step's own timer."""
    series = run.present(run.indicators.get("step_time"))
    if series is None:
        return None
    taken = [
        value
        for value in series.tail(RECENT_GAPS)
        if math.isfinite(value) and value > 0
    ]
    if len(taken) == len(series) and len(taken) > 1:
        taken = taken[1:]  # the first step compiles and warms up
    if not taken:
        return None
    return Pace(median(taken), series.key)
