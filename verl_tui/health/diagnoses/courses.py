"""Metrics that leave their course, block by block: entropy falls towards 0 while the reward stands
still; responses shrink to a small part of their length and no score gains; a phase of the step
takes much longer than it used to.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.column import (
    Flags,
    Numbers,
    behind_last,
    lately,
    medians,
    pasts,
    rolling,
    shifted,
)
from verl_tui.health.diagnosis import BlockDiagnosis, Blocks, Signs, diagnosis
from verl_tui.health.finding import LACKS, number
from verl_tui.health.reward import SOLVED, gaining_components, parts_solved
from verl_tui.indicators import validation_keys
from verl_tui.runs.time.step_timing import regular_parts

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
    phases = regular_parts(context.run)[:_MOST_PHASES] or (step,)
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
    found[~(shifted(known, _NOW + _GAP) >= _LEAST_PAST)] = np.nan
    whole = _PAST + _NOW + _GAP
    found[whole:] = np.fmin(found[whole:], found[whole : whole + 1])
    return found
