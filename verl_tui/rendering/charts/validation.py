"""Validation scores beside the reward: which of them share its y axis, and how they are worded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.downsample import best_point
from verl_tui.rendering.text.numbers import compact
from verl_tui.runs.views.checkpoints import is_better_low

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.runs.run import Run

_APART, _SHARES_APART = 2.5, 20.0
"""How many times as large the largest value of the one may be, and the same of two that are within
-1 and 1: such are shares or scores of right and wrong, and far apart only while little is learned.
Heuristic: beyond these, the smaller one is a flat line.
"""
_ROUNDING = 1e-6


def score_beside(run: Run) -> str | None:
    """Return the validation score that is drawn into the chart of a run's reward, None if there is
    none, or it is on another scale. If there are several, it is the one that the run is judged by.
    """
    key = run.indicators.get("validation")
    reward, score = (
        run.series(wanted) for wanted in (run.indicators.get("reward", ""), key or "")
    )
    if reward is None or score is None or not on_one_scale(reward, score):
        return None
    return key


def on_one_scale(one: Points, other: Points) -> bool:
    """Return whether two series can share a y axis: their largest values, signs aside, are of about
    the same size, or both stay within -1 and 1.

    A reward of -5 to 5 and an accuracy of 0 to 1 do not. Largest values only ever grow, so that
    the answer hardly ever changes while a run goes on. Without a number on either side it is yes.
    """
    sizes = [_size(points) for points in (one, other)]
    if None in sizes:
        return True
    least, most = sorted(size for size in sizes if size is not None)
    apart = _SHARES_APART if most <= 1 + _ROUNDING else _APART
    return most <= least * apart or not least


def _size(points: Points) -> float | None:
    """Return the largest absolute value, None without a number."""
    if not points.steps:
        return None
    bounds = points.pyramid.bounds(points.steps[0], points.steps[-1])
    if bounds is None:
        return None
    return max(map(abs, bounds))


def newest_and_best(run: Run) -> str:
    """Return the newest and the best validation score of a run: `val 0.697, best 0.706 @900`;
    nothing where it has none or is a preview.
    """
    key = run.indicators.get("validation")
    series = run.present(key)
    if key is None or series is None or run.preview or not series.values:
        return ""
    newest = f"val {compact(series.values[-1])}"
    best = best_point(series, lowest=is_better_low("validation", key))
    if best is None or len(series.values) < 2:
        return newest
    is_newest = series.steps[-1] == best[0]
    return f"{newest}, " + (
        "best so far" if is_newest else f"best {compact(best[1])} @{best[0]}"
    )
