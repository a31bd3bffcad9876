"""Where the time of a step goes: parts, what nobody times, what lies beside the step, and what it
yields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trainings import again, training

from verl_tui.runs.time.step_timing import (
    breakdown,
    excluded,
    newest_steps,
    slowdown,
    throughput,
    waiting,
)

if TYPE_CHECKING:
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Breakdown, SpeedFigure

STEP = {
    "timing_s/gen": 20.0,
    "timing_s/old_log_prob": 5.0,
    "timing_s/update_actor": 14.0,
    "timing_s/step": 40.0,
}


def verl(
    count: int = 40,
    *,
    rest: float = 1.0,
    inside: bool = False,
    every: int = 10,
    test: float = 60.0,
) -> Run:
    """Return a run in the manner of verl that validates; `inside` says whether the step's time
    includes that.
    """
    tested = {n: test for n in range(1, count + 1) if n % every == 0}
    columns = {
        key: [value] * count for key, value in STEP.items() if key != "timing_s/step"
    }
    step = [
        39.0 + rest + (tested.get(n, 0.0) if inside else 0.0)
        for n in range(1, count + 1)
    ]
    return training({**columns, "timing_s/step": step}, testing=tested)


def timed(run: Run) -> Breakdown:
    found = breakdown(run)
    assert found is not None
    return found


def figures(found: list[SpeedFigure]) -> dict[str, tuple[float, str]]:
    return {figure.label: (round(figure.value, 6), figure.unit) for figure in found}


def test_parts_and_what_nobody_times():
    run = verl(every=100)
    found = timed(run)
    assert next(waiting(run, found)) == (
        *("time spent generating", 0.5, "share", "timing_s/gen"),
    )
    assert found.steps == tuple(range(21, 41))
    assert [(part.name, part.seconds, part.times) for part in found.parts] == [
        ("gen", 20.0, 20),
        ("update_actor", 14.0, 20),
        ("old_log_prob", 5.0, 20),
    ]
    assert (found.step, found.whole, found.key) == (40.0, 40.0, "timing_s/step")
    assert found.rest == pytest.approx(1.0)
    assert found.parts[0].share == 0.5
    assert not found.overlaps


def test_after_a_restart_it_is_of_the_newest_segment():
    run = again(verl(every=100), {key: [value / 2] * 10 for key, value in STEP.items()})
    found = timed(run)
    assert (found.steps, found.step) == (tuple(range(2, 11)), 20.0)
    assert (found.parts[0].name, found.parts[0].seconds) == ("gen", 10.0)
    assert newest_steps(run, found, 3)[-1][0] == 10


@pytest.mark.parametrize("inside", [True, False])
def test_validation_counts_with_its_due_share_whether_the_step_includes_it_or_not(
    inside,
):
    found = timed(verl(inside=inside))
    (testing,) = [part for part in found.parts if part.name == "testing"]
    assert testing.inside is inside
    assert (testing.seconds, testing.each, testing.times) == (6.0, 60.0, 2)
    assert found.whole == pytest.approx(46.0), "the same, however verl's version counts"
    assert found.step == pytest.approx(46.0 if inside else 40.0)
    assert found.rest == pytest.approx(1.0)
    assert sum(
        part.share for part in found.parts
    ) + found.rest / found.whole == pytest.approx(1.0)


def test_validation_of_every_step_that_does_not_fit_into_it_lies_beside_it():
    assert excluded(verl(every=1)) == ["timing_s/testing"]
    assert excluded(verl(every=1, inside=True)) == []


def test_parts_that_run_side_by_side_are_said_to():
    found = timed(
        training(
            {
                "time/step": [10.0] * 5,
                "time/generate": [9.0] * 5,
                "time/train": [8.0] * 5,
            }
        )
    )
    assert found.overlaps
    assert found.rest == pytest.approx(-7.0)


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        # verl v0.1
        ({"timing/gen": 5.0, "timing/step": 9.0, "timing/update_actor": 3.0}, {"gen", "update_actor"}),
        ({"timing_s_gen": 5.0, "timing_s_step": 9.0}, {"gen"}),  # as CSV has it
        ({"timing/generation": 5.0, "timing/step_total": 9.0, "timing/ppo_train": 3.0}, {"generation", "ppo_train"}),
        ({"train/timing/train/generation": 5.0, "train/timing/train/total_step_time": 9.0}, {"generation"}),
        (
            {"perf/step_time": 9.0, "perf/train_wait_time": 5.0, "perf/train_time": 4.0,
             "perf/actor_train_time": 3.0, "perf/log_probs_time": 1.0, "perf/rollout_time": 5.0},
            {"train_wait", "actor_train", "log_probs"},
        ),
        ({"perf/step_time": 9.0, "perf/train_wait_time": 5.0, "perf/train_time": 4.0}, {"train_wait", "train"}),
        ({"time/step": 9.0, "time/wait_for_batch": 4.0, "time/train": 4.0}, {"wait_for_batch", "train"}),
        ({"train/time(s)": 9.0, "train/loss": 1.0}, set()),
    ],
)  # fmt: skip
def test_other_spellings(columns, parts):
    found = timed(training({key: [value] * 6 for key, value in columns.items()}))
    assert found.step == 9.0
    assert {part.name for part in found.parts} == parts


def test_the_first_step_warms_up():
    found = timed(
        training(
            {"timing_s/step": [900.0, 10.0, 10.0], "timing_s/gen": [800.0, 9.0, 9.0]}
        )
    )
    assert (found.steps, found.step) == ((2, 3), 10.0)


def test_trend_is_against_the_run_s_own_past():
    slower = training({"timing_s/step": [99.0] + [10.0] * 59 + [15.0] * 20})
    assert slowdown(slower, "timing_s/step", 61) == 1.5
    assert slowdown(slower, "timing_s/step", 4) is None, "too little of a past"
    assert slowdown(slower, "timing_s/step", 90) is None, "nothing since"
    assert slowdown(slower, "timing_s/gen", 61) is None, "no such timer"


def test_throughput():
    columns = {"timing_s/step": [10.0] * 6, "perf/throughput": [100.0] * 6, "perf/total_num_tokens": [8000.0] * 6,
               "perf/mfu/actor": [0.31] * 6}  # fmt: skip
    settings = {"data__train_batch_size": 16, "actor_rollout_ref__rollout__n": 5, "trainer__n_gpus_per_node": 8,
                "trainer__nnodes": 2}  # fmt: skip
    run = training(columns, settings=settings)
    assert figures(list(throughput(run, breakdown(run)))) == {
        "throughput per GPU": (100.0, "tokens/s/GPU"),
        "throughput of all GPUs": (800.0, "tokens/s"),
        "tokens per step": (8000.0, "tokens"),
        "samples per second": (8.0, "samples/s"),
        "MFU actor": (0.31, "share"),
    }
    del columns["perf/total_num_tokens"]
    run = training(columns, settings=settings)
    assert figures(list(throughput(run, breakdown(run))))["throughput of all GPUs"] == (
        1600.0,
        "tokens/s",
    )
    run = training(columns)
    assert "throughput of all GPUs" not in figures(
        list(throughput(run, breakdown(run)))
    )


def test_asynchronous_trainers():
    columns = {
        "timing_s/step": [10.0] * 4,
        "timing_s/gen": [4.0] * 4,
        "trainer/idle_ratio": [0.4] * 4,
        "fully_async/rollouter/idle_ratio": [0.1, 0.1, 0.1, 0.3],
        "fully_async/partial/partial_ratio": [0.2] * 4,
        "fully_async/count/dropped_stale_samples": [0.0, 1.0, 2.0, 7.0],
        "fully_async/count/staleness_samples": [5.0] * 4,
    }
    run = training(columns)
    assert figures(list(waiting(run, breakdown(run)))) == {
        "time waiting for samples": (0.4, "share"),
        "trainer idle": (0.4, "share"),
        "rollouter idle": (0.166667, "share"),
        "partial rollouts": (0.2, "share"),
        "dropped samples": (7.0, ""),
        "stale samples": (5.0, ""),
    }
    assert list(waiting(training({"actor/pg_loss": [0.1]}), None)) == []


def test_a_part_beside_a_step_of_no_length_is_a_finite_share():
    found = timed(
        training(
            {"timing_s/step": [0.0] * 5 + [2.3e-308], "timing_s/gen": [0.0] * 5 + [4.0]}
        )
    )
    assert [part.share for part in found.parts] == [100.0]
