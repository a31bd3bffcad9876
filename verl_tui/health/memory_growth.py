"""The growth of the host's memory, step by step; at 95% of the node Ray kills workers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.trend import trend
from verl_tui.health.limits import positive_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_USED = ("perf/cpu_memory_used_gb", "actor/perf/cpu_memory_used_gb")
_SHARE = ("system/memory_percent", "system/memory")
"""W&B's figure of the host: percent in use."""
_TOTAL = ("perf/cpu_memory_total_gb", "actor/perf/cpu_memory_total_gb")
FULL = 0.95
"""Share of the node at which Ray kills (Ray's RAY_memory_usage_threshold)."""
_MOST = 200
"""Newest points that show the slope."""
_PARTS = 4
_EACH = 1 / 3
"""Every quarter must have grown by a third of an even share: one jump, or a cache that fills up, is
no leak.
"""
_GOES_ON = 0.5
"""In its second half it must have grown half as much as in its first: what fills up levels off."""
_SURE = 8.0


class MemoryGrowth(NamedTuple):
    """A steady growth."""

    key: str
    since: int
    step: int
    first: float
    now: float
    each: float
    """Growth a step."""
    full: float | None
    """The most that Ray allows to be used, None if the node's size is unknown."""
    unit: str


def memory_series(context: RuleContext) -> tuple[str, Series] | None:
    """Return the key and the values of the host's memory in use, None if it is not logged."""
    names = context.names
    key = next((names[name] for name in (*_USED, *_SHARE) if name in names), None)
    series = context.run.present(key)
    return (key, series) if key is not None and series is not None else None


def memory_growth(context: RuleContext, window: int) -> MemoryGrowth | None:
    """Return the steady growth of the host's memory, None if there is none.

    Args:
        context: The run.
        window: Fewest points that show it.
    """
    found = memory_series(context)
    if found is None:
        return None
    key, series = found
    count = _climb(list(series.values[-_MOST:]), window) if len(series) >= window else 0
    if not count:
        return None
    share = key in {context.names.get(name) for name in _SHARE}
    values = series.values[-count:]
    steps = series.steps[-count:]
    each = trend(values).change / max(1, steps[-1] - steps[0])
    full = 100 * FULL if share else _full(context)
    unit = "%" if share else " GB"
    return MemoryGrowth(
        key, steps[0], steps[-1], values[0], values[-1], each, full, unit
    )


def _climb(values: Sequence[float], least: int) -> int:
    """Return the newest values that climb steadily, as many as there are; 0 where they do not."""
    if not all(map(math.isfinite, values)):
        return 0
    if values[-1] < max(values[:-least], default=-math.inf):
        return 0
    for count in (len(values), 2 * least, least):
        before = values[:-count]
        stretch = values[-count:]
        # Memory that was as high before was released again: a sawtooth, not a leak.
        was_as_high = False
        if before:
            rise = values[-1] - stretch[0]
            was_as_high = values[-1] - max(before) < rise / 2
        if _steady(stretch) and not was_as_high:
            return len(stretch)
    return 0


def _steady(values: Sequence[float]) -> bool:
    """Return whether values rise beyond doubt, and in every part of their course."""
    if values[-1] <= values[0]:
        return False
    line = trend(values)
    if line.change <= 0 or line.t < _SURE:
        return False
    size = len(values) // _PARTS
    least = _EACH * line.change / _PARTS
    for i in range(_PARTS):
        stop = len(values) - i * size
        if trend(values[stop - size : stop]).change < least:
            return False
    half = len(values) // 2
    return trend(values[half:]).change >= _GOES_ON * trend(values[:half]).change


def _full(context: RuleContext) -> float | None:
    """Return how many GB of the node Ray lets be used, None where its size is not known."""
    for name in _TOTAL:
        series = context.run.present(context.names.get(name))
        point = series.last_finite if series is not None else None
        if point is not None and point.value > 0:
            return FULL * point.value
    stated = positive_setting(
        context.run, ("cpu_memory_total_gb", "wandb.memory_total_gb")
    )
    if stated is None:
        return None
    return FULL * stated[1]
