"""Runs compared up to a point: each at its end, at the same step, after the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from run_views import make_run

from verl_tui.runs.time.step_clocks import (
    Alignment,
    Stop,
    seconds_per_step,
    stops,
)

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

NOWHERE = Stop(None, None)


def runs() -> list[Run]:
    """Return a run of 40 steps, one of 100, and one that has made none; a step takes 30 s."""
    return [make_run("short", 40), make_run("long", 100), make_run("none", 0)]


@pytest.mark.parametrize(
    ("alignment", "steps"),
    [
        (Alignment.END, [40, 100, None]),
        (Alignment.STEP, [40, 40, None]),
        (Alignment.TIME, [40, 40, None]),
    ],
)
def test_how_far_each_run_counts(alignment, steps):
    found = stops(runs(), alignment)
    assert [stop.step for stop in found] == steps
    assert [stop.elapsed for stop in found] == [
        None if step is None else (step - 1) * 30.0 for step in steps
    ]


def test_how_long_the_newest_steps_took():
    run = make_run()
    assert seconds_per_step(run, Stop(100, None), 20) == pytest.approx(30.0)
    assert seconds_per_step(run, Stop(1, None), 20) is None, "no two steps"
    assert seconds_per_step(run, NOWHERE, 20) is None
    assert seconds_per_step(make_run(steps=0), Stop(1, None), 20) is None
