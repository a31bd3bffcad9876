"""The families of metrics that have a colour."""

from __future__ import annotations

import pytest

from verl_tui.rendering.text.hues import family_role


@pytest.mark.parametrize(
    ("key", "indicator", "role"),
    [
        ("critic/score/mean", "reward", "reward"),
        ("val-core/math/acc/mean@1", None, "validation"),
        ("train/reward", None, "reward"),
        ("actor/ppo_kl", "policy_kl", "kl"),
        ("actor/kl_loss", None, "kl"),
        ("actor/pg_loss", "policy_loss", "loss"),
        ("actor/entropy", "entropy", "entropy"),
        ("actor/entropy_loss", None, "entropy"),
        ("response_length/mean", "response_length", "length"),
        ("timing_s/step", "step_time", "time"),
        ("perf/throughput", "throughput", "time"),
        ("actor/grad_norm", "grad_norm", "other"),
        ("anything/[red]", None, "other"),
    ],
)
def test_a_metric_has_the_colour_of_its_family(key, indicator, role):
    assert family_role(key, indicator) == role
