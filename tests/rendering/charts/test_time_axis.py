"""Charts over time of runs whose clocks are as far off as a calendar goes."""

from __future__ import annotations

import pytest

from verl_tui.records import Batch, MetricRows, Progress, SourceStatus
from verl_tui.rendering.charts.axes import fill_window, fit_window
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.runs.run import Run
from verl_tui.times import EARLIEST, LATEST


def run_at(times: list[float]) -> Run:
    """Return a run with a step at each of these times."""
    run, steps = Run("run"), list(range(1, len(times) + 1))
    rows = MetricRows(("loss",), steps, [[float(step) for step in steps]], steps, times)
    run.apply(
        Batch(
            "run", SourceStatus("/logs/run", "verl"), (rows, Progress(steps[-1], None))
        ),
        0,
    )
    return run


@pytest.mark.parametrize("window", [fit_window, fill_window])
@pytest.mark.parametrize("kind", ["time", "relative"])
@pytest.mark.parametrize(
    "times", [[EARLIEST + 1, LATEST - 1], [LATEST - 2, LATEST - 1]]
)
def test_an_axis_to_the_ends_of_the_calendar_has_labels(kind, window, times):
    run = run_at(times)
    placed = on_axis(run, kind)
    series = run.series("loss")
    assert series is not None
    first, last = placed.points(series).steps
    axis = placed.axis
    for step in window(first, last, 40).ticks(10, time=axis.time, zero=axis.zero):
        assert 0 < len(axis.write(step)) <= 8 or kind == "relative"
        assert axis.exact(step)


@pytest.mark.parametrize("time", [LATEST, 1e18, 1e300, -1e12])
def test_times_that_no_calendar_has_leave_the_steps(time: float) -> None:
    run = run_at([time, time])
    assert on_axis(run, "time").problem == "no times are known"
