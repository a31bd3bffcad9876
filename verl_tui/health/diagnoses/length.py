"""Responses that leave their length: they shrink to a small part of it and no score gains, or grow
to the limit, more and more are cut, and the reward falls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.windows import lately, noise, rolling
from verl_tui.health.diagnoses.diagnosis import InBlocks, Shown, Told, diagnosis, went
from verl_tui.health.finding import number
from verl_tui.health.limits import known_response_limit, v1_trainer
from verl_tui.health.reward import SOLVED, gaining_components
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from verl_tui.health.conditions.windows import Blocks, Flags, Numbers
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_MOST = 12
"""Most validation scores, and most parts of the reward, to compare."""
_OPENING, _TINY = 6, 4.0
"""Blocks that show how long responses were at the beginning, and tokens below which they were next
to nothing from the start: a label, a number.
"""
_LEFT, _LITTLE = 0.25, 0.15
"""Share of the beginning down to which length has collapsed: a quarter where a score has fallen
with it, less where all are level, because some tasks need few words. Heuristic.
"""
_BACK, _NEAR, _LASTS = 0.5, 0.75, 3
"""Share from which on responses have come back, down to which they have not begun to fall, and
blocks that it must have lasted: 15 points.
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
_LAGS = (4, 8, 16, 32)
"""Blocks over which a climb is searched for: 40 to 320 points."""
_CLIMB, _TREND_T = 1.3, 4.0
"""Length must have grown by a third or so: heuristic."""
_NEAR_LIMIT = 0.75
"""Mean length beyond three quarters of the limit is near it: with any spread, many responses reach
it.
"""
_CUT = 0.1
"""Share of cut responses that counts (verl docs/perf/best_practices.rst), and by how much it must
have risen.
"""
_FOOT = 0.25
"""Up to a quarter of its rise length has not begun to climb."""
_FALL_T, _FALL = -3.0, 0.1
"""The reward must have lost a tenth of its size, or a fifth over half of the blocks: heuristic."""


@diagnosis("length-collapse", "response_length", "reward")
def length_collapse(context: RuleContext, _: Rule) -> InBlocks:
    """Find length that is down to a quarter of its beginning as a score falls, or to less while
    none gains.
    """
    length, reward = (context.indicators[id] for id in ("response_length", "reward"))
    # all scores that short responses may gain or lose
    validations = validation_keys(context.run.keys)[:_MOST]
    parts = gaining_components(context.run, reward)[:_MOST]
    keys = (length, reward, *validations, *parts)
    return InBlocks(keys, _find_collapse, len(validations), size=5, needs=_OPENING)


def _find_collapse(blocks: Blocks, of: InBlocks) -> Shown:
    length = blocks.levels[0]
    opening = float(np.fmax.reduce(length[:_OPENING], initial=0.0))
    left = rolling(length, _LASTS, np.maximum) / (opening or 1.0)
    places = np.arange(blocks.size)
    long = np.maximum.accumulate(np.where(length >= _NEAR * opening, places, 0))
    # the level of each score before responses shrank and since, and at the beginning
    lately = np.array([_means(one) for one in blocks.levels[1:]])
    errors = np.array([noise(one) for one in blocks.levels[1:]]) * math.sqrt(2 / _LEVEL)
    before, first = lately[:, long], lately[:, np.minimum(long, _LEVEL)]
    size = np.maximum(abs(lately), abs(before))
    gained = lately - first >= np.maximum(_GAIN * abs(lately), _SURE_GAIN * errors)
    fallen = before - lately >= np.maximum(_LOSS * size, _SURE_LOSS * errors)
    gained, fallen = gained & (lately > first), fallen & (lately < before)
    falls: Flags = np.logical_or.reduce(fallen)
    is_share = (blocks.lowest[1] >= 0) & (blocks.highest[1] <= 1)
    # Short responses serve the task: validation gains, or another score while none falls.
    serves = (gained & ~fallen)[1 : 1 + of.of].any(axis=0)
    serves |= ~falls & (gained.any(axis=0) | is_share & (lately[0] >= SOLVED))
    lasts = (left <= _BACK) & (opening >= _TINY) & ~serves

    def told(at: int, since: int) -> Told:
        fell, beside = "no score gained", []
        if falls[at]:
            i = int(fallen[:, at].argmax())
            way = f"from {number(before[i, at])} to {number(lately[i, at])}"
            fell = f"{of.keys[1 + i]} fell {way} with their length"
            beside = [f"{of.keys[1 + i]}: {way} since step {since}"]
        facts = {"opening": opening, "now": float(length[at]), "fell": fell}
        facts["left"] = length[at] / opening
        return Told(facts, beside, since=since, key=of.keys[0])

    begins = lasts & (left <= np.where(falls, _LEFT, _LITTLE))
    return Shown(begins, lasts, lambda at: int(blocks.last[long[at]]), told)


