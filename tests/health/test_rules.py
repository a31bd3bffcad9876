"""Every rule fires on a planted series and is silent on a healthy one."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest
from planted import OTHER, TUTORIAL, VERL, batch, ids, judge, planted, reason, rows, wave

from verl_tui.health import blocks
from verl_tui.health.finding import NotJudged, Severity, failed, unjudged
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.runs.run import Run


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
        {"actor/lr": [*[0.0] * 5, *[1e-6] * 15], "actor/grad_norm": wave(20, 0.51234, 0.1)},
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
        {"critic/score/mean": [*wave(40, 0.6, 0.02), *[0.6 - 0.01 * i for i in range(50)]]},
        {"critic/score/mean": [*wave(40, 0.6, 0.02), *[0.6 - 0.002 * i for i in range(50)]]},
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
        {"rollout/reward_mean": wave(30, 2.0, 0.1), "rollout/reward_std": wave(30, 1.4, 0.1)},
        {"rollout/reward_mean": wave(30, 2.0, 0.1), "rollout/reward_std": wave(30, 0.8, 0.1)},
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
        "kl-high", {"ppo/kl_div": late(40, 0.03, 0.15, 10)}, {"ppo/kl_div": wave(40, 0.03, 0.02)}, T
    ),
    Case("kl-low", {"ppo/kl_div": wave(40, 0.002, 0.001)}, {"ppo/kl_div": wave(40, 0.03, 0.02)}, T),
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
        {"actor/kl_loss": wave(60, 0.3, 0.02), "critic/score/mean": wave(60, 0.3, 0.05)},
        {"actor/kl_loss": wave(60, 0.05, 0.02), "critic/score/mean": wave(60, 0.3, 0.05)},
        V,
        {"actor.kl_loss_coef": 0.02},
    ),
    Case("ref-kl-rising", {"kl/divergence": RISING_KL}, {"kl/divergence": wave(80, 0.2, 0.02)}, T),
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
        "gpu-idle", {"system/gpu_util": wave(30, 40, 5)}, {"system/gpu_util": wave(30, 80, 10)}, T
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
    Case("gpu-low", {"system/gpu_util": wave(30, 55, 3)}, {"system/gpu_util": wave(30, 68, 5)}, T),
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
        {"response_length/clip_ratio": wave(20, 0.3, 0.05), "response_length/max": [1024.0] * 20},
        {"response_length/clip_ratio": wave(20, 0.3, 0.05), "response_length/max": [900.0] * 20},
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
        {"prompt_length/clip_ratio": wave(20, 0.3, 0.05), "prompt_length/max": [512.0] * 20},
        {"prompt_length/clip_ratio": wave(20, 0.3, 0.05), "prompt_length/max": [500.0] * 20},
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
_NAMES = [f"{case.rule}-{i}" for i, case in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=_NAMES)
def test_fires_on_a_planted_series(case: Case) -> None:
    verdict = judge(planted(case.sick, case.beside, case.settings))
    rule = next(rule for rule in load_guide().rules if rule.name == case.rule)
    found = next((one for one in verdict.findings if one.id == rule.id), None)
    assert found is not None
    assert found.severity is rule.severity
    assert found.key in case.sick
    assert found.since_step is not None
    assert found.step == len(next(iter(case.sick.values())))
    assert found.evidence
    assert found.source


@pytest.mark.parametrize("case", CASES, ids=_NAMES)
def test_is_silent_on_a_healthy_one(case: Case) -> None:
    verdict = judge(planted(case.well, case.beside, case.settings))
    id = case.rule.partition("/")[0]
    assert id not in ids(verdict)
    assert reason(verdict, id) is None, "a healthy series must have been judged"


def test_of_several_variants_that_speak_of_one_metric_only_the_worst_does() -> None:
    verdict = judge(planted({"rollout_corr/kl": wave(40, 0.2, 0.01)}))
    assert [one.severity for one in verdict.findings if one.id == "rollout-kl"] == [
        Severity.WARNING
    ]


def test_a_gap_by_design_is_judged_by_verls_own_limit() -> None:
    columns = {"rollout_corr/kl": wave(40, 0.05, 0.01)}
    stale = {**VERL, "training/off_policy/trajectory_staleness/max": 2.0}
    assert "rollout-kl" in ids(judge(planted(columns)))
    assert "rollout-kl" not in ids(judge(planted(columns, stale)))


@pytest.mark.parametrize(
    ("columns", "beside", "settings", "rule", "why"),
    [
        (
            {"token_mult_prob_error": wave(20, 0.04, 0.01)},
            OTHER,
            None,
            "token-mult-prob-error",
            "not a factor",
        ),
        (
            {"rollout_corr/kl": [0.01] * 20, "response_length/mean": [9000.0] * 20},
            VERL,
            {"algorithm.rollout_correction.rollout_is": "token"},
            "sequence-is-saturated",
            "rollout_is is token",
        ),
        (
            {"rollout_corr/kl": [0.01] * 20, "response_length/mean": [9000.0] * 20},
            VERL,
            None,
            "sequence-is-saturated",
            "no settings were found",
        ),
    ],
)
def test_what_a_figure_is_not_meant_for(
    columns: dict[str, list[float]],
    beside: dict[str, float],
    settings: dict[str, str] | None,
    rule: str,
    why: str,
) -> None:
    verdict = judge(planted(columns, beside, settings))
    assert rule not in ids(verdict)
    assert why in (reason(verdict, rule) or "")


def test_every_rule_has_its_case() -> None:
    planted_rules = {case.rule for case in CASES}
    assert planted_rules == {
        rule.name for rule in load_guide().rules if rule.condition != "diagnosis"
    }


def test_nothing_is_failed_or_left_out() -> None:
    verdict = judge(planted({"rollout/reward_mean": wave(80, 2.4, 0.3)}, TUTORIAL))
    assert not [one for one in verdict.not_judged if one.reason.startswith("failed")]


def test_message_has_numbers_steps_and_minutes() -> None:
    columns = {"ppo/kl_div": [0.03] * 64 + [0.2, 0.21] * 17 + [0.31], "timing_s/step": [70.0] * 99}
    found = next(one for one in judge(planted(columns, TUTORIAL)).findings if one.id == "kl-high")
    assert (
        found.message
        == "policy KL has stayed above 0.1 for 35 steps (≈ 41 min): mean 0.208, last 0.31"
    )
    assert (found.since_step, found.step) == (65, 99)


def test_fewer_points_than_the_window_are_not_judged() -> None:
    run = planted({"ppo/kl_div": [0.15] * 9}, TUTORIAL)
    assert NotJudged("kl-high", "needs 10 points, has 9") in judge(run).not_judged


def test_a_value_dancing_on_its_threshold_is_one_finding() -> None:
    # After the breach has begun, every second value lies below the threshold.
    values = [0.03] * 20 + [0.15] * 10 + [0.15, 0.15, 0.09] * 20
    run = Run("r")
    judge_ = Judge(load_guide(), run)
    said = []
    for i in range(len(values)):
        part = {"ppo/kl_div": values[i : i + 1], "rollout/sample_count": [1.0]}
        run.apply(batch(rows(part, [i + 1], i)), now=0.0)
        said.append("kl-high" in ids(judge_.verdict(1.0)))
    assert sum(a != b for a, b in pairwise(said)) == 1
    assert said[-1]


def test_a_breach_that_came_back_is_reported_from_its_first_point_on() -> None:
    # 12 points back inside end the breach, for fewer than two windows.
    columns = {
        "ppo/kl_div": [0.03] * 20 + [0.21] * 10 + [0.05] * 12 + [0.2] * 10,
        "rollout/sample_count": [1.0] * 52,
    }
    found = next(one for one in judge(planted(columns, TUTORIAL)).findings if one.id == "kl-high")
    assert found.since_step == 21
    assert found.message.startswith("policy KL has mostly stayed above 0.1 for 32 steps")
    assert "mean 0.147, last 0.2" in found.message
    assert found.evidence[1].endswith(
        "0.21 at step 21, furthest 0.21 at step 21, newest 0.2 at step 52"
    )


def test_a_breach_long_past_is_not_reported() -> None:
    run = planted({"ppo/kl_div": [0.15] * 30 + [0.03] * 30}, TUTORIAL)
    assert "kl-high" not in ids(judge(run))


def test_worst_first_then_the_earliest() -> None:
    columns = {
        "ppo/kl_div": [0.03] * 20 + [0.3] * 40,
        "rollout/response_length_mean": [300.0] * 60,
        "ppo/policy_loss": [0.2] * 60,
    }
    found = judge(planted(columns, TUTORIAL)).findings
    assert [one.id for one in found][:1] == ["circuit-breaker-kl"]
    assert [one.severity for one in found] == sorted((one.severity for one in found), reverse=True)
    warnings = [one.since_step for one in found if one.severity is Severity.WARNING]
    assert warnings == sorted(step for step in warnings if step is not None)


def test_nan_neither_breaches_nor_breaks() -> None:
    nan = float("nan")
    run = planted({"ppo/kl_div": [0.15, nan] * 10 + [0.15]}, TUTORIAL)
    assert "kl-high" in ids(judge(run))


def test_other_frameworks_are_not_judged_by_the_tutorials_scale() -> None:
    verdict = judge(planted({"reward": [0.4] * 80, "loss": [0.1] * 80}, OTHER))
    assert ids(verdict) <= {"plateau"}
    assert "tutorials" in (reason(verdict, "reward-low") or "")


def test_a_rule_that_raises_is_shown_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = planted({"ppo/kl_div": [0.3] * 30}, TUTORIAL)

    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("verl_tui.health.conditions.streak.Streak.feed", broken)
    verdict = judge(run)
    assert "kl-high" in ids(verdict)
    assert reason(verdict, "circuit-breaker-kl") == "failed: RuntimeError('boom')"


def test_a_rule_that_raises_is_counted_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = planted({"ppo/kl_div": [0.3] * 30}, TUTORIAL)

    class UnspeakableError(Exception):
        def __repr__(self) -> str:
            raise RecursionError

    def broken(*_: object) -> None:
        raise UnspeakableError

    monkeypatch.setattr("verl_tui.health.conditions.streak.Streak.feed", broken)
    reasons = [one.reason for one in judge(run).not_judged]
    assert "failed: UnspeakableError" in reasons
    assert unjudged(reasons)[0] == f"{sum(map(failed, reasons))} failed"


def test_a_run_that_cannot_be_judged_says_so_for_each_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OverflowError("no such time")

    monkeypatch.setattr("verl_tui.health.judge.rule_context", broken)
    verdict = judge(planted({"ppo/kl_div": [0.3] * 30}, TUTORIAL))
    assert {one.id for one in verdict.not_judged} == {rule.id for rule in load_guide().rules}
    assert {one.reason for one in verdict.not_judged} == {"failed: OverflowError('no such time')"}


def test_judging_costs_what_is_new() -> None:
    run = planted({"ppo/kl_div": wave(500, 0.03, 0.01)}, TUTORIAL)
    judge_ = Judge(load_guide(), run)
    judge_.verdict(1.0)
    fed: list[int] = []
    from verl_tui.health.conditions.stays import Stays

    original = Stays.feed

    def counting(self: Stays, steps: list[int], values: list[float]) -> None:
        fed.append(len(steps))
        original(self, steps, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stays, "feed", counting)
        run.apply(
            batch(rows({"ppo/kl_div": [0.03], "rollout/sample_count": [1.0]}, [501], 500)), now=0.0
        )
        judge_.verdict(2.0)
    assert sum(fed) <= 10


@pytest.mark.parametrize("count", [1_000, 8_000])
def test_looking_at_blocks_costs_what_is_new(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"ppo/entropy": wave(count, 0.5, 0.1), "rollout/reward_mean": wave(count, 2.5, 0.1)}
    run = planted(columns, TUTORIAL)
    judge_ = Judge(load_guide(), run)
    judge_.verdict(1.0)
    read: list[int] = []
    original = blocks.trimmed_mean

    def counting(values: list[float]) -> float:
        read.append(len(values))
        return original(values)

    monkeypatch.setattr(blocks, "trimmed_mean", counting)
    for i in range(20):
        more = {key: [values[i]] for key, values in columns.items()} | {
            "rollout/sample_count": [1.0]
        }
        run.apply(batch(rows(more, [count + 1 + i], count + i)), now=0.0)
        judge_.verdict(2.0)
    assert 0 < sum(read) <= 400


def test_devices_that_the_log_names_later_are_judged_too() -> None:
    run = planted({"critic/score/mean": wave(30, 0.6, 0.1)})
    judge_ = Judge(load_guide(), run)
    assert "gpu-idle" not in ids(judge_.verdict(1.0))
    run.apply(batch(rows({"system/gpu.0.gpu": wave(30, 40, 5)}, order=30)), now=0.0)
    assert "gpu-idle" in ids(judge_.verdict(2.0))


def test_phases_that_the_log_names_later_are_looked_at() -> None:
    run = planted({"timing_s/step": [100.0] * 200})
    judge_ = Judge(load_guide(), run)
    assert "slow-phase" not in ids(judge_.verdict(1.0))
    run.apply(batch(rows({"timing_s/gen": [20.0] * 160 + [80.0] * 40}, order=200)), now=0.0)
    assert "slow-phase" in ids(judge_.verdict(2.0))


@pytest.mark.parametrize(
    "beside",
    [
        {"actor/grad_norm": [0.512, 0.498] * 20, "actor/entropy": [0.31, 0.3] * 20},  # three digits
        {
            "actor/grad_norm": wave(40, 0.51234, 0.1),
            "actor/kl_loss": wave(40, 0.002, 0.001),
        },  # the policy moves
    ],
)
def test_a_learning_rate_that_is_rounded_to_0_stops_nothing(beside: dict[str, list[float]]) -> None:
    assert "nothing-learns" not in ids(judge(planted({"actor/lr": [0.0] * 40, **beside})))
