"""Figures of samples: variety, groups, components."""

from __future__ import annotations

import math

import pytest

from verl_tui.evaluation import Evaluation
from verl_tui.records import Sample

ENGLISH = "First we add the two numbers, which gives twelve. Then we halve the sum and find that the answer is six. "


def figures(*samples: Sample) -> dict[str, float]:
    evaluation = Evaluation()
    for sample in samples:
        group, response = sample.group or sample.prompt, sample.response
        evaluation.add(sample.score, group, len(response), sample.extras, response)
    return evaluation.figures()


def sample(
    response: str = ENGLISH,
    score: float | None = None,
    prompt: str = "q",
    **more: object,
) -> Sample:
    return Sample(1, prompt, response, score, **more)  # type: ignore[arg-type]


def test_scores_and_groups():
    scored = zip("aabbccd", (0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0), strict=True)
    found = figures(*(sample(score=score, prompt=prompt) for prompt, score in scored))
    assert found["count"] == 7
    assert found["score"] == pytest.approx(4 / 7)
    assert found["score_std"] == pytest.approx(math.sqrt(4 / 7 * 3 / 7))
    assert found["dead_groups"] == pytest.approx(2 / 3), "one sample alone is no group"
    assert found["groups_all_wrong"] == pytest.approx(1 / 3)
    assert found["groups_all_right"] == pytest.approx(1 / 3)


def test_what_is_not_known_is_left_out():
    assert figures() == {"count": 0}
    alone = figures(sample("short"))
    assert set(alone) == {"count", "repetition", "response_chars"}
    assert "score" not in figures(sample(score=math.nan))


def test_components():
    extras = {"acc": True, "format_reward": 0.5, "pred": "72", "score": 3.0}
    extras |= {"step": 7, "prompt_id": 9, "bad": math.inf}
    wrong = sample(score=0.0, extras={"acc": False})
    found = figures(sample(score=1.0, extras=extras), wrong)
    shown = (found["acc"], found["format_reward"], found["extra_score"])
    assert shown == (0.5, 0.5, 3.0)
    assert not {"pred", "step", "prompt_id", "bad"} & found.keys()
    many = figures(sample(extras={f"reward_{i}": 1.0 for i in range(100)}))
    assert sum(name.startswith("reward_") for name in many) == 32


def test_variety():
    alike = figures(*[sample(ENGLISH)] * 8)
    texts = [" ".join(f"w{i}{j}" for j in range(40)) for i in range(8)]
    varied = figures(*map(sample, texts))
    assert (alike["unique_share"], varied["unique_share"]) == (1 / 8, 1.0)
    assert alike["distinct_2"] == pytest.approx(1 / 8, abs=0.01)
    assert varied["distinct_2"] == 1.0


def test_of_a_part_only_whole_groups_count():
    evaluation = Evaluation()
    for group, score in [("a", 0.0), ("a", 1.0), ("a", 1.0), ("b", 1.0), ("b", 1.0)]:
        evaluation.add(score, group, 3, {}, "yes")
    assert evaluation.figures()["dead_groups"] == 0.5
    assert evaluation.figures(whole=False)["dead_groups"] == 0.0
    assert evaluation.figures(whole=False)["count"] == 5
