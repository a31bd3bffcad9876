"""Targets that a user sets for metrics, and when a run reached them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import factor
from verl_tui.runs.series import Point
from verl_tui.runs.views.best import best, is_better_low, metric_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.runs.run import Run


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


def target_of(run: Run, metric: str, target: float) -> Target | None:
    """Return how far a run has come, None where it does not log the metric.

    Args:
        run: The run.
        metric: An indicator's id or the log's own key.
        target: What is to be reached: from below, or from above where less of the metric is better.
    """
    key = metric_key(run, metric)
    if key is None:
        return None
    sign = factor(metric, key)
    top = best(run, metric)
    now = run.present(key)
    last = now.last_finite if now is not None else None
    return Target(
        metric,
        key,
        target,
        reached(run, metric, target),
        None if last is None else Point(last.step, last.value * sign),
        None if top is None else Point(top.step, top.value),
    )


def reached(run: Run, metric: str, target: float) -> Point | None:
    """Return the first point at or beyond a target, None where there is none; asking again costs
    only the new points.
    """
    key = metric_key(run, metric)
    series = run.series(key) if key is not None else None
    if key is None or series is None:
        return None
    sign = factor(metric, key)
    down = is_better_low(metric, key)
    found = series.first_beyond(target * sign, down=down is (sign > 0))
    if found is None:
        return None
    return Point(found.step, found.value * sign)


def targets_of(run: Run, targets: Mapping[str, float]) -> list[Target]:
    """Return how far a run has come with each target that it logs the metric of."""
    found = (
        target_of(run, metric, value)
        for metric, value in targets.items()
        if math.isfinite(value)
    )
    return [target for target in found if target is not None]
