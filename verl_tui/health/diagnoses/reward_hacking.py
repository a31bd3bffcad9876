"""The training reward rises at the cost of one of its parts, or while validation or samples get
worse.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.health.blocks import following, lately, noise
from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import (
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
)
from verl_tui.health.finding import filled
from verl_tui.health.reward import (
    components,
    gaining_components,
    has_learnt,
    right_or_wrong,
    weights,
)
from verl_tui.indicators import validation_keys
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_LAGS = (10, 20, 40)
"""Blocks over which reward and validation are compared: 100 to 400 points."""
_RISE_T = 5.0
_RISE = 0.1
"""The reward must have gained a tenth of its range so far at least, beyond any doubt: heuristic."""
_VALIDATIONS = 5
"""Blocks with validations without which their course is not known: heuristic."""
_FALL_T = -2.5
_FALL = 0.05
"""A fall of validation by a twentieth of its level counts as one: heuristic."""
_SHARE = 0.25
"""Validation stands still if it surely gained less than a quarter of the reward's gain: heuristic.
"""
_SURE = 3.0
"""Standard errors that make it sure; many, as every block is tested."""
_FOLLOW_T, _FOLLOW = 2.0, 0.02
"""A validation score that has likely gained a fiftieth of its level follows the reward."""
_MOST_VALIDATIONS, _MOST_COMPONENTS = 6, 12
_SCORED = ("samples/score", "samples/score_std")
_REPEATS = 0.1
_POORER = 0.15
"""Repetition up by a tenth, or diversity down by so much of its level, beyond doubt: heuristic."""


_FELL = "validation fell: {best} at step {best_step}, now {now}"
_STOOD_STILL = "validation stood still ({first} at step {first_step}, {now} now)"
_SAMPLE_SIGNS = (
    (1, "samples repeat themselves more: {first} before, {now} now", 1),
    (2, "samples have become more alike: {first} before, {now} now", -1),
)
"""Column of a figure of samples, its sign in words, and the way in which it gets worse."""


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
_SURE_LOSS, _SURE_RISE = 5.0, 3.0
"""Standard errors of the fall, which is searched for in many places, and of the reward's rise
since: heuristic.
"""
_LEAST_RISE = 0.05
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


class _Columns(NamedTuple):
    """The columns after the reward and two figures of samples."""

    validations: int
    """Number of validation scores, which come first; then the reward's parts, then mean and spread
    of the samples' scores.
    """
    weights: tuple[float | None, ...]
    """Weight of each part, None if it is unknown."""


@diagnosis("reward-hacking", "reward")
def reward_hacking(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find a reward that goes up, and a part of it down; or validation down or level; or samples
    that repeat or resemble each other.
    """
    reward = context.indicators["reward"]
    validations = validation_keys(context.run.keys)[:_MOST_VALIDATIONS]
    samples = (
        context.names.get("samples/repetition"),
        context.names.get("samples/distinct_2"),
    )
    parts = gaining_components(context.run, reward)[:_MOST_COMPONENTS]
    if not validations and not any(samples) and not parts:
        return "the log has neither validation nor samples nor parts of the reward"
    known = weights(context.run, components(context.run.keys, reward))
    columns = _Columns(len(validations), tuple(known.get(key) for key in parts))
    scores = map(context.names.get, _SCORED)
    return InBlocks((reward, *samples, *validations, *parts, *scores), _find, columns)


def _find(blocks: Blocks, of: InBlocks) -> Onsets:
    compared = [one for lag in _LAGS for one in _compare(blocks, of, lag)]
    costs = [*_costs(blocks, range(3, len(of.keys) - len(_SCORED)))]
    rises = np.zeros(len(blocks), bool)
    for one in compared:
        rises[one.places] = True
    shows = rises.copy()
    for start, stop, _ in costs:
        shows[start:stop] = True
    # A single block may be chance.
    begins = shows & np.append(False, shows)[: len(shows)]
    begins[: of.needs] = False

    def told(at: int, since: int) -> Told:  # noqa: ARG001 - none names it
        paid = [one for one in costs if one[0] <= at][-1:]
        if not paid or (rises[at] and paid[0][1] <= at):
            return _compared(blocks, of, compared, at)
        return _paid(blocks, of, paid[0][2], at)

    def sign(at: int) -> Onset:
        paid = [one.since for start, stop, one in costs if start <= at < stop]
        since = paid or [_compared(blocks, of, compared, at).since or 0]
        return Onset(since[0], shows, told)

    return Onsets(begins, sign)


