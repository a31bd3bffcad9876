"""A figure that falls while the reward rises: the price of a higher reward."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.blocks import last_known
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.windows import Flags

_LEFT = 0.6
"""Share of its best at or below which a figure has fallen: heuristic; errors measure the noise of
small batches.
"""
_BACK = 0.75
"""Share beyond which it has come back."""
_BOTTOM = 0.15
"""Share of a scale from −1 that a figure which is never above 0 must be down to: penalties for
length grow with use.
"""
_SURE, _SURE_RISE = 5.0, 3.0
"""Standard errors of the fall, which is searched for in many places, and of the reward's rise
since: heuristic.
"""
_RISE = 0.05
"""And a twentieth of the reward's size."""
_WINDOWS = (1, 2, 4, 8)
"""Blocks whose means are compared: few show sharp falls soon, many show noisy ones."""
_LOOKED_AT = 60
"""Newest blocks among which the best is sought."""
_FEWEST = 4
_NEAR = 0.25
"""It began to fall where it was last within a quarter of the way from its best."""


class TradeOff(NamedTuple):
    """A figure that pays for the rise of the reward."""

    column: int
    since: int
    """Step at which it began to fall."""
    best_step: int
    best: float
    now: float
    reward_then: float

    def lasts(self, blocks: BlockHistory, reached: tuple[float, float]) -> bool:
        """Return whether the figure is still down and the reward still above its level then."""
        now = blocks[-1].levels[self.column]
        reward = blocks[-1].levels[0]
        floor = _floor(reached)
        if math.isnan(now) or math.isnan(reward):
            return True
        return now - floor <= _BACK * (self.best - floor) and reward > self.reward_then


class _Levels(NamedTuple):
    """A figure's levels in the newest blocks that have one, oldest first."""

    places: Sequence[int]
    """Of their blocks."""
    levels: Sequence[float]
    errors: Sequence[float]


def trade_off(
    blocks: BlockHistory, i: int, reached: tuple[float, float]
) -> TradeOff | None:
    """Return how far a figure has fallen while the reward rose, None where it has not, or the
    reward has not.

    Args:
        blocks: All blocks so far, with errors; the reward is in their first column.
        i: Column of the figure.
        reached: Its lowest and highest level over all blocks.
    """
    floor = _floor(reached)
    newest = blocks.levels(i)[-1]
    # Most figures are near their best, which is seen at once; of a scale that ends somewhere below
    # 0 no share is known.
    if reached[1] <= floor or not newest - floor <= _LEFT * (reached[1] - floor):
        return None
    known = _newest(blocks, i)
    if len(known.levels) < _FEWEST:
        return None
    error = _error(known)
    highest = max(known.levels)
    for size in _WINDOWS:
        if len(known.levels) < 2 * size:
            break
        now = fmean(known.levels[-size:])
        least = _SURE * error * math.sqrt(2 / size)
        # No window lies above the highest level: most are ruled out by it alone.
        if highest - now < least or not _is_low(now, highest, highest, reached):
            continue
        found = _over_windows(blocks, known, size, least, reached)
        if found is not None:
            return TradeOff(i, *found)
    return None


def _newest(blocks: BlockHistory, i: int) -> _Levels:
    newest = blocks[-_LOOKED_AT:]
    levels, errors = newest.levels(i), newest.errors(i)
    known = np.flatnonzero(np.isfinite(levels))
    places = known + (len(blocks) - len(newest))
    return _Levels(places.tolist(), levels[known].tolist(), errors[known].tolist())


def may_pay(blocks: BlockHistory, i: int) -> Flags:
    """Return at which blocks `trade_off` may find a figure, or one that it has found may last."""
    levels = blocks.levels(i)
    low, high = (reached[:, i] for reached in blocks.reach())
    floor = np.where((low >= -1.0) & (low < 0.0) & (high <= 1.0), -1.0, 0.0)
    found: Flags = last_known(levels) - floor <= _BACK * (high - floor)
    return found


def _over_windows(
    blocks: BlockHistory,
    known: _Levels,
    size: int,
    least: float,
    reached: tuple[float, float],
) -> tuple[int, int, float, float, float] | None:
    """Compare the newest window of a figure with its best one; return the facts of `TradeOff`.

    Args:
        blocks: All blocks so far.
        known: The figure's levels.
        size: Levels a window.
        least: Fall that is beyond noise.
        reached: The figure's lowest and highest level over all blocks.
    """
    places, levels, _ = known
    starts = range(len(levels) - 2 * size + 1)
    means = [fmean(levels[start : start + size]) for start in starts]
    now = fmean(levels[-size:])
    best = max(means)
    at = means.index(best)
    if best - now < least or not _is_low(now, best, min(means[: at + 1]), reached):
        return None
    reward = _against_reward(blocks, places[at : at + size], size)
    if reward is None:
        return None
    near = best - _NEAR * (best - now)
    since = [
        place
        for place, level in zip(places[at:-size], levels[at:-size], strict=True)
        if level >= near
    ][-1]
    return (
        blocks[since].last,
        blocks[places[at + size - 1]].last,
        best,
        now,
        reward,
    )


def _is_low(
    now: float, best: float, before: float, reached: tuple[float, float]
) -> bool:
    """Return whether little is left of the best, and of the gain before it on scales below 0."""
    floor = _floor(reached)
    left = _BOTTOM if reached[1] <= 0 else _LEFT
    gained = best - before if reached[0] < floor else 0.0
    if best <= floor or now - floor > left * (best - floor):
        return False
    return best - now >= (1 - _LEFT) * gained


def _floor(reached: tuple[float, float]) -> float:
    """Return where the scale of a figure ends below: 0, or −1 where it reaches below 0 and stays
    within −1 and 1.
    """
    low, high = reached
    if -1.0 <= low < 0.0 and high <= 1.0:
        return -1.0
    return 0.0


def _error(known: _Levels) -> float:
    """Return the usual error of a level; where blocks hold single values, by the differences of
    neighbours.
    """
    errors = finite(known.errors)
    if errors:
        return math.sqrt(fmean(error * error for error in errors))
    steps = [abs(after - before) for before, after in pairwise(known.levels)]
    return 1.4826 * median(steps) / math.sqrt(2)


def _against_reward(
    blocks: BlockHistory, best: Sequence[int], size: int
) -> float | None:
    """Return the reward at the places of a figure's best, None where it has not surely risen."""
    rewards = blocks.levels(0)
    before = finite(rewards[best].tolist())
    after = finite(rewards[-size:].tolist())
    errors = finite(blocks[-_LOOKED_AT:].errors(0).tolist())
    if not before or not after or not errors:
        return None
    then = fmean(before)
    now = fmean(after)
    usual_error = math.sqrt(fmean(error * error for error in errors))
    error_of_rise = usual_error * math.sqrt(1 / len(before) + 1 / len(after))
    size_of_reward = max(abs(then), abs(now))
    if now - then < max(_SURE_RISE * error_of_rise, _RISE * size_of_reward):
        return None
    return then
