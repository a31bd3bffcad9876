"""Responses that leave their length: they shrink to a small part of it and no score gains, or grow
to the limit, more and more are cut, and the reward falls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.blocks import last_known, lately, noises
from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import (
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
    went,
)
from verl_tui.health.finding import number
from verl_tui.health.limits import known_response_limit, v1_trainer
from verl_tui.health.reward import SOLVED, gaining_components
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_REWARD, _LENGTH, _SCORES = 0, 1, 2
"""Columns: the reward, the length, from there on validation scores and the parts of the reward."""
_MOST = 12
"""Most validation scores, and most parts of the reward, to compare."""
_OPENING = 6
"""Blocks that show how long responses were at the beginning."""
_TINY = 4.0
"""Tokens below which responses were next to nothing from the start: a label, a number."""
_LEFT, _LITTLE = 0.25, 0.15
"""Share of the beginning down to which length has collapsed: a quarter where a score has fallen
with it, less where all are level, because some tasks need few words. Heuristic.
"""
_BACK = 0.5
"""Share from which on responses have come back."""
_LASTS = 3
"""Blocks that it must have lasted: 15 points."""
_NEAR = 0.75
"""Down to three quarters it has not begun to fall."""
_LEVEL = 4
"""Points of a score, means of a block each, that make its level."""
_GAIN, _SURE_GAIN = 0.05, 3.0
"""A score has gained if it lies a twentieth of its size and three standard errors above its
beginning: heuristic.
"""
_LOSS, _SURE_LOSS = 0.4, 5.0
"""A score has fallen if it has lost two fifths of its size beyond doubt: where `reward-hacking`
counts a part as fallen.
"""
_LOOKED_AT = 60
"""Blocks in which a score's levels are searched for, and newest ones that show its noise."""
_LAGS = (4, 8, 16, 32)
"""Blocks over which it is searched for: 40 to 320 points."""
_CLIMB = 1.3
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
"""Up to a quarter of its rise length has not begun to climb: many steps may lie before a sharp
one.
"""
_TREND_T = 4.0
_FALL_T = -3.0
_FALL = 0.1
"""The reward must have lost a tenth of its size: heuristic."""


@diagnosis("length-collapse", "response_length", "reward")
def length_collapse(context: RuleContext, _: Rule) -> InBlocks:
    """Find length that is down to a quarter of its beginning as a score falls, or to less while
    none gains.
    """
    names = ("response_length", "reward")
    length, reward = map(context.indicators.__getitem__, names)
    # all scores that short responses may gain or lose
    validations = validation_keys(context.run.keys)[:_MOST]
    parts = gaining_components(context.run, reward)[:_MOST]
    keys = (reward, length, *validations, *parts)
    return InBlocks(keys, _find_collapse, len(validations), size=5, needs=_OPENING)


def _find_collapse(blocks: Blocks, of: InBlocks) -> Onsets:
    length = blocks.levels[_LENGTH]
    opening = max(blocks[:_OPENING].known(_LENGTH), default=0.0)
    left = rolling(length, _LASTS, np.maximum) / opening if opening >= _TINY else length
    is_short: Flags = (left <= _BACK) & (opening >= _TINY)
    places = np.flatnonzero(is_short)
    every = np.arange(len(blocks))
    long = np.maximum.accumulate(np.where(length >= _NEAR * opening, every, 0))
    columns = [_REWARD, *range(_SCORES, len(of.keys))]
    courses = [_course(blocks, i, places, long[places] + 1) for i in columns]
    gained, fallen = (np.array([one[at] for one in courses]) for at in range(2))
    validated = slice(1, 1 + of.of)
    # Short responses serve the task: validation gains, or another score while none falls.
    serves = np.logical_or.reduce((gained & ~fallen)[validated])
    now = courses[0].now
    solved = (blocks.lowest[_REWARD] >= 0) & (blocks.highest[_REWARD] <= 1)
    solved = solved[places] & (now >= SOLVED)
    falls = np.logical_or.reduce(fallen)
    serves |= ~falls & (np.logical_or.reduce(gained) | solved)
    lasts, begins = is_short, np.zeros(len(blocks), bool)
    lasts[places[serves]] = False
    begins[places] = left[places] <= np.where(falls, _LEFT, _LITTLE)

    def told(at: int, since: int) -> Told:
        k = int(np.searchsorted(places, at))
        fell, beside = "no score gained", []
        if falls[k]:
            i = int(fallen[:, k].argmax())
            course, score = courses[i], of.keys[columns[i]]
            way = f"from {number(course.before[k])} to {number(course.now[k])}"
            fell = f"{score} fell {way} with their length"
            beside = [f"{score}: {way} since step {since}"]
        known = float(length[at])
        facts = {
            "opening": opening,
            "now": known,
            "left": known / opening,
            "fell": fell,
        }
        return Told(facts, beside, since=since, key=of.keys[_LENGTH])

    brink = blocks.last[long]
    return Onsets(begins & lasts, lambda at: Onset(int(brink[at]), lasts, told))


class _Course(NamedTuple):
    """How a score went at some places."""

    gained: Flags
    """Whether it lies above its level at the run's beginning."""
    fallen: Flags
    """Whether it lost much as responses shrank."""
    before: Numbers
    """Its level before responses shrank."""
    now: Numbers


