"""The reward: the parts that it is made of, by the names that trainers and their users give them,
its scale, and signs that a run has learnt: rewards at their top or rising, scores of 0 and 1.
"""

from __future__ import annotations

import math
import re
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.evaluation import PREFIX, RESERVED
from verl_tui.health.conditions.column import trend
from verl_tui.health.limits import strong_kl_term
from verl_tui.indicators import validation_keys
from verl_tui.means import finite
from verl_tui.patterns import NamePattern, pattern
from verl_tui.runs.cached import cached_by_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.conditions.column import Numbers
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
task, totals; and what DPO calls rewards: that of the rejected answer falls as it learns.
"""
_FACT = NamePattern(r"/(?:num|n|is|has)_.+")
"""Facts of the task or of an answer."""


@cached_by_keys
def components(run: Run) -> Sequence[str]:
    """Return the keys of a reward's parts; of several spellings of one part the first."""
    known: dict[str | None, str] = {}
    for key in sorted(
        run.metrics, key=lambda key: (key.startswith(PREFIX), len(key), key)
    ):
        if key != run.indicators.get("reward"):
            known.setdefault(_name(key), key)
    known.pop(None, None)
    return [*known.values()]


def _name(key: str) -> str | None:
    """Return the name of a part, None if the key is not one."""
    found = _COMPONENT.fullmatch(key)
    # Our own figures of samples are no parts of a reward; an extra of such a name is
    # `samples/extra_…`.
    if not found or key in RESERVED:
        return None
    name = str(found[found.lastgroup or 0])
    # TRL names a part by its function, which may be called `is_short`.
    fact = found.lastgroup != "trl" and _FACT.fullmatch(f"/{name}")
    return None if fact or _NO_COMPONENT.fullmatch(f"/{name}") else name


def gaining_components(run: Run) -> Sequence[str]:
    """Return the keys of a reward's parts without those that settings say are penalties: they are
    meant to fall.
    """
    parts = components(run)
    known = _weights(run) if parts else {}
    return [key for key in parts if known.get(key, 0.0) >= 0]


def _weights(run: Run) -> Mapping[str, float]:
    """Return the weights of a reward's parts where the run's settings state them, in the order in
    which they come.

    TRL's `reward_weights` goes by the order of the reward functions, in which it logs them, too.
    """
    _, stated = run.config.named("reward_weights")
    found = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", str(stated))
    parts = [key for key in components(run) if not key.startswith(PREFIX)]
    own = [key for key in run.keys if key in parts]
    if len(own) != len(found):
        return {}
    return dict(zip(own, map(float, found), strict=True))


_A_SCORE = pattern(
    r"acc|correct|reward|score|right|format|answer|pass|solve|success", re.I
)
"""Names of figures of samples that are scores: others, as of tools, may well be 0."""


def is_no_score(context: RuleContext) -> bool:
    """Return whether a figure of samples has no name of a score."""
    return context.key.startswith(PREFIX) and not _A_SCORE.search(context.key)


