"""When a run is done: every step ahead counted with the usual time of its kind."""

from __future__ import annotations

import pytest
from trainings import again, put, training

from verl_tui.records import Progress
from verl_tui.runs.run import Run
from verl_tui.runs.time.forecast import (
    Pace,
    next_occasions,
    pace,
    remaining_seconds,
    schedule_of,
    usual_times,
)
from verl_tui.runs.views.state import remaining

FREQUENCIES = {"trainer__test_freq": 10, "trainer__save_freq": 50}


def validating(
    count: int,
    total: int,
    *,
    plain: float = 30.0,
    test: float = 120.0,
    every: int = 10,
    inside: bool = False,
    **more: int,
) -> Run:
    """Return a run of which every so many-th step takes five times as long, by its timers."""
    tested = {n: test for n in range(1, count + 1) if n % every == 0}
    step = [
        plain + (tested.get(n, 0.0) if inside else 0.0) for n in range(1, count + 1)
    ]
    columns = {"critic/score/mean": [0.5] * count, "timing_s/step": [900.0, *step[1:]]}
    return training(columns, total=total, settings=more, testing=tested)


def ahead(run: Run) -> float:
    found = remaining_seconds(run)
    assert found is not None
    return found


def pace_of(run: Run) -> Pace:
    usual = pace(run)
    assert usual is not None
    return usual


def truth(
    step: int, total: int, *, plain: float = 30.0, test: float = 120.0, every: int = 10
) -> float:
    """Return how long the rest takes in the end; the last step validates whatever its number."""
    tests = sum(n % every == 0 or n == total for n in range(step + 1, total + 1))
    return (total - step) * plain + tests * test


def test_milliseconds_are_no_seconds():
    columns = ("consumed samples", 9.0), ("elapsed time per iteration (ms)", 30_000.0)
    assert pace_of(training({key: [one] * 20 for key, one in columns})).seconds == 30.0


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("settings", [{}, {"trainer__test_freq": 10}])
@pytest.mark.parametrize(
    ("step", "total"), [(40, 100), (49, 100), (51, 95), (98, 100), (39, 41)]
)
def test_validation_every_tenth_step_takes_five_times_as_long(
    step, total, settings, inside
):
    run = validating(step, total, inside=inside, **settings)
    assert remaining(run, 0.0) == pytest.approx(truth(step, total))
    bar = (total - step) * pace_of(run).seconds
    assert bar < truth(step, total), "what a progress bar's pace would make of it"


def test_after_a_restart_the_pace_is_that_of_the_newest_segment():
    run = validating(40, 100, every=1000)
    assert remaining(again(run, {"timing_s/step": [10.0] * 6}), 0.0) == 94 * 10.0
    assert pace_of(run).seconds == 10.0


def test_the_same_by_the_clock():
    times, now = [], 0.0
    for n in range(1, 46):
        now += 150.0 if n % 10 == 0 else 30.0
        times.append(now)
    scores = {"critic/score/mean": [0.5] * 45}
    tested = dict.fromkeys(range(10, 46, 10), 1.0)
    run = training(scores, times=times, total=100, testing=tested)
    assert ahead(run) == pytest.approx(truth(45, 100))
    assert [(usual.kind, usual.seconds) for usual in usual_times(run)] == [
        (0, 30.0),
        (1, 150.0),
    ]


def test_validation_and_checkpoints_coincide():
    count, total = 120, 200
    tested = dict.fromkeys(range(10, count + 1, 10), 60.0)
    saved = dict.fromkeys(range(50, count + 1, 50), 100.0)
    columns = {"timing_s/step": [30.0] * count, "timing_s/gen": [29.0] * count}
    rare = {"testing": tested, "save_checkpoint": saved}
    run = training(columns, total=total, settings=FREQUENCIES, **rare)
    assert {usual.kind: usual.seconds for usual in usual_times(run)} == {
        0: 30.0,
        1: 90.0,
        3: 190.0,
    }
    assert ahead(run) == 72 * 30 + 6 * 90 + 2 * 190
    assert next_occasions(run) == {"validation": 130, "checkpoint": 150}


def test_what_grows_is_estimated_as_it_is_now():
    """Responses get longer: validations of long ago must not make the next one shorter than a plain
    step.
    """
    count = 200
    tested = dict.fromkeys(range(10, count + 1, 10), 100.0)
    step = [10.0 + n for n in range(1, count + 1)]
    run = training({"timing_s/step": step}, total=300, testing=tested)
    plain, validation = usual_times(run)
    assert 190 < plain.seconds < 211
    assert 95 < validation.seconds - plain.seconds < 125


def test_irregular_occasions_are_estimated_by_how_often_they_are():
    tested = dict.fromkeys((10, 25, 30, 50), 100.0)
    columns = {"timing_s/step": [10.0] * 60, "timing_s/gen": [9.0] * 60}
    run = training(columns, total=100, testing=tested)
    # Every 13 steps, and in any case at the end.
    assert ahead(run) == pytest.approx(40 * 10 + (3 + 1) * 100)
    assert "validation" not in next_occasions(run)


def test_a_progress_bar_tells_where_nothing_else_does():
    run = Run("r")
    put(run, *(Progress(step, 100, 30.0 * step) for step in range(1, 41)))
    usual = pace_of(run)
    assert usual.seconds == 30.0
    assert "progress bar" in usual.origin
    assert ahead(run) == 60 * 30.0


def test_what_is_not_known_is_not_reported():
    assert remaining_seconds(Run("r")) is None
    assert remaining_seconds(training({"critic/score/mean": [0.5] * 5})) is None
    assert (
        remaining_seconds(training({"critic/score/mean": [0.5] * 5}, total=10)) is None
    )
    done = validating(30, 30)
    assert remaining(done, 0.0) is None
    assert not next_occasions(done)


# -- how many steps there are ----------------------------------------------------------------------


def test_shares_of_epochs_tell_where_they_are_not_rounded():
    settings = {"num_train_epochs": 2, "max_steps": -1}
    for digits, total in ((20, 12764), (2, None)):
        shares = [round(n / 6382, digits) for n in range(1, 30)]
        run = training({"epoch": shares, "reward": [0.0] * 29}, settings=settings)
        assert run.total_steps == total


@pytest.mark.parametrize(
    ("occasions", "setting", "after", "due_at"),
    [
        ([], 10, 13, 20),
        ([], 10, 20, 30),
        ([7, 12, 17], None, 18, 22),
        ([0, 10, 20], None, 20, 30),
        ([], None, 5, None),
        ([5], None, 6, None),
        ([1, 5, 6], None, 7, None),
        ([10, 20, 30, 34], None, 35, None),
        ([10, 20, 24], None, 24, None),
        ([3, 6], 0, 7, None),
        ([3, 6], -1, 7, None),
    ],
)
def test_rhythm(occasions, setting, after, due_at):
    run = training(
        {"critic/score/mean": [0.5] * after}, settings={"trainer__test_freq": setting}
    )
    assert (
        schedule_of(run, set(occasions), "trainer.test_freq").next_after(after)
        == due_at
    )
