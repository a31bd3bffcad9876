"""The figures that operators ask for first: steps per minute, and how long generation takes at
worst.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.runs.time.pace import pace
from verl_tui.runs.time.throughput import SpeedFigure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.run import Run

_PERCENTILE = 0.95
_NEWEST = 200
"""Values that the percentile is of."""
_LEAST = 5
"""Fewest values for a percentile (a heuristic)."""


def rates(run: Run) -> Iterator[SpeedFigure]:
    """Yield steps per minute and the 95th percentile of generation times, as far as the log shows
    them.
    """
    yield from filter(None, (steps_per_minute(run), generation_latency(run)))


def steps_per_minute(run: Run) -> SpeedFigure | None:
    """Return how many steps a minute has at the run's usual pace, or how many minutes a step has
    where that is longer than one; None where unknown.
    """
    usual = pace(run)
    if usual is None or not 0 < usual.seconds < math.inf:
        return None
    minutes = usual.seconds / 60.0
    if minutes > 1:
        return SpeedFigure("minutes a step", minutes, "min a step", usual.origin)
    return SpeedFigure("steps per minute", 1.0 / minutes, "steps/min", usual.origin)


def generation_latency(run: Run) -> SpeedFigure | None:
    """Return the 95th percentile of the newest generation times in seconds, None where there are
    too few.

    verl logs one time for each step, the tutorials' loggers one for each sample: the percentile is
    of what is logged.
    """
    key = run.indicators.get("generation_time")
    if key is None:
        return None
    # Several sources may hold verl's one time of a step; the tutorials' times of one step are
    # several measurements.
    newest = (
        run.measured(key, _NEWEST)
        if run.dialect == "tutorial"
        else run.tail(key, _NEWEST)
    )
    seconds = sorted(value for value in newest if math.isfinite(value))
    if len(seconds) < _LEAST:
        return None
    note = f"{key}, of the last {len(seconds)}"
    return SpeedFigure(
        "generation latency, p95", _quantile(seconds, _PERCENTILE), "s", note
    )


def _quantile(ascending: Sequence[float], share: float) -> float:
    """Return a quantile between the two values around it, as NumPy's default does."""
    at = share * (len(ascending) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (at - low)
