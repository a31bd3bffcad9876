"""Responses that leave their length: they shrink to a small part of it and no score gains, or grow
to the limit, more and more are cut, and the reward falls.
"""

from __future__ import annotations

import math
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.blocks import last_known, lately, noise
from verl_tui.health.components import gaining_components
from verl_tui.health.conditions.trend import trends
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    went,
)
from verl_tui.health.finding import number
from verl_tui.health.learnt import is_solved
from verl_tui.health.limits import known_response_limit, v1_trainer
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Block, BlockHistory
    from verl_tui.health.conditions.windows import Flags
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


class _Course(NamedTuple):
    """Levels of a score before and after responses shrank."""

    column: int
    first: float
    """Its level at the run's beginning."""
    before: float
    """Its level before responses shrank."""
    now: float
    error: float
    """Standard error of a difference between two of them."""

    @property
    def has_gained(self) -> bool:
        """Return whether it lies above its beginning."""
        gain = self.now - self.first
        size = max(abs(self.first), abs(self.now))
        return gain > 0 and gain >= max(_GAIN * size, _SURE_GAIN * self.error)

    @property
    def has_fallen(self) -> bool:
        """Return whether it lost much as responses shrank."""
        loss = self.before - self.now
        size = max(abs(self.before), abs(self.now))
        return loss > 0 and loss >= max(_LOSS * size, _SURE_LOSS * self.error)


class LengthCollapse(BlockDiagnosis):
    """Length is down to a quarter of its beginning as a score falls, or to less while none
    gains.
    """

    RULE = "length-collapse"
    requires: ClassVar[tuple[str, ...]] = ("response_length", "reward")
    size: ClassVar[int] = 5
    needs: ClassVar[int] = _OPENING

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at the reward, the length, and at all scores that short responses may gain or
        lose.
        """
        length, reward = map(context.indicators.__getitem__, self.requires)
        validations = validation_keys(context.run.keys)[:_MOST]
        parts = gaining_components(context.run, reward)[:_MOST]
        return BlockInputs((reward, length, *validations, *parts), len(validations))

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where responses are short enough."""
        length = blocks.levels(_LENGTH)
        found: Flags = length <= _LEFT * np.fmax.reduce(length[:_OPENING])
        return found

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Compare the newest blocks with the run's beginning."""
        opening = max(blocks[:_OPENING].known(_LENGTH), default=0.0)
        newest = blocks[-_LASTS:].known(_LENGTH)
        if opening < _TINY or len(newest) < _LASTS:
            return None
        left = max(newest) / opening
        is_new = self.newest is None
        if left > (_LEFT if is_new else _BACK):
            return None
        is_long = blocks.levels(_LENGTH) >= _NEAR * opening
        long = int(np.flatnonzero(is_long).max(initial=0))
        scores = (_REWARD, *range(_SCORES, len(self.keys)))
        courses = [*filter(None, (_course(blocks, i, long) for i in scores))]
        fallen = next(filter(attrgetter("has_fallen"), courses), None)
        is_much = fallen is not None or not is_new or left <= _LITTLE
        if not is_much or self._is_explained(blocks, courses, fallen):
            return None
        return self._told(blocks, self.began(blocks[long].last), opening, fallen)

    def _told(
        self, blocks: BlockHistory, since: int, opening: float, fallen: _Course | None
    ) -> BlockFinding:
        now = blocks[-_LASTS:].known(_LENGTH)[-1]
        fell, beside = "no score gained", []
        if fallen is not None:
            score = self.keys[fallen.column]
            way = f"from {number(fallen.before)} to {number(fallen.now)}"
            fell = f"{score} fell {way} with their length"
            beside = [f"{score}: {way} since step {since}"]
        return self.told(
            since,
            self.keys[_LENGTH],
            beside,
            opening=opening,
            now=now,
            left=now / opening,
            fell=fell,
        )

    def _is_explained(
        self, blocks: BlockHistory, courses: Sequence[_Course], fallen: _Course | None
    ) -> bool:
        """Return whether short responses serve the task: validation gains, or another score while
        none falls.
        """
        validations = range(_SCORES, _SCORES + self.depends_on)
        gained = [one for one in courses if one.has_gained]
        if any(one.column in validations and not one.has_fallen for one in gained):
            return True
        reach = blocks.reach(_REWARD)
        return fallen is None and (
            bool(gained)
            or any(
                one.column == _REWARD and is_solved(one.now, *reach) for one in courses
            )
        )


