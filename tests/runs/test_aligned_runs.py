"""Runs compared up to a point: each at its end, at the same step, after the same time."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

import pytest
from run_views import make_run

from verl_tui.runs.views.alignment import (
    Alignment,
    Stop,
    extreme,
    newest,
    seconds_per_step,
    stops,
    value,
)

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

KL = "actor/ppo_kl"
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
def test_how_far_each_run_counts(alignment: Alignment, steps: list[int | None]) -> None:
    found = stops(runs(), alignment)
    assert [stop.step for stop in found] == steps
    assert [stop.elapsed for stop in found] == [
        None if step is None else (step - 1) * 30.0 for step in steps
    ]


def test_values_up_to_there() -> None:
    run = make_run(columns={KL: [0.5, 0.25, nan, inf, 0.75, *[0.1] * 115]})
    series = run.series(KL)
    assert value(series, Stop(5, None)) == 0.75
    assert value(series, Stop(4, None)) == 0.25, "the newest that is a number"
    assert value(series, NOWHERE) is value(None, Stop(5, None)) is None
    assert [*newest(series, Stop(2, None), 20)] == [0.5, 0.25]
    assert [*newest(series, Stop(6, None), 2)] == [0.75, 0.1]
    assert not newest(None, Stop(2, None), 20)


def test_the_first_of_the_highest_and_of_the_lowest_up_to_there() -> None:
    series = make_run(columns={KL: [0.5, 0.25, 0.5, 0.25, *[0.9] * 116]}).series(KL)
    assert extreme(series, Stop(4, None)) == (1, 0.5)
    assert extreme(series, Stop(4, None), lowest=True) == (2, 0.25)
    assert extreme(series, Stop(120, None)) == (5, 0.9)
    assert extreme(series, NOWHERE) is extreme(None, Stop(4, None)) is None
    unknown = make_run(columns={KL: [nan] * 120}).series(KL)
    assert extreme(unknown, Stop(4, None)) is None


def test_how_long_the_newest_steps_took() -> None:
    run = make_run()
    assert seconds_per_step(run, Stop(100, None)) == pytest.approx(30.0)
    assert seconds_per_step(run, Stop(1, None)) is None, "no two steps"
    assert seconds_per_step(run, NOWHERE) is None
    assert seconds_per_step(make_run(steps=0), Stop(1, None)) is None