_POINTS, _SCORES, _ENOUGH = 100, 20, 5
"""Newest points searched for evidence, those that make the present level, and the fewest needed:
heuristic.
"""
SOLVED = 0.95
"""A mean reward from here on, on a scale that ends at 1, is that of a solved task: heuristic."""
_MOSTLY = 0.7
"""Share of groups that are all right from which those are why none has a spread: heuristic."""
_BEST, _BEGUN = 0.9, 0.5
"""Without a known top, a reward is at it that lies at nine tenths of its range and began below
half: heuristic.
"""
_FEWEST, _SURE, _GOOD_PART = 3, 3.0, 0.3
"""A reward gains if it is three standard errors above its level of 100 points ago, and by three
tenths of the range of its means so far; three points are the fewest that make a mean. Heuristic.
"""
_HALF, _LEAST, _FAR = 0.5, 0.1, 1.0
"""Share of the remaining gain, and of a reward's size that is a gain; nats that are far from the
reference whatever the reward: heuristic.
"""
_ROW, _NEAR_TOP, _MIDDLE = 10, 0.1, 0.05
"""Points of a row that is compared with another, and shares of a scale within which little is left
to be gained, and which are next to its middle.
"""
_SMALL, _MOVED, _HELD_BACK = (0.1, 1.5), (0.25, 1.5), (0.5, 3.0)
"""Share of the spread that scores may have, and of what is left to the top of their scale, that
twice a gain from one half of a run to the other must surely stay below, and standard errors that
the gain must be within unless it surely stays below half of that; the same where the policy has
moved for nothing, and where a strong KL penalty explains it. Heuristic.
"""
_NATS = 0.1
"""Nats a token by which a policy has moved that should have gained something: the top of the
guide's band.
"""
_RISEN = 4.5
"""Standard errors by which the best row lies above the first one where the reward has risen for a
time: of many rows one is higher by chance. Heuristic.
"""
_LIKE = 0.6
"""Share of √(m(1−m)) that is a spread of answers which are right or wrong, in means of ten points:
real ones have had 0.7 and more, what counts words or judges by degrees up to 0.4.
"""
_HUGE = 1e100
"""Squares of larger numbers overflow; broken runs do log such, and NaN is no smaller."""
_BELOW = -1e-9
"""Below 0 but for rounding."""


def solved(context: RuleContext) -> str | None:
    """Exempt rules on runs that do not learn if the reward is close to the top of its scale.

    On a scale that ends at 1 that is known. On others it is the best so far, if the run began far
    below; or all parts of the reward are at their top. Where no group has any spread, the mean of
    the newest points tells how many groups are all right.
    """
    reward = context.indicator("reward")
    known = _known(reward)
    if not reward or len(known) < _ENOUGH:
        return None
    newest = known[-_ENOUGH:]
    now = newest.mean()
    if known.min() < _BELOW or known.max() > 1:
        if _is_at_its_best(known, now):
            return f"the task is solved: {reward.key} is at its best, {now:.3g}"
        return parts_solved(context)
    # Few points show what has just been solved, many what small batches hide.
    mean = max(known[-count:].mean() for count in (_SCORES, _POINTS))
    if mean >= SOLVED:
        return f"the task is solved: {reward.key} is {mean:.3g} of 1"
    if now >= _MOSTLY and newest.max() >= 1:
        return f"the task is mostly solved: {reward.key} is {now:.3g} of 1"
    return None


def _is_at_its_best(known: Numbers, now: float) -> bool:
    low, high = known.min(), known.max()
    reach = (max(1.0, high) if high > 0 else high) - low
    has_risen = known[:_ENOUGH].mean() <= low + _BEGUN * reach
    is_best = reach > 0 and now >= low + _BEST * reach
    return bool(has_risen and is_best and len(known) > _SCORES)


def learning(context: RuleContext) -> str | None:
    """Exempt what learning itself brings where the reward has lately gained much."""
    reward = context.indicator("reward")
    if not reward or not gains(reward.values):
        return None
    return f"the run is learning: {reward.key} has risen a lot"


def gains(values: Sequence[float]) -> bool:
    """Return whether the newest values have surely gained a good part of all that there was to gain
    so far.
    """
    known = _finite(values)
    parts = _parts(known)
    if not len(parts):
        return False
    size = len(parts[0])
    first = max(0, len(known) - _POINTS - 2 * size)
    gain, error, _ = _gain(known[first : first + size], parts[-1])
    least = _GOOD_PART * np.ptp(parts.mean(axis=1))
    return bool(gain > _SURE * error and gain >= least)