def _costs(blocks: Blocks, columns: range) -> Iterator[tuple[int, int, TradeOff]]:
    """Yield the figures at whose cost the reward rises, one after the other, each with the block at
    which that begins, and the one behind its last.
    """
    pays = np.zeros(len(blocks), bool)
    for i in columns:
        pays |= _may_pay(blocks, i)
    stop = 0
    for at in np.flatnonzero(pays).tolist():
        known = blocks[: at + 1]
        tried = (_trade_off(known, i) for i in columns if at >= stop)
        found = next(filter(None, tried), None)
        if found is not None:
            gone = np.flatnonzero(~found.lasts(blocks)[at + 1 :])
            stop = at + 1 + int(gone[0]) if len(gone) else len(blocks)
            yield at, stop, found


def _compared(
    blocks: Blocks, of: InBlocks, compared: Sequence[_Comparison], at: int
) -> Told:
    """Return the first comparison that shows at a block."""
    lag, i, words, _ = next(one for one in compared if at in one.places)
    stretch = blocks[at + 1 - lag : at + 1]
    is_known = ~np.isnan(stretch.levels[i])
    levels, steps = stretch.levels[i][is_known], stretch.last[is_known]
    best, begin = int(levels.argmax()), int(stretch.last[0])
    best_step = int(steps[best])
    facts = {
        "best": float(levels[best]),
        "best_step": best_step,
        "first": float(levels[0]),
        "first_step": int(steps[0]),
        "now": float(levels[-1]),
    }
    reward = stretch.known(0)
    sign = filled(words, facts)
    return Told(
        {"begun": reward[0], "now": reward[-1], "begin": begin, "sign": sign},
        since=best_step if words == _FELL else begin,
        key=of.keys[i],
    )


def _paid(blocks: Blocks, of: InBlocks, paid: TradeOff, at: int) -> Told:
    """Return what the reward rises at the cost of."""
    now = float(blocks.levels[paid.column][at])
    part = paid.column - 3 - of.of.validations
    held_out = part >= 0 and of.of.weights[part] == 0
    return Told(
        {
            "best": paid.best,
            "best_step": paid.best_step,
            "found": paid.now,
            "now": now if math.isfinite(now) else paid.now,
            "weight": " (weight 0)" if held_out else "",
            "reward_then": paid.reward_then,
        },
        case="cost",
        key=of.keys[paid.column],
    )


class _Comparison(NamedTuple):
    """A sign that a rising reward is no improvement."""

    lag: int
    """Blocks over which it shows."""
    column: int
    words: str
    """It in words, with blanks for the best, the first and the newest level and their steps."""
    places: Places
    """Where it shows."""


def _compare(blocks: Blocks, of: InBlocks, lag: int) -> Iterator[_Comparison]:
    """Yield the signs over so many blocks, the plainest first."""
    every = np.arange(lag - 1, len(blocks))
    low, high = blocks.lowest[0][every], blocks.highest[0][every]
    _, gain, t = blocks.slopes(0, every, lag)
    least = _RISE * np.maximum(high - low, abs(high + low) / 2)
    rises = (t >= _RISE_T) & (gain >= least)
    validations = range(3, 3 + of.of.validations)
    # Where any validation follows, the reward stands for something.
    for i in validations:
        rises &= ~blocks.moves(i, every, lag, _FOLLOW_T, _FOLLOW)
    places = every[rises]
    # Only where both are shares a gain of the reward measures that of validation.
    gain = np.where((low >= 0) & (high <= 1), gain, np.nan)[rises]
    for i in validations:
        counts, change, t = blocks.slopes(i, places, lag)
        known = counts >= _VALIDATIONS
        fell = known & blocks.moves(i, places, lag, _FALL_T, _FALL)
        yield _Comparison(lag, i, _FELL, places[fell])
        size = blocks.largest(i, places, lag)
        least = np.where((size <= 1) & ~np.isnan(gain), _SHARE * gain, _FALL * size)
        is_error = np.isfinite(t) & (t != 0)
        error = np.divide(change, t, out=np.zeros(len(t)), where=is_error)
        still = known & ~fell & (change + _SURE * abs(error) < least)
        yield _Comparison(lag, i, _STOOD_STILL, places[still])
    for i, words, way in _SAMPLE_SIGNS:
        counts, change, t = blocks.slopes(i, places, lag)
        first = following(blocks.levels[i])[places + 1 - lag]
        worse = way * change >= (_REPEATS if way > 0 else _POORER * abs(first))
        worse &= way * t >= _RISE_T
        found = places[worse & (counts >= _VALIDATIONS)].tolist()
        kept = [at for at in found if not _right(blocks[at + 1 - lag : at + 1])]
        yield _Comparison(lag, i, words, np.array(kept, np.int64))


