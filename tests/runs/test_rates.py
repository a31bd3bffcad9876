"""Steps per minute, and the 95th percentile of generation times."""

from __future__ import annotations

import numpy as np
import pytest
from trainings import training

from verl_tui.runs.time.forecast import steps_per_minute
from verl_tui.runs.time.step_timing import generation_latency


def test_steps_per_minute_are_those_of_the_usual_pace():
    rate = steps_per_minute(training({"timing_s/step": [12.0] * 40}))
    assert rate is not None
    assert (rate.value, rate.unit) == (pytest.approx(5.0), "steps/min")


def test_the_percentile_is_that_of_numpy():
    times = [float(n % 17) for n in range(60)]
    latency = generation_latency(training({"timing_s/gen": times}))
    assert latency is not None
    assert latency.value == pytest.approx(np.percentile(times, 95))
    assert latency.key == "timing_s/gen, of the last 60"