def _parts(known: Numbers) -> Numbers:
    """Return numbers as rows of twenty, or of a third of them where there are fewer; none where
    they are too few. Of the oldest ones some may be left out.
    """
    size = min(_SCORES, len(known) // 3)
    whole = known[len(known) % size :] if size >= _FEWEST else known[:0]
    return whole.reshape(-1, max(1, size))


def has_gained(context: RuleContext) -> str | None:
    """Exempt what learning brings where the reward has likely risen since the beginning, or where
    there are too few rewards to tell and a KL has not gone far.
    """
    reward = context.indicator("reward")
    if not reward:
        return None
    values, kl = reward.values, context.finite(context.key, _SCORES)
    is_far = sum(kl) > _FAR * len(kl)
    if len(values) < 2 * _SCORES and not is_far:
        return f"needs {2 * _SCORES} points of {reward.key}, has {len(values)}"
    size = min(_SCORES, len(values)) // 2
    then, now = _finite(values[:size]), _finite(values[-size:])
    if min(len(then), len(now)) < 2:
        return None
    gain, error, most = _gain(then, now)
    least = max(0.0, _LEAST * most - error)
    if is_far:  # it must surely have risen, else likely
        least = max(_LEAST * most, _SURE * error)
    return "the reward has risen since the beginning" if gain > least else None


def has_moved(context: RuleContext) -> str | None:
    """Exempt a reward that has moved since the run began, or for which more than a small gain is
    not ruled out; beside which validation or one of its parts gains; near the top of its scale, or
    where that is unknown.
    """
    reward = context.indicator("reward")
    known = _known(reward)
    rows = known[: len(known) // _ROW * _ROW].reshape(-1, _ROW)
    if not reward or len(rows) < 2:
        return "the log has too few rewards to see a gain"
    # Where a log begins late, it has learnt before.
    first, *_, last = reward.steps[:_POINTS]
    if first > max(1, last - first):
        return f"the log begins with step {first}"
    low, high = _scale(context)
    if at_end := _nothing_to_gain(known, low, high):
        return at_end
    half, levels = len(known) // 2, rows.mean(axis=1)
    gain, error, _ = _gain(known[:half], known[-half:])
    doubt = math.sqrt(2 * rows.var(axis=1, ddof=1).mean() / _ROW)
    if gain < -_SURE * error or levels.max() - levels[0] > _RISEN * doubt:
        return f"{reward.key} has moved since the run began"
    share, doubts = _bound(context)
    left = high - known.mean()
    # The largest spread that scores of this mean between these ends can have (Bhatia and Davis
    # 2000).
    spread = math.sqrt(left * (known.mean() - low))
    least = share / 2 * min(spread, left)
    if gain + 2 * error >= max(min((2 + doubts) * error, least), least / 2):
        return f"a gain of {reward.key} is not ruled out"
    return "validation or a part of the reward gains" * _gains_beside(context) or None


def _bound(context: RuleContext) -> tuple[float, float]:
    """Return what a gain must stay below to be none, as shares and standard errors."""
    kl = _known(context.indicator("reference_kl"))
    if strong_kl_term(context.run):
        return _HELD_BACK
    return _MOVED if len(kl) and median(kl[len(kl) // 2 :]) >= _NATS else _SMALL


def _gains_beside(context: RuleContext) -> bool:
    """Return whether validation or a part of the reward has gained over the run."""
    run = context.run
    keys = (*validation_keys(run.keys), *gaining_components(run))
    return any(trend(_known(context.known(key))).t >= _SURE for key in keys)


def _scale(context: RuleContext) -> tuple[float, float]:
    """Return the ends of the reward's scale: those of single scores where they are logged, or 0 and
    1.
    """
    name = context.indicators["reward"].removesuffix("mean")
    low = min(context.finite(f"{name}min"), default=0.0)
    return low, max(context.finite(f"{name}max"), default=1.0)


def _nothing_to_gain(known: Numbers, low: float, high: float) -> str | None:
    """Return why a reward need not gain: it is near the top of its scale; whose ends are unknown;
    it is constant; or it is in the middle between wins and defeats, where players who are equals
    stay.
    """
    if not low <= known.min() <= known.max() <= high:
        return "the ends of the reward's scale are unknown: no gain can be called small"
    if known.min() == known.max():
        return "the reward is always the same"  # which other rules tell
    reach, mean = high - low, known.mean()
    if high - mean <= _NEAR_TOP * reach:
        return "the reward is near the top of its scale"
    is_draw = low < 0 and max(abs(low + high), abs(mean)) <= _MIDDLE * reach
    return "the reward is in the middle of its scale, as in self-play" * is_draw or None


def part_gains(context: RuleContext) -> bool:
    """Exempt a part of the reward that was lower at the run's beginning, is at its own top, or is a
    penalty.
    """
    known = _known(context.known(context.key))
    if len(known) < 2 * _SCORES:
        return False
    now, top = known[-_SCORES:], known.max()
    gain, error, _ = _gain(known[:_SCORES], now)
    return bool(top <= 0 or gain > _SURE * error or now.mean() >= _BEST * top)


def _gain(then: Numbers, now: Numbers) -> tuple[float, float, float]:
    """Return by how much newer values are higher, its standard error, and their size."""
    error = math.sqrt((now.var(ddof=1) + then.var(ddof=1)) / len(now))
    gain, size = now.mean() - then.mean(), max(abs(now.mean()), abs(then.mean()))
    return float(gain), error, float(size)


def parts_solved(context: RuleContext) -> str | None:
    """Exempt a reward that is the sum of its parts, all of which are at the top of their scales:
    next to 1, penalties next to 0.

    A part that has always been 0 may be a penalty that nobody incurs or points that nobody earns:
    it is taken for the latter.
    """
    run, reward = context.run, context.indicator("reward")
    whole, most = 0.0, 0.0
    for one in filter(None, map(context.known, components(run))):
        known = _known(one)
        level = known[-_SCORES:].mean() if len(known) else 0.0
        is_penalty = known.min(initial=0.0) < _BELOW and known.max(initial=0.0) <= 0
        if level < SOLVED - is_penalty or known.max(initial=0.0) > 1:
            return None  # as of most rewards, whose other parts need not be cut at each step
        whole += level * _weights(run).get(one.key, 1.0)
        most = max(most, level)
    if not reward or most < SOLVED:
        return None
    newest = _known(reward)[-_SCORES:]
    is_sum = len(newest) and abs(whole - newest.mean()) <= (1 - SOLVED) * abs(whole)
    words = f"the task is solved: all parts of {reward.key} are at their top"
    return words if is_sum else None


SAMPLE_SCORES = ("samples/score", "samples/score_std")


def right_answers(context: RuleContext) -> bool:
    """Return whether samples are right or wrong and have become better."""
    scores, spreads = (context.finite(name)[-_POINTS:] for name in SAMPLE_SCORES)
    return answers_improve(scores, spreads)


def answers_improve(means: Sequence[float], spreads: Sequence[float]) -> bool:
    """Return whether scores are 0 or 1, by their mean and standard deviation at each of some
    points, and next to 1, or have come half of the way, or just gain.

    Scores of 0 and 1 with a mean m spread by √(m(1−m)), others by less; the means of several such
    points by somewhat less, too.
    """
    both = np.array([*zip(means, spreads, strict=False)]).reshape(-1, 2)
    mean, spread = both[np.isfinite(both).all(axis=1)].T
    parts = _parts(mean)
    if not len(parts) or mean.min() < 0 or mean.max() > 1:
        return False
    widest = np.sqrt(mean * (1 - mean)).sum()
    first, now = mean[: len(parts[0])].mean(), parts[-1].mean()
    learnt = now >= SOLVED or now - first >= _HALF * (1 - first) or gains(mean)
    return bool(0 < widest <= spread.sum() / _LIKE and learnt)


def no_part_lost(context: RuleContext) -> bool:
    """Return whether a reward of several parts has gained, or is at its top, and none of these is
    lower than it was at the beginning, by more than a tenth of its range: where a proxy is bought,
    the others pay for it.
    """
    reward = context.indicator("reward")
    if not reward:
        return False
    keys = gaining_components(context.run)
    known = [_known(part) for part in map(context.known, keys) if part]
    if len(known) < 2:
        return False
    for one in known:
        parts = _parts(one)
        if not len(parts):
            return False
        if parts[-1].mean() < one[: len(parts[0])].mean() - _LEAST * np.ptp(one):
            return False
    return gains(reward.values) or bool(solved(context))


def holds(context: RuleContext) -> str | None:
    """Exempt what harms nothing as long as the reward has not surely lost a tenth of its size since
    its best points of late.
    """
    parts = _parts(_known(context.indicator("reward"))[-2 * _POINTS :])
    if not len(parts):
        return "the log has too few rewards to see a fall"
    best = parts[parts.mean(axis=1).argmax()]
    loss, error, most = _gain(parts[-1], best)
    falls = loss >= max(_LEAST * most, _SURE * error)
    return None if falls else "the reward has not fallen"


def _finite(values: Sequence[float]) -> Numbers:
    known = np.array(values, np.float64)
    found: Numbers = known[abs(known) < _HUGE]
    return found


def _known(series: Series | None) -> Numbers:
    return _finite(() if series is None else series.values)


_AT_BOUND = 2
"""Number of scores at exactly 1 or −1 that cannot be chance."""
_CLOSE = 0.1
"""Share by which a spread may differ from √(m(1−m)): batches are finite."""
_SCOPED = {"rollout/reward_mean", "reward/reward"}
"""Spellings of the tutorials' own records with a scope. Under other ones the tutorials themselves
end healthy below 1 (at 0.92 and 0.82), and home-made logs have them too.
"""


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
    if len(found) < _ENOUGH or found[:, 0].min() < 0 or found[:, 0].max() > 1:
        return None
    widest = np.sqrt(found[:, 0] * (1 - found[:, 0]))
    like = (abs(found[:, 1] - widest) <= np.maximum(0.01, _CLOSE * widest)).sum()
    if like < 0.8 * len(found):
        return None
    return (
        f"rewards are 0 or 1: {spread.key} is √(m(1−m)) in {like} of the last {len(found)} points, "
        f"m being {mean.key}"
    )


def _scores(run: Run) -> list[float]:
    samples = (one for place in run.samples.places for one in run.samples.kept(place))
    return finite([one.score for one in samples if one.score is not None])


def _bounded_scores(run: Run) -> str | None:
    """Return the evidence in the newest samples; of large dumps the extremes of each step are
    known.
    """
    scores = _scores(run)
    count = float(len(scores))
    if count < _SCORES:
        names = (f"{PREFIX}{of}" for of in ("score_min", "score_max", "count"))
        lows, highs, counts = (run.tail(name, _POINTS) for name in names)
        scores, count = [*lows, *highs], sum(counts)
    sizes = abs(np.array(scores))
    if count < _SCORES or not scores or sizes.max() > 1:
        return None
    # Scores that merely stay below 1 may be low ones: only those that reach the bound prove it.
    if (sizes == 1.0).sum() < _AT_BOUND and not np.isin(scores, (0.0, 1.0)).all():
        return None
    within = f"{min(scores):g} and {max(scores):g}"
    return f"the newest samples' scores all lie within {within}: a bounded scale"


def small_scale(context: RuleContext) -> str | None:
    """Exempt all spellings of the reward but those of the tutorials' own records, unless some value
    exceeds 1.
    """
    key = context.indicators.get("reward")
    series = context.known(key)
    if key in _SCOPED or not series or series.highest > 1:
        return None
    return f"{key} has never exceeded 1: it may be a score from 0 to 1, not the guide's 2–4 scale"


_HELD, _JUMP, _PEAK = 1000, 1.0, 0.5
"""Newest points searched for jumps of the loss, size of a jump, and share of the largest from which
others count; the KL must account for half of each.
"""


def by_reference_kl(context: RuleContext) -> str | None:
    """Exempt a loss that jumps where the KL to the reference jumps as far at that step: it is a
    term of the loss.

    TRL's loss holds β times that KL, so that one answer far from the reference makes it jump.
    verl's policy loss is next to 0 and holds no such term: its jumps are many times those of a KL.
    """
    loss, kl = context.known(context.key), context.indicator("reference_kl")
    if not loss or not kl or len(loss) < _SCORES:
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
