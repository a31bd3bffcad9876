"""The training reward rises at the cost of one of its parts, or while validation or samples get
worse.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.components import components, gaining_components, weights
from verl_tui.health.conditions.trend import trends
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
)
from verl_tui.health.finding import number
from verl_tui.health.learnt import has_learnt, right_or_wrong
from verl_tui.health.trade_off import TradeOff, may_pay, trade_off
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.trend import Trend
    from verl_tui.health.conditions.windows import Flags
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


class _Sign(NamedTuple):
    words: str
    key: str | None
    since: int


class _Columns(NamedTuple):
    """The columns after the reward and two figures of samples."""

    validations: int
    """Number of validation scores, which come first; then the reward's parts, then mean and spread
    of the samples' scores.
    """
    weights: tuple[float | None, ...]
    """Weight of each part, None if it is unknown."""


class RewardHacking(BlockDiagnosis):
    """Reward up, and a part of it down; or validation down or level; or samples that repeat or
    resemble each other.
    """

    RULE = "reward-hacking"
    requires: ClassVar[tuple[str, ...]] = ("reward",)
    _seen: int = -1
    """Number of blocks when one last showed it: a single one may be chance."""
    _cost: TradeOff | None = None
    """The figure at whose cost the reward rises, while that lasts."""

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return the reward, figures of samples, validation scores and the reward's parts."""
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
        scores = map(context.names.get, _SCORED)
        columns = _Columns(len(validations), tuple(known.get(key) for key in parts))
        keys = (reward, *samples, *validations, *parts, *scores)
        return BlockInputs(keys, columns)

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Look for what the reward costs, then over several stretches; two blocks in a row must
        show it.
        """
        finding = self._costs(blocks) or self._compare(blocks)
        if finding is None:
            return None
        before, self._seen = self._seen, len(blocks)
        if before == len(blocks) - 1 or self.open is not None:
            return finding
        return None

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where the reward rises, with room for rounding, or a figure has fallen; where the
        reward has gaps, too.
        """
        found = np.zeros(len(blocks), bool)
        for lag in _LAGS:
            ends = np.arange(lag - 1, len(blocks))
            found[ends] |= ~(trends(blocks.levels(0), lag, ends)[1] < 0.999 * _RISE_T)
        for i in self._costly:
            found |= may_pay(blocks, i)
        return found

    @property
    def may_last(self) -> bool:
        """True while the reward rises at the cost of a figure: that may have stopped falling."""
        return self._cost is not None

    def forget(self) -> None:
        """Start over."""
        super().forget()
        self._seen = -1
        self._cost = None

    @property
    def _costly(self) -> range:
        """The columns that a reward may rise at the cost of."""
        return range(3, len(self.keys) - len(_SCORED))

    def _costs(self, blocks: BlockHistory) -> BlockFinding | None:
        """Return what the reward rises at the cost of."""
        if self._cost is None or not self._cost.lasts(blocks):
            found = (trade_off(blocks, i) for i in self._costly)
            self._cost = next(filter(None, found), None)
        cost = self._cost
        if cost is None:
            return None
        now = blocks[-1].levels[cost.column]
        part = cost.column - 3 - self.depends_on.validations
        held_out = part >= 0 and self.depends_on.weights[part] == 0
        return self.told(
            cost.since,
            self.keys[cost.column],
            case="cost",
            best=cost.best,
            best_step=cost.best_step,
            found=cost.now,
            now=now if math.isfinite(now) else cost.now,
            weight=" (weight 0)" if held_out else "",
            reward_then=cost.reward_then,
        )

    def _compare(self, blocks: BlockHistory) -> BlockFinding | None:
        """Return the first sign that a rising reward is no improvement, None without one."""
        for lag in _LAGS:
            stretch = blocks[-lag:]
            sign = self._sign(stretch) if len(stretch) == lag else None
            if sign is not None:
                reward = stretch.known(0)
                return self.told(
                    sign.since,
                    sign.key,
                    begun=reward[0],
                    now=reward[-1],
                    begin=stretch[0].last,
                    sign=sign.words,
                )
        return None

    def _sign(self, stretch: BlockHistory) -> _Sign | None:
        low, high = stretch.reach(0)
        line = stretch.course(0)
        size = max(high - low, abs(high + low) / 2)
        if line.t < _RISE_T or line.change < _RISE * size:
            return None
        validations = range(3, 3 + self.depends_on.validations)
        # Where any validation follows, the reward stands for something.
        if any(stretch.moves(i, _FOLLOW_T, _FOLLOW) for i in validations):
            return None
        gain = line.change if low >= 0.0 and high <= 1.0 else None
        signs = (_validation(stretch, i, gain, self.keys[i]) for i in validations)
        return next(filter(None, signs), None) or _samples(stretch, self.keys)


def _validation(
    stretch: BlockHistory, i: int, gain: float | None, key: str | None
) -> _Sign | None:
    """Return the sign that validation falls, or surely does not follow the reward; else None.

    Args:
        stretch: The blocks to look at.
        i: Column of the validation score.
        gain: What the reward has gained, where it is on validation's scale; else None.
        key: The score's key.
    """
    points = [
        (block.last, block.levels[i])
        for block in stretch
        if not math.isnan(block.levels[i])
    ]
    if len(points) < _VALIDATIONS:
        return None
    line = stretch.course(i)
    begin, first = points[0]
    _, now = points[-1]
    size = max(abs(value) for _, value in points)
    if stretch.moves(i, _FALL_T, _FALL):
        step, best = max(points, key=itemgetter(1))
        words = f"validation fell: {number(best)} at step {step}, now {number(now)}"
        return _Sign(words, key, step)
    # On another scale than the reward's it is measured by its own size.
    least = _SHARE * gain if gain is not None and size <= 1.0 else _FALL * size
    if line.change + _SURE * _error(line) < least:
        words = f"validation stood still ({number(first)} at step {begin}, {number(now)} now)"
        return _Sign(words, key, stretch[0].last)
    return None


def _error(line: Trend) -> float:
    """Return the standard error of a trend's change."""
    if line.t and math.isfinite(line.t):
        return abs(line.change / line.t)
    return 0.0


def _samples(stretch: BlockHistory, keys: Sequence[str | None]) -> _Sign | None:
    """Return the sign that samples repeat or resemble each other more; None where they do not, or
    where they have become right.
    """
    scores, spreads = (stretch.levels(i).tolist() for i in (-2, -1))
    if right_or_wrong(scores, spreads) and has_learnt(scores):
        return None
    for i, words, way in _SAMPLE_SIGNS:
        values, line = stretch.known(i), stretch.course(i)
        least = _REPEATS if way > 0 else _POORER * abs(values[0] if values else 0.0)
        is_worse = way * line.change >= least and way * line.t >= _RISE_T
        if len(values) >= _VALIDATIONS and is_worse:
            change = f"{number(values[0])} before, {number(values[-1])} now"
            return _Sign(f"{words}: {change}", keys[i], stretch[0].last)
    return None


_SAMPLE_SIGNS = (
    (1, "samples repeat themselves more", 1),
    (2, "samples have become more alike", -1),
)
"""Column of a figure of samples, its sign in words, and the way in which it gets worse."""
