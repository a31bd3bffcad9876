"""The checkpoints of a run by their steps, also those whose name states a value: `best_2.920`."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import INDICATORS, factor, spellings
from verl_tui.metrics import describe
from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.series import Point
from verl_tui.runs.views.signs_of_life import writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series


SUFFIXES = frozenset({".pt", ".pth", ".ckpt", ".bin", ".safetensors"})
"""Suffixes of checkpoints that are files."""
_VALUE = pattern(r"(?:^|[_=-])(-?\d+\.(\d+))$")
_BROKEN_OFF = (EventKind.FATAL, EventKind.STOPPED, EventKind.TRACEBACK)
_LOOKED_AT = ("reward", "validation")
"""Indicators whose best trainers save, in the order of trying."""


class CalledBest(NamedTuple):
    """A checkpoint that the trainer itself called the best it had."""

    path: str
    step: int | None
    """By its name, else by the value in its name; None if neither shows it."""
    value: float | None
    """The value in its name."""
    key: str | None
    """The metric that had this value at the step, None where the name states the step."""


@cached_by_revision
def called_best(run: Run) -> Sequence[CalledBest]:
    """Return the checkpoints that the trainer called best, in the order of steps; those without one
    come last.
    """
    steps = {path: step for step, path in run.checkpoints.items()}
    found = [_called_best(run, path, steps.get(path)) for path in run.called_best]
    return sorted(found, key=lambda one: (one.step is None, one.step, one.path))


@cached_by_revision
def checkpoints(run: Run) -> Mapping[int, str]:
    """Return the checkpoints by their steps, those too whose step is known by a value only."""
    matched = {
        best.step: best.path for best in called_best(run) if best.step is not None
    }
    return {**matched, **run.checkpoints}


@cached_by_revision
def usable(run: Run) -> Mapping[int, str]:
    """Return the checkpoints without the one during which the run died: its remains cannot be
    loaded.
    """
    known = checkpoints(run)
    if not _broke_off(run):
        return known
    return {step: path for step, path in known.items() if not _is_torn(run, step)}


def _is_torn(run: Run, step: int) -> bool:
    """Return whether a checkpoint is incomplete, where a run has died.

    verl's tracker file names the newest that is complete. Without it, verl's console tells: a
    step's own line follows its checkpoint.
    """
    if run.saved_step is not None:
        return step > run.saved_step
    return (step > (math.inf if run.step is None else run.step)) and any(
        event.kind is EventKind.CHECKPOINT and event.step == step and event.line
        for event in run.events
    )


def _broke_off(run: Run) -> bool:
    """Return whether a run failed or was stopped, or its process is gone."""
    if run.outcome is not None and run.outcome.kind in _BROKEN_OFF:
        return True
    holder = writer(run)
    return holder is not None and holder.gone


def _called_best(run: Run, path: str, step: int | None) -> CalledBest:
    name = PurePath(path)
    found = _VALUE.search(name.stem if name.suffix in SUFFIXES else name.name)
    if found is None:
        return CalledBest(path, step, None, None)
    value = float(found[1])
    digits = len(found[2])
    if step is not None:
        return CalledBest(path, step, value, None)
    # of a metric that it names, the reward, the validation
    keys = [key for key in run.keys if key.replace("/", "_") in name.name]
    for key in (*keys, *(run.indicators.get(one, "") for one in _LOOKED_AT)):
        series = run.series(key)
        at = _step_of(series, value, digits) if series is not None else None
        if at is not None:
            return CalledBest(path, at, value, key)
    return CalledBest(path, None, value, None)


def _step_of(series: Series, value: float, digits: int) -> int | None:
    """Return the step at which a metric had a value as it is rounded in a name, and was better than
    ever before.

    A trainer saves when it beats its best, upwards or downwards; other steps with the same value do
    not count.
    """
    import numpy as np

    values = np.array(series.values)
    fits = np.abs(values - value) <= 0.5 * 10.0**-digits * (1 + 1e-6)
    highest = np.fmax.accumulate(np.append(-np.inf, values))[:-1]
    lowest = np.fmin.accumulate(np.append(np.inf, values))[:-1]
    found = np.flatnonzero(fits & ((values > highest) | (values < lowest)))
    return series.steps[found[0]] if len(found) else None


class BestBy(NamedTuple):
    """The metric that the best step is found by."""

    metric: str = "reward"
    """An indicator's id or the log's own key."""
    lowest: bool | None = None
    """True if less is better; None: as the metric has it."""

    @classmethod
    def of(cls, text: str) -> BestBy:
        """Parse `METRIC`, `METRIC:min` or `METRIC:max`."""
        metric, _, way = text.rpartition(":")
        if metric and way in ("min", "max"):
            return cls(metric, way == "min")
        return cls(text)


class Checkpoint(NamedTuple):
    """A checkpoint of a run."""

    step: int
    path: str
    value: float | None
    """The metric at that step, None where it was not logged there."""
    complete: bool | None
    """True if verl's tracker file calls it complete; None where there is no such file."""


