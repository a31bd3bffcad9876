"""Figures that versions of verl measure in two ways, as a comparison warns of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trainings import training

from verl_tui.runs.views.measures import differing

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

ACCURACY = "val-core/gsm8k/acc/mean@1"
SUCCESSFUL = "val-aux/gsm8k/acc_success_only/mean@1"
TURNS = ("num_turns/mean", "training/num_turns/mean")
GSPO = {
    "actor_rollout_ref__actor__policy_loss__loss_mode": "gspo",
    "actor_rollout_ref__actor__loss_agg_mode": "token-mean",
}


def named(name: str, *keys: str, **settings: Any) -> Run:
    run = training({key: [0.5, 0.75] for key in (*keys, "reward")}, settings=settings)
    run.name = name
    return run


def test_runs_of_one_version_measure_alike() -> None:
    old = named("old", ACCURACY, **GSPO)
    new = named("new", ACCURACY, SUCCESSFUL, **GSPO)
    for runs in (
        [],
        [old],
        [new],
        [old, old],
        [new, new],
        [old, named("no validation")],
    ):
        assert differing(runs) == []


@pytest.mark.parametrize("count", [1, 2])
def test_accuracy_counts_failed_sessions_in_later_versions(count: int) -> None:
    old = [named(f"old {number}", ACCURACY) for number in range(count)]
    (said,) = differing([*old, named("new", ACCURACY, SUCCESSFUL)])
    assert said.startswith(
        "validation: acc of new counts failed sessions as 0 (verl 0.9.1"
    )
    assert (
        f"{', '.join(run.name for run in old)} {'has' if count == 1 else 'have'} no such"
        in said
    )


def test_gspo_goes_by_its_aggregation_in_later_versions() -> None:
    old = named("old", **GSPO)
    new = named("new", *TURNS, **GSPO)
    (said,) = differing([old, new])
    assert said.startswith("policy loss: GSPO goes by loss_agg_mode since verl 0.9.1")
    assert "keys of new show; old may be older" in said


@pytest.mark.parametrize(
    "other",
    [
        {**GSPO, "actor_rollout_ref__actor__policy_loss__loss_mode": "vanilla"},
        {**GSPO, "actor_rollout_ref__actor__loss_agg_mode": "seq-mean-token-mean"},
        {},
    ],
)
def test_other_losses_are_the_same_in_all_versions(other: dict[str, str]) -> None:
    assert differing([named("old", **other), named("new", *TURNS, **GSPO)]) == []
