"""Exemptions by the scale of the reward, as bounded scores have no level to judge, and by how far
means of few scores swing by chance.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.evaluation import PREFIX
from verl_tui.health.conditions.stays import spreads, swing
from verl_tui.health.limits import positive_setting
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.conditions.windows import Numbers
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_POINTS = 100
"""Newest points in which evidence is searched for."""
_FEWEST = 5
"""Fewest points that give evidence: heuristic."""
_ENOUGH = 20
"""Fewest scores that show their scale, and points that show how far it swings: heuristic."""
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
    keys = map(context.indicators.get, ("reward", "reward_std"))
    return _bounded(context.run, *map(context.known, keys))


def bounded(run: Run) -> str | None:
    """Return the evidence that a run's rewards are scores on a bounded scale."""
    return _bounded(run, run.indicator("reward"), run.indicator("reward_std"))


def _bounded(run: Run, mean: Series | None, spread: Series | None) -> str | None:
    by_spread = mean and spread and _binary_spread(mean, spread)
    return by_spread or _bounded_scores(run)


def _binary_spread(mean: Series, spread: Series) -> str | None:
    """Return evidence that scores are 0 or 1: their spread is √(m(1−m))."""
    first = mean.steps[-_POINTS:][0]
    beside = spread.since(first)
    found = [
        (m, beside[step])
        for step, m in mean.since(first).items()
        if step in beside and math.isfinite(m + beside[step])
    ]
    if len(found) < _FEWEST or not all(0 <= m <= 1 for m, _ in found):
        return None
    like = sum(_is_spread_of_zeros_and_ones(*one) for one in found)
    if like < 0.8 * len(found):
        return None
    return (
        f"rewards are 0 or 1: {spread.key} is √(m(1−m)) in {like} of the last {len(found)} points, "
        f"m being {mean.key}"
    )


def _is_spread_of_zeros_and_ones(mean: float, spread: float) -> bool:
    widest = math.sqrt(mean * (1 - mean))
    return abs(spread - widest) <= max(0.01, _CLOSE * widest)


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
    known = [run.series(f"{PREFIX}{of}") for of in ("score_min", "score_max", "count")]
    lows, highs, counts = [
        one.tail(_POINTS) if one is not None else () for one in known
    ]
    low, high = min(lows, default=-math.inf), max(highs, default=math.inf)
    if sum(counts) < _ENOUGH or not -1.0 <= low <= high <= 1.0:
        return None
    if low != -1.0 and high != 1.0:
        return None
    within = f"{low:g} and {high:g}"
    return f"the newest samples' scores all lie within {within}: a bounded scale"


def _scale(scores: Sequence[float], what: str) -> str | None:
    if len(scores) < _ENOUGH:
        return None
    counted = f"{what} ({len(scores)})"
    if all(score in (0.0, 1.0) for score in scores):
        return f"{counted} are all 0 or 1: a bounded scale"
    # Scores that merely stay below 1 may be low ones: only those that reach the bound prove it.
    reached = sum(abs(score) == 1.0 for score in scores)
    if reached < _AT_BOUND or not all(-1.0 <= score <= 1.0 for score in scores):
        return None
    return f"{counted} all lie within −1 and 1, and reach the bound: a bounded scale"


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
    if len(known) >= _ENOUGH and all(0.0 <= value <= 1.0 for value in known):
        return None
    return f"{key} is not known to be on a scale from 0 to 1"


_CALM = 0.1
"""Below this standard deviation there is nothing to excuse: the guide's figure is 0.14."""
_BEYOND = 1.5
"""Swings this many times as large as chance makes them are more than chance: heuristic."""
_STRETCH, _MOST = 40, 25
"""Points of a stretch of the past, and number of stretches, evenly spread over the run."""
_CALMER = 5.0
"""A stretch in which it swung a fifth as far. Chance alone makes less: answers to one prompt, each
its own score at first, become one score where it is learnt, so that groups of sixteen swing four
times as far as at first.
"""
_HELD, _JUMP, _PEAK = 1000, 1.0, 0.5
"""Newest points searched for jumps of the loss, size of a jump, and share of the largest from which
on others count; the KL must account for half of each.
"""
_PROMPTS = ("data.train_batch_size", "rollout_batch_size", "num_prompts_per_step")
"""verl's name; OpenRLHF's and slime's; NeMo RL's."""
_GROUP = 8.0
"""Answers to a prompt by TRL's default."""


