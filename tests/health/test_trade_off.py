"""The reward rises at the cost of one of its parts, whatever that is called and on whatever
scale.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest
from planted import OTHER, VERL, ids, judge, planted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.health.finding import Finding

COUNT = 200


def ramp(start: float, end: float, begin: int, finish: int) -> list[float]:
    return [
        start + (end - start) * min(1.0, max(0.0, (i - begin) / (finish - begin)))
        for i in range(COUNT)
    ]


def noisy(values: list[float], size: float, seed: int = 0) -> list[float]:
    chance = random.Random(seed)
    return [value + chance.gauss(0, size) for value in values]


RISE = noisy(ramp(0.2, 1.0, 20, 120), 0.03, 1)
FALL = noisy(ramp(0.6, 0.02, 20, 60), 0.08, 2)


def hacking(
    columns: Mapping[str, list[float]],
    beside: Mapping[str, float] = OTHER,
    settings: Mapping[str, object] | None = None,
) -> Finding | None:
    verdict = judge(planted(columns, beside, settings))
    return next((one for one in verdict.findings if one.id == "reward-hacking"), None)


@pytest.mark.parametrize(
    ("reward", "part", "beside"),
    [
        ("reward", "rewards/answer/mean", OTHER),
        ("train/reward", "train/rewards/answer/mean", OTHER),
        ("critic/score/mean", "samples/acc", VERL),
        ("critic/score/mean", "critic/acc/mean", VERL),
        ("critic/score/mean", "critic/rewards/acc", VERL),
        ("critic/score/mean", "critic/reward_extra_info/acc/mean", VERL),
        ("critic/score/mean", "reward/acc", VERL),
        ("critic/score/mean", "val-core/gsm8k/acc/mean@1", VERL),
    ],
)
def test_a_part_that_falls_while_the_reward_rises(
    reward: str, part: str, beside: Mapping[str, float]
) -> None:
    found = hacking({reward: RISE, part: FALL}, beside)
    assert found is not None
    assert f"the reward rises at the cost of {part}: that fell from 0." in found.message
    assert found.key == part
    assert found.since_step is not None
    assert 10 <= found.since_step <= 40


def test_a_part_may_be_logged_only_from_later_on() -> None:
    part = [*[math.nan] * 35, *noisy([0.6] * 35, 0.08), *noisy([0.02] * 130, 0.02)]
    found = hacking({"reward": RISE, "rewards/answer/mean": part})
    assert found is not None
    assert found.key == "rewards/answer/mean"


def test_what_counts_against_the_reward_may_fall() -> None:
    columns = {
        "reward": RISE,
        "rewards/right/mean": RISE,
        "rewards/rambling/mean": FALL,
    }
    assert hacking(columns, settings={"reward_weights": "[1.0, -0.5]"}) is None


@pytest.mark.parametrize(
    "name",
    [
        "rewards/length_penalty/mean",
        "rewards/token_cost/mean",
        "rewards/format_errors/mean",
        "rewards/answer/std",
    ],
)
def test_costs_amounts_and_spreads_may_fall(name: str) -> None:
    assert hacking({"reward": RISE, "rewards/right/mean": RISE, name: FALL}) is None


@pytest.mark.parametrize(
    ("part", "reported"),
    [
        # right answers score 1, wrong ones -1
        (noisy(ramp(0.2, -0.9, 20, 60), 0.05), True),
        (noisy(ramp(-0.3, -0.98, 20, 60), 0.01), True),
        # a penalty for length, which grows
        (noisy(ramp(-0.15, -0.6, 20, 60), 0.01), False),
        (noisy(ramp(-2.0, -5.0, 20, 60), 0.1), False),  # a scale that is not known
        (noisy(ramp(3.0, -1.0, 20, 60), 0.2), True),
    ],
)
def test_scales_below_0(part: list[float], reported: bool) -> None:
    assert (
        hacking({"reward": RISE, "rewards/answer/mean": part}) is not None
    ) is reported


@pytest.mark.parametrize(
    "reward", [noisy([0.5] * COUNT, 0.03), noisy(ramp(0.6, 0.2, 20, 60), 0.03)]
)
def test_a_reward_that_does_not_rise_is_bought_with_nothing(
    reward: list[float],
) -> None:
    assert hacking({"reward": reward, "rewards/answer/mean": FALL}) is None


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_small_batches_are_noise(share: float) -> None:
    for seed in range(10):
        chance = random.Random(seed)
        batches = [
            sum(chance.random() < share for _ in range(8)) / 8 for _ in range(COUNT)
        ]
        assert hacking({"reward": RISE, "rewards/answer/mean": batches}) is None


def test_it_is_over_when_the_part_has_come_back() -> None:
    back = [*FALL[:100], *noisy([0.6] * 100, 0.05)]
    verdict = judge(planted({"reward": RISE, "rewards/answer/mean": back}, OTHER))
    assert "reward-hacking" not in ids(verdict)
    (episode,) = [one for one in verdict.history if one.id == "reward-hacking"]
    assert episode.cleared_step is not None
