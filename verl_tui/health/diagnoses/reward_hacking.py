"""The training reward rises at the cost of one of its parts, or while validation or samples get
worse.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from verl_tui.health.conditions.column import (
    Flags,
    Numbers,
    Places,
    behind_last,
    lately,
    pasts,
    rolling,
)
from verl_tui.health.diagnosis import BlockDiagnosis, Blocks, Signs, diagnosis
from verl_tui.health.finding import LACKS, number
from verl_tui.health.reward import (
    SAMPLE_SCORES,
    answers_improve,
    gaining_components,
)
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.health.rule_context import RuleContext

    _Onset: TypeAlias = tuple[int, Mapping[str, Any]]
    _Sign: TypeAlias = tuple[Flags, Callable[[int, int], _Onset]]
    """Where a sign shows; and since which block, and what it is in figures, by the block where it
    shows and the newest one.
    """

_LAGS = (10, 20, 40)
"""Blocks over which reward and validation are compared: 100 to 400 points."""
_RISE_T, _RISE = 5.0, 0.1
"""The reward must have gained a tenth of its range so far at least, beyond any doubt: heuristic."""
_VALIDATIONS = 5
"""Blocks with validations without which their course is not known: heuristic."""
_FALL_T, _FALL = -2.5, 0.05
"""A fall of validation by a twentieth of its level counts as one: heuristic."""
_SHARE, _SURE = 0.25, 3.0
"""Validation stands still if it gained less than a quarter of the reward's gain, by three standard
errors: heuristic.
"""
_FOLLOW_T, _FOLLOW = 2.0, 0.02
"""A validation score that has likely gained a fiftieth of its level follows the reward."""
_MOST_VALIDATIONS, _MOST_PARTS = 6, 12
_REPEATS, _POORER = 0.1, 0.15
"""Repetition up by a tenth, or diversity down by so much of its level, beyond doubt: heuristic."""
_LEFT, _BACK = 0.6, 0.75
"""Share of its best at or below which a figure has fallen, and beyond which it has come back:
heuristic.
"""
_BOTTOM = 0.15
"""Share of a scale from −1 that a figure which is never above 0 must be down to: penalties for
length grow with use.
"""
_SURE_LOSS, _SURE_RISE, _LEAST_RISE = 5.0, 3.0, 0.05
"""Standard errors of the fall, which is searched for in many places, and of the reward's rise
since, which is a twentieth of its size at least: heuristic.
"""
_WINDOWS = (1, 2, 4, 8)
"""Blocks whose means are compared: few show sharp falls soon, many show noisy ones."""
_SEARCHED = 60
"""Newest blocks among which the best is sought."""
_NEAR = 0.25
"""It began to fall where it was last within a quarter of the way from its best."""
_FIGURES = 5
"""First column of validations, behind which those of the reward's parts are."""


@diagnosis("reward-hacking", "reward")
def reward_hacking(context: RuleContext) -> BlockDiagnosis | str:
    """Find a reward that goes up, and a part of it down; or validation down or level; or samples
    that repeat or resemble each other.
    """
    reward = context.indicators["reward"]
    validations = validation_keys(context.run.keys)[:_MOST_VALIDATIONS]
    names = ("samples/repetition", "samples/distinct_2", *SAMPLE_SCORES)
    keys = {"reward": reward} | {name: context.names.get(name) for name in names}
    parts = gaining_components(context.run)[:_MOST_PARTS]
    if not validations and not parts and not any(map(keys.get, names[:2])):
        return f"{LACKS} neither validation nor samples nor parts of the reward"
    return BlockDiagnosis(keys, _find_hacking, [*validations, *parts], len(validations))


def _find_hacking(blocks: Blocks, spec: BlockDiagnosis) -> Signs:
    others = range(_FIGURES, len(spec.metrics))
    signs = [_cost(blocks, spec, i, size) for size in _WINDOWS for i in others]
    signs += [one for lag in _LAGS for one in _compared(blocks, spec, lag)]
    found = _first_of(signs)
    # A single block may be chance.
    begins = rolling(found.begins, 2) == 2
    begins[: spec.needs] = False
    return found._replace(begins=begins)


def _first_of(signs: Sequence[_Sign]) -> Signs:
    """Return what is found where any of some signs shows, as the first of them tells it."""
    shows = np.array([flags for flags, _ in signs])
    any_shows: Flags = np.logical_or.reduce(shows)

    def describe(at: int) -> _Onset:
        shown = behind_last(any_shows[: at + 1]) - 1
        return signs[int(shows[:, shown].argmax())][1](shown, at)

    return Signs(
        any_shows, any_shows, lambda at: describe(at)[0], lambda at, _: describe(at)[1]
    )