def _right(stretch: Blocks) -> bool:
    """Return whether samples have become right."""
    scores, spreads = (stretch.levels[i].tolist() for i in (-2, -1))
    return right_or_wrong(scores, spreads) and has_learnt(scores)


class TradeOff(NamedTuple):
    """A figure that pays for the rise of the reward."""

    column: int
    since: int
    """Step at which it began to fall."""
    best_step: int
    best: float
    now: float
    reward_then: float

    def lasts(self, blocks: Blocks) -> Flags:
        """Return where the figure is still down and the reward still above its level then; where
        either is unknown, too.
        """
        reward, now = blocks.levels[0], blocks.levels[self.column]
        floor = _floor(blocks.lowest[self.column], blocks.highest[self.column])
        found: Flags = np.isnan(now) | np.isnan(reward)
        found |= ~(
            (now - floor > _BACK * (self.best - floor)) | (reward <= self.reward_then)
        )
        return found


def _trade_off(blocks: Blocks, i: int) -> TradeOff | None:
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
    fallen = blocks.levels[i][-1] - floor <= _LEFT * (high - floor)
    if high <= floor or not fallen:
        return None
    newest = blocks[-_LOOKED_AT:]
    places = np.flatnonzero(np.isfinite(newest.levels[i]))
    levels = newest.levels[i][places].tolist()
    if len(levels) < _FEWEST:
        return None
    # Where blocks hold single values, errors are known by the differences of neighbours.
    error = _mean_error(newest, i)
    if error is None:
        error = noise(levels)
    places += len(blocks) - len(newest)
    for size in _WINDOWS:
        least = _SURE_LOSS * error * math.sqrt(2 / size)
        found = None
        if len(levels) >= 2 * size:
            found = _over_windows(blocks, i, places.tolist(), levels, size, least)
        if found is not None:
            return found
    return None


def _may_pay(blocks: Blocks, i: int) -> Flags:
    """Return at which blocks `_trade_off` may find a figure, found at once for all, with room for
    rounding.
    """
    levels, low, high = blocks.levels[i], blocks.lowest[i], blocks.highest[i]
    floor = _floor(low, high)
    room = _ROUNDED * (abs(low) + abs(high))
    error = _mean_errors(blocks.errors[i])
    known = np.isfinite(levels)
    now = np.full(len(levels), math.nan)
    found = np.zeros(len(levels), bool)
    for size in _WINDOWS:
        now[known] = rolling(levels[known], size) / size
        best = -lately(-now, _LOOKED_AT)
        too_high = now - floor > _LEFT * (best - floor) + room
        least = _SURE_LOSS * error * math.sqrt(2 / size) - room
        found |= ~(too_high | (best - now < least))
    found &= (high > floor) & (levels - floor <= _LEFT * (high - floor))
    least = lately(blocks.levels[0], _LOOKED_AT)
    most = -lately(-blocks.levels[0], _WINDOWS[-1])
    return found & (most - least >= _LEAST_RISE * np.maximum(0.0, least))


def _mean_errors(errors: Numbers) -> Numbers:
    """Return the usual error of the newest levels at each block, nan where it is unknown."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.append(np.full(_LOOKED_AT - 1, math.nan), errors * errors)
        known = np.isfinite(squares)
        total = rolling(np.where(known, squares, 0.0), _LOOKED_AT)
        found: Numbers = np.sqrt(total / rolling(known, _LOOKED_AT))
    return found[_LOOKED_AT - 1 :]


def _over_windows(
    blocks: Blocks,
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
    best_step = int(blocks.last[places[at + size - 1]])
    return TradeOff(i, int(blocks.last[since]), best_step, best, now, reward)


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


def _mean_error(blocks: Blocks, i: int) -> float | None:
    """Return the usual error of a metric's level, None where it is unknown."""
    errors = finite(blocks.errors[i].tolist())
    return math.sqrt(fmean(error * error for error in errors)) if errors else None


def _against_reward(blocks: Blocks, best: Sequence[int], size: int) -> float | None:
    """Return the reward at the places of a figure's best, None where it has not surely risen."""
    rewards = blocks.levels[0]
    before = finite(rewards[best].tolist())
    after = finite(rewards[-size:].tolist())
    error = _mean_error(blocks[-_LOOKED_AT:], 0)
    if not before or not after or error is None:
        return None
    then, now = fmean(before), fmean(after)
    error *= math.sqrt(1 / len(before) + 1 / len(after))
    least = max(_SURE_RISE * error, _LEAST_RISE * max(abs(then), abs(now)))
    return then if now - then >= least else None
