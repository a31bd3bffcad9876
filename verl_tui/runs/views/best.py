"""The step at which a run was best by some metric, and the checkpoint nearest to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import INDICATORS, factor
from verl_tui.metrics import describe
from verl_tui.runs.series import Point
from verl_tui.runs.views.checkpoints import usable

if TYPE_CHECKING:
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series


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
    top = _top(series, -sign if lowest else sign)
    if top is None:
        return None
    step = top.step
    steps = usable(run)

    def checkpoint(at: int | None) -> Checkpoint | None:
        if at is None:
            return None
        return _checkpoint(run, series, sign, at)

    nearest = min(steps, key=lambda at: (abs(at - step), at), default=None)
    return Best(
        metric,
        key,
        step,
        top.value * sign,
        lowest,
        checkpoint(step if step in steps else None),
        checkpoint(nearest),
        checkpoint(max(steps, default=None)),
    )


def _top(series: Series, sign: float) -> Point | None:
    """Return the first point with the highest value times `sign`, None without a number."""
    points = zip(series.steps, series.values, strict=True)
    found = max(
        (
            (value * sign, -step, value)
            for step, value in points
            if math.isfinite(value)
        ),
        default=None,
    )
    if found is None:
        return None
    return Point(-found[1], found[2])


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
        if key in indicator.spellings
    )
    return (describe(key).direction or next(spelled, "")) == "down"


def _checkpoint(run: Run, series: Series, sign: float, step: int) -> Checkpoint:
    point = series.at(step)
    if point is not None and point.step == step and math.isfinite(point.value):
        value = sign * point.value
    else:
        value = None
    complete = None if run.saved_step is None else step <= run.saved_step
    return Checkpoint(step, usable(run)[step], value, complete)