def _means(levels: Numbers) -> Numbers:
    """Return the mean of the last known levels at each block, of fewer at the beginning."""
    is_known = ~np.isnan(levels)
    until = np.append(0, np.cumsum(is_known))[1:]
    sums = np.append(0.0, np.cumsum(levels[is_known]))
    start = np.maximum(0, until - _LEVEL)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Numbers = (sums[until] - sums[start]) / (until - start)
    return found


@diagnosis("length-explosion", "response_length", "reward")
def length_explosion(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find length that climbs to the limit, as the truncated share climbs and the reward falls."""
    length, reward = (context.indicators[id] for id in ("response_length", "reward"))
    # The v1 trainer's share is that of the longest response, not of the limit.
    is_v1 = v1_trainer(context.run)
    cut = None if is_v1 else context.indicators.get("truncated_share")
    limit = known_response_limit(context.run, context.guide)
    if cut is None and limit is None:
        return "neither a limit of response length nor a truncated share is known"
    keys = (length, reward, cut)
    return InBlocks(keys, _find_explosion, limit and limit.value, needs=5)


def _find_explosion(blocks: Blocks, of: InBlocks) -> Shown:
    limit: float = of.of or np.inf
    length, reward, cut = blocks.known
    is_near = length >= _NEAR_LIMIT * limit
    lags = np.zeros(blocks.size, np.int64)
    climbs = length >= _CLIMB * lately(length, _LAGS[-1])
    for lag in reversed(_LAGS) if climbs.any() else ():
        found = climbs & (length >= _CLIMB * blocks.before(0, lag - 1))
        found &= blocks.slopes(0, lag)[2] >= _TREND_T
        counts, _, t = blocks.slopes(2, lag)
        more = cut >= _CUT + np.maximum(0, blocks.before(2, lag - 1))
        found &= np.where(counts >= 4, more & (t >= _TREND_T), is_near)
        falls = blocks.moves(1, lag, _FALL_T, _FALL)
        falls |= blocks.moves(1, max(4, lag // 2), _FALL_T, 2 * _FALL)
        lags[found & falls] = lag
    lags[: _LAGS[0] - 1] = 0

    def told(at: int, since: int) -> Told:
        start = int(np.searchsorted(blocks.last, since))
        first, last = int(blocks.last[start]), int(blocks.last[at])
        begun, now = blocks.known[:, start].tolist(), blocks.known[:, at].tolist()
        shares = ""
        if of.keys[2]:
            way = f"{number(begun[2])} to {number(now[2])}"
            shares = f", truncated share from {way}"
        known = zip(of.keys, begun, now, strict=True)
        return Told(
            {
                "begun": begun[0],
                "now": now[0],
                "limit": f" of {number(limit)}" if of.of else "",
                "shares": shares,
                "best": float(np.fmax.reduce(reward[start : at + 1])),
                "reward": now[1],
            },
            [went(key, was, one, first, last) for key, was, one in known if key],
            since=first,
            key=of.keys[0],
        )

    def since(at: int) -> int:
        return int(blocks.last[blocks.brink(0, at, _FOOT, int(lags[at]) - 1)])

    lasts = np.where(np.isnan(blocks.levels[2]), is_near, cut >= _CUT)
    return Shown(lags > 0, lasts, since, told)
