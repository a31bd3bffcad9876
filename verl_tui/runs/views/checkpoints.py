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
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series


SUFFIXES = frozenset({".pt", ".pth", ".ckpt", ".bin", ".safetensors"})
"""Suffixes of checkpoints that are files."""
_VALUE = pattern(r"(?:^|[_=-])(-?\d+\.(\d+))$")
_BROKEN_OFF = (EventKind.FATAL, EventKind.STOPPED, EventKind.TRACEBACK)


class CalledBest(NamedTuple):
    """A checkpoint that the trainer itself called the best it had."""

    path: str
    step: int | None = None
    """By its name, else by the value in its name; None if neither shows it."""
    value: float | None = None
    """The value in its name."""
    key: str | None = None
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
    matched = {one.step: one.path for one in called_best(run) if one.step is not None}
    return {**matched, **run.checkpoints}


@cached_by_revision
def usable(run: Run) -> Mapping[int, str]:
    """Return the checkpoints without the one during which the run died: its remains cannot be
    loaded.
    """
    holder = writer(run)
    died = run.outcome is not None and run.outcome.kind in _BROKEN_OFF
    if died or (holder is not None and holder.gone):
        known = checkpoints(run).items()
        return {step: path for step, path in known if not _is_torn(run, step)}
    return checkpoints(run)


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


def _called_best(run: Run, path: str, step: int | None) -> CalledBest:
    name = PurePath(path)
    found = _VALUE.search(name.stem if name.suffix in SUFFIXES else name.name)
    if found is None or step is not None:
        return CalledBest(path, step, float(found[1]) if found else None)
    value = float(found[1])
    for key in _may_be_of(run, name.name):
        series = run.series(key)
        at = _step_of(series, value, len(found[2])) if series else None
        if at is not None:
            return CalledBest(path, at, value, key)
    return CalledBest(path, None, value)


def _may_be_of(run: Run, name: str) -> Iterator[str]:
    """Yield metrics that a name may state a value of: those that it names, reward, validation."""
    yield from (key for key in run.keys if key.replace("/", "_") in name)
    yield from (run.indicators.get(one, "") for one in ("reward", "validation"))


def _step_of(series: Series, value: float, digits: int) -> int | None:
    """Return the step at which a metric had a value as it is rounded in a name, and was better than
    ever before, upwards or downwards: other steps with the same value do not count.
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
    found = _logged(run, metric)
    if found is None or run.preview:
        return None
    key, series, sign = found
    lowest = is_better_low(metric, key) if lowest is None else lowest
    top = series.highest_point(-sign if lowest else sign)
    if top is None:
        return None
    saved = usable(run)

    def checkpoint(step: int) -> Checkpoint:
        value = series.since(step).get(step, math.nan)
        known = sign * value if math.isfinite(value) else None
        complete = None if run.saved_step is None else step <= run.saved_step
        return Checkpoint(step, saved[step], known, complete)

    nearest = min(saved, key=lambda at: (abs(at - top.step), at), default=None)
    chosen = (nearest, max(saved, default=None))
    near, last = (None if at is None else checkpoint(at) for at in chosen)
    exact = near if nearest == top.step else None
    return Best(metric, key, top.step, top.value * sign, lowest, exact, near, last)


def _logged(run: Run, metric: str) -> tuple[str, Series, float] | None:
    """Return the log's own key of an indicator, or of a key itself, with its values and what these
    are to be multiplied with; None where the run has neither.
    """
    key = run.indicators.get(metric, "") if metric in INDICATORS else metric
    series = run.series(key)
    return None if series is None else (key, series, factor(metric, key))


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


class Target(NamedTuple):
    """A target for a metric, in one run."""

    metric: str
    """The user's name for it: an indicator's id or the log's own key."""
    key: str
    """The log's own key."""
    target: float
    reached_step: int | None
    """The first step at or beyond the target."""
    value: float | None
    """The newest value that is a number; after a restart those beyond are old."""
    step: int | None
    """Its step."""
    best: float | None
    """The best value so far."""
    best_step: int | None


def targets_of(run: Run, targets: Mapping[str, float]) -> list[Target]:
    """Return how far a run has come with each target that it logs the metric of.

    Args:
        run: The run.
        targets: Indicator or the log's own key -> what is to be reached: from below, or from above
            where less of the metric is better.
    """
    found = []
    for metric, target in targets.items():
        key, _, sign = _logged(run, metric) or ("", None, 1.0)
        now = run.present(key) if math.isfinite(target) else None
        if now is not None:
            step, value = now.last_finite or (None, None)
            first, top = reached(run, metric, target), best(run, metric)
            told = (value and value * sign, step)
            highest = (top.value, top.step) if top else (None, None)
            since = first and first.step
            found.append(Target(metric, key, target, since, *told, *highest))
    return found


def reached(run: Run, metric: str, target: float) -> Point | None:
    """Return the first point at or beyond a target, None where there is none."""
    found = _logged(run, metric)
    if found is None:
        return None
    key, series, sign = found
    down = is_better_low(metric, key) is (sign > 0)
    point = series.first_beyond(target * sign, down=down)
    return point and Point(point.step, point.value * sign)
