"""Where a rule does not apply, and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planted import (
    OTHER,
    TUTORIAL,
    VERL,
    batch,
    ids,
    judge,
    planted,
    reason,
    rows,
    wave,
)

from verl_tui.health.guide_settings import load_guide
from verl_tui.records import Sample

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

LOW = wave(80, 0.6, 0.1)


def _with_samples(scores: list[float]) -> Run:
    run = planted({"rollout/reward_mean": LOW}, TUTORIAL)
    samples = [
        Sample(step=80, prompt="p", response="r", score=score) for score in scores
    ]
    run.apply(batch(*samples), now=0.0)
    return run


def test_reward_level_is_silent_on_verl_keys() -> None:
    verdict = judge(planted({"critic/score/mean": LOW}, VERL))
    assert not ids(verdict) & {"reward-low", "reward-noisy"}
    assert "bounded" in (reason(verdict, "reward-low") or "")


@pytest.mark.parametrize(
    "scores",
    [[0.0, 1.0] * 10, [0.0] * 20, [0.0] * 19 + [1.0], [-1.0, 0.3, 0.9, 0.1] * 5],
)
def test_reward_level_is_silent_where_samples_show_a_bounded_scale(
    scores: list[float],
) -> None:
    verdict = judge(_with_samples(scores))
    assert "reward-low" not in ids(verdict)
    assert "samples" in (reason(verdict, "reward-low") or "")


@pytest.mark.parametrize(("high", "silent"), [(1.0, True), (2.5, False)])
def test_the_bounds_of_dumped_scores_are_evidence(high: float, silent: bool) -> None:
    run = planted({"rollout/reward_mean": LOW}, TUTORIAL)
    figures = {
        "samples/score_min": [0.0] * 3,
        "samples/score_max": [1.0, high, 1.0],
        "samples/count": [64.0] * 3,
    }
    run.apply(batch(rows(figures, [78, 79, 80], 500)), now=0.0)
    verdict = judge(run)
    assert ("reward-low" not in ids(verdict)) is silent
    assert ("0 and 1" in (reason(verdict, "reward-low") or "")) is silent


def test_a_reward_that_rises_is_not_low() -> None:
    assert "reward-low" not in ids(
        judge(planted({"rollout/reward_mean": [0.01 * i for i in range(95)]}, TUTORIAL))
    )


@pytest.mark.parametrize("beside", [VERL, OTHER])
def test_low_policy_kl_is_no_fault_outside_the_tutorials(
    beside: dict[str, float],
) -> None:
    key = "actor/ppo_kl" if beside is VERL else "ppo_kl"
    verdict = judge(planted({key: [0.0001] * 60}, beside))
    assert "kl-low" not in ids(verdict)
    assert reason(verdict, "kl-low")


STAIRS = [value for value in (0.08, 0.05, 0.02, 0.004, 0.003) for _ in range(40)]


def test_stair_steps_are_the_adaptive_controller() -> None:
    settings = {"kl_ctrl.type": "adaptive"}
    verdict = judge(planted({"ppo/kl_div": STAIRS[:-5]}, TUTORIAL, settings))
    assert "adaptive controller" in (reason(verdict, "kl-low") or "")
    assert "kl-low" in ids(
        judge(planted({"ppo/kl_div": STAIRS}, TUTORIAL, {"kl_ctrl.type": "fixed"}))
    )


def test_reference_kl_of_verl_is_measured_by_its_own_past() -> None:
    growing = [0.002 * i for i in range(300)]
    assert ids(judge(planted({"actor/kl_loss": growing}, VERL))) == set()
    fixed = {"algorithm.kl_ctrl.type": "fixed", "algorithm.kl_ctrl.target_kl": 0.1}
    verdict = judge(planted({"actor/kl_loss": growing}, VERL, fixed))
    assert ids(verdict) == set(), "verl's default target_kl is not in force"
    assert ids(
        judge(planted({"actor/kl_loss": [0.01 * i for i in range(300)]}, VERL, fixed))
    ) >= {"ref-kl-rising"}


def test_a_tutorials_target_kl_is_believed() -> None:
    columns = {"kl/divergence": wave(20, 0.2, 0.01)}
    assert "ref-kl-high" not in ids(judge(planted(columns, TUTORIAL)))
    found = judge(planted(columns, TUTORIAL, {"algorithm.target_kl": 0.05})).findings
    assert any(
        "algorithm.target_kl" in one.message for one in found if one.id == "ref-kl-high"
    )


@pytest.mark.parametrize(
    ("settings", "user", "words", "fires"),
    [
        (None, None, "the limit 512 (assumed)", True),
        ({"actor_rollout_ref.rollout.max_new_tokens": 300}, None, "", False),
        (
            {"data.max_response_length": "2048"},
            None,
            "the limit 2,048 (data.max_response_length)",
            True,
        ),
        ({"data.max_response_length": "${x}"}, 350, "", False),
        (None, 1024, "the limit 1,024 (your settings)", True),
    ],
)
def test_response_length_is_relative_to_its_limit(
    settings: dict[str, object] | None, user: int | None, words: str, fires: bool
) -> None:
    run = planted({"rollout/response_length_mean": [299.0] * 12}, TUTORIAL, settings)
    found = [
        one for one in judge(run, load_guide({"response_limit": user} if user else None)).findings
        if one.id == "response-short"
    ]  # fmt: skip
    assert bool(found) is fires
    assert all(words in one.message for one in found)


def test_v1_trainer_needs_the_limit_for_truncation() -> None:
    columns = {
        "response_length/clip_ratio": [0.4] * 20,
        "response_length/max": [1000.0] * 20,
    }
    verdict = judge(
        planted(columns, {"training/off_policy/trajectory_spans/mean": 1.0})
    )
    assert "truncation" not in ids(verdict)
    said = reason(verdict, "truncation") or ""
    assert "v0.9" in said
    assert "data.max_response_length is unknown" in said


def test_gpu_memory_of_a_tutorial_is_labelled_as_what_it_is() -> None:
    found = judge(planted({"system/memory_util": [95.0] * 30}, TUTORIAL)).findings
    assert any(
        "memory controller" in one.message
        for one in found
        if one.id == "gpu-memory-high"
    )


def test_single_dips_of_gpus_are_nothing() -> None:
    assert "gpu-idle" not in ids(
        judge(planted({"system/gpu_util": [95.0, 5.0, 90.0] * 10}, TUTORIAL))
    )
