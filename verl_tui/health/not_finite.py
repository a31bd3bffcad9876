"""Numbers that turned NaN or infinite, over all metrics of the log."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.finding import Finding, NotJudged

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.moment import Moment
    from verl_tui.runs.series import Series

_MOST_NAMED = 8
"""Metrics named one by one; when an update breaks, dozens break with it."""


class _Broken(NamedTuple):
    key: str
    steps: tuple[int, ...]
    """Steps among the newest points whose value is not finite."""
    looked: int
    """How many points were looked at."""
    last: tuple[int, float]
    now: bool
    """Whether the newest value is not finite."""


def judge(rule: Rule, moment: Moment) -> Finding | NotJudged | None:
    """Find metrics that had a finite value and are, or were among the newest points, not finite."""
    broken: list[_Broken] = []
    never = 0
    for key in moment.run.odd:
        series = moment.series(key)
        found = _look(series, moment.end, rule.window) if series is not None and len(series) else None
        if isinstance(found, _Broken):
            broken.append(found)
        never += found is _NEVER
    if not moment.run.keys or never == len(moment.run.keys):
        return NotJudged(rule.id, "the log has no numbers yet" if not never else "no metric ever had a value")
    if not broken:
        return None
    broken.sort(key=lambda one: (not one.now, one.steps[0]))
    return _finding(rule, broken)


_NEVER = object()
"""A metric that never had a finite value: not applicable to this run rather than broken."""


def _look(series: Series, end: int | None, window: int) -> _Broken | object | None:
    length = len(series) if end is None else bisect_right(series.steps, end)
    start = max(0, length - window)
    values = series.values[start:length]
    if not length or math.isfinite(sum(values)) or all(map(math.isfinite, values)):
        return None
    first = next((i for i, value in enumerate(series.values) if math.isfinite(value)), length)
    if first >= length:
        return _NEVER
    steps = [series.steps[i] for i in range(max(start, first), length) if not math.isfinite(series.values[i])]
    if not steps:
        return None
    last = (series.steps[length - 1], series.values[length - 1])
    return _Broken(series.key, tuple(steps), length - start, last, not math.isfinite(last[1]))


def _finding(rule: Rule, broken: list[_Broken]) -> Finding:
    worst = broken[0]
    others = f"; {len(broken) - 1} further metric{'s' * (len(broken) > 2)} too" if len(broken) > 1 else ""
    state = "is not finite" if worst.now else "was not finite"
    message = f"{worst.key} {state} {_count(worst)}{others}"
    evidence = [
        f"{one.key}: {_count(one)}; newest {one.last[1]:.3g} at step {one.last[0]}" for one in broken[:_MOST_NAMED]
    ]
    if len(broken) > _MOST_NAMED:
        evidence.append(
            f"and {len(broken) - _MOST_NAMED} more: {', '.join(one.key for one in broken[_MOST_NAMED:][:20])}"
        )
    return Finding(
        rule.id,
        rule.severity,
        message,
        step=max(one.last[0] for one in broken),
        since_step=min(one.steps[0] for one in broken),
        evidence=tuple(evidence),
        advice=rule.advice,
        source=rule.source,
        key=worst.key,
    )


def _count(one: _Broken) -> str:
    steps = ", ".join(map(str, one.steps[:5])) + (", …" if len(one.steps) > 5 else "")
    return f"at {len(one.steps)} of the last {one.looked} points (step{'s' * (len(one.steps) > 1)} {steps})"
