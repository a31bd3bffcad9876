"""The curves of the simulated runs: functions from a step to the numbers that a trainer logs.

Noise comes from a generator seeded by run and step, so that each step can be computed by itself and
the same seed always gives the same run.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from verl_tui.means import clamp

GRPO_STEPS = 300
"""Optimiser steps of the GRPO run."""
TUTORIAL_STEPS = 300
"""Optimiser steps of the healthy PPO run; it logs each of them."""
COLLAPSE_INTERVAL = 50
"""Optimiser steps between two records of the collapsing run."""
COLLAPSE_STEPS = 8400
"""Optimiser steps of the collapsing run."""
COLLAPSE_STEP = 5000
"""Step at which the reward collapses, as in the tutorials' example."""
DRIFT_STEP = 4600
"""Step at which the policy's KL leaves its healthy band, some records before the reward falls."""
RESPONSE_LIMIT = 512
"""Longest response of the PPO runs in tokens."""


def generator(seed: int, *name: object) -> random.Random:
    """Return the random numbers of one named thing; equal names give equal numbers in every
    process.
    """
    return random.Random("/".join(map(str, (seed, *name))))


def sigmoid(value: float) -> float:
    """Return the logistic function."""
    return 1 / (1 + math.exp(-value))


@dataclass(frozen=True, slots=True)
class PpoStep:
    """The metrics of one step of the tutorials' trainer."""

    reward_mean: float
    reward_std: float
    kl_div: float
    """Policy KL, new against old."""
    divergence: float
    """KL to the reference model."""
    response_length: float
    response_length_min: int
    policy_loss: float
    value_loss: float
    entropy: float
    clip_ratio: float
    grad_norm: float
    gpu_util: float
    memory_util: float


def healthy_ppo(step: int, seed: int) -> PpoStep:
    """Return a step of a run that stays in every healthy band of the guide."""
    rng = generator(seed, "healthy", step)
    # Ends on a slope: a run that learns to its last step is no plateau.
    reward = (
        1.35
        + 1.1 * (1 - math.exp(-step / 10))
        + 0.85 * (step / TUTORIAL_STEPS) ** 0.8
        + rng.gauss(0, 0.05)
    )
    # The adaptive controller lets KL creep up and pushes it back: a small saw-tooth around its
    # target.
    saw = 0.004 * ((step % 24) / 24 - 0.5)
    return PpoStep(
        reward_mean=clamp(reward, 1.2, 3.9),
        reward_std=reward
        * clamp(0.31 - 0.0002 * step + rng.gauss(0, 0.02), 0.15, 0.42),
        kl_div=clamp(0.0205 + saw + rng.gauss(0, 0.0025), 0.011, 0.034),
        divergence=clamp(
            0.018
            + 0.026 * (1 - math.exp(-step / 60))
            + 0.5 * saw
            + rng.gauss(0, 0.0015),
            0.011,
            0.06,
        ),
        response_length=clamp(
            496 + 5 * math.sin(step / 17) + rng.gauss(0, 2.5), 482, 510
        ),
        response_length_min=rng.randint(432, 470),
        policy_loss=clamp(
            -0.12 - 0.3 * math.exp(-step / 120) + rng.gauss(0, 0.009), -0.48, -0.102
        ),
        value_loss=clamp(
            0.22 + 0.7 * math.exp(-step / 70) + rng.gauss(0, 0.02), 0.12, 1.1
        ),
        entropy=clamp(
            1.21 + 0.75 * math.exp(-step / 150) + rng.gauss(0, 0.02), 1.0, 2.2
        ),
        clip_ratio=clamp(0.12 + rng.gauss(0, 0.012), 0.06, 0.19),
        grad_norm=clamp(
            0.62 + 0.5 * math.exp(-step / 90) + rng.gauss(0, 0.05), 0.4, 1.4
        ),
        gpu_util=clamp(rng.gauss(88, 3), 77, 97),
        memory_util=clamp(rng.gauss(71, 1.5), 66, 77),
    )


