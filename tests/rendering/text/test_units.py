"""Values with their units, as people read them."""

from __future__ import annotations

import pytest

from verl_tui.metrics import describe
from verl_tui.rendering.text.numbers import axis_texts, in_words

FIGURES = (
    (33.5, "percent", "33.5%"),
    (0.493, "share", "49.3%"),
    (0.0, "share", "0%"),
    (29.4, "%", "29.4%"),
    (1.35e6, "MiB", "1.29 TiB"),
    (96.4e9, "bytes", "89.8 GiB"),
    (35.4, "GiB", "35.4 GiB"),
    (0.25, "GiB", "256 MiB"),
    (0.0, "bytes", "0 bytes"),
    (12.0, "tokens", "12 tokens"),
    (1.0, "versions", "1 version"),
    (1.0, "tokens/s", "1 tokens/s"),
    (1380.0, "tokens/s/GPU", "1.38k tokens/s/GPU"),
    (29_500.0, "", "29.5k"),
    (0.7, "", "0.7"),
)


@pytest.mark.parametrize(("value", "unit", "text"), FIGURES)
def test_percentages_and_sizes_are_written_as_people_say_them(value, unit, text):
    assert "".join(in_words(value, unit)) == text


def test_an_axis_has_the_unit_of_the_value_beside_its_title():
    assert axis_texts([0.0, 0.005, 0.01], "share") == ["0%", "0.5%", "1%"]
    assert axis_texts([20.0, 40.0], "percent") == ["20%", "40%"]
    assert axis_texts([0.25, 0.5], "nats") == ["0.25", "0.5"]


def test_a_unit_that_the_number_is_in_is_never_left_out():
    assert in_words(0.493, "share") == ("49.3%", "")
    assert in_words(12.0, "tokens") == ("12", " tokens")


def test_the_sizes_that_wandb_calls_mb_are_of_1024():
    # wandb: `psutil.virtual_memory().available / 1024 / 1024`
    assert describe("system/proc.memory.availableMB").unit == "MiB"
    assert describe("system/disk./.usageGB").unit == "GiB"


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("time/n_train_samples", ""),
        ("time/train_samples_per_second", ""),
        ("timing_s/rollout/total_tokens", ""),
        ("timing_s/rollout/retry_count", ""),
        ("timing/cache_hit_ratio", "share"),
        ("timing_s/agent_loop/num_preempted/mean", ""),
        ("timing_s/agent_loop/generate_sequences/mean", "s"),
        ("timing/train/generation", "s"),
        ("time/train_runtime", "s"),
    ],
)
def test_counts_rates_and_shares_among_the_times_are_no_seconds(key, unit):
    found = describe(key)
    assert found.unit == unit
    assert found.label.endswith(" time") == (unit == "s" and "agent_loop" not in key)
