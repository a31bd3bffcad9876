"""Responses that shrink to nothing, and when those that grow to the limit began to grow."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from planted import VERL, judge, planted, reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.finding import Finding, Verdict

COUNT = 200
LENGTH, REWARD = "response_length/mean", "critic/score/mean"


def ramp(
    start: float,
    end: float,
    begin: int = 80,
    finish: int = 100,
    size: float = 0.02,
    seed: int = 1,
) -> list[float]:
    """Return values that go from one level to another between two points, with noise of a share of
    the larger one.
    """
    chance = random.Random(seed)
    noise = size * max(abs(start), abs(end))
    way = (min(1.0, max(0.0, (i - begin) / (finish - begin))) for i in range(COUNT))
    return [start + (end - start) * one + chance.gauss(0.0, noise) for one in way]


SHRINKS = ramp(300, 10)
FALLS = ramp(0.6, 0.1, seed=2)
GAINS = ramp(0.3, 0.6, seed=3)
LEVEL = ramp(0.3, 0.3, seed=4)


def judged(
    columns: Mapping[str, Sequence[float]], beside: Mapping[str, float] = VERL
) -> Verdict:
    return judge(planted(columns, beside))


def collapse(
    columns: Mapping[str, Sequence[float]], beside: Mapping[str, float] = VERL
) -> Finding | None:
    return next(
        (
            one
            for one in judged(columns, beside).findings
            if one.id == "length-collapse"
        ),
        None,
    )


def test_responses_that_shrink_and_nothing_gains() -> None:
    found = collapse({LENGTH: SHRINKS, REWARD: LEVEL})
    assert found is not None
    assert found.message.endswith("and no score gained")
    # Some tasks need few words: without any loss it takes more.
    assert collapse({LENGTH: ramp(300, 60), REWARD: LEVEL}) is None
    assert collapse({LENGTH: ramp(300, 60), REWARD: FALLS}) is not None


@pytest.mark.parametrize(
    "columns",
    [
        {REWARD: GAINS},
        # what it had learnt before stays
        {REWARD: ramp(0.2, 0.6, begin=10, finish=60)},
        {REWARD: ramp(0.97, 0.97, size=0.005)},
        {REWARD: LEVEL, "val-core/x/acc/mean@1": GAINS},
        {REWARD: LEVEL, "critic/reward_extra_info/answer/mean": GAINS},
        {
            REWARD: GAINS,
            "critic/reward_extra_info/steps/mean": FALLS,
            "val-core/x/acc/mean@1": GAINS,
        },
        {REWARD: ramp(-0.4, -0.1)},
    ],
    ids=[
        "reward",
        "reward before",
        "solved",
        "validation",
        "part",
        "validation against a part",
        "below 0",
    ],
)
def test_short_responses_that_serve_the_task(
    columns: Mapping[str, Sequence[float]],
) -> None:
    assert collapse({LENGTH: SHRINKS, **columns}) is None


def test_a_collapse_of_length_that_is_over() -> None:
    columns = {LENGTH: [*SHRINKS[:140], *ramp(300, 300)[140:]], REWARD: FALLS}
    verdict = judged(columns)
    (reported,) = (one for one in verdict.history if one.id == "length-collapse")
    assert reported.raised_step is not None
    assert reported.raised_step <= 120
    assert reported.cleared_step is not None


def test_a_run_of_few_points_or_without_scores_is_not_judged() -> None:
    few = judged({LENGTH: SHRINKS[:20], REWARD: FALLS[:20]})
    assert reason(few, "length-collapse") == "needs 31 points, has 20"
    assert (
        reason(judged({LENGTH: SHRINKS}), "length-collapse") == "the log has no reward"
    )
    assert (
        reason(judged({REWARD: FALLS}), "length-collapse")
        == "the log has no response length"
    )


def test_an_explosion_is_told_where_no_share_of_cut_responses_is_logged() -> None:
    columns = {
        "response_length/mean": [*[300.0] * 100, *[300 + 6.5 * i for i in range(100)]],
        "critic/score/mean": [*[0.6] * 100, *[0.6 - 0.004 * i for i in range(100)]],
    }
    run = planted(columns, VERL, {"data.max_response_length": 1024})
    (one,) = [one for one in judge(run).findings if one.id == "length-explosion"]
    assert "the limit 1,024" in one.message
