"""What the tutorials say, by the letter: at any cadence, on any device, from the first steps on."""

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
    from collections.abc import Sequence


# -- reference KL ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "reward", "beside"),
    [("actor/kl_loss", "critic/score/mean", VERL), ("kl", "reward", {})],
)
def test_reference_kl_that_climbs_slowly_for_nothing_counts_in_any_names(
    key, reward, beside
) -> None:
    slow = noisy([0.03 + 0.25 * i / 600 for i in range(600)], 0.005)
    flat = wave(600, 0.4, 0.05)
    risen = [0.2 + 0.5 * i / 600 for i in range(600)]
    assert "ref-kl-above-band" in ids(judge(planted({key: slow, reward: flat}, beside)))
    assert "ref-kl-above-band" not in ids(
        judge(planted({key: slow, reward: risen}, beside))
    )
    weak = {"actor_rollout_ref.actor.kl_loss_coef": 0.001}
    assert "ref-kl-above-band" not in ids(
        judge(planted({key: slow, reward: flat}, beside, weak))
    )


# -- GPUs ------------------------------------------------------------------------------------------


def eight(
    idle: Sequence[int], level: float = 2.0, held: float = 80.0
) -> dict[str, list[float]]:
    devices = {
        f"system/gpu.{i}.gpu": wave(30, level if i in idle else 88.0, 2.0, shift=i)
        for i in range(8)
    }
    return devices | {
        f"system/gpu.{i}.memoryAllocated": [held if i in idle else 80.0] * 30
        for i in range(8)
    }


def test_devices_that_all_work_or_all_idle_are_even() -> None:
    assert not ids(judge(planted(eight([])))) & {"gpu-uneven", "gpu-idle", "gpu-low"}
    verdict = judge(planted(eight(range(8), 40.0)))
    assert "gpu-uneven" not in ids(verdict)
    (one,) = [one for one in verdict.findings if one.id == "gpu-idle"]
    assert "mean utilisation of the GPUs" in one.message


def test_what_never_worked_and_holds_other_memory_may_be_another_ones() -> None:
    verdict = judge(planted(eight([4, 5], 0.0, held=55.0)))
    assert not ids(verdict) & {"gpu-uneven", "gpu-idle", "gpu-low"}


def test_one_device_is_compared_with_those_that_work() -> None:
    devices = eight(range(1, 8), 0.0, held=0.0)
    alone = judge(planted({"system/gpu.0.gpu": devices["system/gpu.0.gpu"]}))
    for verdict in (alone, judge(planted(devices))):
        (reason,) = [one.reason for one in verdict.not_judged if one.id == "gpu-uneven"]
        assert reason == "the log has fewer than two devices that the run uses"
    devices |= eight(range(4, 8), 0.0, held=0.0)
    devices["system/gpu.3.gpu"] = [88.0] * 15 + [40.0] * 15
    reported = found(judge(planted(devices)), "gpu-uneven")
    assert reported is not None
    assert reported.key == "system/gpu.3.gpu"


def test_devices_of_several_hosts_are_distinguished() -> None:
    devices = {
        f"system/gpu.{i}.gpu/l:node{node}": [
            70.0,
            *wave(30, 3.0 if (i, node) == (1, 2) else 88.0, 2.0),
        ]
        for i in range(2)
        for node in (1, 2)
    }
    reported = found(judge(planted(devices)), "gpu-uneven")
    assert reported is not None
    assert reported.key == "system/gpu.1.gpu/l:node2"


# -- rewards ---------------------------------------------------------------------------------------


def test_low_scores_are_no_bounded_scale() -> None:
    low = {"rollout/reward_mean": wave(80, 0.6, 0.1)}
    figures = {
        "samples/score_min": [0.1] * 80,
        "samples/score_max": [0.93] * 80,
        "samples/count": [64.0] * 80,
    }
    assert "reward-low" in ids(judge(planted({**low, **figures}, TUTORIAL)))


