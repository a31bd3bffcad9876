"""Metrics that leave their course, block by block: entropy falls towards 0 while the reward stands
still; responses shrink to a small part of their length and no score gains; a phase of the step
takes much longer than it used to; a reward has gained nothing since the run began, by statistics:
its gain is bounded, not only unseen.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.column import (
    Flags,
    Numbers,
    behind_last,
    lately,
    means,
    medians,
    pasts,
    rolling,
    trend,
)
from verl_tui.health.diagnosis import BlockDiagnosis, Blocks, Signs, diagnosis
from verl_tui.health.finding import LACKS, WORDS, filled, number
from verl_tui.health.limits import KL_COEF, kl_coefficient
from verl_tui.health.reward import SOLVED, gaining_components, parts_solved
from verl_tui.indicators import validation_keys
from verl_tui.means import median_along
from verl_tui.metrics import describe
from verl_tui.patterns import NamePattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.health.rule_context import RuleContext


_LAGS = (5, 10, 20, 40)
"""Blocks over which a fall is searched for: collapses take from 50 to some hundred steps."""
_FALL, _LEFT, _FALL_T = 0.5, 0.15, -4.0
"""Over such a stretch entropy must have halved beyond doubt, and be at no more than so much of the
run's beginning: heuristic.
"""
_NEAR = 0.25
"""Up to a quarter of the way it has not begun to fall: entropy always declines somewhat."""
_LIKELY, _SURE = (2.0, 0.05), (4.0, 0.01)
"""A reward has risen if it likely gained a twentieth of its size, or beyond doubt a hundredth: near
its ceiling it gains little, and that is convergence.
"""
_NEARLY, _LEARNT = 0.9, 0.5
"""A run has converged, not collapsed, if its task is solved; or if its reward is at 0.9, having
gained half of what was left at its beginning.
"""


@diagnosis("entropy-collapse", "entropy", "reward")
def entropy_collapse(context: RuleContext) -> BlockDiagnosis | str:
    """Find entropy that halves and nears 0 over a stretch in which the reward gains nothing; with a
    rising reward, or once a task is solved, it would be convergence.
    """
    keys = {id: context.indicators[id] for id in ("entropy", "reward")}
    return parts_solved(context) or BlockDiagnosis(keys, _find_collapse, needs=7)


def _find_collapse(blocks: Blocks, _: BlockDiagnosis) -> Signs:
    entropy, course = blocks.levels[0], blocks.known[0]
    opening = float(np.fmax.reduce(entropy[:3], initial=0.0))
    low = (opening > 0) & (entropy >= 0) & (entropy <= _LEFT * opening)
    # The task is solved, or most of the way on a scale from 0 to 1 is behind it; what was learnt
    # within the first block shows in how much was left to learn after it.
    now = blocks.known[1]
    first = now[np.isfinite(now)][:1].sum()
    done = (now >= _NEARLY) & (now - first >= _LEARNT * (1 - first)) | (now >= SOLVED)
    low &= ~(done & (blocks.lowest[1] >= 0) & (blocks.highest[1] <= 1))
    lags = np.zeros(blocks.size, np.int64)
    for lag in reversed(_LAGS) if low.any() else ():
        counts, __, t = blocks.slopes(0, lag + 1)
        falls = (counts >= 4) & (t <= _FALL_T)
        falls &= entropy <= _FALL * blocks.before(0, lag)
        falls[:lag] = False
        lags[low & falls & ~_risen(blocks, lag + 1)] = lag

    def since(at: int) -> int:
        start = at - int(lags[at])
        begun = course[start : at + 1][np.isfinite(course[start : at + 1])][0]
        gone = begun - course[start : at + 1]
        return start + behind_last(gone <= _NEAR * (begun - course[at]))

    def facts(at: int, _: int) -> Mapping[str, float]:
        return {"opening": opening, "share": entropy[at] / opening}

    lasts = (lags > 0) | (low & ~_risen(blocks, 10))
    return Signs(lags > 0, lasts, since, facts)


def _risen(blocks: Blocks, size: int) -> Flags:
    """Return where the reward has risen over so many blocks, as far as is known."""
    few: Flags = blocks.slopes(1, size)[0] < 4
    return few | blocks.moves(1, size, *_LIKELY) | blocks.moves(1, size, *_SURE)


_MOST = 12
"""Most validation scores, and most parts of the reward, to compare."""
_OPENING, _TINY = 6, 4.0
"""Blocks that show how long responses were at the beginning, and tokens below which they were next
to nothing from the start: a label, a number.
"""
_SHRUNK, _LITTLE = 0.25, 0.15
"""Share of the beginning down to which length has collapsed: a quarter where a score has fallen
with it, less where all are level, because some tasks need few words. Heuristic.
"""
_BACK, _WHOLE_LENGTH, _LASTS = 0.5, 0.75, 3
"""Share from which responses have come back, down to which they have not begun to fall, and blocks
that it must have lasted: 15 points.
"""
_LEVEL = 4
"""Blocks that make the level of a score."""
_GAIN, _SURE_GAIN = 0.05, 3.0
"""A score has gained if it lies a twentieth of its size and three standard errors above its
beginning: heuristic.
"""
_LOSS, _SURE_LOSS = 0.4, 5.0
"""A score has fallen if it has lost two fifths of its size beyond doubt: where `reward-hacking`
counts a part as fallen.
"""


@diagnosis("length-collapse", "response_length", "reward")
def length_collapse(context: RuleContext) -> BlockDiagnosis:
    """Find length that is down to a quarter of its beginning as a score falls, or to less while
    none gains.
    """
    reward = context.indicators["reward"]
    # all scores that short responses may gain or lose
    validations = validation_keys(context.run.keys)[:_MOST]
    parts = gaining_components(context.run)[:_MOST]
    keys = {"length": context.indicators["response_length"], "reward": reward}
    others = [*dict.fromkeys((*validations, *parts))]
    extra = len({*validations} - {reward})
    return BlockDiagnosis(keys, _find_short, others, extra, size=5, needs=_OPENING)


def _find_short(blocks: Blocks, spec: BlockDiagnosis) -> Signs:
    length = blocks.levels[0]
    opening = float(np.fmax.reduce(length[:_OPENING], initial=0.0))
    left = rolling(length, _LASTS, np.maximum) / (opening or 1.0)
    places = np.arange(blocks.size)
    is_long = length >= _WHOLE_LENGTH * opening
    long = np.maximum.accumulate(np.where(is_long, places, 0))
    # the level of each score before responses shrank and since, and at the beginning
    scores = range(1, len(spec.metrics))
    now = np.array([blocks.means(i, _LEVEL) for i in scores])
    errors = np.array([blocks.noise(i) for i in scores]) * math.sqrt(2 / _LEVEL)
    before, first = now[:, long], now[:, np.minimum(long, _LEVEL)]
    size = np.maximum(abs(now), abs(before))
    gained = now - first >= np.maximum(_GAIN * abs(now), _SURE_GAIN * errors)
    fallen = before - now >= np.maximum(_LOSS * size, _SURE_LOSS * errors)
    gained, fallen = gained & (now > first), fallen & (now < before)
    falls: Flags = np.logical_or.reduce(fallen)
    is_share = (blocks.lowest[1] >= 0) & (blocks.highest[1] <= 1)
    # Short responses serve the task: validation gains, or another score while none falls.
    serves = (gained & ~fallen)[1 : 1 + spec.extra].any(axis=0)
    serves |= ~falls & (gained.any(axis=0) | is_share & (now[0] >= SOLVED))
    lasts = (left <= _BACK) & (opening >= _TINY) & ~serves

    def facts(at: int, _: int) -> Mapping[str, object]:
        fell = "no score gained"
        if falls[at]:
            i = fallen[:, at].argmax()
            ends = f"from {number(before[i, at])} to {number(now[i, at])}"
            fell = f"{spec.metrics[1 + i]} fell {ends} with their length"
        own = {"opening": opening, "now": length[at], "fell": fell}
        return {**own, "left": length[at] / opening}

    begins = lasts & (left <= np.where(falls, _SHRUNK, _LITTLE))
    return Signs(begins, lasts, lambda at: long[at] + 1, facts)


_PHASE = NamePattern(
    r"timing_s/(?!step$|testing$|save_checkpoint$|start_profile$|stop_profile$|dump_|.*/slowest/"
    r"|.*(?:/|_)(?:max|min)$).+"
)
"""Phases of every step. Validation and checkpoints have their own pace and are left out, as are
single responses.
"""
_NO_TIME = NamePattern(
    r"(?:.*(?:/|_))?(?:lengths?|tokens?|counts?|turns|ratio|share|num|num_.+|size|bytes)(?:/mean)?"
)
"""verl and its agent loops put figures under `timing_s/` that are no seconds:
`…/slowest/prompt_length`.
"""
_MOST_PHASES = 20
_NOW, _GAP = 2, 2
"""Newest blocks that must be slow, and how many before these are left out for the growth itself."""
_PAST, _LEAST_PAST = 20, 4
"""Blocks of the past that make the usual time."""
_SLOWER, _OVER = 1.5, 1.25
"""Half as long again as usual is slow, below a quarter more it is over: heuristic."""
_SHARE, _WHOLE = 0.1, 1.05
"""The added time must be a tenth of the step: heuristic, less is not worth a finding. What takes
longer than the whole step is no part of it: a sum over workers, or another unit.
"""


@diagnosis("slow-phase")
def slow_phase(context: RuleContext) -> BlockDiagnosis | str:
    """Find a part of the step's time that grows against its own past, and not only with the tokens
    it works on.
    """
    step = context.indicators.get("step_time")
    if not step:
        return f"{LACKS} no time of a step"
    length = context.indicators.get("response_length")
    keys = {"step": step, "tokens": context.names.get("perf/total_num_tokens", length)}
    phases = _phases(context.run.keys) or (step,)
    needs = _NOW + _GAP + _LEAST_PAST + 1
    return BlockDiagnosis(keys, _find_slow, phases, needs=needs, patience=3)


def _find_slow(blocks: Blocks, spec: BlockDiagnosis) -> Signs:
    step, tokens, *phases = blocks.levels
    figures = np.array([_added(one, step, tokens) for one in phases])
    was, each, added = figures.transpose(1, 0, 2)
    slowest = added.argmax(axis=0)  # that which costs most
    begins: Flags = (added > 0).any(axis=0)
    known = np.where(tokens > 0, tokens, 0.0)

    def lasts(at: int) -> Flags:
        i = slowest[at]
        least = np.fmax(was[i, at], each[i, at] * known)
        found: Flags = phases[i] >= _OVER * least
        return found

    def since(at: int) -> int:
        return behind_last(~lasts(at)[:at])

    def facts(at: int, begun: int) -> Mapping[str, object]:
        i = slowest[behind_last(begins[: at + 1]) - 1]
        usual = was[i, begun + np.argmax(begins[begun:])]
        key, now, whole = spec.metrics[2 + i], phases[i][at], step[at]
        is_part = key != spec.metrics[0] and whole > 0
        share = f", {now / whole:.0%} of the step" if is_part else ""
        own = {"key": key, "usual": usual, "now": now}
        return {**own, "times": now / usual, "share": share}

    return Signs(begins, lasts, since, facts)


def _added(
    levels: Numbers, step: Numbers, tokens: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the usual seconds of a phase, those of one token, and by how much it is slower than
    that, 0 where it is not, as longer responses take longer.
    """
    with np.errstate(all="ignore"):
        each = levels / np.where(tokens > 0, tokens, np.nan)
        was, was_each = _usual(levels), _usual(each)
        now = lately(levels, _NOW)
        added = now - was
        found = (was > 0) & (now >= _SLOWER * was) & (added >= _SHARE * step)
        found &= ~(levels > _WHOLE * step) & ~(lately(each, _NOW) < _SLOWER * was_each)
        found &= levels >= _OVER * np.fmax(was, was_each * np.nan_to_num(tokens))
    return was, was_each, np.where(found, added, 0.0)


