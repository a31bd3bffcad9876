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


class _BlockLevel(NamedTuple):
    at: int
    """Place of its block."""
    level: float


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
    newest = blocks[-1].levels[i]
    # Most figures are near their best, which is seen at once; of a scale that ends somewhere below
    # 0 no share is known.
    if reached[1] <= floor or not newest - floor <= _LEFT * (reached[1] - floor):
        return None
    newest_levels = blocks[-_LOOKED_AT:].levels(i).tolist()
    placed = enumerate(newest_levels, len(blocks) - len(newest_levels))
    points = [_BlockLevel(at, level) for at, level in placed if math.isfinite(level)]
    if len(points) < _FEWEST:
        return None
    error = _error(blocks, points, i)
    for size in _WINDOWS:
        if len(points) < 2 * size:
            break
        least = _SURE * error * math.sqrt(2 / size)
        found = _over_windows(blocks, points, size, least, reached)
        if found is not None:
            return TradeOff(i, *found)
    return None


def may_pay(blocks: BlockHistory, i: int) -> Flags:
    """Return at which blocks `trade_off` may find a figure, or one that it has found may last."""
    levels = blocks.levels(i)
    low, high = (reached[:, i] for reached in blocks.reach())
    floor = np.where((low >= -1.0) & (low < 0.0) & (high <= 1.0), -1.0, 0.0)
    found: Flags = last_known(levels) - floor <= _BACK * (high - floor)
    return found


def _over_windows(
    blocks: BlockHistory,
    points: Sequence[_BlockLevel],
    size: int,
    least: float,
    reached: tuple[float, float],
) -> tuple[int, int, float, float, float] | None:
    """Compare the newest window of a figure with its best one; return the facts of `TradeOff`.

    Args:
        blocks: All blocks so far.
        points: The figure's levels, oldest first.
        size: Levels a window.
        least: Fall that is beyond noise.
        reached: The figure's lowest and highest level over all blocks.
    """
    levels = [point.level for point in points]
    starts = range(len(levels) - 2 * size + 1)
    means = [fmean(levels[start : start + size]) for start in starts]
    now = fmean(levels[-size:])
    best = max(means)
    at = means.index(best)
    if best - now < least or not _is_low(now, best, min(means[: at + 1]), reached):
        return None
    reward = _against_reward(blocks, points[at : at + size], size)
    if reward is None:
        return None
    near = best - _NEAR * (best - now)
    since = [point.at for point in points[at:-size] if point.level >= near][-1]
    return (
        blocks[since].last,
        blocks[points[at + size - 1].at].last,
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


def _error(blocks: BlockHistory, points: Sequence[_BlockLevel], i: int) -> float:
    """Return the usual error of a level; where blocks hold single values, by the differences of
    neighbours.
    """
    first = points[0].at
    errors = blocks[first:].errors(i).tolist()
    known = finite(errors[point.at - first] for point in points)
    if known:
        return math.sqrt(fmean(error * error for error in known))
    steps = [abs(after.level - before.level) for before, after in pairwise(points)]
    return 1.4826 * median(steps) / math.sqrt(2)


def _against_reward(
    blocks: BlockHistory, best: Sequence[_BlockLevel], size: int
) -> float | None:
    """Return the reward where a figure was at its best, None where it has not surely risen."""
    first = best[0].at
    rewards = blocks[first:].levels(0).tolist()
    before = finite(rewards[point.at - first] for point in best)
    after = finite(rewards[-size:])
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
