"""Failures of the policy that need several signals: collapse, hacking, lengths, mismatch. Each is found
where it was planted, and not in what only looks like it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from planted import OTHER, TUTORIAL
from planted_failures import COUNT, FLAT, LOOPS, find, noisy, ramp

if TYPE_CHECKING:
    from collections.abc import Sequence


# -- policy-collapse -------------------------------------------------------------------------------

CLIFF = [
    *noisy(ramp(2.0, 3.0, 200), 0.05),
    *noisy([2.2, 1.5, 0.9, 0.6], 0.02),
    *noisy([0.4] * 46, 0.05),
]
DRIFT = [*noisy([0.03] * 190, 0.005), *noisy(ramp(0.05, 0.3, 60, finish=20), 0.01)]


def test_the_tutorials_failing_run() -> None:
    found = find(
        "policy-collapse",
        {
            "rollout/reward_mean": CLIFF,
            "ppo/kl_div": DRIFT,
            "samples/repetition": LOOPS,
        },
        TUTORIAL,
        {"kl_coef": 0.001, "kl_controller": "fixed"},
    )
    assert found is not None
    assert found.since_step == 201
    assert found.message.startswith(
        "the policy collapsed: reward cliff at step 201, from "
    )
    assert "samples loop from step 202" in found.message
    said = "\n".join(found.evidence)
    for words in (
        "reward cliff at step 201",
        "policy KL",
        "× its threshold of 0.1 from step 19",
        "kl_coef 0.001",
    ):
        assert words in said
    assert "below 0.01–0.1" in said
    assert "does not adapt" in said
    for words in (
        "kl_coef 0.02",
        "adaptive controller",
        "target_kl 0.05",
        "[0.01, 0.1]",
    ):
        assert words in (found.advice or "")


@pytest.mark.parametrize(
    ("reward", "kl"),
    [
        (
            CLIFF,
            noisy([0.03] * 250, 0.005),
        ),  # the reward alone: a broken scorer, a harder curriculum
        (noisy(ramp(2.0, 3.0, 250), 0.05), DRIFT),  # KL alone
        (
            CLIFF,
            [*DRIFT[:150], *[math.inf] * 5, *noisy([0.03] * 95, 0.005)],
        ),  # what is no number is no evidence
        (noisy(ramp(3.0, 2.0, 250), 0.05), DRIFT),  # a slow decline is no cliff
        (CLIFF[:201], DRIFT[:201]),  # one bad batch is none either
    ],
)
def test_what_is_no_collapse(reward: list[float], kl: list[float]) -> None:
    assert (
        find(
            "policy-collapse",
            {"rollout/reward_mean": reward, "ppo/kl_div": kl},
            TUTORIAL,
        )
        is None
    )


# -- entropy-collapse ------------------------------------------------------------------------------

FALLING = [
    *noisy([0.5] * 150, 0.01),
    *[0.5 * math.exp(-i / 30) + 0.005 for i in range(150)],
]


@pytest.mark.parametrize("top", [0.7, 0.95])
def test_entropy_that_falls_beside_a_rising_reward_is_convergence(top: float) -> None:
    rising = noisy(ramp(0.5, top, begin=140, finish=280), 0.02)
    assert (
        find(
            "entropy-collapse", {"actor/entropy": FALLING, "critic/score/mean": rising}
        )
        is None
    )


@pytest.mark.parametrize("opening", [[0.6] * 10, [0.97] * 10])
def test_entropy_may_fall_where_the_first_steps_learn_nearly_all(
    opening: list[float],
) -> None:
    learnt = noisy([*opening, *[max(opening[0], 0.93)] * 290], 0.01)[: len(FALLING)]
    learnt = [min(1.0, value) for value in learnt]
    assert (
        find(
            "entropy-collapse", {"actor/entropy": FALLING, "critic/score/mean": learnt}
        )
        is None
    )


SOLVED = noisy([*ramp(-0.35, 0.99, begin=0, finish=60)[:80], *[0.99] * 220], 0.003)
"""The sum of a share of right answers and of a penalty, both at their best from step 60 on."""


@pytest.mark.parametrize(
    ("right", "penalty", "found"),
    [
        (
            ramp(0.0, 1.0, begin=0, finish=60),
            ramp(-0.35, -0.01, begin=0, finish=60),
            False,
        ),
        (ramp(0.0, 1.0, begin=0, finish=60), None, False),
        (ramp(0.0, 1.0, begin=0, finish=60), [0.0] * COUNT, True),
        (
            ramp(0.0, 0.5, begin=0, finish=60),
            ramp(-0.35, -0.01, begin=0, finish=60),
            True,
        ),
        (
            ramp(0.0, 1.0, begin=0, finish=60),
            ramp(-0.35, -0.2, begin=0, finish=60),
            True,
        ),
    ],
    ids=["penalty", "one part", "never earned", "half right", "penalised"],
)
def test_entropy_may_fall_where_all_parts_of_the_reward_are_at_their_top(
    right: Sequence[float], penalty: Sequence[float] | None, *, found: bool
) -> None:
    parts = {"rewards/right/mean": right} | (
        {"rewards/brevity/mean": penalty} if penalty is not None else {}
    )
    whole = [sum(values) for values in zip(*parts.values(), strict=True)]
    reward = SOLVED if penalty is None else noisy(whole, 0.003)
    entropy = [
        *ramp(4.7, 0.3, begin=0, finish=80)[:80],
        *[0.3 * math.exp(-i / 60) for i in range(220)],
    ]
    reported = find(
        "entropy-collapse", {"entropy": entropy, "reward": reward, **parts}, OTHER
    )
    assert (reported is not None) is found


# -- reward-hacking --------------------------------------------------------------------------------

RISING = noisy(ramp(0.3, 0.8), 0.03)


def validated(values: Sequence[float], every: int = 10) -> list[float]:
    """Return a validation every few steps and nothing in between."""
    return [value if i % every == 0 else math.nan for i, value in enumerate(values)]


@pytest.mark.parametrize("every", [5, 25])
def test_validation_that_follows_or_is_not_known(every: int) -> None:
    following = validated(noisy(ramp(0.3, 0.65), 0.03), every)
    assert (
        find(
            "reward-hacking",
            {"critic/score/mean": RISING, "val-core/x/acc/mean@1": following},
        )
        is None
    )
    flat = validated(noisy([0.5] * COUNT, 0.02), every)
    assert (
        find(
            "reward-hacking", {"critic/score/mean": FLAT, "val-core/x/acc/mean@1": flat}
        )
        is None
    )
    rare = validated(noisy([0.5] * COUNT, 0.01), 100)
    assert (
        find(
            "reward-hacking",
            {"critic/score/mean": RISING, "val-core/x/acc/mean@1": rare},
        )
        is None
    )


# -- length-explosion ------------------------------------------------------------------------------

LENGTH, SHARE = "response_length/mean", "response_length/clip_ratio"


# -- engine-mismatch -------------------------------------------------------------------------------


# -- slow-phase ------------------------------------------------------------------------------------
