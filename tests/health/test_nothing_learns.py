"""A run for nothing: no update moves the policy, or the reward has gained nothing since the first
step.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from planted import OTHER, VERL, ids, judge, planted, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.runs.run import Run

ID = "nothing-learns"
FAR, NEAR = {"actor/kl_loss": 0.6}, {"actor/kl_loss": 0.01}


def shares(
    level: Callable[[float], float], count: int = 150, batch: int = 64, seed: int = 5
) -> list[float]:
    """Return means of rewards that are 0 or 1, given their level at a share of the run."""
    chance = random.Random(seed)
    return [
        sum(chance.random() < level(i / count) for _ in range(batch)) / batch
        for i in range(count)
    ]


def find(run: Run) -> Finding | None:
    verdict = judge(run)
    assert not [one for one in verdict.not_judged if one.reason.startswith("failed")]
    return next((one for one in verdict.findings if one.id == ID), None)


def verl(
    values: Sequence[float], beside: Mapping[str, float] = FAR, **settings: float
) -> Run:
    columns = {
        "critic/score/mean": values,
        "actor/lr": [1e-6] * len(values),
        "actor/entropy": [0.123456] * len(values),
    }
    return planted(columns, {**VERL, **beside}, settings)


def test_it_is_reported_after_a_hundred_points_and_no_sooner() -> None:
    values = shares(lambda _: 0.5)
    assert find(verl(values[:100])) is None
    assert "needs 101 points, has 100" in (reason(judge(verl(values[:100])), ID) or "")
    assert find(verl(values[:101])) is not None


def test_a_slight_fall_makes_a_gain_no_likelier() -> None:
    ripple = [0.05 * (-1) ** i + 0.01 * (-1) ** (i // 10) for i in range(150)]
    found = find(
        verl([0.8 - 0.03 * i / 150 + one for i, one in enumerate(ripple)], NEAR)
    )
    assert found is not None
    assert "change -0.03 over" in found.evidence[0]


def test_a_strong_penalty_is_named_as_the_reason() -> None:
    run = verl(
        shares(lambda _: 0.5, batch=16),
        {"actor/kl_loss": 0.004},
        **{"actor.kl_loss_coef": 30.0},
    )
    found = find(run)
    assert found is not None
    assert (
        "held back by the KL penalty: actor.kl_loss_coef 30 × KL 0.004 costs 0.12"
        in found.message
    )


def test_without_any_reason_much_more_must_be_ruled_out() -> None:
    assert find(verl(shares(lambda _: 0.5, batch=16), NEAR)) is None
    assert find(verl(shares(lambda _: 0.5, batch=2048), NEAR)) is not None


@pytest.mark.parametrize(
    "level",
    [
        pytest.param(lambda t: 0.4 + 0.3 * t, id="it learns"),
        pytest.param(lambda t: 0.4 + 0.15 * t, id="it learns slowly"),
        pytest.param(
            lambda t: 0.3 + 0.3 * min(1.0, 10 * t), id="it has learnt at once"
        ),
        pytest.param(lambda t: 0.3 + max(0.0, t - 0.6), id="it learns late"),
        pytest.param(
            lambda t: 0.3 + 0.5 * t if t < 0.4 else 0.3,
            id="it has lost what it had learnt",
        ),
        pytest.param(lambda t: 0.5 - 0.3 * t, id="it falls, which is another fault"),
        pytest.param(lambda _: 0.95, id="it is solved"),
    ],
)
def test_other_courses(level: Callable[[float], float]) -> None:
    assert find(verl(shares(level))) is None


def test_numbers_whose_squares_overflow() -> None:
    assert find(verl([1e200 * value for value in shares(lambda _: 0.5)])) is None


@pytest.mark.parametrize(
    "key", ["val-core/gsm8k/acc/mean@1", "reward_extra/answer/mean"]
)
def test_what_gains_elsewhere_is_learning(key: str) -> None:
    values = shares(lambda _: 0.5)
    run = planted(
        {"critic/score/mean": values, key: shares(lambda t: 0.2 + 0.4 * t)},
        {**VERL, **FAR},
    )
    assert find(run) is None


def test_a_scale_without_known_ends() -> None:
    values = [7.0 * value - 2 for value in shares(lambda _: 0.5)]
    assert find(verl(values)) is None
    known = planted(
        {"critic/score/mean": values},
        {**VERL, **FAR, "critic/score/max": 5.0, "critic/score/min": -2.0},
    )
    assert find(known) is not None


def test_a_log_that_begins_later_hides_what_was_learnt_before() -> None:
    values = shares(lambda _: 0.5)
    run = planted(
        {"critic/score/mean": values}, {**VERL, **FAR}, steps=list(range(501, 651))
    )
    assert find(run) is None


# -- nothing moves at all --------------------------------------------------------------------------

STILL = {
    "actor/grad_norm": [0.0] * 30,
    "actor/kl_loss": [0.0] * 30,
    "actor/lr": [1.234567e-6] * 30,
}


def test_no_update_has_ever_moved_the_policy() -> None:
    found = find(planted(STILL))
    assert found is not None
    assert found.since_step == 1
    assert found.message.startswith(
        "nothing learns: gradient norm and KL to the reference have been 0"
    )


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"actor/kl_loss": [0.0] * 25 + [1e-9] * 5}, id="KL moves"),
        pytest.param(
            {"actor/grad_norm": [0.2] * 30},
            id="there are gradients: the KL is a placeholder",
        ),
        pytest.param({"actor/lr": [0.0] * 10 + [0.001] * 20}, id="figures are rounded"),
    ],
)
def test_what_moves_or_may_be_rounded(change: Mapping[str, Sequence[float]]) -> None:
    assert ID not in ids(judge(planted({**STILL, **change})))


def test_other_frameworks_figures() -> None:
    columns = {
        "grad_norm": [0.0] * 30,
        "kl": [0.0] * 30,
        "learning_rate": [1.234567e-6] * 30,
    }
    assert find(planted(columns, OTHER)) is not None