def _course(blocks: BlockHistory, i: int, long: int) -> _Course | None:
    """Return how a score went, None where too little of it is known before responses shrank, or
    since.

    Args:
        blocks: All blocks so far.
        i: Column of the score.
        long: Place of the last block in which responses were still long.
    """
    end = long + 1
    first = blocks[: min(end, _LOOKED_AT)].known(i)[:_LEVEL]
    before = blocks[max(0, end - _LOOKED_AT) : end].known(i)[-_LEVEL:]
    since = blocks[max(end, len(blocks) - _LOOKED_AT) :].known(i)[-_LEVEL:]
    newest = blocks[-_LOOKED_AT:].known(i)
    if not first or not before or not since or len(newest) <= _LEVEL:
        return None
    error = noise(newest) * math.sqrt(1 / min(len(first), len(before)) + 1 / len(since))
    return _Course(i, fmean(first), fmean(before), fmean(since), error)


class LengthExplosion(BlockDiagnosis):
    """Length climbs to the limit, the truncated share climbs, the reward falls."""

    RULE = "length-explosion"
    requires: ClassVar[tuple[str, ...]] = ("response_length", "reward")
    needs: ClassVar[int] = 5

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return length, truncated share and reward, and the limit if it is known."""
        length, reward = map(context.indicators.__getitem__, self.requires)
        # The v1 trainer's share is that of the longest response, not of the limit.
        cut = None
        if not v1_trainer(context.run):
            cut = context.indicators.get("truncated_share")
        limit = known_response_limit(context.run, context.guide)
        if cut is None and limit is None:
            return "neither a limit of response length nor a truncated share is known"
        return BlockInputs((length, reward, cut), limit and limit.value)

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where responses are long enough, and have become longer, with room for rounding;
        where their length has gaps, too.
        """
        length = blocks.levels(0)
        climbs = np.zeros(len(blocks), bool)
        for lag in _LAGS:
            ends = np.arange(lag - 1, len(blocks))
            climbs[ends] |= ~(trends(length, lag, ends)[1] < 0.999 * _TREND_T)
        return climbs & (last_known(length) >= _CLIMB * lately(length, _LAGS[-1]))

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Compare the newest blocks with earlier ones."""
        if self.newest is not None and self._stays(blocks[-1]):
            return self._told(blocks.since(self.newest.since))
        for lag in _LAGS:
            stretch = blocks[-lag:]
            if len(stretch) == lag and _explodes(stretch, self.depends_on):
                return self._told(_climb(stretch))
        return None

    def _stays(self, block: Block) -> bool:
        length, _, cut = block.levels
        if not math.isnan(cut):
            return cut >= _CUT
        limit = self.depends_on
        return limit is not None and length >= _NEAR_LIMIT * limit

    def _told(self, stretch: BlockHistory) -> BlockFinding:
        length, reward, cut = known = [stretch.known(i) for i in range(3)]
        first, last = stretch[0].last, stretch[-1].last
        limit, shares = self.depends_on, ""
        if cut:
            shares = f", truncated share from {number(cut[0])} to {number(cut[-1])}"
        figures = zip(self.keys, known, strict=True)
        return self.told(
            first,
            self.keys[0],
            [went(key, one, first, last) for key, one in figures if one],
            begun=length[0],
            now=length[-1],
            limit="" if limit is None else f" of {number(limit)}",
            shares=shares,
            best=max(reward),
            reward=reward[-1],
        )


def _explodes(stretch: BlockHistory, limit: float | None) -> bool:
    length = stretch.known(0)
    if len(length) < 4 or length[-1] < _CLIMB * length[0]:
        return False
    if stretch.course(0).t < _TREND_T:
        return False
    return _reaches_limit(stretch, limit) and _reward_falls(stretch)


def _reaches_limit(stretch: BlockHistory, limit: float | None) -> bool:
    """Return whether more responses are cut or, where that is unknown, they are near the limit."""
    cut = stretch.known(2)
    if len(cut) >= 4:
        return cut[-1] >= max(_CUT, cut[0] + _CUT) and stretch.course(2).t >= _TREND_T
    return limit is not None and stretch.known(0)[-1] >= _NEAR_LIMIT * limit


def _reward_falls(stretch: BlockHistory) -> bool:
    """Return whether the reward falls over the stretch, or since its highest level in it."""
    reward = stretch.known(1)
    if len(reward) < 4:
        return False
    if stretch.moves(1, _FALL_T, _FALL):
        return True
    highest, size = max(reward), max(map(abs, reward))
    since_highest = stretch[reward.index(highest) :]
    return (
        highest - reward[-1] >= 2 * _FALL * size
        and since_highest.course(1).t <= _FALL_T
    )


def _climb(stretch: BlockHistory) -> BlockHistory:
    """Return a stretch from the last block on in which length had not begun to climb."""
    length = stretch.known(0)
    foot = length[0] + _FOOT * (length[-1] - length[0])
    return stretch[
        max(i for i, block in enumerate(stretch) if block.levels[0] <= foot) :
    ]
