"""A reward that slides, jumps or loses one of its parts; and a KL that no reward was bought
with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planted import OTHER, VERL, judge, noisy, planted

if TYPE_CHECKING:
    from verl_tui.health.finding import Episode


def reported(
    columns: dict[str, list[float]], id: str, beside: dict[str, float] = VERL
) -> list[Episode]:
    return [one for one in judge(planted(columns, beside)).history if one.id == id]


SLIDE = noisy([0.7] * 60 + [0.7 - 0.006 * i for i in range(100)] + [0.1] * 40, 0.03)


def test_a_slide_is_found_while_it_slides_and_called_one() -> None:
    (slide,) = reported({"critic/score/mean": SLIDE}, "reward-slide")
    assert slide.since_step is not None
    assert 50 <= slide.since_step <= 90
    assert slide.raised_step is not None
    assert slide.raised_step <= 135
    assert reported({"critic/score/mean": SLIDE}, "reward-cliff") == []


@pytest.mark.parametrize("level", [0.02, 0.2, 0.5, -1.0, 3.0])
def test_a_reward_that_only_varies_does_not_slide(level: float) -> None:
    for seed in range(20):
        values = noisy([level] * 300, abs(level) / 2 + 0.05, seed)
        verdict = judge(planted({"critic/score/mean": values}))
        assert not {"reward-slide", "reward-jump"} & {one.id for one in verdict.history}


def test_a_scale_below_0() -> None:
    assert (
        len(
            reported(
                {"reward": noisy([-3.0] * 60, 0.5) + noisy([20.0] * 40, 1.0)},
                "reward-jump",
                OTHER,
            )
        )
        == 1
    )


@pytest.mark.parametrize(
    "values",
    [
        [0.01] * 60 + [0.9] * 40,  # a sparse reward that is found
        [0.3] * 60 + [0.3 + 0.2 * i for i in range(40)],  # climbs
        [0.5] * 60 + [60.0] + [0.5] * 39,  # a single batch
    ],
)
def test_what_is_learnt_is_no_change_of_scale(values: list[float]) -> None:
    assert reported({"critic/score/mean": values}, "reward-jump") == []


def test_a_rejected_answer_of_dpo_that_loses_its_reward_is_no_fall() -> None:
    rejected = noisy([1.0] * 60 + [max(-3.0, 1.0 - 0.05 * i) for i in range(120)], 0.05)
    columns = {
        "rewards/chosen": noisy([1.0] * 180, 0.05),
        "rewards/rejected": rejected,
        "rewards/margins": rejected,
    }
    assert reported(columns, "component-falls", OTHER) == []


def test_a_kl_that_buys_reward_is_the_price_of_learning() -> None:
    kl = noisy([min(1.5, 0.03 * i) for i in range(200)], 0.02)
    columns = {
        "actor/kl_loss": kl,
        "critic/score/mean": noisy(
            [min(0.9, 0.1 + 0.02 * i) for i in range(200)], 0.05
        ),
    }
    assert not {"ref-kl-above-band", "ref-kl-rising", "ref-kl-high"} & {
        one.id for one in judge(planted(columns)).history
    }


def test_a_reward_that_is_lost_again_leaves_the_kl_unbought() -> None:
    reward = noisy([min(0.9, 0.1 + 0.02 * i) for i in range(100)] + [0.1] * 100, 0.03)
    columns = {
        "actor/kl_loss": noisy([min(3.0, 0.03 * i) for i in range(200)], 0.02),
        "critic/score/mean": reward,
    }
    (far,) = reported(columns, "ref-kl-above-band")
    assert far.raised_step is not None
    assert 100 < far.raised_step <= 150


def test_a_fall_from_the_first_steps_on_is_reported_though_it_is_steep() -> None:
    (found,) = reported(
        {"critic/score/mean": noisy([0.5] * 8 + [0.1] * 40, 0.03)}, "reward-slide"
    )
    assert found.raised_step in range(30, 41)
