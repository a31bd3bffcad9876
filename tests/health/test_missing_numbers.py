"""Numbers that turned None: in consoles and trainer states as NaN, in TensorBoard files as points
left out.
"""

from __future__ import annotations

import math

import pytest
from planted import OTHER, VERL, batch, judge, planted, rows

from verl_tui.runs.run import Run

NAN = math.nan
COUNT = 60


def event_files(left_out: range, count: int = COUNT, begin: int = 0) -> Run:
    """Return a run as Hugging Face's TensorBoard files have it: each number comes alone."""
    run = Run("r")
    for step in range(begin, count):
        at = [step + 1]
        run.apply(batch(rows({"train/learning_rate": [1e-5]}, at, step)), now=0.0)
        if step not in left_out:
            run.apply(
                batch(rows({"train/reward": [0.5], "train/loss": [0.1]}, at, step)),
                now=0.0,
            )
    return run


def broken(run: Run) -> tuple[int | None, str] | None:
    found = [one for one in judge(run).findings if one.id == "not-finite"]
    return (found[0].since_step, found[0].message) if found else None


def test_a_point_left_out_is_a_number_that_is_none() -> None:
    found = broken(event_files(range(50, 51)))
    assert found is not None
    assert found[0] == 51
    assert "was not finite" in found[1]


def test_what_is_left_out_to_the_end_is_reported() -> None:
    found = broken(event_files(range(50, COUNT)))
    assert found is not None
    assert found[0] == 51
    assert "is not finite" in found[1]


def test_the_newest_step_may_be_on_its_way() -> None:
    assert broken(event_files(range(COUNT - 1, COUNT))) is None


@pytest.mark.parametrize("every", [2, 5])
def test_a_metric_at_a_pace_of_its_own_lacks_nothing(every: int) -> None:
    run = Run("r")
    run.apply(batch(rows({"train/learning_rate": [1e-5] * COUNT})), now=0.0)
    run.apply(
        batch(rows({"train/reward": [0.5] * (COUNT // every)}, range(1, COUNT, every))),
        now=0.0,
    )
    assert broken(run) is None


@pytest.mark.parametrize("beside", [VERL, OTHER], ids=["verl", "other"])
def test_a_metric_that_has_a_number_only_now_and_then_is_no_fault(
    beside: dict[str, float],
) -> None:
    now_and_then = [0.5 if i % 10 == 3 else NAN for i in range(COUNT)]
    assert (
        broken(
            planted(
                {"critic/score/mean": [0.5] * COUNT, "tool/score": now_and_then}, beside
            )
        )
        is None
    )


def test_a_reward_that_begins_with_none_is_a_fault_when_it_is_none_again() -> None:
    found = broken(planted({"reward": [NAN, *[0.5] * 49, NAN, *[0.5] * 9]}, OTHER))
    assert found is not None
    assert found[0] == 51