def _cost(blocks: Blocks, spec: BlockDiagnosis, i: int, size: int) -> _Sign:
    """Return where a figure is down to 60% of its best while the reward has risen, by means of so
    many blocks.
    """
    low, high = blocks.lowest[i], blocks.highest[i]
    # Scales end at 0, or at −1 where they reach below 0 and stay within −1 and 1.
    floor = -1.0 * ((low >= -1.0) & (low < 0.0) & (high <= 1.0))
    if not (blocks.known[i] - floor <= _LEFT * (high - floor)).any():
        return np.zeros(blocks.size, bool), lambda *_: (0, {})
    now, reward = (_means(blocks.levels[k], size) for k in (i, 0))
    places, best = _best(now, size)
    then = reward[places]
    error, beside = (math.sqrt(2 / size) * _usual_error(blocks, k) for k in (i, 0))
    left = np.where(high <= 0, _BOTTOM, _LEFT)
    found = (best > floor) & (now - floor <= left * (best - floor))
    # Of a scale that ends somewhere below 0 no share is known: the gain before it must be gone.
    gained = np.where(low < floor, best - low, 0.0)
    found &= best - now >= np.maximum(_SURE_LOSS * error, (1 - _LEFT) * gained)
    least = _LEAST_RISE * np.maximum(abs(reward), abs(then))
    found &= reward - then >= np.maximum(_SURE_RISE * beside, least)
    begun = np.maximum.accumulate(np.where(found, np.arange(blocks.size), -1))
    back = blocks.levels[i] - floor > _BACK * (best[begun] - floor)
    lasts = (begun >= 0) & ~back & ~(blocks.levels[0] <= then[begun])

    def describe(at: int, newest: int) -> _Onset:
        start = begun[at]
        place = places[start]
        near = best[start] - _NEAR * (best[start] - now[start])
        begun_at = max(1, behind_last(blocks.levels[i, place:start] >= near))
        facts: dict[str, Any] = {
            "best": best[start],
            "best_step": blocks.last[place],
            "found": now[start],
            "now": blocks.known[i, newest],
            "then": then[start],
        }
        facts |= {"case": "cost", "key": spec.metrics[i]}
        return place + begun_at, facts

    return lasts, describe


def _means(levels: Numbers, size: int) -> Numbers:
    """Return the mean of the last so many known levels at each block that has one, else nan."""
    is_known = ~np.isnan(levels)
    found = np.full(len(levels), np.nan)
    found[is_known] = rolling(levels[is_known], size) / size
    return found


def _usual_error(blocks: Blocks, i: int) -> Numbers:
    """Return the usual error of levels up to each block by the points within blocks, else by the
    differences of neighbours.
    """
    errors = blocks.errors[i]
    squares = np.where(np.isnan(errors), 0.0, np.square(np.minimum(errors, 1e100)))
    found = np.sqrt(np.cumsum(squares) / np.cumsum(~np.isnan(errors)))
    return np.where(np.isnan(found), blocks.noise(i), found)


def _best(levels: Numbers, gap: int) -> tuple[Places, Numbers]:
    """Return the place and level of the highest of the last levels at each block, but for the
    newest ones.
    """
    size = _SEARCHED - gap
    every = np.arange(len(levels))
    at = np.fmax(pasts(levels, every, size, gap), -np.inf).argmax(axis=1)
    places = np.maximum(0, every - _SEARCHED + 1 + at)
    return places, levels[places]


def _compared(blocks: Blocks, spec: BlockDiagnosis, lag: int) -> Iterator[_Sign]:
    """Yield the signs over so many blocks that a rising reward is no improvement."""
    low, high = blocks.lowest[0], blocks.highest[0]
    _, gain, t = blocks.slopes(0, lag)
    least = _RISE * np.maximum(high - low, abs(high + low) / 2)
    rises = (t >= _RISE_T) & (gain >= least)
    rises[: lag - 1] = False
    validations = range(_FIGURES, _FIGURES + spec.extra)
    # Where any validation follows, the reward stands for something.
    for i in validations:
        rises &= ~blocks.moves(i, lag, _FOLLOW_T, _FOLLOW)
    # Only where both are shares a gain of the reward measures that of validation.
    gain = np.where((low >= 0) & (high <= 1), gain, np.nan)
    for i in validations:
        counts, change, t = blocks.slopes(i, lag)
        known = rises & (counts >= _VALIDATIONS)
        fell = known & blocks.moves(i, lag, _FALL_T, _FALL)
        size = lately(abs(blocks.levels[i]), lag, np.fmax)
        least = np.where((size <= 1) & ~np.isnan(gain), _SHARE * gain, _FALL * size)
        is_error = np.isfinite(t) & (t != 0)
        error = np.divide(change, t, out=np.zeros(len(t)), where=is_error)
        still = known & ~fell & (change + _SURE * abs(error) < least)
        yield fell, _comparison(blocks, spec, i, lag, "validation fell")
        yield still, _comparison(blocks, spec, i, lag, "validation stood still")
    poorer = _POORER * blocks.before(2, lag - 1)
    for i, words, way, much in (
        (1, "samples repeat themselves more", 1, _REPEATS),
        (2, "samples have become more alike", -1, poorer),
    ):
        counts, change, t = blocks.slopes(i, lag)
        worse = rises & (counts >= _VALIDATIONS) & (way * t >= _RISE_T)
        worse &= way * change >= much
        for at in np.flatnonzero(worse).tolist():
            scores, spreads = blocks.levels[3:5, at + 1 - lag : at + 1].tolist()
            worse[at] = not answers_improve(scores, spreads)
        yield worse, _comparison(blocks, spec, i, lag, words)


def _comparison(
    blocks: Blocks, spec: BlockDiagnosis, i: int, lag: int, words: str
) -> Callable[[int, int], _Onset]:
    def describe(at: int, _: int) -> _Onset:
        start = at + 1 - lag
        levels = blocks.levels[i, start : at + 1]
        fell = words == "validation fell"
        first = np.nanargmax(levels) if fell else np.flatnonzero(~np.isnan(levels))[0]
        place = start + first
        begun, now = number(levels[first]), number(blocks.known[i, at])
        return (place if fell else start) + 1, {
            "then": blocks.known[0, start],
            "begin": blocks.last[start],
            "sign": f"{words}: {begun} at step {blocks.last[place]}, {now} now",
            "key": spec.metrics[i],
        }

    return describe
