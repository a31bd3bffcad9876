"""The reward: the parts that it is made of, by the names that trainers and their users give them,
and signs that a run has learnt: rewards at their top or rising, and tests of scores of 0 and 1.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.distributions import one_each
from verl_tui.evaluation import PREFIX, RESERVED
from verl_tui.patterns import NamePattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.conditions.windows import Flags, Numbers
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_COMPONENT = NamePattern(
    r"(?:train/)?rewards/(?P<trl>.+?)(?:/mean)?"
    r"|(?:training/reward|train/reward_components|reward_components|reward)/(?P<own>.+?)(?:/mean)?"
    r"|(?:critic/)?(?:reward_extra|reward_extra_info|extra_reward)/(?P<extra>.+?)/mean"
    r"|critic/rewards/(?!mean$|max$|min$|std$)(?P<parts>.+?)(?:/mean)?"
    r"|critic/(?!scores?/|rewards/|advantages/|returns/|values/|vf_)(?P<verl>\w+)/mean"
    r"|samples/(?:extra_)?(?P<dump>.+)"
)
"""TRL's `rewards/{function}/mean`, the parts that users add to verl (pull requests 4698, 5793,
4545; a reward manager returns them as `reward_extra_info`), and figures of a dump beside a sample's
score.
"""
_NO_COMPONENT = NamePattern(
    r".*[/_](?:length|len|tokens?|chars|words|turns?|time|seconds|latency|std|min|max|median|p\d\d"
    r"|kl|entropy|count"
    r"|number|num|penalty|costs?|errors?|failures?|violations?|advantages?|repetition|distinct_\d"
    r"|index|level"
    r"|difficulty|weight|temperature|loss|rate_limit|retries|calls|ratio|coef|coeff|mean)"
    r"|/(?:rewards?|scores?|total|sum|overall)"
    r"|/(?:chosen|rejected|margins|accuracies)|.*(?:penal|punish|overlong).*"
)
"""Numbers that are no part of a reward, or are meant to fall: amounts, spreads, costs, facts of the
task, totals; and what DPO calls rewards, of which that of the rejected answer falls as it learns.
"""
_FACT = NamePattern(r"/(?:num|n|is|has)_.+")
"""Facts of the task or of an answer."""


@lru_cache(256)
def components(keys: tuple[str, ...], reward: str | None) -> tuple[str, ...]:
    """Return the keys of a reward's parts; of several spellings of one part the first.

    Args:
        keys: All keys of a log.
        reward: Key of the reward itself.
    """
    # Called at each judgement, while keys hardly ever change.
    known: dict[str, str] = {}
    for key in sorted(
        one_each(keys), key=lambda key: (key.startswith(PREFIX), len(key), key)
    ):
        name = _name(key)
        if key == reward or name is None or name in known:
            continue
        known[name] = key
    return tuple(known.values())


def _name(key: str) -> str | None:
    """Return the name of a part, None if the key is not one."""
    found = _COMPONENT.fullmatch(key)
    # Our own figures of samples are no parts of a reward; an extra of such a name is
    # `samples/extra_…`.
    if found is None or key.removeprefix(PREFIX) in RESERVED:
        return None
    name = str(found[found.lastgroup or 0])
    # TRL names a part by its function, which may be called `is_short`.
    fact = found.lastgroup != "trl" and _FACT.fullmatch(f"/{name}")
    return None if fact or _NO_COMPONENT.fullmatch(f"/{name}") else name


_WEIGHTS = ("reward_weights",)


def gaining_components(run: Run, reward: str | None) -> tuple[str, ...]:
    """Return the keys of a reward's parts without those that settings say are penalties: they are
    meant to fall.
    """
    parts = components(run.keys, reward)
    known = weights(run, parts)
    return tuple([key for key in parts if known.get(key, 0.0) >= 0])


def weights(run: Run, parts: Sequence[str]) -> Mapping[str, float]:
    """Return the weights of a reward's parts where the run's settings state them, in the order in
    which they come.

    TRL's `reward_weights` goes by the order of the reward functions, in which it logs them, too.
    """
    stated = run.config.find(_WEIGHTS)
    if stated is None:
        return {}
    numbers = [
        float(one) for one in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", str(stated[1]))
    ]
    own = [key for key in run.keys if key in parts and not key.startswith(PREFIX)]
    if len(own) != len(numbers):
        return {}
    return dict(zip(own, numbers, strict=True))


_POINTS, _SCORES, _ENOUGH = 100, 20, 5
"""Newest points searched for evidence, those that make the present level, and the fewest needed:
heuristic.
"""
SOLVED = 0.95
"""A mean reward from here on, on a scale that ends at 1, is that of a solved task: heuristic."""
_MOSTLY = 0.7
"""Share of groups that are all right from which on those are why none has a spread: heuristic."""
_BEST, _BEGUN = 0.9, 0.5
"""Without a known top, a reward is at it that lies at nine tenths of its range and began below
half: heuristic.
"""
_NEAR = 1 - (1 - _BEST) / (1 - _BEGUN)
"""Both together: so far from where it began to its highest."""
_FEWEST, _SURE, _GOOD_PART = 3, 3.0, 0.3
"""A reward gains if it is three standard errors above its level of 100 points ago, and by three
tenths of the range of its means so far; three points are the fewest that make a mean. Heuristic.
"""
_HALF = 0.5
"""Share of the remaining gain: heuristic."""
_LOST = 0.1
"""Share of its range by which a part of the reward has fallen for certain: heuristic."""
_LIKE = 0.6
"""Share of √(m(1−m)) that is a spread of answers which are right or wrong, in means of ten points:
real ones have had 0.7 and more, what counts words or judges by degrees up to 0.4.
"""
_MOST = 100
"""Most stretches of a long past to compare."""
_HUGE = 1e100
"""Squares of larger numbers overflow; broken runs do log such, and NaN is no smaller."""
_BELOW = -1e-9
"""Below 0 but for rounding."""


def solved(context: RuleContext, _key: str) -> str | None:
    """Exempt rules on runs that do not learn if the reward is close to the top of its scale.

    On a scale that ends at 1 that is known. On others it is the best so far, if the run began far
    below. Where no group has any spread, the mean of the newest points tells how many groups are
    all right.
    """
    reward = context.known(context.indicators.get("reward"))
    if reward is None:
        return None
    newest = _finite(reward.tail(_ENOUGH))
    if len(newest) < _ENOUGH:
        return None
    if reward.highest > 1 or reward.first_beyond(_BELOW, down=True) is not None:
        return _at_its_best(reward, fmean(newest)) or _all_parts(context, reward)
    return _near_one(reward, newest)


def _near_one(reward: Series, newest: Sequence[float]) -> str | None:
    # Few points show what has just been solved, many what small batches hide.
    stretches = [_finite(reward.tail(count)) for count in (_SCORES, _POINTS)]
    mean = max(map(fmean, filter(None, stretches)))
    if mean >= SOLVED:
        return f"the task is solved: {reward.key} is {mean:.3g} of 1"
    now = fmean(newest)
    if now >= _MOSTLY and max(newest) >= 1:
        return f"the task is mostly solved: {reward.key} is {now:.3g} of 1"
    return None


def is_solved(level: float, low: float, high: float) -> bool:
    """Return whether a reward of a level is next to 1 on a scale from 0 to 1, by its lowest and its
    highest value.
    """
    return 0 <= low <= high <= 1 and level >= SOLVED


def scale_top(highest: float) -> float:
    """Return the top of a reward's scale by its highest value: 1 of shares; of penalties, and
    beyond 1, it is not known to be higher than that value.
    """
    return max(1.0, highest) if highest > 0 else highest


def _at_its_best(reward: Series, now: float) -> str | None:
    begun = fmean(_finite(reward.values[:_SCORES])[:_ENOUGH] or [now])
    high = scale_top(reward.highest)
    # Below that no lowest value makes it a best, and the lowest of all takes long to look for.
    if len(reward) <= _SCORES or now < _NEAR * high + (1 - _NEAR) * begun:
        return None
    low = min(_finite(reward.values))
    reach = high - low
    if begun > low + _BEGUN * reach or now < low + _BEST * reach:
        return None
    return f"the task is solved: {reward.key} is at its best, {now:.3g}"


def not_solved(context: RuleContext, key: str) -> str | None:
    """Exempt rules on solved tasks if the task is not solved."""
    if solved(context, key):
        return None
    return "the task is not solved"


def learning(context: RuleContext, _key: str) -> str | None:
    """Exempt what learning itself brings where the reward has lately gained much."""
    reward = context.known(context.indicators.get("reward"))
    if reward is None or not gains(reward.values):
        return None
    return f"the run is learning: {reward.key} has risen a lot"


def gains(values: Sequence[float]) -> bool:
    """Return whether the newest values have surely gained a good part of all that there was to gain
    so far.
    """
    size = min(_SCORES, len(values) // 3)
    first = max(0, len(values) - _POINTS - 2 * size)
    then = _finite(values[first : first + size])
    now = _finite(values[len(values) - size :])
    if min(len(then), len(now)) < _FEWEST:
        return False
    gain = fmean(now) - fmean(then)
    error = math.sqrt(_variance(now) / len(now) + _variance(then) / len(then))
    if gain <= _SURE * error:
        return False
    stride = max(size, len(values) // _MOST)
    starts = range(0, len(values) - size + 1, stride)
    stretches = [_finite(values[at : at + size]) for at in starts]
    means = [fmean(one) for one in (now, *stretches) if one]
    return gain >= _GOOD_PART * (max(means) - min(means))


def _all_parts(context: RuleContext, reward: Series) -> str | None:
    """Exempt a reward that is the sum of its parts, all of which are at the top of their scales."""
    keys = components(context.run.keys, reward.key)
    known, means = [], []
    for one in filter(None, map(context.known, keys)):
        means.append(fmean(_finite(one.tail(_SCORES)) or [0.0]))
        if 0 < means[-1] < SOLVED:
            return None  # as of most rewards, whose other parts need not be cut at each step
        known.append(one)
    levels = np.array(means)
    newest = _finite(reward.tail(_SCORES))
    if not newest or not known:
        return None
    known_weights = weights(context.run, keys)
    weight = np.array([known_weights.get(one.key, 1.0) for one in known])
    highest, penalises = np.array([*map(_reach, known)]).T
    if not all_at_top(levels, highest, penalises > 0, weight, np.array(fmean(newest))):
        return None
    return f"the task is solved: {', '.join(one.key for one in known)} are at their top"


def _reach(part: Series) -> tuple[float, bool]:
    """Return the highest value of a part so far, and whether it has been below 0."""
    return part.highest, part.first_beyond(_BELOW, down=True) is not None


def all_at_top(
    levels: Numbers,
    highest: Numbers,
    penalises: Flags,
    weights: Numbers,
    reward: Numbers,
) -> Flags:
    """Return whether a reward is the sum of its parts, and all of them are at the top of their
    scales: next to 1, penalties next to 0.

    A part that has always been 0 may be a penalty that nobody incurs or points that nobody earns:
    it is taken for the latter.

    Args:
        levels: The present mean of each part (first axis), here and below at any places (second).
        highest: The highest so far.
        penalises: Whether it has been below 0.
        weights: The weight of each part.
        reward: The present mean of the reward.
    """
    near = (levels >= SOLVED) & (highest <= 1)
    top = np.where(penalises & (highest <= 0), levels >= SOLVED - 1, near)
    whole = weights @ levels
    is_sum = abs(whole - reward) <= (1 - SOLVED) * abs(whole)
    found: Flags = (levels >= SOLVED).any(axis=0) & top.all(axis=0) & is_sum
    return found


def all_parts_solved(context: RuleContext, _key: str) -> str | None:
    """Exempt a distance from the reference that no reward can be bought with: all parts of it are
    at their top.
    """
    key = context.indicators.get("reward")
    if key is None or not components(context.run.keys, key):
        return None  # as of most rewards, which need not be cut at each step for it
    reward = context.known(key)
    if reward is None:
        return None
    return _all_parts(context, reward)


def has_learnt(values: Sequence[float]) -> bool:
    """Return whether shares of answers that are right are next to 1, or have come half of the way,
    or just gain.
    """
    known = _finite(values)
    size = min(_SCORES, len(known) // 3)
    if size < _FEWEST:
        return False
    first = fmean(known[:size])
    now = fmean(known[-size:])
    half_way = now - first >= _HALF * (1 - first)
    return now >= SOLVED or half_way or gains(known)


def no_part_lost(context: RuleContext) -> bool:
    """Return whether a reward of several parts has gained, or is at its top, and none of these is
    lower than it was at the beginning: where a proxy is bought, the others pay for it.
    """
    reward = context.known(context.indicators.get("reward"))
    if reward is None:
        return False
    keys = gaining_components(context.run, reward.key)
    parts = [part for part in map(context.known, keys) if part is not None]
    if len(parts) < 2 or any(map(_has_lost, parts)):
        return False
    return gains(reward.values) or solved(context, "") is not None


def _has_lost(part: Series) -> bool:
    """Return whether a part is lower than at the beginning, by more than a tenth of its range."""
    known = _finite(part.values)
    size = min(_SCORES, len(known) // 3)
    if size < _FEWEST:
        return True
    reach = max(known) - min(known)
    return fmean(known[-size:]) < fmean(known[:size]) - _LOST * reach


def right_or_wrong(means: Sequence[float], spreads: Sequence[float]) -> bool:
    """Return whether scores are 0 or 1, by their mean and standard deviation at each of some
    points.

    Scores of 0 and 1 with a mean m spread by √(m(1−m)), others by less; the means of several such
    points by somewhat less, too.
    """
    points = zip(means, spreads, strict=False)
    known = [(m, s) for m, s in points if math.isfinite(m + s)]
    if len(known) < _FEWEST:
        return False
    if not all(0 <= m <= 1 for m, _ in known):
        return False
    widest = sum(math.sqrt(m * (1 - m)) for m, _ in known)
    return 0 < widest <= sum(s for _, s in known) / _LIKE


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if abs(value) < _HUGE]


def _variance(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)