# -- policy-collapse -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fall", "kl"),
    [
        ([1.4, 0.6, 0.5, 0.4, 0.4], [0.03] * 5),  # the reward alone
        (
            [1.4, 0.6, 0.5, 0.4, 0.4],
            [0.12, 0.15, 0.17, 0.16, 0.15],
        ),  # a KL that is out, but not far
        ([1.9, 1.9, 1.8, 1.9, 1.8], [0.33, 0.4, 0.42, 0.4, 0.41]),  # less than 40%
        ([0.6, 2.5, 2.6, 2.5, 2.6], [0.33, 0.4, 0.42, 0.4, 0.41]),  # one bad batch
    ],
)
def test_what_is_no_collapse_in_few_points(fall: list[float], kl: list[float]) -> None:
    columns = {
        "rollout/reward_mean": [*noisy([2.6] * 12, 0.08), *fall],
        "ppo/kl_div": [*noisy([0.03] * 12, 0.004), *kl],
    }
    assert "policy-collapse" not in ids(judge(planted(columns, TUTORIAL)))


@pytest.mark.parametrize("seed", range(6))
def test_small_batches_of_a_policy_that_has_long_been_dead_collapse_no_more(
    seed: int,
) -> None:
    chance = random.Random(seed)
    columns = {
        "critic/score/mean": [
            chance.choice((0.0, 0.25, 0.25, 0.25, 0.5)) for _ in range(300)
        ],
        "actor/kl_loss": [0.0, 5.9, *noisy([7.4] * 298, 0.1)],
    }
    raised = [
        one.raised_step
        for one in judge(planted(columns)).history
        if one.id == "policy-collapse"
    ]
    assert [step for step in raised if step is not None and step > 25] == []


def test_samples_that_were_in_loops_all_along_are_no_sign_of_a_collapse() -> None:
    columns = {
        "critic/score/mean": [
            *noisy([0.97] * 190, 0.01),
            *noisy([0.5] * 15, 0.01),
            *noisy([0.97] * 60, 0.01),
        ],
        "samples/repetition": [*[0.02] * 12, *noisy([0.95] * 253, 0.02)],
    }
    assert "policy-collapse" not in {one.id for one in judge(planted(columns)).history}


# -- dead from the first steps ---------------------------------------------------------------------

GONE = [4.77, 0.199, 0.0719, 0.0697, 0.0078, 0.0, 0.0, 0.005]


def test_an_entropy_that_falls_as_fast_as_a_task_is_learnt() -> None:
    columns = {
        "actor/entropy": GONE,
        "critic/score/mean": [0.1, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.98],
    }
    assert "entropy-collapse" not in ids(judge(planted(columns)))


def test_an_entropy_that_is_gone_once_a_task_is_solved_is_no_collapse() -> None:
    reward = [
        0.16,
        0.22,
        0.12,
        0.19,
        0.34,
        0.78,
        0.88,
        0.84,
        0.94,
        0.94,
        *[0.97, 0.94, 1.0] * 20,
    ]
    entropy = [3.43 * 0.93**i for i in range(len(reward))]
    verdict = judge(planted({"actor/entropy": entropy, "critic/score/mean": reward}))
    assert "entropy-collapse" not in {one.id for one in verdict.history}


def test_a_reward_that_rises_long_after_a_collapse_takes_nothing_out_of_its_history() -> (
    None
):
    columns = {
        "actor/entropy": [*GONE, *[0.001] * 92],
        "critic/score/mean": [*[0.05] * 20, *[0.8] * 80],
    }
    verdict = judge(planted(columns))
    assert [
        (one.since_step, one.raised_step)
        for one in verdict.history
        if one.id == "entropy-collapse"
    ] == [(2, 5)]


