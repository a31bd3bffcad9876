"""The x axes a chart can have: steps, the time of day, or the time since the run began."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from verl_tui.rendering.charts.chart_data import STEPS, Axis
from verl_tui.runs.clock import moment, moments
from verl_tui.runs.pyramid import Pyramid
from verl_tui.runs.time.step_clocks import clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.runs.clock import Clock
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

AXES = ("step", "time", "relative", "kl")
"""`kl` applies to rewards and scores only; other charts stay over steps."""
_KL = ("reference_kl", "policy_kl")
"""Indicators to draw rewards over, first the one that is measured from where training began."""
_DAY = 86_400.0
_PLAIN = 120.0
"""Seconds from a step to the next, on average, from which on minutes distinguish the steps of a
long run.
"""
_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


@dataclass(slots=True)
class _TimedSeries:
    """A series over seconds instead of steps; made anew when the series has changed in the past."""

    steps: array[int]
    values: array[float]
    pyramid: Pyramid
    taken: int = 0
    revision: int = -1
    origins: array[int] = field(default_factory=lambda: array("q"))
    """The step of each point."""
    clock_starts: object = None
    """Origin and first step of the clocks behind the times; they change once the run is watched
    live.
    """


class _TimeAxis:
    """Positions in seconds since the run began."""

    problem = None

    def __init__(self, axis: Axis, clocks: Sequence[Clock]) -> None:
        self.axis = axis
        self._clocks = clocks
        self.estimated = bool(clocks) and all(clock.estimated for clock in clocks)
        """True if all times are estimates: none was noted when its step was reached."""

    def origin(self, series: Series) -> str:
        """Return the evidence for the time of the series' last step, in words; empty if that is
        unknown.
        """
        if not len(series):
            return ""
        for clock in self._clocks:
            if not math.isnan(clock.at(series.steps[-1])):
                return clock.origin
        if math.isnan(series.times[-1]):
            return ""
        return "times in the log"

    def points(self, series: Series, later: int = 0) -> Points:
        """Return the series over its times, so many seconds later: to lay its beginning over
        another run's.
        """
        return _timed(series, self._clocks, later)

    def place(self, series: Series, step: int) -> int | None:
        """Return the time of a step: that of the series' last point up to it, None if unknown."""
        if not len(series):
            return None
        at = max(0, bisect_right(series.steps, step) - 1)
        when = moment(series.times[at], series.steps[at], self._clocks)
        if math.isnan(when):
            return None
        return int(when)

    def edge(self, series: Series, step: int) -> int | None:
        """Return the time of a step, the same for all series if the run has a clock for it."""
        when = moment(math.nan, step, self._clocks)
        if math.isnan(when):
            return self.place(series, step)
        return int(when)

    def step(self, series: Series, position: int) -> int | None:
        """Return the step of the series' last point up to a time, that of the first where all are
        later.
        """
        timed = _timed(series, self._clocks)
        at = bisect_right(timed.steps, position) - 1
        if not timed.origins:
            return None
        return timed.origins[max(0, at)]


class _StepAxis:
    """Positions are the steps themselves."""

    axis = STEPS
    estimated = False

    def __init__(self, problem: str | None = None) -> None:
        self.problem = problem
        """Why it is not the requested axis, None if it is."""

    def origin(self, _series: Series) -> str:
        """Return an empty text: steps need no evidence."""
        return ""

    def points(self, series: Series, _later: int = 0) -> Points:
        """Return the series as it is."""
        return series

    def place(self, _series: Series, step: int) -> int | None:
        """Return the step itself."""
        return step

    edge = step = place


XAxis = _TimeAxis | _StepAxis
"""How a run's series are placed along an axis."""
_CACHE: WeakKeyDictionary[Series, dict[int, _TimedSeries]] = WeakKeyDictionary()
"""By the seconds by which a series is shifted."""
_SHIFTS = 8
"""So many are kept: there is one for each run that another was held against."""


def on_axis(run: Run, name: str) -> XAxis:
    """Return how to place a run's series along an axis: by steps where nothing tells its times.

    Args:
        run: The run.
        name: One of `AXES`.
    """
    if name == "step":
        return _StepAxis()
    if name == "kl":
        return _StepAxis(_no_path(run))
    known = clocks(run)
    # With two runs of the clock over a step the earlier passes are forgotten, but not by the
    # records themselves.
    firsts = [clock.times[0] for clock in known]
    began = min([*firsts, *_first_times(run)], default=None)
    if began is None:
        return _StepAxis("no times are known")
    if name == "relative":
        write, exact = (partial(_lapse, int(began), gap) for gap in ("", " "))
        axis = Axis(name, write, write, exact, time=True, zero=int(began))
    else:
        axis = _time_of_day(began, known)
    return _TimeAxis(axis, known)


