"""Figures of speed: steps a minute, tokens and samples a second, use of the hardware, waiting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import mean
from verl_tui.metrics import describe, modern
from verl_tui.runs.settings import batch_size, gpu_count
from verl_tui.runs.time.forecast import pace
from verl_tui.runs.time.step_timing import LOOK_BACK, WINDOW
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series
    from verl_tui.runs.time.step_timing import Breakdown

_TOKENS = (
    "perf/total_num_tokens",
    "train/global_tokens",
    "train/perf/total_num_tokens",
)
_WAITING: Mapping[str, tuple[str, str]] = toml_table(__file__, "waiting.toml")
"""Metric -> label and unit, for metrics of waiting and of late samples."""
_GENERATION = ("gen", "wait_prev_gen", "generation", "wait_for_batch", "train_wait")
_NEWEST = 200
"""Generation times that the percentile is of."""
_LEAST = 5
"""Fewest values for a percentile (a heuristic)."""
_ASYNC = frozenset(
    {"training/off_policy/trajectory_staleness/mean", "fully_async/trainer/idle_ratio"}
)


class SpeedFigure(NamedTuple):
    """One number about speed or waiting."""

    label: str
    value: float
    unit: str
    """Unit of `metrics.describe`; `share` is 0..1, `x` a factor, empty a count."""
    key: str
    """The metrics or settings that it was computed from."""


def throughput(run: Run, timing: Breakdown | None) -> Iterator[SpeedFigure]:
    """Yield tokens and samples a second and the use of the hardware, as far as they are known."""
    since = _window_start(run, timing)
    # what the trainer logs itself
    speed = _averaged(run.present(run.indicators.get("throughput")), since)
    series = next(filter(None, map(run.present, _TOKENS)), None)
    tokens = _averaged(series, since)
    if tokens is not None:
        tokens = tokens._replace(label="tokens per step", unit="tokens")
    total = _a_second(timing, tokens, "throughput of all GPUs") or _of_all(run, speed)
    size = batch_size(run.config)
    batch = size and SpeedFigure("", size, "samples", "batch size")
    samples = _a_second(timing, batch or None, "samples per second")
    yield from filter(None, (speed, total, tokens, samples))
    for key in run.keys:
        if modern(key).startswith("perf/mfu") or modern(key) == "train/mfu":
            use = _averaged(run.present(key), since)
            if use is not None:
                value = use.value / 100 if use.unit == "percent" else use.value
                yield use._replace(value=value, unit="share")


def _window_start(run: Run, timing: Breakdown | None) -> int:
    """Return the first of the newest steps that are averaged."""
    return timing.steps[0] if timing is not None else (run.step or 0) - WINDOW


def _averaged(series: Series | None, since: int) -> SpeedFigure | None:
    """Return the mean of a metric since a step, None without a number."""
    value = _mean(series, since)
    if series is None or value is None:
        return None
    described = describe(series.key)
    return SpeedFigure(described.label, value, described.unit, series.key)


def _a_second(
    timing: Breakdown | None, of_a_step: SpeedFigure | None, label: str
) -> SpeedFigure | None:
    """Return what a step has of something, divided by its time; None where either is unknown."""
    if of_a_step is None or timing is None or not timing.key or timing.step <= 0:
        return None
    value = of_a_step.value / timing.step
    origin = f"{of_a_step.key} / {timing.key}"
    return SpeedFigure(label, value, f"{of_a_step.unit}/s", origin)


def _of_all(run: Run, speed: SpeedFigure | None) -> SpeedFigure | None:
    """Return the throughput of all GPUs by that of one."""
    gpus = gpu_count(run.config)
    if speed is None or speed.unit != "tokens/s/GPU" or gpus is None:
        return None
    origin = f"{speed.key} × {gpus} GPUs"
    return SpeedFigure("throughput of all GPUs", speed.value * gpus, "tokens/s", origin)


def bubble(run: Run, timing: Breakdown) -> SpeedFigure | None:
    """Return the share of the step in which the trainer generates or waits for samples."""
    parts = {part.name: part for part in timing.parts}
    name = next((name for name in _GENERATION if name in parts), None)
    if name is None:
        return None
    asynchronous = any(modern(key) in _ASYNC for key in run.keys)
    waits = asynchronous or name.startswith(("wait", "train_wait"))
    label = "time waiting for samples" if waits else "time spent generating"
    return SpeedFigure(label, parts[name].share, "share", parts[name].key)


def waiting(run: Run, timing: Breakdown | None) -> Iterator[SpeedFigure]:
    """Yield an asynchronous trainer's figures of idle sides, late and dropped samples."""
    since = _window_start(run, timing)
    known = {modern(key): key for key in run.keys}
    for name, (label, unit) in _WAITING.items():
        series = run.present(known.get(name))
        if series is None:
            continue
        value = _mean(series, since if unit else series.steps[-1])
        if value is not None:
            yield SpeedFigure(label, value, unit, series.key)


def _mean(series: Series | None, since: int) -> float | None:
    """Return the mean since a step, the last value where there is none since; None without a
    number.
    """
    if series is None:
        return None
    newest = zip(series.steps[-LOOK_BACK:], series.values[-LOOK_BACK:], strict=True)
    recent = [value for step, value in newest if step >= since and math.isfinite(value)]
    if recent:
        return mean(recent)
    last = series.last_finite
    return last and last.value


def rates(run: Run) -> Iterator[SpeedFigure]:
    """Yield the figures that operators ask for first, as far as the log shows them: steps per
    minute, and how long generation takes at worst.
    """
    yield from filter(None, (steps_per_minute(run), generation_latency(run)))


def steps_per_minute(run: Run) -> SpeedFigure | None:
    """Return how many steps a minute has at the run's usual pace, or how many minutes a step has
    where that is longer than one; None where unknown.
    """
    usual = pace(run)
    if usual is None or not 0 < usual.seconds < math.inf:
        return None
    minutes = usual.seconds / 60.0
    if minutes > 1:
        return SpeedFigure("minutes a step", minutes, "min a step", usual.origin)
    return SpeedFigure("steps per minute", 1.0 / minutes, "steps/min", usual.origin)


def generation_latency(run: Run) -> SpeedFigure | None:
    """Return the 95th percentile of the newest generation times in seconds, None where there are
    too few.

    verl logs one time for each step, which several sources may hold; the tutorials' loggers log one
    for each sample, several in a step: the percentile is of what is logged.
    """
    import numpy as np

    key = run.indicators.get("generation_time")
    if key is None:
        return None
    logged = run.measured if run.dialect == "tutorial" else run.tail
    seconds = list(filter(math.isfinite, logged(key, _NEWEST)))
    if len(seconds) < _LEAST:
        return None
    note = f"{key}, of the last {len(seconds)}"
    at_worst = float(np.percentile(seconds, 95))
    return SpeedFigure("generation latency, p95", at_worst, "s", note)
