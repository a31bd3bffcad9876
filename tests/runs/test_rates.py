"""Steps per minute, and the 95th percentile of generation times."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from log_reading import read_run
from trainings import training

from verl_tui.runs.time.throughput import generation_latency, rates, steps_per_minute

if TYPE_CHECKING:
    from pathlib import Path


def test_steps_per_minute_are_those_of_the_usual_pace() -> None:
    rate = steps_per_minute(training({"timing_s/step": [12.0] * 40}))
    assert rate is not None
    assert (rate.value, rate.unit) == (pytest.approx(5.0), "steps/min")


def test_a_step_of_minutes_says_how_many() -> None:
    rate = steps_per_minute(training({"timing_s/step": [840.0] * 40}))
    assert rate is not None
    assert (rate.value, rate.unit) == (pytest.approx(14.0), "min a step")


def test_the_percentile_is_that_of_numpy() -> None:
    times = [float(n % 17) for n in range(60)]
    latency = generation_latency(training({"timing_s/gen": times}))
    assert latency is not None
    assert latency.value == pytest.approx(np.percentile(times, 95))
    assert latency.key == "timing_s/gen, of the last 60"


def test_of_the_tutorials_samples_each_counts(tmp_path: Path) -> None:
    path = tmp_path / "verl_logs.jsonl"
    each = [
        {"step": n // 10, "verl_sample_generation_seconds": float(n % 10)}
        for n in range(100)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in each))
    latency = generation_latency(read_run(path))
    assert latency is not None
    assert latency.value == pytest.approx(
        np.percentile([n % 10 for n in range(100)], 95)
    )


def test_too_few_times_say_nothing() -> None:
    assert generation_latency(training({"timing_s/gen": [1.0] * 4})) is None
    assert list(rates(training({"critic/score/mean": [0.5]}))) == []