class Best(NamedTuple):
    """The best step of a run."""

    metric: str
    """The user's name for it: an indicator's id or the log's own key."""
    key: str
    """The log's own key."""
    step: int
    value: float
    lowest: bool
    """True if less is better."""
    checkpoint: Checkpoint | None
    """That of exactly this step."""
    nearest: Checkpoint | None
    """The checkpoint of the nearest step, the earlier of two; None if none is known."""
    latest: Checkpoint | None


def best(
    run: Run, metric: str = "reward", *, lowest: bool | None = None
) -> Best | None:
    """Return where a metric was best, the first among equals; None if the run has no finite value
    of it, or is a preview, which does not have all values.

    Args:
        run: The run.
        metric: An indicator's id or the log's own key.
        lowest: Whether less is better; None: as the metric has it, else more is.
    """
    key = metric_key(run, metric)
    series = run.series(key) if key is not None else None
    if key is None or series is None or run.preview:
        return None
    sign = factor(metric, key)
    lowest = is_better_low(metric, key) if lowest is None else lowest
    top = series.highest_point(-sign if lowest else sign)
    if top is None:
        return None
    steps = usable(run)

    def checkpoint(at: int | None) -> Checkpoint | None:
        return None if at is None else _checkpoint(run, series, sign, at)

    nearest = min(steps, key=lambda at: (abs(at - top.step), at), default=None)
    return Best(
        metric,
        key,
        top.step,
        top.value * sign,
        lowest,
        checkpoint(top.step if top.step in steps else None),
        checkpoint(nearest),
        checkpoint(max(steps, default=None)),
    )


def metric_key(run: Run, metric: str) -> str | None:
    """Return the log's own key of an indicator, or of a key itself; None where the run has
    neither.
    """
    if metric in INDICATORS:
        return run.indicators.get(metric)
    if run.series(metric) is None:
        return None
    return metric


def is_better_low(metric: str, key: str) -> bool:
    """Return whether less of a metric is better."""
    if metric in INDICATORS:
        return INDICATORS[metric].direction == "down"
    spelled = (
        indicator.direction
        for indicator in INDICATORS.values()
        if key in spellings(indicator.id)
    )
    return (describe(key).direction or next(spelled, "")) == "down"


def _checkpoint(run: Run, series: Series, sign: float, step: int) -> Checkpoint:
    point = series.at(step)
    value = None
    if point is not None and point.step == step and math.isfinite(point.value):
        value = sign * point.value
    complete = None if run.saved_step is None else step <= run.saved_step
    return Checkpoint(step, usable(run)[step], value, complete)


class Target(NamedTuple):
    """A target for a metric, in one run."""

    metric: str
    """The user's name for it: an indicator's id or the log's own key."""
    key: str
    """The log's own key."""
    target: float
    reached: Point | None
    """The first point at or beyond the target."""
    last: Point | None
    """The newest point that is a number; after a restart those beyond are old."""
    best: Point | None
    """The best point so far."""


def targets_of(run: Run, targets: Mapping[str, float]) -> list[Target]:
    """Return how far a run has come with each target that it logs the metric of.

    Args:
        run: The run.
        targets: Indicator or the log's own key -> what is to be reached: from below, or from above
            where less of the metric is better.
    """
    found = []
    for metric, target in targets.items():
        key = metric_key(run, metric)
        now = run.present(key)
        if key is None or now is None or not math.isfinite(target):
            continue
        top = best(run, metric)
        found.append(
            Target(
                metric,
                key,
                target,
                reached(run, metric, target),
                _times(now.last_finite, factor(metric, key)),
                None if top is None else Point(top.step, top.value),
            )
        )
    return found


def reached(run: Run, metric: str, target: float) -> Point | None:
    """Return the first point at or beyond a target, None where there is none."""
    key = metric_key(run, metric)
    series = run.series(key) if key is not None else None
    if key is None or series is None:
        return None
    sign = factor(metric, key)
    down = is_better_low(metric, key)
    return _times(series.first_beyond(target * sign, down=down is (sign > 0)), sign)


def _times(point: Point | None, sign: float) -> Point | None:
    return None if point is None else Point(point.step, point.value * sign)
