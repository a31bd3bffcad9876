"""The x axes a chart can have: steps, the time of day, or the time since the run began."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.clock import Clock, moment, moments
from verl_tui.runs.series import Points, Series
from verl_tui.runs.time.step_clocks import clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.runs.run import Run

AXES = ("step", "time", "relative")
_DATES = 253_402_214_400
"""Seconds since the epoch from which no calendar has a date: the last day of 9999."""
_DAY = 86_400


class _TimedSeries(Points):
    """A series over seconds instead of steps."""

    def __init__(self) -> None:
        super().__init__(array("q"), array("d"))
        self.origins = array("q")
        """The step of each point."""
        self.taken = 0


class Axis(NamedTuple):
    """The meaning of x positions, and how a run's series are placed along them. Time runs in
    seconds, so that ticks fall on minutes and hours.
    """

    label: str = "step"
    write: Callable[[int], str] = str
    """Text of a tick, at most 8 characters."""
    exact: Callable[[int], str] = str
    """Text of the cursor's position."""
    time: bool = False
    zero: int = 0
    """From where on round positions are counted."""
    clocks: Sequence[Clock] = ()
    problem: str | None = None
    """Why it is not the requested axis, None if it is."""

    @property
    def estimated(self) -> bool:
        """True if all times are estimates: none was noted when its step was reached."""
        return bool(self.clocks) and all(clock.estimated for clock in self.clocks)

    @property
    def words(self) -> str:
        """A remark on the axis: that it is not the requested one, or an estimate."""
        if self.problem is not None:
            return f"step, {self.problem}"
        return f"{self.label}, estimated" if self.estimated else ""

    def points(self, series: Series, later: int = 0) -> Points:
        """Return the series along the axis; over times so many seconds later, to lay its beginning
        over another run's.
        """
        return _timed(series, self.clocks, later) if self.time else series

    def place(self, series: Series, step: int) -> int | None:
        """Return the position of a step: that of the series' last point up to it, None if
        unknown.
        """
        if not self.time:
            return step
        if not len(series):
            return None
        at = max(0, bisect_right(series.steps, step) - 1)
        when = moment(series.times[at], series.steps[at], self.clocks)
        return None if math.isnan(when) else int(when)

    def edge(self, series: Series, step: int) -> int | None:
        """Return the position of a step, the same for all series if the run has a clock for it."""
        when = moment(math.nan, step, self.clocks)
        return self.place(series, step) if math.isnan(when) else int(when)

    def step(self, series: Series, position: int) -> int | None:
        """Return the step of the series' last point up to a position, that of the first where all
        are later.
        """
        if not self.time:
            return position
        timed = _timed(series, self.clocks)
        at = max(0, bisect_right(timed.steps, position) - 1)
        return timed.origins[at] if timed.origins else None


def on_axis(run: Run, name: str) -> Axis:
    """Return how to place a run's series along an axis: by steps where nothing tells its times.

    Args:
        run: The run.
        name: One of `AXES`.
    """
    if name == "step":
        return Axis()
    known = clocks(run)
    # With two runs of the clock over a step the earlier passes are forgotten, but not by the
    # records themselves.
    began = min([*(clock.times[0] for clock in known), *_stated(run)], default=None)
    if began is None:
        return Axis(problem="no times are known")
    if name == "relative":
        write: Callable[[int], str] = partial(_lapse, int(began))
        return Axis(name, write, write, time=True, zero=int(began), clocks=known)
    lasted = max([clock.times[-1] - began for clock in known], default=0.0)
    if not 0 <= began <= began + lasted < _DATES:
        return Axis(problem="its times are no dates")
    form = "%d %b %H:%M:%S" if lasted > _DAY else "%H:%M:%S"
    midnight = _local(began).replace(hour=0, minute=0, second=0)
    exact: Callable[[int], str] = lambda second: _local(second).strftime(form)  # noqa: E731
    zero = int(midnight.timestamp())
    return Axis("time", _tick, exact, time=True, zero=zero, clocks=known)


def _stated(run: Run) -> list[float]:
    """Return the first time that a record states; short logs have one before they have a clock."""
    for series in map(run.series, run.keys if run.stated else ()):
        if series is not None and len(series) and not math.isnan(series.times[0]):
            return [series.times[0]]
    return []


def steps_of(points: Points) -> array[int]:
    """Return the step of each point, wherever along an axis it stands."""
    return points.origins if isinstance(points, _TimedSeries) else points.steps


def _lapse(start: int, second: int) -> str:
    """Write a duration to the second without zeros at its ends: `30s`, `1m30s`, `1h05m`."""
    seconds = abs(second - start)
    counts = (seconds // _DAY, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60)
    words = [f"{count:02d}{unit}" for count, unit in zip(counts, "dhms", strict=True)]
    known = [at for at, count in enumerate(counts) if count] or [3]
    text = "".join(words[known[0] : known[-1] + 1])
    return "-" * (second < start) + (text.lstrip("0") if seconds else "0s")


def _local(second: float) -> datetime:
    return datetime.fromtimestamp(second).astimezone()


def _tick(second: int) -> str:
    """Write the time of day, within a minute to the second; where a day begins, which one:
    trainings last for days.
    """
    at = _local(second)
    if at.second:
        return at.strftime("%H:%M:%S")
    return at.strftime("%H:%M" if at.hour or at.minute else "%d %b")


def _timed(series: Series, clocks: Sequence[Clock], later: int = 0) -> _TimedSeries:
    """Return a series over its times, kept from the last call as far as it still holds, and with
    the points that have come since, up to where the clocks have come; one without a time, or whose
    time goes back, is left out.
    """
    starts = ((clock.origin, clock.steps[0]) for clock in clocks)
    subject = (series.revision, later, *starts)
    found = series.kept["times"].of(subject, _TimedSeries)
    fresh = series.steps[found.taken :]
    values = series.values[found.taken :]
    times = moments(series.times[found.taken :], fresh, clocks)
    reached = min([clock.steps[-1] for clock in clocks], default=2**62)
    last = max(found.steps[-1:], default=0)
    for step, value, time in zip(fresh, values, times, strict=False):
        unknown = math.isnan(time)
        if unknown and step > reached:
            break
        found.taken += 1
        if not unknown and int(time) + later >= last:
            last = int(time) + later
            found.steps.append(last)
            found.values.append(value)
            found.origins.append(step)
    return found