def collapsing_ppo(step: int, seed: int) -> PpoStep:
    """Return a step of a run whose KL slips away until the reward falls off a cliff at
    `COLLAPSE_STEP`.
    """
    rng = generator(seed, "collapse", step)
    drift = sigmoid((step - COLLAPSE_STEP + 150) / 75) if step >= DRIFT_STEP else 0.0
    fallen = max(0, (step - COLLAPSE_STEP) // COLLAPSE_INTERVAL + 1)
    rise = (
        1.4
        + 1.3 * (1 - math.exp(-step / 900))
        + 0.45 * clamp(step / COLLAPSE_STEP, 0, 1)
    )
    # Six tenths of the last record, again and again: a cliff to the eye, and five breaches for the
    # circuit breaker. The floor above zero keeps "the reward model crashed" out of the diagnosis.
    reward = max((rise + rng.gauss(0, 0.04)) * 0.6**fallen, 0.06 + rng.uniform(0, 0.02))
    # Repetition never reaches an end token: every response runs to the limit.
    length = RESPONSE_LIMIT if fallen > 4 else 494 + rng.gauss(0, 3) + 16 * drift
    return PpoStep(
        reward_mean=reward,
        reward_std=reward
        * clamp(
            0.3 + 0.1 * drift + rng.gauss(0, 0.02) + 0.4 * min(fallen / 6, 1), 0.2, 0.85
        ),
        kl_div=clamp(0.021 + rng.gauss(0, 0.0025), 0.012, 0.032)
        + (0.29 + rng.gauss(0, 0.008)) * drift,
        divergence=_escaping_divergence(step, drift) + rng.gauss(0, 0.002),
        response_length=clamp(length, 482, RESPONSE_LIMIT),
        response_length_min=RESPONSE_LIMIT if fallen > 4 else rng.randint(432, 470),
        policy_loss=clamp(
            -0.13 - 0.28 * math.exp(-step / 2500) + rng.gauss(0, 0.009), -0.48, -0.102
        )
        + drift * (0.5 + 0.06 * min(fallen, 20) + abs(rng.gauss(0, 0.12))),
        value_loss=0.24
        + 0.6 * math.exp(-step / 1200)
        + abs(rng.gauss(0, 0.02))
        + 2.4 * drift * min(fallen / 5, 1),
        entropy=max(
            (1.28 + 0.6 * math.exp(-step / 2500) + rng.gauss(0, 0.02))
            * (1 - 0.975 * drift),
            0.02,
        ),
        clip_ratio=clamp(0.12 + rng.gauss(0, 0.012) + 0.34 * drift, 0.06, 0.6),
        grad_norm=clamp(
            0.7 + 0.4 * math.exp(-step / 1500) + rng.gauss(0, 0.05), 0.4, 1.4
        )
        + 7.5 * drift,
        gpu_util=clamp(rng.gauss(87, 3), 77, 97),
        memory_util=clamp(rng.gauss(72, 1.5), 66, 78),
    )


def _escaping_divergence(step: int, drift: float) -> float:
    """Return the KL to the reference: too weak a coefficient lets it creep, then the policy is
    gone.
    """
    creep = 0.02 + 0.058 * clamp(step / COLLAPSE_STEP, 0, 1)
    beyond = max(0.0, (step - COLLAPSE_STEP) / 1000)
    return creep + drift * (0.34 + 0.22 * (1 - math.exp(-beyond)))


@dataclass(frozen=True, slots=True)
class GrpoStep:
    """The metrics of one GRPO step that are not computed from its rollouts."""

    entropy: float
    pg_loss: float
    kl_loss: float
    pg_clipfrac: float
    ppo_kl: float
    grad_norm: float
    probs_diff_mean: float
    probs_diff_max: float
    probs_diff_std: float
    pearson: float
    memory_allocated_gb: float
    memory_reserved_gb: float
    host_memory_gb: float
    gen_s: float
    old_log_prob_s: float
    ref_s: float
    adv_s: float
    update_actor_s: float
    update_weights_s: float
    testing_s: float
    save_s: float


def grpo_skill(step: int) -> float:
    """Return how able the policy of the GRPO run is, on the scale of the problems' difficulty, 0 to
    1.
    """
    return 0.22 + 0.68 * math.pow(clamp(step / GRPO_STEPS, 0, 1), 0.7)


def grpo(step: int, seed: int) -> GrpoStep:
    """Return a step of the GRPO run: small, healthy, about one second long as its log's clock says
    too.
    """
    rng = generator(seed, "grpo", step)
    warm_up = 0.9 if step == 1 else 0.0  # the first step compiles kernels
    return GrpoStep(
        entropy=0.19 + 0.21 * math.exp(-step / 130) + rng.gauss(0, 0.006),
        pg_loss=rng.gauss(-0.0008, 0.004),
        kl_loss=max(
            0.0004 + 0.011 * (1 - math.exp(-step / 140)) + rng.gauss(0, 0.0003), 0.0001
        ),
        pg_clipfrac=abs(rng.gauss(0.0011, 0.0004)),
        ppo_kl=rng.gauss(2e-5, 9e-5),
        grad_norm=0.24 + 0.3 * math.exp(-step / 100) + abs(rng.gauss(0, 0.02)),
        probs_diff_mean=clamp(rng.gauss(0.0027, 0.0002), 0.0019, 0.0036),
        probs_diff_max=clamp(rng.gauss(0.33, 0.05), 0.2, 0.5),
        probs_diff_std=clamp(rng.gauss(0.0078, 0.0006), 0.005, 0.011),
        pearson=clamp(rng.gauss(0.99905, 0.0002), 0.998, 0.9999),
        # Peaks of the process never fall: they rise in the first steps and stay.
        memory_allocated_gb=21.4 + 1.7 * min(step, 6) / 6,
        memory_reserved_gb=27.0 + 2.4 * min(step, 6) / 6,
        host_memory_gb=96.2 + 0.004 * step + rng.uniform(0, 0.3),
        gen_s=0.42 + rng.uniform(-0.03, 0.05) + warm_up,
        old_log_prob_s=0.08 + rng.uniform(-0.005, 0.008),
        ref_s=0.07 + rng.uniform(-0.005, 0.008),
        adv_s=0.006 + rng.uniform(0, 0.002),
        update_actor_s=0.29 + rng.uniform(-0.02, 0.03) + warm_up,
        update_weights_s=0.05 + rng.uniform(-0.004, 0.006),
        testing_s=0.31 + rng.uniform(-0.02, 0.04),
        save_s=0.24 + rng.uniform(-0.02, 0.03),
    )
