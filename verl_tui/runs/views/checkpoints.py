"""The checkpoints of a run by their steps, its best, its targets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.indicators import INDICATORS, factor, spellings
from verl_tui.metrics import describe
from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.series import Point, Series
from verl_tui.runs.views.signs_of_life import writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.runs.run import Run


_VALUE = pattern(r"(?:^|[_=-])(-?\d+\.\d+)(?:\.(?:pt|pth|ckpt|bin|safetensors))?$")
"""A value at the end of a checkpoint's name."""
_BROKEN_OFF = (EventKind.FATAL, EventKind.STOPPED, EventKind.TRACEBACK)


class CalledBest(NamedTuple):
    """A checkpoint that the trainer itself called the best it had."""

    path: str
    step: int | None = None
    """By its name; None if that does not state it."""
    value: float | None = None
    """The value in its name."""


@cached_by_revision
def called_best(run: Run) -> Sequence[CalledBest]:
    """Return the checkpoints that the trainer called best, in the order of steps; those without one
    come last.
    """
    steps = {path: step for step, path in run.checkpoints.items()}
    found = []
    for path in run.called_best:
        value = _VALUE.search(path)
        found.append(CalledBest(path, steps.get(path), value and float(value[1])))
    return sorted(found, key=lambda one: (one.step is None, one.step, one.path))


@cached_by_revision
def usable(run: Run) -> Mapping[int, str]:
    """Return the checkpoints without the one during which the run died: its remains cannot be
    loaded.
    """
    holder = writer(run)
    died = run.outcome and run.outcome.kind in _BROKEN_OFF
    if died or (holder and holder.gone):
        known = run.checkpoints.items()
        return {step: path for step, path in known if not _is_torn(run, step)}
    return run.checkpoints


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
    """That of the nearest step, of two the better one; None if none is known."""
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
    if not found or run.preview:
        return None
    key, series, sign = found
    lowest = is_better_low(metric, key) if lowest is None else lowest
    top = series.highest_point(-sign if lowest else sign)
    if not top:
        return None
    saved = usable(run)

    def checkpoint(step: int) -> Checkpoint:
        value = series.since(step).get(step, math.nan)
        known = sign * value if math.isfinite(value) else None
        complete = None if run.saved_step is None else step <= run.saved_step
        return Checkpoint(step, saved[step], known, complete)

    away = min((abs(at - top.step) for at in saved), default=0)
    way = 2 * lowest - 1
    near = min(
        map(checkpoint, saved.keys() & {top.step - away, top.step + away}),
        key=lambda one: (one.value is None, way * (one.value or 0.0), one.step),
        default=None,
    )
    last = checkpoint(max(saved)) if saved else None
    exact = near if away == 0 else None
    return Best(metric, key, top.step, top.value * sign, lowest, exact, near, last)


def _logged(run: Run, metric: str) -> tuple[str, Series, float] | None:
    """Return the log's own key of an indicator, or of a key itself, with its values that no restart
    gave up and the factor to the indicator's; None where the run has neither.
    """
    key = run.indicators.get(metric, "") if metric in INDICATORS else metric
    series = run.present(key)
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


def targets_of(run: Run, targets: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return how far a run has come with each target that it logs the metric of, ready for JSON:
    the metric as the user names it and by the log's own key, the target, the first step at or
    beyond it; the newest number with its step (after a restart those beyond are old), and the best.

    Args:
        run: The run.
        targets: Indicator or the log's own key -> what is to be reached: from below, or from above
            where less of the metric is better.
    """
    found = []
    for metric, target in targets.items():
        logged = _logged(run, metric) if math.isfinite(target) else None
        if logged:
            key, now, sign = logged
            step, value = now.last_finite or (None, None)
            first, top = reached(run, metric, target), best(run, metric)
            found.append(
                {
                    "metric": metric,
                    "key": key,
                    "target": target,
                    "reached_step": first and first.step,
                    "value": value and value * sign,
                    "step": step,
                    "best": top and top.value,
                    "best_step": top and top.step,
                }
            )
    return found


def reached(run: Run, metric: str, target: float) -> Point | None:
    """Return the first point at or beyond a target, None where there is none."""
    found = _logged(run, metric)
    if not found:
        return None
    key, series, sign = found
    down = is_better_low(metric, key) is (sign > 0)
    point = series.first_beyond(target * sign, down=down)
    return point and Point(point.step, point.value * sign)
