"""Exemptions by scale: bounded rewards have no level to judge, and a loss may hold a KL."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.evaluation import PREFIX
from verl_tui.means import finite

if TYPE_CHECKING:
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_POINTS = 100
"""Newest points in which evidence is searched for."""
_FEWEST, _ENOUGH = 5, 20
"""Fewest points that give evidence, and fewest scores that show their scale: heuristic."""
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
    return bounded(context.run, context.end)


def bounded(run: Run, end: int | None = None) -> str | None:
    """Return the evidence up to a step that a run's rewards are scores on a bounded scale."""
    known = [run.indicator(id) for id in ("reward", "reward_std")]
    mean, spread = (one and one.until(end) for one in known)
    found = _binary_spread(mean, spread) if mean and spread else None
    return found or _bounded_scores(run)


def _binary_spread(mean: Series, spread: Series) -> str | None:
    """Return evidence that scores are 0 or 1: their spread is √(m(1−m))."""
    first = mean.steps[-_POINTS:][0]
    beside = spread.since(first)
    pairs = ((m, beside.get(step, math.nan)) for step, m in mean.since(first).items())
    found = np.array([one for one in pairs if math.isfinite(sum(one))])
    if len(found) < _FEWEST or found[:, 0].min() < 0 or found[:, 0].max() > 1:
        return None
    widest = np.sqrt(found[:, 0] * (1 - found[:, 0]))
    like = int((abs(found[:, 1] - widest) <= np.maximum(0.01, _CLOSE * widest)).sum())
    if like < 0.8 * len(found):
        return None
    return (
        f"rewards are 0 or 1: {spread.key} is √(m(1−m)) in {like} of the last {len(found)} points, "
        f"m being {mean.key}"
    )


def _scores(run: Run) -> list[float]:
    samples = (one for step in run.samples.steps for one in run.samples.at(step))
    return finite([one.score for one in samples if one.score is not None])


def _bounded_scores(run: Run) -> str | None:
    """Return the evidence in the newest samples; of large dumps the extremes of each step are
    known.
    """
    scores = _scores(run)
    count = float(len(scores))
    if count < _ENOUGH:
        names = (f"{PREFIX}{of}" for of in ("score_min", "score_max", "count"))
        lows, highs, counts = (run.tail(name, _POINTS) for name in names)
        scores, count = [*lows, *highs], sum(counts)
    sizes = abs(np.array(scores))
    if count < _ENOUGH or not scores or sizes.max() > 1:
        return None
    # Scores that merely stay below 1 may be low ones: only those that reach the bound prove it.
    if (sizes == 1.0).sum() < _AT_BOUND and not np.isin(scores, (0.0, 1.0)).all():
        return None
    within = f"{min(scores):g} and {max(scores):g}"
    return f"the newest samples' scores all lie within {within}: a bounded scale"


def small_scale(context: RuleContext, _key: str) -> str | None:
    """Exempt all spellings of the reward but those of the tutorials' own records, unless some value
    exceeds 1.
    """
    key = context.indicators.get("reward")
    series = context.known(key)
    if key in _SCOPED or series is None or series.highest > 1:
        return None
    return f"{key} has never exceeded 1: it may be a score from 0 to 1, not the guide's 2–4 scale"


_HELD, _JUMP, _PEAK = 1000, 1.0, 0.5
"""Newest points searched for jumps of the loss, size of a jump, and share of the largest from which
on others count; the KL must account for half of each.
"""


def by_reference_kl(context: RuleContext, key: str) -> str | None:
    """Exempt a loss that jumps where the KL to the reference jumps as far at that step: it is a
    term of the loss.

    TRL's loss holds β times that KL, so that one answer far from the reference makes it jump.
    verl's policy loss is next to 0 and holds no such term: its jumps are many times those of a KL.
    """
    loss, kl = map(context.known, (key, context.indicators.get("reference_kl")))
    if loss is None or kl is None or len(loss) < _ENOUGH:
        return None
    lately = dict(zip(loss.steps[-_HELD:], map(abs, loss.tail(_HELD)), strict=True))
    least = max(_PEAK * max(lately.values()), _JUMP)
    peaks = {step: value for step, value in lately.items() if value >= least}
    usual_loss, usual_kl = (median(map(abs, one.tail(_POINTS))) for one in (loss, kl))
    beside = kl.since(min(peaks, default=0))
    times = [abs(beside.get(at, 0.0)) / value for at, value in peaks.items()]
    if min(times, default=0.0) * usual_loss < _PEAK * usual_kl:
        return None
    return f"{kl.key} jumps as far at that step: it is a term of the loss"
