"""Settings that may be to blame are named with their value and the figure; others are not."""

from __future__ import annotations

import pytest
from planted import VERL, planted

from verl_tui.health.limits import CAUSES


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kl_coef": 0.001}, ["kl_coef 0.001 (x) is below"]),
        ({"kl_coef": 0.02}, []),
        (
            {
                "algorithm.kl_ctrl.kl_coef": 0.02,
                "actor.use_kl_loss": True,
                "actor.kl_loss_coef": 0.001,
            },
            ["kl_loss_coef 0.001 (x) is below 0.01–0.1"],
        ),
        (
            {
                "actor.kl_loss_coef": 0.001,
                "actor.use_kl_loss": False,
                "algorithm.use_kl_in_reward": False,
            },
            ["actor.use_kl_loss False (x): no KL term is in force"],
        ),
        ({"kl_coef": "1e-3"}, ["kl_coef 0.001 (x) is below"]),
        ({"kl_controller": "fixed"}, ["the KL controller does not adapt"]),
        (
            {"algorithm.kl_ctrl.type": "fixed", "algorithm.kl_ctrl.target_kl": 0.1},
            ["the KL controller does not adapt"],
        ),
        ({"kl_controller": "adaptive"}, []),
        ({"actor_rollout_ref.actor.optim.lr": 1e-4}, ["lr 0.0001 (x) is above"]),
        ({"actor_rollout_ref.actor.optim.lr": 1e-6, "critic.optim.lr": 1e-4}, []),
        ({"actor_rollout_ref.actor.clip_ratio": 0.5}, ["clip_ratio 0.5 (x) is wider"]),
        ({"actor_rollout_ref.actor.clip_ratio": 0.2}, []),
        ({}, []),
    ],
)
def test_what_lets_a_policy_drift(settings, words):
    run = planted({"actor/ppo_kl": [0.1]}, VERL, settings)
    found = [one.words(run) for one in CAUSES["drift"](run)]
    assert len(found) == len(words)
    for sentence, part in zip(found, words, strict=True):
        assert sentence.startswith("config: ")
        assert part in sentence
