"""Responses shrink to a small part of their initial length, and no score gains."""

from __future__ import annotations

import math
from itertools import pairwise
from operator import attrgetter
from statistics import fmean, median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.components import gaining_components
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    column,
)
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
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
_SOLVED = 0.95
"""A mean reward from here on, on a scale that ends at 1, is that of a solved task: heuristic."""


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

    requires: ClassVar[tuple[str, ...]] = ("response_length", "reward")
    size: ClassVar[int] = 5
    needs: ClassVar[int] = _OPENING
    _long: int = 0
    """Place of the last block in which responses were still long."""
    _searched: int = 0
    """Blocks already searched for it."""

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

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Compare the newest blocks with the run's beginning."""
        opening = max(column(blocks[:_OPENING], _LENGTH), default=0.0)
        self._find_last_long(blocks, opening)
        newest = column(blocks[-_LASTS:], _LENGTH)
        if opening < _TINY or len(newest) < _LASTS:
            return None
        left = max(newest) / opening
        is_new = self._newest is None
        if left > (_LEFT if is_new else _BACK):
            return None
        courses = self._courses(blocks, inputs)
        fallen = next(filter(attrgetter("has_fallen"), courses), None)
        if self._is_explained(courses, fallen, inputs):
            return None
        if fallen is None and is_new and left > _LITTLE:
            return None
        return self._block_finding(
            blocks,
            self.began(blocks[self._long].last),
            (opening, newest[-1]),
            fallen,
            inputs,
        )

    def _find_last_long(self, blocks: BlockHistory, opening: float) -> None:
        for i in range(self._searched, len(blocks)):
            if blocks[i].levels[_LENGTH] >= _NEAR * opening:
                self._long = i
        self._searched = len(blocks)

    def _courses(self, blocks: BlockHistory, inputs: BlockInputs) -> list[_Course]:
        scores = (_REWARD, *range(_SCORES, len(inputs.keys)))
        courses = (_course(blocks, i, self._long) for i in scores)
        return [one for one in courses if one is not None]

    def _forget(self) -> None:
        super()._forget()
        self._long = self._searched = 0

    def _is_explained(
        self, courses: Sequence[_Course], fallen: _Course | None, inputs: BlockInputs
    ) -> bool:
        """Return whether short responses serve the task: validation gains, or another score while
        none falls.
        """
        validations = range(_SCORES, _SCORES + inputs.depends_on)
        validated = [one for one in courses if one.column in validations]
        if any(one.has_gained and not one.has_fallen for one in validated):
            return True
        return fallen is None and (
            self._is_solved(courses) or any(c.has_gained for c in courses)
        )

    def _is_solved(self, courses: Sequence[_Course]) -> bool:
        low, high = self.reach(_REWARD)
        if not 0.0 <= low <= high <= 1.0:
            return False
        return any(one.column == _REWARD and one.now >= _SOLVED for one in courses)

    def _block_finding(
        self,
        blocks: BlockHistory,
        since: int,
        lengths: tuple[float, float],
        fallen: _Course | None,
        inputs: BlockInputs,
    ) -> BlockFinding:
        opening, now = lengths
        length = inputs.keys[_LENGTH]
        last = blocks[-1].last
        fell = "no score gained"
        beside = []
        if fallen is not None:
            score = inputs.keys[fallen.column]
            went = f"from {number(fallen.before)} to {number(fallen.now)}"
            fell = f"{score} fell {went} with their length"
            beside = [f"{score}: {went} since step {since}"]
        return BlockFinding(
            since,
            f"shrank from {number(opening)} to {number(now)} tokens, and {fell}",
            f"responses shrank from {number(opening)} tokens to {number(now)} "
            f"({now / opening:.0%}) from step {since} on, and {fell}",
            (
                f"{length}: {number(opening)} at the beginning, {number(now)} at step {last} "
                "(means of blocks)",
                *beside,
            ),
            length,
        )


def _course(blocks: BlockHistory, i: int, long: int) -> _Course | None:
    """Return how a score went, None where too little of it is known before responses shrank, or
    since.

    Args:
        blocks: All blocks so far.
        i: Column of the score.
        long: Place of the last block in which responses were still long.
    """
    first = column(blocks[: min(long + 1, _LOOKED_AT)], i)[:_LEVEL]
    before = column(blocks[max(0, long + 1 - _LOOKED_AT) : long + 1], i)[-_LEVEL:]
    since = column(blocks[max(long + 1, len(blocks) - _LOOKED_AT) :], i)[-_LEVEL:]
    steps = [abs(b - a) for a, b in pairwise(column(blocks[-_LOOKED_AT:], i))]
    if not first or not before or not since or len(steps) < _LEVEL:
        return None
    noise = 1.4826 * median(steps) / math.sqrt(2)
    error = noise * math.sqrt(1 / min(len(first), len(before)) + 1 / len(since))
    return _Course(i, fmean(first), fmean(before), fmean(since), error)
