"""Logs whose unit, scale or sparsity differs from what a rule was written for: nothing false is
said of them.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest
from planted import (
    OTHER,
    TUTORIAL,
    VERL,
    found,
    ids,
    judge,
    noisy,
    planted,
    reason,
    wave,
)

from verl_tui.health.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping


NAN = math.nan


def climb(start: float, end: float, count: int = 300, *, over: int = 60) -> list[float]:
    """Return values that climb early and then stay."""
    return [start + (end - start) * min(1.0, i / over) for i in range(count)]


# -- component-imbalance ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "figures",
    [
        {"samples/score_max": climb(0.2, 1.0), "samples/score_min": [0.0] * 300},
        {
            "samples/unique_share": climb(0.2, 1.0),
            "samples/response_chars": [300.0] * 300,
        },
        {"samples/groups": [16.0] * 300, "samples/read_share": climb(0.1, 1.0)},
        {"samples/num_tools": climb(0.2, 1.0), "samples/difficulty": [0.3] * 300},
    ],
)
def test_figures_of_samples_are_no_parts_of_the_reward(
    figures: Mapping[str, list[float]],
) -> None:
    verdict = judge(
        planted({"critic/score/mean": noisy(climb(0.2, 0.6), 0.02), **figures})
    )
    assert "component-imbalance" not in ids(verdict)
    assert "no components" in (reason(verdict, "component-imbalance") or "")


def test_a_part_under_two_names_is_one() -> None:
    part = noisy(climb(0.2, 1.0), 0.01)
    columns = {
        "reward": part,
        "rewards/x/mean": part,
        "train/rewards/x/mean": [0.3] * 300,
    }
    assert "no components" in (
        reason(judge(planted(columns, OTHER)), "component-imbalance") or ""
    )


@pytest.mark.parametrize(
    "other",
    [
        [1.0] * 300,  # at its ceiling from the beginning
        # a scale of its own, and tripled on it
        noisy(climb(0.02, 0.06, over=250), 0.002),
        # a penalty that is not given any more
        [*noisy([-0.3] * 20, 0.05), *[0.0] * 280],
        noisy(climb(-0.3, -0.08), 0.002),  # a penalty as small as it can be
        noisy(
            [*climb(-0.18, -0.1, over=20)[:20], *climb(-0.15, -0.084, over=90)[:280]],
            0.002,
        ),  # with a relapse
    ],
)
def test_a_part_that_cannot_or_does_gain_is_not_stuck(other: list[float]) -> None:
    columns = {
        "reward": noisy(climb(0.5, 1.5), 0.02),
        "rewards/format/mean": noisy(climb(0.2, 1.0), 0.01),
        "rewards/other/mean": other,
    }
    assert "component-imbalance" not in ids(judge(planted(columns, OTHER)))


# -- slow-phase ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "timing_s/agent_loop/slowest/prompt_length",
        "timing_s/agent_loop/num_preempted/mean",
        "timing_s/rollout/total_tokens",
    ],
)
def test_what_is_no_time_is_no_slow_phase(key: str) -> None:
    columns = {
        "timing_s/step": noisy([60.0] * 200, 1),
        key: [*noisy([20.0] * 120, 1), *noisy([50.0] * 80, 1)],
    }
    assert "slow-phase" not in ids(judge(planted(columns)))


def test_what_is_longer_than_the_step_is_no_part_of_it() -> None:
    columns = {
        "timing_s/step": noisy([60.0] * 200, 1),
        "timing_s/all_workers": [*noisy([300.0] * 120, 5), *noisy([900.0] * 80, 5)],
    }
    assert "slow-phase" not in ids(judge(planted(columns)))


# -- grad-norm-spike -------------------------------------------------------------------------------


def sparse(count: int, share: float, size: float, rest: float = 0.0) -> list[float]:
    """Return gradient norms of which only a share is more than next to nothing."""
    chance = random.Random(7)
    return [
        size * chance.uniform(0.5, 2.5) if chance.random() < share else rest
        for _ in range(count)
    ]


@pytest.mark.parametrize("rest", [0.0, 0.0012])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_gradients_of_solved_groups_are_no_measure(share: float, rest: float) -> None:
    values = [*wave(40, 1.2, 0.6), *sparse(300, share, 1.2, rest)]
    verdict = judge(planted({"actor/grad_norm": values}))
    assert not [one for one in verdict.history if one.id == "grad-norm-spike"]
    reported = found(
        judge(planted({"actor/grad_norm": [*values, 60.0]})), "grad-norm-spike"
    )
    assert reported is not None
    assert "from its usual 0;" not in reported.message


def test_what_comes_again_and_again_is_no_spike() -> None:
    values = [8.0 if i % 15 == 14 else 0.4 for i in range(300)]
    assert [
        one.since_step
        for one in judge(planted({"actor/grad_norm": values})).history
        if one.id != "restart"
    ] == [15], "only the first is news"


@pytest.mark.parametrize(
    ("clip", "spikes"), [(None, False), (0.2, True), (1000.0, False), (5.0, False)]
)
def test_a_spike_below_the_clip_bounds_nothing(
    clip: float | None, spikes: bool
) -> None:
    values = [*wave(60, 0.03, 0.01), 0.8]
    settings = {"actor_rollout_ref.actor.grad_clip": clip} if clip else None
    verdict = judge(planted({"actor/grad_norm": values}, VERL, settings))
    assert ("grad-norm-spike" in ids(verdict)) is spikes


# -- policy-loss-jump ------------------------------------------------------------------------------


def test_a_loss_that_jumps_from_a_third_to_nearly_one() -> None:
    values = [*noisy([-0.3] * 60, 0.04), -0.9]
    assert "policy-loss-jump" in ids(
        judge(planted({"ppo/policy_loss": values}, TUTORIAL))
    )


def test_a_loss_with_frequent_peaks_does_not_jump() -> None:
    chance = random.Random(5)
    values = [
        chance.uniform(0.4, 0.7) if chance.random() < 0.08 else 0.07 for _ in range(300)
    ]
    history = judge(
        planted(
            {"loss": [*noisy([0.3] * 80, 0.15), *values], "reward": [0.5] * 380}, OTHER
        )
    ).history
    assert "policy-loss-jump" not in {one.id for one in history}


# -- dead-groups, no-signal: what is said agrees with its evidence ---------------------------------


def test_dead_groups_end_where_their_mean_is_back() -> None:
    chance = random.Random(2)
    mixed = [1.0 if chance.random() < 0.5 else 0.2 for _ in range(400)]
    verdict = judge(planted({"samples/dead_groups": [*[0.9] * 30, *mixed]}))
    assert "dead-groups" not in ids(verdict), "a mean of 0.6 is not above 0.7"
    assert any(one.id == "dead-groups" for one in verdict.history)


@pytest.mark.parametrize(
    ("right", "severity"), [(0.9, Severity.INFO), (0.0, Severity.WARNING)]
)
def test_dead_groups_of_a_solved_task_are_no_warning(
    right: float, severity: Severity
) -> None:
    columns = {
        "samples/dead_groups": [0.9] * 30,
        "samples/groups_all_right": [right] * 30,
    }
    reported = found(judge(planted(columns)), "dead-groups")
    assert reported is not None
    assert reported.severity is severity
    assert ("solved" in reported.message) is (right > 0.5)


def test_two_hundred_groups_in_nine_dumps_are_evidence_enough() -> None:
    columns = {"samples/dead_groups": [0.95] * 9, "samples/groups": [23.0] * 9}
    assert "dead-groups" in ids(judge(planted(columns)))
    few = {"samples/dead_groups": [0.95] * 9, "samples/groups": [4.0] * 9}
    assert "needs 20 points" in (reason(judge(planted(few)), "dead-groups") or "")


def test_no_signal_does_not_contradict_its_evidence() -> None:
    values = [2.0] * 4 + [0.0] * 5 + [1.5] * 3 + [0.0] * 5
    reported = found(
        judge(
            planted(
                {"critic/advantages/max": values, "critic/advantages/min": [0.0] * 17}
            )
        ),
        "no-signal",
    )
    assert reported is not None
    assert (
        reported.message == "all advantages have been 0 at 10 of 13 points since step 5"
    )
    steady = {"critic/advantages/max": [0.0] * 8, "critic/advantages/min": [0.0] * 8}
    reported = found(judge(planted(steady)), "no-signal")
    assert reported is not None
    assert reported.message == "all advantages have been 0 for 8 steps"


@pytest.mark.parametrize(
    ("begun", "now", "is_solved"),
    [(0.5, 2.9, True), (0.5, 2.6, False), (2.4, 2.9, False)],
)
def test_no_signal_at_the_top_of_an_unknown_scale_is_a_solved_task(
    begun: float, now: float, *, is_solved: bool
) -> None:
    none = [0.0] * 40
    rewards = [begun] * 20 + [3.0] + [now] * 19
    columns = {"critic/score/mean": rewards, "critic/advantages/max": none}
    reported = found(
        judge(planted({**columns, "critic/advantages/min": none})), "no-signal"
    )
    assert reported is not None
    assert (reported.severity is Severity.INFO) is is_solved
    assert ("solved" in reported.message) is is_solved


# -- limits that are not there ---------------------------------------------------------------------

STALE = {"training/off_policy/trajectory_staleness/max": [30.0] * 10}


@pytest.mark.parametrize("null", [None, "null", "None"])
def test_staleness_without_a_limit_is_not_judged(null: object) -> None:
    verdict = judge(
        planted(STALE, VERL, {"trainer.v1.sampler.max_off_policy_threshold": null})
    )
    assert "staleness" not in ids(verdict)
    assert "max_off_policy_threshold is null" in (reason(verdict, "staleness") or "")
    assert "staleness" in ids(
        judge(planted(STALE, VERL, {"trainer.v1.sampler.max_off_policy_threshold": 8}))
    )


def test_an_assumed_limit_of_length_holds_for_the_tutorials_own_logs_only() -> None:
    short = {"generation/length": [120.0] * 20, "avg_reward": [0.5] * 20}
    assert "response-short" in ids(judge(planted(short, TUTORIAL)))
    elsewhere = planted(short, {"policy/loss": -0.2})
    verdict = judge(elsewhere)
    assert elsewhere.dialect == "tutorial"
    assert not ids(verdict) & {"response-short", "response-long"}
    assert "is unknown" in (reason(verdict, "response-short") or "")
    stated = judge(
        planted(short, {"policy/loss": -0.2}, {"max_completion_length": 512})
    )
    assert "response-short" in ids(stated)


@pytest.mark.parametrize(
    "settings",
    [
        {"actor_rollout_ref.actor.policy_loss.loss_mode": "gspo"},
        {"importance_sampling_level": "sequence"},
        {"importance_sampling_level": "sequence_token"},
    ],
)
def test_gspo_clips_by_design(settings: dict[str, object]) -> None:
    columns = {"actor/pg_clipfrac": [*wave(40, 0.1, 0.02), *wave(40, 0.5, 0.05)]}
    verdict = judge(planted(columns, VERL, settings))
    assert "clip-saturation" not in ids(verdict)
    assert "by design" in (reason(verdict, "clip-saturation") or "")
    token = {
        "actor_rollout_ref.actor.policy_loss.loss_mode": "vanilla",
        "importance_sampling_level": "token",
    }
    assert "clip-saturation" in ids(judge(planted(columns, VERL, token)))


# -- not-finite ------------------------------------------------------------------------------------


def test_not_finite_says_when_it_began() -> None:
    reported = found(
        judge(planted({"actor/pg_loss": [0.1] * 10 + [NAN] * 90})), "not-finite"
    )
    assert reported is not None
    assert reported.since_step == 11
    assert "first at step 11" in reported.message


def test_a_part_of_the_reward_that_no_sample_has_is_not_broken() -> None:
    columns = {"reward": wave(40, 0.5, 0.1), "rewards/code/mean": [0.3, NAN] * 20}
    assert "not-finite" not in ids(judge(planted(columns, OTHER)))
    columns["reward"][-1] = NAN
    assert "not-finite" in ids(judge(planted(columns, OTHER)))


# -- reference KL ----------------------------------------------------------------------------------


def test_a_surge_that_has_settled_is_no_surge_any_more() -> None:
    values = [*wave(80, 0.05, 0.005), *wave(120, 0.5, 0.02)]
    verdict = judge(planted({"actor/kl_loss": values}))
    assert "ref-kl-high" not in ids(verdict)
    (episode,) = [one for one in verdict.history if one.id == "ref-kl-high"]
    assert episode.cleared_step is not None


# -- reward-zero -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompts",
    [2, *(pytest.param(count, marks=pytest.mark.thorough) for count in (4, 8))],
)
def test_batches_of_few_prompts_score_zero_by_chance(prompts: int) -> None:
    reported = 0
    for seed in range(8):
        chance = random.Random(seed)
        right = [
            sum(chance.random() < 0.35 for _ in range(prompts)) / prompts
            for _ in range(300)
        ]
        verdict = judge(planted({"critic/score/mean": right}))
        reported += any(one.id == "reward-zero" for one in verdict.history)
    assert reported == 0


# -- grad-norm-rising ------------------------------------------------------------------------------


@pytest.mark.parametrize("top", [0.1, 30.0])
def test_a_gradient_that_has_all_but_vanished_does_not_rise(top: float) -> None:
    """As of a real GRPO on a solved task: 0.0009 became 0.0018 where it had been 10 and more."""
    norms = [*[top] * 40, *[0.0009 * 1.012**i for i in range(140)]]
    verdict = judge(planted({"actor/grad_norm": norms}))
    assert found(verdict, "grad-norm-rising") is None
