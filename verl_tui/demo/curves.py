"""The curves of the simulated runs: functions from a step to the numbers that a trainer logs.

Noise comes from a generator seeded by run and step, so that each step can be computed by itself and
the same seed always gives the same run.
"""

from __future__ import annotations

import math
import random

from verl_tui.means import clamp

STEPS = 300
"""Optimiser steps of a run."""
COLLAPSE_STEP = 144
"""Step at which the reward of the collapsing run falls off a cliff."""
_DRIFT = 12
"""Steps before, from which on its policy slips away."""


def generator(seed: int, *name: object) -> random.Random:
    """Return the random numbers of one named thing; equal names give equal numbers in every
    process.
    """
    return random.Random("/".join(map(str, (seed, *name))))


def chance(step: int, difficulty: float) -> float:
    """Return how likely a problem is solved; the gentle slope keeps most groups mixed, and only
    those teach.
    """
    skill = 0.22 + 0.68 * (step / STEPS) ** 0.7
    return 1 / (1 + math.exp(-3 * (skill - difficulty)))


def drift(step: int) -> float:
    """Return how far the collapsing policy has slipped away, 0 to 1."""
    return clamp((step - COLLAPSE_STEP + _DRIFT) / (2 * _DRIFT), 0.0, 1.0)


def lost(step: int) -> float:
    """Return the share of the collapsing policy's responses that only repeat themselves."""
    return 1 - 0.6 ** max(0, step - COLLAPSE_STEP + 1)


def actor_metrics(step: int, rng: random.Random, slip: float) -> dict[str, float]:
    """Return the metrics of a step that are not computed from its rollouts, healthy at no slip."""
    noise = rng.gauss
    return {
        "actor/entropy": (0.19 + 0.21 * math.exp(-step / 130) + noise(0, 0.006))
        * (1 - 0.97 * slip),
        "training/rollout_probs_diff_valid": 1.0,
        "training/rollout_probs_diff_max": clamp(noise(0.33, 0.05), 0.2, 0.5),
        "training/rollout_probs_diff_mean": noise(0.0027, 0.0002),
        "training/rollout_probs_diff_std": noise(0.0078, 0.0006),
        "training/rollout_actor_probs_pearson_corr": noise(0.99905, 0.0002),
        "actor/pg_loss": noise(-0.0008, 0.004) + 0.6 * slip,
        "actor/kl_loss": 0.0008
        + 0.011 * (1 - math.exp(-step / 140))
        + abs(noise(0, 0.0003))
        + 0.9 * slip,
        "actor/pg_clipfrac": abs(noise(0.0011, 0.0004)) + 0.34 * slip,
        "actor/ppo_kl": noise(2e-5, 9e-5) + (0.3 + noise(0, 0.01)) * slip,
        "actor/pg_clipfrac_lower": 0.0,
        "actor/grad_norm": 0.24
        + 0.3 * math.exp(-step / 100)
        + abs(noise(0, 0.02))
        + 7.5 * slip,
        # Peaks of the process never fall: they rise in the first steps and stay.
        "actor/perf/max_memory_allocated_gb": 21.4 + 1.7 * min(step, 6) / 6,
        "actor/perf/max_memory_reserved_gb": 27.0 + 2.4 * min(step, 6) / 6,
        "actor/perf/cpu_memory_used_gb": 96.2 + 0.004 * step + rng.uniform(0, 0.3),
    }


def phases(step: int, rng: random.Random) -> dict[str, float]:
    """Return the seconds of a step's parts, together about one; the first step compiles kernels."""
    warm_up = 0.9 if step == 1 else 0.0
    return {
        "gen": 0.42 + rng.uniform(-0.03, 0.05) + warm_up,
        "old_log_prob": 0.08 + rng.uniform(-0.005, 0.008),
        "ref": 0.07 + rng.uniform(-0.005, 0.008),
        "adv": 0.006 + rng.uniform(0, 0.002),
        "update_actor": 0.29 + rng.uniform(-0.02, 0.03) + warm_up,
        "update_weights": 0.05 + rng.uniform(-0.004, 0.006),
    }
