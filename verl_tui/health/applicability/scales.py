"""Exemptions by the scale of the reward: bounded scores have no level to judge."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_POINTS = 100
"""Newest points in which evidence is searched for."""
_ENOUGH = 5
"""Fewest points that give evidence: heuristic."""
_SCORES = 20
"""Fewest scores that show their scale: heuristic, a handful may lie anywhere."""
_MOST_SCORES = 2000
_AT_BOUND = 2
"""Number of scores at exactly 1 or −1 that cannot be chance."""
_CLOSE = 0.1
"""Share by which a spread may differ from √(m(1−m)): batches are finite."""
_SCOPED = {"rollout/reward_mean", "reward/reward"}
"""Spellings of the tutorials' own records with a scope. Under other ones the tutorials themselves
end healthy below 1 (at 0.92 and 0.82), and home-made logs have them too.
"""


def bounded_reward(context: RuleContext, _key: str) -> str | None:
    """Return the evidence that rewards are scores on a bounded scale, where the guide's 2–4 means
    nothing.
    """
    mean = context.known(context.indicators.get("reward"))
    spread = context.known(context.indicators.get("reward_std"))
    return _binary_spread(mean, spread) or _bounded_scale(context.run)


def bounded(run: Run) -> str | None:
    """Return the evidence that a run's rewards are scores on a bounded scale."""
    mean = run.indicator("reward")
    spread = run.indicator("reward_std")
    return _binary_spread(mean, spread) or _bounded_scale(run)


def _bounded_scale(run: Run) -> str | None:
    return _bounded_scores(run) or _bounded_responses(run.series("reward/reward"))


def _binary_spread(mean: Series | None, spread: Series | None) -> str | None:
    """Return evidence that scores are 0 or 1: their spread is √(m(1−m))."""
    if mean is None or spread is None:
        return None
    pairs = _pairs(mean, spread)
    if len(pairs) < _ENOUGH or not all(0 <= m <= 1 for m, _ in pairs):
        return None
    like = sum(_is_spread_of_zeros_and_ones(*pair) for pair in pairs)
    if like < 0.8 * len(pairs):
        return None
    return (
        f"rewards are 0 or 1: {spread.key} is √(m(1−m)) in {like} of the last {len(pairs)} points, "
        f"m being {mean.key}"
    )


def _is_spread_of_zeros_and_ones(mean: float, spread: float) -> bool:
    widest = math.sqrt(mean * (1 - mean))
    return abs(spread - widest) <= max(0.01, _CLOSE * widest)


def _pairs(first: Series, second: Series) -> list[tuple[float, float]]:
    """Return the newest finite values at steps that both have."""
    pairs = []
    for i in range(max(0, len(first) - _POINTS), len(first)):
        j = bisect_left(second.steps, first.steps[i])
        if j < len(second) and second.steps[j] == first.steps[i]:
            pair = (first.values[i], second.values[j])
            if all(map(math.isfinite, pair)):
                pairs.append(pair)
    return pairs


def _bounded_scores(run: Run) -> str | None:
    scores: list[float] = []
    for step in reversed(run.samples.steps):
        stated = [sample.score for sample in run.samples.at(step)]
        scores += finite(score for score in stated if score is not None)
        if len(scores) >= _MOST_SCORES:
            break
    return _scale(scores, "the newest samples' scores") or _bounded_dumps(run)


def _bounded_dumps(run: Run) -> str | None:
    """Return the evidence in dumps: of their scores only the extremes of each step are kept."""
    lows = run.series(f"{PREFIX}score_min")
    highs = run.series(f"{PREFIX}score_max")
    counts = run.series(f"{PREFIX}count")
    if lows is None or highs is None or counts is None:
        return None
    if sum(counts.tail(_POINTS)) < _SCORES:
        return None
    low = min(lows.tail(_POINTS), default=-math.inf)
    high = max(highs.tail(_POINTS), default=math.inf)
    if not -1.0 <= low <= high <= 1.0:
        return None
    if low != -1.0 and high != 1.0:
        return None
    within = f"{low:g} and {high:g}"
    return f"the newest samples' scores all lie within {within}: a bounded scale"


def _scale(scores: Sequence[float], what: str) -> str | None:
    if len(scores) < _SCORES:
        return None
    counted = f"{what} ({len(scores)})"
    if all(score in (0.0, 1.0) for score in scores):
        return f"{counted} are all 0 or 1: a bounded scale"
    # Scores that merely stay below 1 may be low ones: only those that reach the bound prove it.
    reached = sum(abs(score) == 1.0 for score in scores)
    if reached >= _AT_BOUND and all(-1.0 <= score <= 1.0 for score in scores):
        return (
            f"{counted} all lie within −1 and 1, and reach the bound: a bounded scale"
        )
    return None


def _bounded_responses(series: Series | None) -> str | None:
    """Return the evidence in the tutorials' `reward` records, of which each step keeps the mean."""
    if series is None:
        return None
    values = finite(series.tail(_POINTS))
    counts = series.counts[-_POINTS:]
    if not counts or max(counts) == 1:
        return _scale(values, f"the values of {series.key}")
    if sum(counts) < _SCORES or len(values) != len(counts):
        return None
    if not all(map(_is_mean_of_zeros_and_ones, values, counts)):
        return None
    return f"the scores behind {series.key} are all 0 or 1: a bounded scale"


def _is_mean_of_zeros_and_ones(mean: float, count: int) -> bool:
    return 0 <= mean <= 1 and abs(mean * count - round(mean * count)) < 1e-6


def small_scale(context: RuleContext, _key: str) -> str | None:
    """Exempt all spellings of the reward but those of the tutorials' own records, unless some value
    exceeds 1.
    """
    key = context.indicators.get("reward")
    series = context.known(key)
    if key in _SCOPED or series is None or series.highest > 1:
        return None
    return f"{key} has never exceeded 1: it may be a score from 0 to 1, not the guide's 2–4 scale"


def not_unit_scale(context: RuleContext, key: str) -> str | None:
    """Exempt a reward that is not known to go from 0 to 1: a swing has no size without a scale."""
    known = context.finite(key, _POINTS)
    if len(known) >= _SCORES and all(0.0 <= value <= 1.0 for value in known):
        return None
    return f"{key} is not known to be on a scale from 0 to 1"