def _usual(levels: Numbers) -> Numbers:
    """Return the usual level at each block: that of the last blocks before it or, if lower, of the
    first ones, which show what creeps; nan where too few are known. The very first warms up.
    """
    levels = np.append(np.nan, levels[1:])
    found = medians(pasts(levels, np.arange(len(levels)), _PAST, _NOW + _GAP))
    known = np.cumsum(~np.isnan(levels))
    found[np.append(np.zeros(_NOW + _GAP), known)[: len(found)] < _LEAST_PAST] = np.nan
    whole = _PAST + _NOW + _GAP
    found[whole:] = np.fmin(found[whole:], found[whole : whole + 1])
    return found


@lru_cache(256)
def _phases(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys of times of a part of the step, in seconds."""
    # Called at each judgement, while keys hardly ever change.
    found = [
        key
        for key in filter(_PHASE.fullmatch, keys)
        if not _NO_TIME.fullmatch(key) and describe(key).unit == "s"
    ]
    return tuple(found[:_MOST_PHASES])


_KL, _TOP, _BOTTOM, _OTHERS = 1, 2, 3, 4
"""Columns behind the reward's."""
_MOST_OTHERS = 16
"""Most validation scores and parts of the reward to compare."""
_SIGMAS, _MAYBE = 2.0, 1.5
"""Standard errors on either side that make an interval of 95%, and from which a gain is likely
enough to wait: heuristic.
"""
_FALLS, _GAINS = -3.0, 3.0
"""Standard errors of a fall, which is another fault, and that make a gain sure."""
_BOUNDS = {"held-back": 0.5, "moved": 0.25, "": 0.1}
"""Share of the spread that scores may have, and of what is left to the top of their scale, that a
gain must stay below: half where a strong penalty explains it, a quarter where the policy has moved
for nothing, else a tenth. Heuristic: what learns slowly gains as much in 100 points.
"""
_MOVED = 0.1
"""Nats a token by which a policy has moved that should have gained something: the top of the
guide's band.
"""
_COST = 0.02
"""Coefficient × KL from which the penalty matters compared with advantages, whose size is 1:
heuristic.
"""
_SOLVED = 0.9
"""Share of the scale from which little is left to be gained: heuristic."""
_MIDDLE = 0.05
"""Share of a scale that is next to its middle."""
_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""
_OFTEN = 20
"""Blocks up to which every one is judged; later every second, third … one, as evidence grows with
the run.
"""
_FIRST, _NEWEST, _HUMP = 2, 3, 4.0
"""Blocks that it began with, those in which a gain shows that is not there over all, and standard
errors by which the best of these must lie above the first.
"""
_NO_ENDS = (
    "the ends of the reward's scale are unknown, or 0 is its middle, as in self-play: "
    "no gain can be called small"
)


class _Line(NamedTuple):
    """The reward's course over all blocks."""

    mean: float
    change: float
    error: float
    """Standard error of the change, with what neighbouring blocks have in common."""
    alone: float
    """The same as if they had nothing in common."""
    own: float
    """Standard deviation of a block's level by the points within blocks: without the changes of the
    course itself.
    """


@diagnosis("nothing-learns/flat", "reward")
def nothing_learns(context: RuleContext) -> BlockDiagnosis:
    """Find a reward that has been level since the run's first points, and for which more than a
    small gain is ruled out.
    """
    reward = context.indicators["reward"]
    figure = reward.removesuffix("mean")
    keys = {
        "reward": reward,
        "kl": context.indicators.get("reference_kl"),
        "top": context.names.get(f"{figure}max"),
        "bottom": context.names.get(f"{figure}min"),
    }
    parts = gaining_components(context.run)
    others = [*validation_keys(context.run.keys), *parts][:_MOST_OTHERS]
    extra = kl_coefficient(context.run)
    return BlockDiagnosis(
        keys, _find, [*dict.fromkeys(others)], extra, needs=10, patience=2
    )


def _find(blocks: Blocks, spec: BlockDiagnosis) -> Signs:
    """Bound what the reward can have gained since the beginning, until it has gained, or where the
    log does not hold the run's beginning.
    """
    begins, lasts = np.zeros(blocks.size, bool), np.ones(blocks.size, bool)
    lines: dict[int, tuple[_Line, str]] = {}
    start = int(blocks.first[0])
    # Where a log begins late, it has learnt before.
    from_start = start <= max(1, blocks.last[spec.needs - 1] - start)
    for at in range(spec.needs - 1, blocks.size if from_start else 0):
        if (at + 1) % ((at + 1) // _OFTEN + 1):
            continue
        lasts[at] = False
        levels = _known(blocks.levels[0], at)
        if len(levels) < 4 or abs(levels).max() > _HUGE:
            continue
        line = _line(levels, _known(blocks.errors[0], at))
        if _gained(levels, line):
            lasts[at:] = False
            break
        others = blocks.levels[_OTHERS:]
        if all(trend(_known(one, at)).t < _GAINS for one in others):
            case, why = _reason(blocks, spec, at)
            lines[at], lasts[at] = (line, why), True
            begins[at] = _is_flat(blocks, line, at, _BOUNDS[case])

    def facts(at: int, _: int) -> Mapping[str, object]:
        line, reason = lines[max(judged for judged in lines if judged <= at)]
        low, high = (line.change + way * line.error for way in (-_SIGMAS, _SIGMAS))
        own = {"steps": blocks.last[at] - start + 1, "points": (at + 1) * spec.size}
        figures = {"low": low, "high": high, "most": max(high, 0.0)}
        return {**own, **figures, **line._asdict(), "reason": reason}

    reason = None if _ends(blocks, blocks.size - 1) else _NO_ENDS
    return Signs(begins, lasts, lambda _: 0, facts, reason)


def _known(figures: Numbers, at: int) -> Numbers:
    """Return the figures of a metric up to a block, without blocks that lack it."""
    known: Numbers = figures[: at + 1]
    return known[~np.isnan(known)]


def _is_flat(blocks: Blocks, line: _Line, at: int, bound: float) -> bool:
    """Return whether a gain is ruled out for a reward that still has something to gain: its line
    suggests neither a gain nor a fall.
    """
    ends = _ends(blocks, at)
    if not ends or not _FALLS * line.alone < line.change < _MAYBE * line.error:
        return False
    low, high = ends
    left = high - line.mean
    # The largest spread that scores of this mean between these ends can have (Bhatia and Davis
    # 2000).
    spread = math.sqrt(max(0.0, left * (line.mean - low)))
    is_small = line.change + _SIGMAS * line.error <= bound * min(spread, left)
    return is_small and left > (1 - _SOLVED) * (high - low)


def _reason(blocks: Blocks, spec: BlockDiagnosis, at: int) -> tuple[str, str]:
    """Return why the reward may be level, as a case and in words: a KL term that is stronger
    than the guide's, and costs much beside advantages; or nothing, although the policy has moved.
    """
    newer = _known(blocks.levels[_KL, (at + 1) // 2 :], at - (at + 1) // 2)
    far = float(median_along(newer)) if len(newer) else 0.0
    name, coefficient = spec.extra
    case = "moved" if far >= _MOVED else ""
    if coefficient > KL_COEF[1] and coefficient * far >= _COST:
        case = "held-back"
    words = WORDS["nothing-learns/flat"]["reasons"].get(case, "")
    facts = {"far": far, "name": name, "cost": coefficient * far}
    facts |= {"coefficient": coefficient, "least": KL_COEF[0], "most": KL_COEF[1]}
    return case, filled(words, facts)


def _ends(blocks: Blocks, at: int) -> tuple[float, float] | None:
    """Return the ends of the reward's scale: the extremes of single scores where they are logged,
    or 0 and 1. None where they are unknown, or the reward is in the middle between wins and
    defeats, which is where players who are equals stay.
    """
    low, high = float(blocks.lowest[0, at]), float(blocks.highest[0, at])
    if np.isnan(blocks.levels[_TOP : _BOTTOM + 1, at]).any():
        return (0.0, 1.0) if 0.0 <= low <= high <= 1.0 else None
    low = min(float(blocks.lowest[_BOTTOM, at]), low)
    high = max(float(blocks.highest[_TOP, at]), high)
    near, mean = _MIDDLE * (high - low), float(blocks.levels[0, at])
    is_draw = low < 0 and abs(low + high) <= near and abs(mean) <= near
    return None if is_draw else (low, high)


def _line(levels: Numbers, within: Numbers) -> _Line:
    """Fit a line through the reward's levels."""
    count, mean = len(levels), fmean(levels.tolist())
    middle = np.arange(count) - (count - 1) / 2
    spread = count * (count * count - 1) / 12
    slope = math.fsum(middle * levels) / spread  # exact: of what is level it is 0
    rest = levels - mean - slope * middle
    squares = math.fsum(rest * rest)
    own = math.sqrt((within * within).mean()) if len(within) else 0.0
    noise = max(math.sqrt(squares / (count - 2)), own)
    # Correlated neighbours hold less information than their number suggests.
    shared = math.fsum(rest[:-1] * rest[1:]) / squares if squares else 0.0
    shared = min(0.9, max(0.0, shared))
    alone = noise * (count - 1) / math.sqrt(spread)
    error = alone * math.sqrt((1 + shared) / (1 - shared))
    return _Line(mean, slope * (count - 1), error, alone, own)


def _gained(levels: Numbers, line: _Line) -> bool:
    """Return whether a reward has gained: over all, for a time, or right after its first points."""
    best = means(levels[_FIRST:], _NEWEST)[_NEWEST - 1 :].max(initial=-np.inf)
    error = line.own * math.sqrt(1 / _FIRST + 1 / _NEWEST)
    is_hump = bool(best - levels[:_FIRST].mean() > _HUMP * error)
    return is_hump or line.change >= _GAINS * line.alone
