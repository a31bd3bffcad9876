"""The x axes a chart can have: steps, the time of day, or the time since the run began."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from verl_tui.runs.pyramid import Pyramid
from verl_tui.times import duration
from verl_tui.tui.widgets.chart_data import STEPS, Axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.clock import Clock
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series
    from verl_tui.tui.widgets.chart_data import Points

AXES = ("step", "time", "relative")


@dataclass(slots=True)
class _Timed:
    """A series over seconds instead of steps; made anew when the series has changed in the past."""

    steps: array[int]
    values: array[float]
    pyramid: Pyramid
    taken: int = 0
    revision: int = -1


class _Clocked:
    """Positions in seconds since the run began."""

    def __init__(self, axis: Axis, clocks: Sequence[Clock], problem: str | None) -> None:
        self.axis = axis
        self._clocks = clocks
        self.problem = problem
        """Why there is nothing to show, None where there is."""

    def points(self, series: Series) -> Points:
        """Return the series over its times."""
        return _timed(series, self._clocks)

    def place(self, series: Series, step: int) -> int | None:
        """Return when a step was: the time of the series' last point up to it, None where that is not known."""
        at = bisect_right(series.steps, step) - 1
        moment = _moment(series, max(0, at), self._clocks) if len(series) else math.nan
        return None if math.isnan(moment) else int(moment)


class _Stepped:
    """Positions are the steps themselves."""

    axis = STEPS
    problem = None

    def points(self, series: Series) -> Points:
        """Return the series as it is."""
        return series

    def place(self, _series: Series, step: int) -> int | None:
        """Return the step itself."""
        return step


_CACHE: WeakKeyDictionary[Series, _Timed] = WeakKeyDictionary()


def on_axis(run: Run, name: str) -> _Clocked | _Stepped:
    """Return how to place a run's series along an axis.

    Args:
        run: The run.
        name: One of `AXES`.
    """
    if name == "step":
        return _Stepped()
    clocks = run.clocks
    # With two runs of the clock over a step the earlier passes are forgotten, but not by the records themselves.
    began = min([*(clock.times[0] for clock in clocks), *_first_times(run)], default=None)
    problem = None if began is not None else "nothing tells when the steps were: x goes back to steps"
    start = began or 0.0

    def relative(second: int) -> str:
        return duration(second - start).replace(" ", "")

    def of_day(second: int) -> str:
        return datetime.fromtimestamp(second).astimezone().strftime("%H:%M")

    return _Clocked(Axis(name, of_day if name == "time" else relative, time=True), clocks, problem)


def _first_times(run: Run) -> Iterator[float]:
    """Return the first time that a record states; short logs have one before they have a clock."""
    for key in run.keys:
        series = run.series(key)
        if series is not None and len(series) and not math.isnan(series.times[0]):
            yield series.times[0]
            return


def _moment(series: Series, at: int, clocks: Sequence[Clock]) -> float:
    """Return when a point was: its record's own time, else what the run's other sources tell of its step."""
    told = (clock.at(series.steps[at]) for clock in clocks)
    return next((time for time in (series.times[at], *told) if not math.isnan(time)), math.nan)


def _timed(series: Series, clocks: Sequence[Clock]) -> _Timed:
    found = _CACHE.get(series)
    if found is None or found.revision != series.revision or found.taken > len(series):
        steps, values = array("q"), array("d")
        found = _CACHE[series] = _Timed(steps, values, Pyramid(steps, values), 0, series.revision)
    for i in range(found.taken, len(series)):
        moment = _moment(series, i, clocks)
        if math.isnan(moment) and any(clock.steps[-1] < series.steps[i] for clock in clocks):
            break  # the clock will tell
        found.taken = i + 1
        second = int(moment) if not math.isnan(moment) else None
        if second is not None and (not found.steps or second >= found.steps[-1]):
            found.steps.append(second)
            found.values.append(series.values[i])
    found.pyramid.catch_up()
    return found
