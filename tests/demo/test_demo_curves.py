"""The curves against the guide: the healthy run inside its bands, the other one out of them where
it should be.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from verl_tui.demo import curves

SEEDS = (0, 7, 2024)
HEALTHY = range(1, curves.TUTORIAL_STEPS + 1)
COLLAPSING = range(
    curves.COLLAPSE_INTERVAL, curves.COLLAPSE_STEPS + 1, curves.COLLAPSE_INTERVAL
)


def longest_streak(hits: list[bool]) -> int:
    longest = current = 0
    for hit in hits:
        current = current + 1 if hit else 0
        longest = max(longest, current)
    return longest


def falls(rewards: list[float]) -> list[bool]:
    return [
        last > 0 and last - reward > 0.2 * last for last, reward in pairwise(rewards)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_run_stays_inside_the_bands(seed: int) -> None:
    for step in HEALTHY:
        now = curves.healthy_ppo(step, seed)
        assert 1.0 < now.reward_mean < 4.0
        assert now.reward_std < 0.5 * now.reward_mean
        assert 0.01 <= now.kl_div <= 0.05
        assert 0.01 <= now.divergence <= 0.1
        assert -0.5 <= now.policy_loss <= -0.1
        assert 480 <= now.response_length <= 512
        assert now.gpu_util > 70
        assert now.memory_util < 90


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_run_never_nears_the_circuit_breaker(seed: int) -> None:
    rewards = [curves.healthy_ppo(step, seed).reward_mean for step in HEALTHY]
    assert longest_streak(falls(rewards)) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_collapsing_run_is_healthy_before_it_drifts(seed: int) -> None:
    for step in COLLAPSING:
        if step >= curves.DRIFT_STEP:
            break
        now = curves.collapsing_ppo(step, seed)
        assert 1.0 < now.reward_mean < 4.0
        assert now.reward_std < 0.5 * now.reward_mean
        assert 0.01 <= now.kl_div <= 0.05
        assert 0.01 <= now.divergence <= 0.1
        assert -0.5 <= now.policy_loss <= -0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_reward_falls_off_its_cliff_at_the_planted_step(seed: int) -> None:
    rewards = [curves.collapsing_ppo(step, seed).reward_mean for step in COLLAPSING]
    fallen = falls(rewards)
    assert COLLAPSING[fallen.index(True) + 1] == curves.COLLAPSE_STEP
    assert longest_streak(fallen) >= 5
    assert min(rewards) > 0
    assert rewards[-1] < 0.1


def test_seed_and_step_decide_everything() -> None:
    assert curves.healthy_ppo(33, 1) == curves.healthy_ppo(33, 1)
    assert curves.healthy_ppo(33, 1) != curves.healthy_ppo(33, 2)
    assert curves.grpo(33, 1) == curves.grpo(33, 1)
