"""For each rule a series that it is to fire on, and a healthy one."""

from __future__ import annotations

from typing import NamedTuple

from planted import OTHER, TUTORIAL, VERL, wave


class Case(NamedTuple):
    """A rule with what breaches it and what does not."""

    rule: str
    sick: dict[str, list[float]]
    well: dict[str, list[float]]
    beside: dict[str, float] = VERL
    settings: dict[str, object] | None = None


def late(count: int, well: float, sick: float, tail: int) -> list[float]:
    return [*wave(count - tail, well, abs(well) * 0.1), *[sick] * tail]


RISING_KL = [0.05] * 40 + [0.11 + 0.005 * i for i in range(40)]
V1 = {"training/num_turns/mean": 2.0}
LIMIT = {"data.max_response_length": 1024, "data.max_prompt_length": 512}
T, V = TUTORIAL, VERL
ASYNC = {"fully_async/trainer/idle_ratio": 0.1, "critic/returns/mean": 0.0}
RS = "rollout_corr/rollout_rs_masked_fraction"
SOLVED = [*[0.5] * 10, *[1.0] * 20]
"""Rewards of a task that is solved after ten steps."""
CASES = [
    Case(
        "nothing-learns",
        {"actor/lr": [0.0] * 20, "actor/grad_norm": wave(20, 0.51234, 0.1)},
        {
            "actor/lr": [*[0.0] * 5, *[1e-6] * 15],
            "actor/grad_norm": wave(20, 0.51234, 0.1),
        },
    ),
    Case(
        "nothing-learns/unmoved",
        {
            "actor/grad_norm": [0.0] * 30,
            "actor/kl_loss": [0.0] * 30,
            "actor/lr": [1.234567e-6] * 30,
        },
        {
            "actor/grad_norm": wave(30, 0.5, 0.1),
            "actor/kl_loss": [0.0] * 30,
            "actor/lr": [1.234567e-6] * 30,
        },
    ),
    Case(
        "reward-zero",
        {"rollout/reward_mean": late(30, 2.4, 0.0, 1)},
        {"rollout/reward_mean": wave(30, 2.4, 0.3)},
        T,
    ),
    Case(
        "reward-zero/lasting",
        {"critic/score/mean": late(30, 0.6, 0.0, 3)},
        {"critic/score/mean": late(30, 0.6, 0.0, 2)},
    ),
    Case(
        "reward-cliff",
        {"critic/score/mean": late(80, 0.6, 0.1, 8)},
        {"critic/score/mean": late(80, 0.6, 0.4, 8)},
    ),
    Case(
        "reward-slide",
        {
            "critic/score/mean": [
                *wave(40, 0.6, 0.02),
                *[0.6 - 0.01 * i for i in range(50)],
            ]
        },
        {
            "critic/score/mean": [
                *wave(40, 0.6, 0.02),
                *[0.6 - 0.002 * i for i in range(50)],
            ]
        },
    ),
    Case(
        "reward-jump",
        {"critic/score/mean": [*wave(40, 0.6, 0.2), *[60.0] * 5]},
        {"critic/score/mean": [*wave(40, 0.6, 0.2), *[1.0] * 5]},
    ),
    Case(
        "component-falls",
        {
            "critic/score/mean": [1.0] * 80,
            "samples/a": [0.5] * 80,
            "samples/b": [0.5] * 40 + [0.1] * 40,
        },
        {
            "critic/score/mean": [1.0] * 80,
            "samples/a": [0.5] * 80,
            "samples/b": [0.5] * 40 + [0.4] * 40,
        },
    ),
    Case(
        "reward-low",
        {"rollout/reward_mean": wave(80, 0.6, 0.1)},
        {"rollout/reward_mean": wave(80, 2.4, 0.3)},
        T,
    ),
    Case(
        "reward-noisy",
        {
            "rollout/reward_mean": wave(30, 2.0, 0.1),
            "rollout/reward_std": wave(30, 1.4, 0.1),
        },
        {
            "rollout/reward_mean": wave(30, 2.0, 0.1),
            "rollout/reward_std": wave(30, 0.8, 0.1),
        },
        T,
    ),
    Case(
        "reward-noisy/over-time",
        {"rollout/reward_mean": wave(60, 2.0, 1.9)},
        {"rollout/reward_mean": wave(60, 2, 0.2)},
        T,
    ),
    Case(
        "reward-noisy/swings",
        {"critic/score/mean": [0.25, 0.7, 0.3, 0.75, 0.4, 0.6] * 20},
        {"critic/score/mean": wave(120, 0.5, 0.12)},
        V,
        {"data.train_batch_size": 256},
    ),
    Case(
        "kl-high",
        {"ppo/kl_div": late(40, 0.03, 0.15, 10)},
        {"ppo/kl_div": wave(40, 0.03, 0.02)},
        T,
    ),
    Case(
        "kl-low",
        {"ppo/kl_div": wave(40, 0.002, 0.001)},
        {"ppo/kl_div": wave(40, 0.03, 0.02)},
        T,
    ),
    Case(
        "kl-negative",
        {"actor/reward_kl_penalty": late(40, 0.02, -0.3, 12)},
        {"actor/reward_kl_penalty": wave(40, -0.02, 0.03)},
    ),
    Case(
        "kl-negative/responses",
        {"objective/kl": late(40, 0.5, -9.0, 12)},
        {"objective/kl": wave(40, -0.5, 0.8)},
        OTHER,
    ),
    Case(
        "ref-kl-high",
        {"kl/divergence": late(40, 0.05, 0.4, 5)},
        {"kl/divergence": wave(40, 0.15, 0.1)},
        T,
    ),
    Case(
        "ref-kl-high",
        {"actor/kl_loss": late(40, 0.05, 0.4, 5)},
        {"actor/kl_loss": wave(40, 0.15, 0.1)},
        V,
        {"algorithm.kl_ctrl.type": "adaptive", "algorithm.kl_ctrl.target_kl": 0.1},
    ),
    Case(
        "ref-kl-high/own-past",
        {"actor/kl_loss": late(80, 0.05, 0.4, 5)},
        {"actor/kl_loss": [0.005 * i for i in range(200)]},
    ),
    Case(
        "ref-kl-above-band",
        {"kl/divergence": wave(40, 0.15, 0.02)},
        {"kl/divergence": wave(40, 0.08, 0.03)},
        T,
    ),
    Case(
        "ref-kl-above-band/alone",
        {"actor/kl_loss": wave(40, 1.3, 0.1)},
        {"actor/kl_loss": wave(40, 0.4, 0.1)},
    ),
    Case(
        "ref-kl-rising/alone",
        {"actor/kl_loss": [0.5 + 0.1 * i for i in range(40)]},
        {"actor/kl_loss": [0.1 + 0.02 * i for i in range(40)]},
    ),
    Case(
        "ref-kl-above-band/far",
        {"actor/kl_loss": wave(60, 7.0, 0.1), "critic/score/mean": wave(60, 0.3, 0.05)},
        {
            "actor/kl_loss": wave(60, 7.0, 0.1),
            "critic/score/mean": [min(0.9, 0.1 + 0.08 * i) for i in range(60)],
        },
    ),
    Case(
        "ref-kl-above-band/far",
        {
            "actor/kl_loss": wave(60, 0.3, 0.02),
            "critic/score/mean": wave(60, 0.3, 0.05),
        },
        {
            "actor/kl_loss": wave(60, 0.05, 0.02),
            "critic/score/mean": wave(60, 0.3, 0.05),
        },
        V,
        {"actor.kl_loss_coef": 0.02},
    ),
    Case(
        "ref-kl-rising",
        {"kl/divergence": RISING_KL},
        {"kl/divergence": wave(80, 0.2, 0.02)},
        T,
    ),
    Case(
        "ref-kl-rising/own-past",
        {"actor/kl_loss": [0.02 * i for i in range(120)]},
        {"actor/kl_loss": [0.005 * i for i in range(120)]},
    ),
    Case(
        "policy-loss-positive",
        {"ppo/policy_loss": late(40, -0.2, 0.1, 20)},
        {"ppo/policy_loss": wave(40, -0.2, 0.1)},
        T,
    ),
    Case(
        "policy-loss-jump",
        {"ppo/policy_loss": late(40, -0.2, -3.0, 1)},
        {"ppo/policy_loss": wave(40, -0.2, 0.3)},
        T,
    ),
    Case(
        "policy-loss-jump/others",
        {"actor/pg_loss": late(40, 0.01, 3.0, 1)},
        {"actor/pg_loss": wave(40, 0.0, 0.1)},
    ),
    Case(
        "response-short",
        {"rollout/response_length_mean": wave(30, 390, 5)},
        {"rollout/response_length_mean": wave(30, 495, 10)},
        T,
    ),
    Case(
        "response-long",
        {"rollout/response_length_mean": wave(30, 525, 2)},
        {"rollout/response_length_mean": wave(30, 510, 5)},
        T,
    ),
    Case(
        "gpu-idle",
        {"system/gpu_util": wave(30, 40, 5)},
        {"system/gpu_util": wave(30, 80, 10)},
        T,
    ),
    Case(
        "gpu-idle",
        {"system/gpu_util": wave(30, 0.4, 0.05)},
        {"system/gpu_util": wave(30, 0.8, 0.1)},
        T,
    ),
    Case(
        "gpu-idle/devices",
        {"system/gpu.0.gpu": wave(30, 40, 5)},
        {"system/gpu.0.gpu": wave(30, 80, 10)},
    ),
    Case(
        "gpu-low",
        {"system/gpu_util": wave(30, 55, 3)},
        {"system/gpu_util": wave(30, 68, 5)},
        T,
    ),
    Case(
        "gpu-low/devices",
        {"system/gpu.0.gpu": wave(30, 55, 3)},
        {"system/gpu.0.gpu": wave(30, 68, 5)},
    ),
    Case(
        "gpu-memory-high",
        {"system/memory_util": [90.0] * 30},
        {"system/memory_util": wave(30, 80, 5)},
        T,
    ),
    Case(
        "circuit-breaker-kl",
        {"ppo/kl_div": late(30, 0.03, 0.21, 5)},
        {"ppo/kl_div": late(30, 0.03, 0.21, 4)},
        T,
    ),
    Case(
        "circuit-breaker-reward",
        {"rollout/reward_mean": [2.0, 1.5, 1.1, 0.8, 0.6, 0.4]},
        {"rollout/reward_mean": [2.0, 1.5, 1.1, 0.8, 0.6, 0.5]},
        T,
    ),
    Case(
        "rollout-probs-diff",
        {"training/rollout_probs_diff_mean": wave(20, 0.012, 0.001)},
        {"training/rollout_probs_diff_mean": wave(20, 0.007, 0.002)},
    ),
    Case(
        "rollout-is-mean",
        {"rollout_corr/rollout_is_mean": wave(20, 0.4, 0.05)},
        {"rollout_corr/rollout_is_mean": wave(20, 1.0, 0.3)},
    ),
    Case(
        "rollout-is-mean",
        {"actor/rollout_corr/rollout_is_mean": wave(20, 2.4, 0.1)},
        {"actor/rollout_corr/rollout_is_mean": wave(20, 1.0, 0.3)},
    ),
    Case(
        "rollout-is-ess",
        {"rollout_corr/rollout_is_eff_sample_size": wave(20, 0.2, 0.05)},
        {"rollout_corr/rollout_is_eff_sample_size": wave(20, 0.9, 0.05)},
    ),
    Case(
        "rollout-is-std",
        {"rollout_corr/rollout_is_std": wave(20, 1.2, 0.1)},
        {"rollout_corr/rollout_is_std": wave(20, 0.3, 0.1)},
    ),
    Case(
        "rollout-kl",
        {"rollout_corr/kl": wave(20, -0.2, 0.05)},
        {"rollout_corr/kl": wave(40, 0.0, 0.0009)},
    ),
    Case(
        "rollout-kl",
        {"rollout_corr/kl": wave(20, 0.02, 0.005)},
        {"rollout_corr/kl": wave(40, 0.0, 0.0009)},
    ),
    Case(
        "rollout-kl",
        {"gen_kl_error": wave(20, 0.02, 0.005)},
        {"gen_kl_error": wave(40, 0.0005, 0.0002)},
        OTHER,
    ),
    Case(
        "rollout-kl/investigate",
        {"rollout_corr/kl": wave(40, 0.004)},
        {"rollout_corr/kl": wave(40, 0.0, 0.0009)},
    ),
    Case(
        "rollout-kl/asynchronous",
        {"rollout_corr/kl": wave(20, 0.2)},
        {"rollout_corr/kl": wave(40, 0.05, 0.03)},
        ASYNC,
    ),
    Case(
        "rollout-kl/in-loss",
        {"actor/rollout_corr/kl": wave(20, 0.2)},
        {"actor/rollout_corr/kl": wave(40, 0.05, 0.03)},
    ),
    Case(
        "token-mult-prob-error",
        {"token_mult_prob_error": wave(20, 1.04, 0.005)},
        {"token_mult_prob_error": wave(30, 1.012, 0.006)},
        OTHER,
    ),
    Case(
        "token-mult-prob-error/spike",
        {"train/token_mult_prob_error": [*wave(30, 1.01, 0.004), 1.8]},
        {"train/token_mult_prob_error": [*wave(30, 1.01, 0.004), 1.1]},
        OTHER,
    ),
    Case(
        "engine-pearson",
        {"training/rollout_actor_probs_pearson_corr": wave(20, 0.7, 0.05)},
        {"training/rollout_actor_probs_pearson_corr": wave(20, 0.97, 0.02)},
    ),
    Case("rejection-eats-batch", {RS: wave(20, 0.6, 0.05)}, {RS: wave(60, 0.3, 0.15)}),
    Case(
        "rejection-eats-batch/climbing",
        {RS: [*wave(60, 0.05, 0.02), *[0.3] * 5]},
        {RS: [*wave(60, 0.05, 0.02), 0.4]},
    ),
    Case(
        "sequence-is-saturated",
        {
            "rollout_corr/kl": wave(20, 0.0009, 0.00005),
            "response_length/mean": wave(20, 30_000, 100),
        },
        {
            "rollout_corr/kl": wave(20, 0.0009, 0.00005),
            "response_length/mean": wave(20, 3_000, 100),
        },
        V,
        {"algorithm.rollout_correction.rollout_is": "sequence"},
    ),
    Case(
        "corrupted-requests",
        {"vllm:corrupted_requests": [0.0] * 5 + [2.0]},
        {"vllm:corrupted_requests_total": [0.0]},
    ),
    Case(
        "rollout-chi2",
        {"rollout_corr/chi2_token": wave(20, 1.5, 0.1)},
        {"rollout_corr/chi2_token": wave(20, 0.5, 0.1)},
    ),
    Case(
        "truncation",
        {"response_length/clip_ratio": wave(20, 0.3, 0.05)},
        {"response_length/clip_ratio": wave(20, 0.05, 0.02)},
    ),
    Case(
        "truncation/others",
        {"completions/clipped_ratio": wave(20, 0.3, 0.05)},
        {"completions/clipped_ratio": wave(20, 0.05, 0.02)},
        OTHER,
    ),
    Case(
        "truncation/v1",
        {
            "response_length/clip_ratio": wave(20, 0.3, 0.05),
            "response_length/max": [1024.0] * 20,
        },
        {
            "response_length/clip_ratio": wave(20, 0.3, 0.05),
            "response_length/max": [900.0] * 20,
        },
        V1,
        LIMIT,
    ),
    Case(
        "prompt-truncation",
        {"prompt_length/clip_ratio": wave(20, 0.3, 0.05)},
        {"prompt_length/clip_ratio": wave(20, 0.01)},
    ),
    Case(
        "prompt-truncation/v1",
        {
            "prompt_length/clip_ratio": wave(20, 0.3, 0.05),
            "prompt_length/max": [512.0] * 20,
        },
        {
            "prompt_length/clip_ratio": wave(20, 0.3, 0.05),
            "prompt_length/max": [500.0] * 20,
        },
        V1,
        LIMIT,
    ),
    Case(
        "grad-norm-rising",
        {"actor/grad_norm": [0.2 * 1.01**i for i in range(140)]},
        {"actor/grad_norm": wave(140, 0.3, 0.2)},
    ),
    Case(
        "critic-useless",
        {"critic/vf_explained_var": wave(40, -0.5, 0.2)},
        {"critic/vf_explained_var": [-5e5, *wave(40, 0.4, 0.2)]},
    ),
    Case(
        "no-signal",
        {"critic/advantages/max": [0.0] * 8, "critic/advantages/min": [0.0] * 8},
        {"critic/advantages/max": [2.0] * 8, "critic/advantages/min": [0.0] * 8},
    ),
    Case(
        "no-signal/solved",
        {
            "critic/advantages/max": [0.0] * 30,
            "critic/advantages/min": [0.0] * 30,
            "critic/score/mean": SOLVED,
        },
        {
            "critic/advantages/max": [2.0] * 30,
            "critic/advantages/min": [0.0] * 30,
            "critic/score/mean": SOLVED,
        },
    ),
    Case(
        "aborted",
        {"response/aborted_ratio": [0.0, *[0.02] * 12]},
        {"response/aborted_ratio": [0.0] * 12},
    ),
    Case(
        "staleness",
        {"training/off_policy/trajectory_staleness/max": [9.0] * 8},
        {"training/off_policy/trajectory_staleness/max": [8.0] * 8},
    ),
    Case(
        "async-idle",
        {
            "fully_async/rollouter/idle_ratio": [0.7] * 12,
            "fully_async/trainer/idle_ratio": [0.1] * 12,
        },
        {
            "fully_async/rollouter/idle_ratio": [0.3] * 12,
            "fully_async/trainer/idle_ratio": [0.1] * 12,
        },
    ),
    Case(
        "grad-norm-spike",
        {"actor/grad_norm": late(40, 0.3, 9.0, 1)},
        {"actor/grad_norm": late(40, 0.3, 1.0, 1)},
    ),
    Case(
        "clip-saturation/level",
        {"actor/pg_clipfrac": wave(30, 0.65, 0.05)},
        {"actor/pg_clipfrac": wave(30, 0.4, 0.05)},
    ),
    Case(
        "clip-saturation",
        {"actor/pg_clipfrac": late(60, 0.1, 0.4, 20)},
        {"actor/pg_clipfrac": wave(60, 0.4, 0.05)},
    ),
]
