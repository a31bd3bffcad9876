"""A figure that falls while the reward rises: the price of a higher reward."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.health.blocks import lately, noise
from verl_tui.health.conditions.windows import rolling
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.windows import Flags, Numbers

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
_ROUNDED = 1e-9
"""Share of a figure by which sums may differ in their last digits."""
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

    def lasts(self, blocks: BlockHistory) -> bool:
        """Return whether the figure is still down and the reward still above its level then."""
        now = blocks[-1].levels[self.column]
        reward = blocks[-1].levels[0]
        floor = _floor(*blocks.reach(self.column))
        if math.isnan(now) or math.isnan(reward):
            return True
        return now - floor <= _BACK * (self.best - floor) and reward > self.reward_then


def trade_off(blocks: BlockHistory, i: int) -> TradeOff | None:
    """Return how far a figure has fallen while the reward rose, None where it has not, or the
    reward has not.

    Args:
        blocks: All blocks so far; the reward is in their first column.
        i: Column of the figure.
    """
    low, high = blocks.reach(i)
    floor = _floor(low, high)
    # Most figures are near their best, which is seen at once; of a scale that ends somewhere below
    # 0 no share is known.
    fallen = blocks.levels(i)[-1] - floor <= _LEFT * (high - floor)
    if high <= floor or not fallen:
        return None
    newest = blocks[-_LOOKED_AT:]
    places = np.flatnonzero(np.isfinite(newest.levels(i)))
    levels = newest.levels(i)[places].tolist()
    if len(levels) < _FEWEST:
        return None
    # Where blocks hold single values, errors are known by the differences of neighbours.
    error = _mean_error(newest, i)
    if error is None:
        error = noise(levels)
    places += len(blocks) - len(newest)
    for size in _WINDOWS:
        least = _SURE * error * math.sqrt(2 / size)
        found = None
        if len(levels) >= 2 * size:
            found = _over_windows(blocks, i, places.tolist(), levels, size, least)
        if found is not None:
            return found
    return None


def may_pay(blocks: BlockHistory, i: int) -> Flags:
    """Return at which blocks `trade_off` may find a figure, found at once for all, with room for
    rounding.
    """
    levels, low, high = blocks.levels(i), blocks.lowest(i), blocks.highest(i)
    floor = _floor(low, high)
    room = _ROUNDED * (abs(low) + abs(high))
    error = _mean_errors(blocks.errors(i))
    known = np.isfinite(levels)
    now = np.full(len(levels), math.nan)
    found = np.zeros(len(levels), bool)
    for size in _WINDOWS:
        now[known] = rolling(levels[known], size) / size
        best = -lately(-now, _LOOKED_AT)
        too_high = now - floor > _LEFT * (best - floor) + room
        found |= ~(too_high | (best - now < _SURE * error * math.sqrt(2 / size) - room))
    found &= (high > floor) & (levels - floor <= _LEFT * (high - floor))
    return found


def _mean_errors(errors: Numbers) -> Numbers:
    """Return the usual error of the newest levels at each block, nan where it is unknown."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.append(np.full(_LOOKED_AT - 1, math.nan), errors * errors)
        known = np.isfinite(squares)
        total = rolling(np.where(known, squares, 0.0), _LOOKED_AT)
        found: Numbers = np.sqrt(total / rolling(known, _LOOKED_AT))
    return found[_LOOKED_AT - 1 :]


def _over_windows(
    blocks: BlockHistory,
    i: int,
    places: Sequence[int],
    levels: Sequence[float],
    size: int,
    least: float,
) -> TradeOff | None:
    """Compare the newest window of a figure with its best one.

    Args:
        blocks: All blocks so far.
        i: Column of the figure.
        places: The newest blocks in which it is known.
        levels: Its levels there.
        size: Levels a window.
        least: Fall that is beyond noise.
    """
    reach = blocks.reach(i)
    now = fmean(levels[-size:])
    starts = range(len(levels) - 2 * size + 1)
    means = [fmean(levels[start : start + size]) for start in starts]
    best = max(means)
    at = means.index(best)
    if best - now < least or not _is_low(now, best, min(means[: at + 1]), reach):
        return None
    reward = _against_reward(blocks, places[at : at + size], size)
    if reward is None:
        return None
    near = best - _NEAR * (best - now)
    since = max(places[k] for k in range(at, len(levels) - size) if levels[k] >= near)
    best_step = blocks[places[at + size - 1]].last
    return TradeOff(i, blocks[since].last, best_step, best, now, reward)


def _is_low(now: float, best: float, before: float, reach: tuple[float, float]) -> bool:
    """Return whether little is left of the best, and of the gain before it on scales below 0."""
    low, high = reach
    floor = _floor(low, high)
    left = _BOTTOM if high <= 0 else _LEFT
    gained = best - before if low < floor else 0.0
    if best <= floor or now - floor > left * (best - floor):
        return False
    return best - now >= (1 - _LEFT) * gained


def _floor(low: Any, high: Any) -> Any:
    """Return where the scale of a figure ends below: 0, or −1 where it reaches below 0 and stays
    within −1 and 1.
    """
    return -1.0 * ((low >= -1.0) & (low < 0.0) & (high <= 1.0))


def _mean_error(blocks: BlockHistory, i: int) -> float | None:
    """Return the usual error of a metric's level, None where it is unknown."""
    errors = finite(blocks.errors(i).tolist())
    return math.sqrt(fmean(error * error for error in errors)) if errors else None


def _against_reward(
    blocks: BlockHistory, best: Sequence[int], size: int
) -> float | None:
    """Return the reward at the places of a figure's best, None where it has not surely risen."""
    rewards = blocks.levels(0)
    before = finite(rewards[best].tolist())
    after = finite(rewards[-size:].tolist())
    error = _mean_error(blocks[-_LOOKED_AT:], 0)
    if not before or not after or error is None:
        return None
    then, now = fmean(before), fmean(after)
    error *= math.sqrt(1 / len(before) + 1 / len(after))
    least = max(_SURE_RISE * error, _RISE * max(abs(then), abs(now)))
    return then if now - then >= least else None