def by_batch_size(context: RuleContext, key: str) -> str | None:
    """Exempt swings on a scale from 0 to 1 that the batch size explains, or that were there from
    the start.

    A batch of so many prompts, each all right or all wrong, swings most: by the root of m(1−m) by
    their number. Where that number is unknown, only swings much larger than they used to be are
    more than chance. The tutorials' own logs are judged by the guide's figure as it stands.
    """
    series = context.known(key)
    if context.run.dialect == "tutorial" or series is None:
        return None
    newest = finite(series.tail(_POINTS))
    if len(newest) < _ENOUGH or spreads([newest])[0] < _CALM:
        return None
    (now,) = _draws([newest])
    prompts = prompts_a_step(context.run)
    if prompts is not None and now * _BEYOND**2 < prompts:
        return None
    if _was_calmer(series.values, now):
        return None
    if prompts is not None:
        return f"the mean of {prompts:g} prompts swings that much by chance"
    return f"the number of prompts in a batch is unknown, and {key} swings no more than it used to"


def _was_calmer(values: Sequence[float], now: float) -> bool:
    """Return whether some stretch of the past swung much less than the newest points."""
    last = len(values) - _STRETCH
    starts = range(0, max(1, last), max(1, last // _MOST))
    stretches = [np.array(values[at : at + _STRETCH]) for at in starts]
    known = [one[np.isfinite(one)] for one in stretches]
    for size in set(map(len, known)):
        alike = [one for one in known if len(one) == size >= _ENOUGH]
        if alike and _draws(alike).max() >= _CALMER**2 * now:
            return True
    return False


def by_reference_kl(context: RuleContext, key: str) -> str | None:
    """Exempt a loss that jumps where the KL to the reference jumps as far at that step: it is a
    term of the loss.

    TRL's loss holds β times that KL, so that one answer far from the reference makes it jump.
    verl's policy loss is next to 0 and holds no such term: its jumps are many times those of a KL.
    """
    loss = context.known(key)
    kl = context.known(context.indicators.get("reference_kl"))
    if loss is None or kl is None or len(loss) < _ENOUGH:
        return None
    high = loss.first_beyond(_JUMP)
    if high is None and loss.first_beyond(-_JUMP, down=True) is None:
        return None
    if not _makes_up_for_jumps(kl, loss):
        return None
    return f"{kl.key} jumps as far at that step: it is a term of the loss"


def _makes_up_for_jumps(kl: Series, loss: Series) -> bool:
    """Return whether a KL rises as many times beyond its usual size wherever the loss jumps."""
    usual_loss, usual_kl = (median(map(abs, one.tail(_POINTS))) for one in (loss, kl))
    if not 0 < usual_loss < math.inf or not 0 < usual_kl < math.inf:
        return False
    lately = dict(zip(loss.steps[-_HELD:], map(abs, loss.tail(_HELD)), strict=True))
    least = max(_PEAK * max(lately.values()), _JUMP)
    peaks = {step: value for step, value in lately.items() if value >= least}
    beside = kl.since(min(peaks, default=0))
    return bool(peaks) and all(
        abs(beside.get(step, 0.0)) / usual_kl >= _PEAK * value / usual_loss
        for step, value in peaks.items()
    )


def prompts_a_step(run: Run) -> float | None:
    """Return the least number of prompts of a step, None if the settings do not state it."""
    prompts = _stated(run, None, *_PROMPTS)
    # TRL counts answers, for each device; how many devices there are is not stated.
    answers = _stated(run, None, "per_device_train_batch_size")
    if prompts is not None or answers is None:
        return prompts
    rounds = _stated(run, 1.0, "gradient_accumulation_steps") or 1.0
    return max(1.0, answers * rounds / (_stated(run, _GROUP, "num_generations") or 1.0))


def _stated(run: Run, default: float | None, *names: str) -> float | None:
    """Return the positive number that the settings have under one of these names."""
    stated = positive_setting(run, names)
    return stated[1] if stated is not None else default


def _draws(stretches: Sequence[Sequence[float] | Numbers]) -> Numbers:
    """Return how many independent scores of 0 or 1 have a mean that swings as far as each stretch
    of so many values.
    """
    values = np.array(stretches)
    with np.errstate(all="ignore"):
        mean, far = values.mean(axis=1), swing(values)
        draws: Numbers = mean * (1 - mean) / (far * far)
    return np.where(far > 0, draws, math.inf)
