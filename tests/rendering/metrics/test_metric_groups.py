"""Metrics by prefix, and shelves of a grid."""

from __future__ import annotations

from verl_tui.rendering.metrics.listing import MetricGroup, grouped_keys
from verl_tui.rendering.text.piece import natural


def test_by_the_first_part_of_the_name():
    keys = (
        "timing_s/gen",
        "critic/score/max",
        "actor/lr",
        "critic/kl",
        "timing_s/adv",
        "actor/loss",
        "perf/mfu",
        "loss",
    )
    assert grouped_keys(keys) == (
        MetricGroup("critic", ("critic/kl", "critic/score/max")),
        MetricGroup("actor", ("actor/loss", "actor/lr")),
        MetricGroup("other", ("loss", "perf/mfu")),
        MetricGroup("timing_s", ("timing_s/adv", "timing_s/gen")),
    )


def test_numbers_in_names_sort_as_numbers():
    assert sorted(["layer10", "layer2", "Layer3", "layer"], key=natural) == [
        "layer",
        "layer2",
        "Layer3",
        "layer10",
    ]