def test_a_collapse_that_comes_back_is_reported_from_the_step_that_its_sentence_names() -> (
    None
):
    def fall(steps: int, start: float) -> list[float]:
        return [start * math.exp(-i / 25) + 0.003 for i in range(steps)]

    entropy = [*[1.0] * 60, *fall(140, 1.0), *[0.3] * 55, *fall(145, 0.3)]
    reward = noisy([0.4] * len(entropy), 0.01)
    verdict = judge(planted({"actor/entropy": entropy, "critic/score/mean": reward}))
    reported = found(verdict, "entropy-collapse")
    assert reported is not None
    assert f"at step {reported.since_step} " in reported.message


def test_a_solved_task_is_no_collapse() -> None:
    reward = noisy([min(0.96, 0.1 + 0.01 * i) for i in range(300)], 0.015)
    entropy = [max(0.02, 1.2 * 0.985**i) for i in range(300)]
    assert "entropy-collapse" not in ids(
        judge(planted({"actor/entropy": entropy, "critic/score/mean": reward}))
    )


# -- learning --------------------------------------------------------------------------------------


def test_a_gradient_norm_that_rises_while_the_run_learns_is_no_mismatch() -> None:
    norms = [0.3 * 1.012 ** max(0, i - 40) for i in range(160)]
    learns = noisy(
        [0.1 + 0.6 / (1 + math.exp(-(i - 90) / 15)) for i in range(160)], 0.03
    )
    for reward, silent in ((learns, True), (noisy([0.4] * 160, 0.03), False)):
        verdict = judge(
            planted({"actor/grad_norm": norms, "critic/score/mean": reward}, VERL)
        )
        assert ("grad-norm-rising" not in ids(verdict)) is silent
        assert (
            "the run is learning" in (reason(verdict, "grad-norm-rising") or "")
        ) is silent


@pytest.mark.parametrize(
    ("scores", "silent"),
    [([1.0, 0.5, 1.0, 1.0, 0.5], True), ([0.5, 0.0, 0.5, 0.5, 0.5], False)],
)
def test_groups_without_spread_are_no_fault_where_most_are_all_right(
    scores: list[float], silent: bool
) -> None:
    advantages = [*[1.0] * 30, *[0.0] * 5]
    columns = {"critic/advantages/max": advantages, "critic/advantages/min": advantages}
    verdict = judge(
        planted({**columns, "critic/score/mean": [*[0.6] * 30, *scores]}, VERL)
    )
    assert {one.severity for one in verdict.findings if one.id == "no-signal"} == {
        Severity.INFO if silent else Severity.WARNING
    }


# -- losses ----------------------------------------------------------------------------------------


def test_a_loss_that_jumps_with_its_kl_term_is_no_matter_of_advantages() -> None:
    kl = [*noisy([2.0] * 80, 0.2), 23.0, *noisy([2.0] * 20, 0.2)]
    term = {
        "loss": [0.08 * value + 0.02 for value in kl],
        "kl": kl,
        "reward": [0.5] * 101,
    }
    verdict = judge(planted(term, OTHER))
    assert "policy-loss-jump" not in ids(verdict)
    assert "kl jumps as far" in str(
        [one.reason for one in verdict.not_judged if one.id == "policy-loss-jump"]
    )
    alone = {
        **term,
        "loss": [*noisy([0.1] * 80, 0.01), 2.0, *noisy([0.1] * 20, 0.01)],
        "kl": noisy([2.0] * 101, 0.2),
    }
    assert "policy-loss-jump" in ids(judge(planted(alone, OTHER)))


@pytest.mark.parametrize(
    ("part", "more", "far"),
    [(0.98, 0.0, False), (0.6, 0.0, True), (0.98, 1.0, True)],
    ids=["top", "below", "unknown"],
)
def test_a_reward_whose_parts_are_at_their_top_cannot_be_bought(
    part: float, more: float, far: bool
) -> None:
    columns = {
        "reward": [1.0 + part + more] * 80,
        "rewards/calm/mean": [1.0] * 80,
        "rewards/right/mean": [part] * 80,
        "kl": [*[0.01] * 30, *[1.5] * 50],
    }
    assert ("ref-kl-above-band" in ids(judge(planted(columns, OTHER)))) is far
