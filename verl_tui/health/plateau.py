"""Reward and validation that no longer move, by a trend test over a long window."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from statistics import fmean
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import number
from verl_tui.health.conditions.trend import trend
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.moment import Moment
    from verl_tui.runs.series import Series

_FLAT_T = 2.0
"""Below two standard errors a slope is no trend."""
_STRIDE = 20
"""The window's end moves in strides, so that a slope on the edge is not told and taken back at every step."""
_VALIDATIONS = 5
"""Validations in the window without which their trend is not known: heuristic."""


def judge(rule: Rule, moment: Moment) -> Finding | NotJudged | None:
    """Tell when neither reward nor any validation score has a trend."""
    key = moment.indicators.get("reward")
    series = moment.series(key) if key else None
    if series is None or key is None:
        return NotJudged(rule.id, "the log has no reward")
    end = len(series) if moment.end is None else bisect_right(series.steps, moment.end)
    # The newest point may still change and so stays outside.
    end = (end - 1) // _STRIDE * _STRIDE
    if end < rule.window:
        return NotJudged(rule.id, f"needs {rule.window} points, has {max(end, 0)}")
    start = end - rule.window
    values = [value for value in series.values[start:end] if math.isfinite(value)]
    line = trend(values)
    if len(values) < rule.window // 2 or abs(line.t) >= _FLAT_T:
        return None
    since, last = series.steps[start], series.steps[end - 1]
    validation = _validation(moment, since, last)
    if isinstance(validation, str):
        return NotJudged(rule.id, validation)
    if validation is None:
        return None
    return Finding(
        rule.id,
        rule.severity,
        f"reward shows no trend over {moment.span(last - since + 1)}: mean {number(fmean(values))}, change "
        f"{line.change:+.2g}; {'validation shows none either' if validation else 'the log has no validation'}",
        step=last,
        since_step=since,
        evidence=(f"{key}: slope {line.t:+.1f} standard errors from level over {len(values)} points", *validation),
        advice=rule.advice,
        source=rule.source,
        key=key,
    )


def _validation(moment: Moment, since: int, last: int) -> tuple[str, ...] | str | None:
    """Return the evidence that validation stands still; a reason where it is too short; None where it moves."""
    evidence = []
    for key in validation_keys(moment.run.keys):
        series = moment.series(key)
        values = _between(series, since, last) if series is not None else []
        if len(values) < _VALIDATIONS:
            return f"needs {_VALIDATIONS} validations in the window, {key} has {len(values)}"
        line = trend(values)
        if abs(line.t) >= _FLAT_T:
            return None
        evidence.append(f"{key}: slope {line.t:+.1f} standard errors from level over {len(values)} validations")
    return tuple(evidence)


def _between(series: Series, since: int, last: int) -> list[float]:
    values = series.values[bisect_left(series.steps, since) : bisect_right(series.steps, last)]
    return [value for value in values if math.isfinite(value)]
