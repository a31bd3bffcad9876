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
def test_healthy_reward_settles_early(seed: int) -> None:
    assert all(
        2.0 <= curves.healthy_ppo(step, seed).reward_mean <= 4.0
        for step in HEALTHY
        if step > 20
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_run_never_nears_the_circuit_breaker(seed: int) -> None:
    rewards = [curves.healthy_ppo(step, seed).reward_mean for step in HEALTHY]
    assert longest_streak(falls(rewards)) == 0


def test_healthy_policy_loss_shrinks() -> None:
    losses = [abs(curves.healthy_ppo(step, 7).policy_loss) for step in HEALTHY]
    thirds = [sum(losses[place : place + 100]) for place in (0, 100, 200)]
    assert thirds == sorted(thirds, reverse=True)


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


@pytest.mark.parametrize("seed", SEEDS)
def test_kl_leaves_its_band_before_the_reward_falls(seed: int) -> None:
    steps = {step: curves.collapsing_ppo(step, seed) for step in COLLAPSING}
    first_high = next(step for step, now in steps.items() if now.kl_div > 0.1)
    assert curves.DRIFT_STEP <= first_high < curves.COLLAPSE_STEP
    assert all(
        now.kl_div > 0.2 for step, now in steps.items() if step >= curves.COLLAPSE_STEP
    )
    assert all(
        now.divergence > 3 * 0.1
        for step, now in steps.items()
        if step >= curves.COLLAPSE_STEP
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_entropy_collapses(seed: int) -> None:
    assert (
        curves.collapsing_ppo(
            curves.DRIFT_STEP - curves.COLLAPSE_INTERVAL, seed
        ).entropy
        > 1
    )
    assert curves.collapsing_ppo(curves.COLLAPSE_STEPS, seed).entropy < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_grpo_engines_agree_and_the_gradient_calms_down(seed: int) -> None:
    steps = [curves.grpo(step, seed) for step in range(1, curves.GRPO_STEPS + 1)]
    assert all(now.probs_diff_mean < 0.005 for now in steps)
    assert all(now.entropy > 0.1 for now in steps)
    assert sum(now.grad_norm for now in steps[:50]) > sum(
        now.grad_norm for now in steps[-50:]
    )


def test_seed_and_step_decide_everything() -> None:
    assert curves.healthy_ppo(33, 1) == curves.healthy_ppo(33, 1)
    assert curves.healthy_ppo(33, 1) != curves.healthy_ppo(33, 2)
    assert curves.grpo(33, 1) == curves.grpo(33, 1)