def _course(blocks: Blocks, i: int, places: Places, ends: Places) -> _Course:
    """Return how a score went; nothing is known of it where there are too few levels before
    responses shrank, or since.

    Args:
        blocks: All blocks.
        i: Column of the score.
        places: Where to look.
        ends: Behind the last block up to each of these in which responses were still long.
    """
    levels = blocks.levels[i]
    is_known = ~np.isnan(levels)
    until = np.append(0, np.cumsum(is_known))
    known = levels[is_known]
    sums = np.append(0, np.cumsum(known.astype(np.longdouble)))
    behind = places + 1

    def mean(start: Places, stop: Places) -> tuple[Places, Numbers]:
        low, high = until[start], until[stop]
        low = np.maximum(low, high - _LEVEL)
        return high - low, ((sums[high] - sums[low]) / (high - low)).astype(float)

    with np.errstate(invalid="ignore", divide="ignore"):
        first_ones = np.minimum(until[np.minimum(ends, _LOOKED_AT)], _LEVEL)
        first = (sums[first_ones] / first_ones).astype(float)
        before_ones, before = mean(np.maximum(0, ends - _LOOKED_AT), ends)
        start = np.maximum(0, behind - _LOOKED_AT)
        now_ones, now = mean(np.maximum(ends, start), behind)
        least = np.minimum(first_ones, before_ones)
        seen = until[behind] - until[start]
        noise = noises(known, seen, until[behind])
        error = noise * np.sqrt(1 / least + 1 / now_ones)
    now = np.where((least > 0) & (seen > _LEVEL), now, np.nan)
    size = np.maximum(abs(first), abs(now))
    gained = now - first >= np.maximum(_GAIN * size, _SURE_GAIN * error)
    size = np.maximum(abs(before), abs(now))
    fallen = before - now >= np.maximum(_LOSS * size, _SURE_LOSS * error)
    return _Course(gained & (now > first), fallen & (now < before), before, now)


@diagnosis("length-explosion", "response_length", "reward")
def length_explosion(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find length that climbs to the limit, as the truncated share climbs and the reward falls."""
    names = ("response_length", "reward")
    length, reward = map(context.indicators.__getitem__, names)
    # The v1 trainer's share is that of the longest response, not of the limit.
    is_v1 = v1_trainer(context.run)
    cut = None if is_v1 else context.indicators.get("truncated_share")
    limit = known_response_limit(context.run, context.guide)
    if cut is None and limit is None:
        return "neither a limit of response length nor a truncated share is known"
    return InBlocks(
        (length, reward, cut), _find_explosion, limit and limit.value, needs=5
    )


def _find_explosion(blocks: Blocks, of: InBlocks) -> Onsets:
    limit: float | None = of.of
    length, _, cut = blocks.levels
    is_near = length >= _NEAR_LIMIT * (np.inf if limit is None else limit)
    lasts = np.where(np.isnan(cut), is_near, cut >= _CUT)

    def at(place: int) -> Onset | None:
        for lag in _LAGS:
            stretch = blocks[max(0, place + 1 - lag) : place + 1]
            if len(stretch) == lag and _explodes(stretch, limit):
                return Onset(_foot(stretch), lasts, told)
        return None

    def told(place: int, since: int) -> Told:
        stretch = blocks[: place + 1].since(since)
        length, reward, cut = known = [stretch.known(i) for i in range(3)]
        first, last = int(stretch.last[0]), int(stretch.last[-1])
        shares = ""
        if cut:
            shares = f", truncated share from {number(cut[0])} to {number(cut[-1])}"
        figures = zip(of.keys, known, strict=True)
        return Told(
            {
                "begun": length[0],
                "now": length[-1],
                "limit": "" if limit is None else f" of {number(limit)}",
                "shares": shares,
                "best": max(reward),
                "reward": reward[-1],
            },
            [went(key, one, first, last) for key, one in figures if one],
            since=first,
            key=of.keys[0],
        )

    climbs: Flags = last_known(length) >= _CLIMB * lately(length, _LAGS[-1])
    return Onsets(climbs, at)


def _explodes(stretch: Blocks, limit: float | None) -> bool:
    length = stretch.known(0)
    if len(length) < 4 or length[-1] < _CLIMB * length[0]:
        return False
    if stretch.course(0).t < _TREND_T:
        return False
    return _reaches_limit(stretch, limit) and _reward_falls(stretch)


def _reaches_limit(stretch: Blocks, limit: float | None) -> bool:
    """Return whether more responses are cut or, where that is unknown, they are near the limit."""
    cut = stretch.known(2)
    if len(cut) >= 4:
        return cut[-1] >= max(_CUT, cut[0] + _CUT) and stretch.course(2).t >= _TREND_T
    return limit is not None and stretch.known(0)[-1] >= _NEAR_LIMIT * limit


def _reward_falls(stretch: Blocks) -> bool:
    """Return whether the reward falls over the stretch, or since its highest level in it."""
    reward = stretch.known(1)
    if len(reward) < 4:
        return False
    size = max(map(abs, reward))
    line = stretch.course(1)
    if line.t <= _FALL_T and -line.change >= _FALL * size:
        return True
    highest = max(reward)
    since_highest = stretch[reward.index(highest) :]
    is_low = highest - reward[-1] >= 2 * _FALL * size
    return is_low and since_highest.course(1).t <= _FALL_T


def _foot(stretch: Blocks) -> int:
    """Return the last step at which length had not begun to climb."""
    length = stretch.known(0)
    foot = length[0] + _FOOT * (length[-1] - length[0])
    return int(stretch.last[stretch.levels[0] <= foot][-1])