def _time_of_day(began: float, known: Sequence[Clock]) -> Axis:
    spans = ((clock.times[-1] - began, len(clock)) for clock in known)
    lasted, steps = max(spans, default=(0.0, 1))
    day = "%d %b " if lasted > _DAY else ""
    dense = lasted < _PLAIN * steps
    read = _written("%d %b %H:%M" if day and not dense else "%H:%M:%S")
    zero = int(_midnight(began))
    return Axis("time", _tick, read, _written(f"{day}%H:%M:%S"), time=True, zero=zero)


def kl_key(run: Run) -> str | None:
    """Return the KL that a run's rewards are drawn over, None where it has none."""
    return next((run.indicators[name] for name in _KL if name in run.indicators), None)


def _no_path(run: Run) -> str | None:
    """Return why a run's rewards cannot be drawn over its KL, None where they can."""
    if kl_key(run) is None:
        return "no KL is logged"
    rewarded = run.indicators.keys() & {"reward", "validation"}
    return None if rewarded else "no reward is logged"


def steps_of(points: Points) -> array[int]:
    """Return the step of each point, wherever along an axis it stands."""
    if isinstance(points, _TimedSeries):
        return points.origins
    return points.steps


def _lapse(start: int, gap: str, second: int) -> str:
    """Write a duration to the second without zeros at its ends: `30s`, `1m`, `1m30s`, `1h05m`,
    `2d4h10m`.
    """
    seconds = second - start
    parts: list[str] = []
    rest = abs(seconds)
    for length, unit in _UNITS:
        count, rest = divmod(rest, length)
        if parts and unit in "ms":
            parts.append(f"{count:02d}{unit}")
        elif count or parts:
            parts.append(f"{count}{unit}")
        if parts and not rest:
            break
    sign = "-" if seconds < 0 else ""
    return sign + (gap.join(parts) or "0s")


def _local(second: float) -> datetime:
    return datetime.fromtimestamp(second).astimezone()


def _written(form: str) -> Callable[[int], str]:
    return lambda second: _local(second).strftime(form)


def _tick(second: int) -> str:
    """Write the time of day, within a minute to the second; where a day begins, which one:
    trainings last for days.
    """
    at = _local(second)
    if at.second:
        return at.strftime("%H:%M:%S")
    return at.strftime("%H:%M" if at.hour or at.minute else "%d %b")


def _midnight(second: float) -> float:
    """Return when the day began, where the user lives."""
    return _local(second).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _first_times(run: Run) -> Iterator[float]:
    """Return the first time that a record states; short logs have one before they have a clock."""
    for key in run.keys if run.stated else ():
        series = run.series(key)
        if series is not None and len(series) and not math.isnan(series.times[0]):
            yield series.times[0]
            return


def _timed(series: Series, clocks: Sequence[Clock], later: int = 0) -> _TimedSeries:
    """Return a series over its times, kept from the last call as far as it still holds."""
    shifted = _CACHE.setdefault(series, {})
    found = shifted.get(later)
    starts = [(clock.origin, clock.steps[0]) for clock in clocks]
    if found is None or _outdated(found, series, starts):
        steps = array("q")
        values = array("d")
        pyramid = Pyramid(steps, values)
        found = _TimedSeries(steps, values, pyramid, 0, series.revision)
        found.clock_starts = starts
        if len(shifted) >= _SHIFTS:
            shifted.clear()
        shifted[later] = found
    _extend(found, series, clocks, later)
    found.pyramid.catch_up()
    return found


def _outdated(found: _TimedSeries, series: Series, starts: object) -> bool:
    rewritten = found.revision != series.revision or found.taken > len(series)
    return rewritten or found.clock_starts != starts


def _extend(
    found: _TimedSeries, series: Series, clocks: Sequence[Clock], later: int
) -> None:
    """Take in the points that have come since; one whose time goes back is left out."""
    start = found.taken
    steps = series.steps[start:]
    times = moments(series.times[start:], steps, clocks)
    if _ascend(times, found, later):
        found.steps.extend([int(when) + later for when in times])
        found.values.extend(series.values[start:])
        found.origins.extend(steps)
        found.taken = start + len(steps)
        return
    for at, (step, when) in enumerate(zip(steps, times, strict=True), start):
        if math.isnan(when) and any(clock.steps[-1] < step for clock in clocks):
            break  # the clock has not come so far yet
        found.taken = at + 1
        if math.isnan(when):
            continue
        second = int(when) + later
        if not found.steps or second >= found.steps[-1]:
            found.steps.append(second)
            found.values.append(series.values[at])
            found.origins.append(step)


def _ascend(times: Sequence[float], found: _TimedSeries, later: int) -> bool:
    """Return whether all times are known and none goes back."""
    if not times or any(map(math.isnan, times)):
        return False
    if found.steps and int(times[0]) + later < found.steps[-1]:
        return False
    return list(times) == sorted(times)
