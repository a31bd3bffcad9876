"""Parts of a reward that the total hides: one is saturated and carries it, or has never scored."""

from __future__ import annotations

import math
import re
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.evaluation import PREFIX
from verl_tui.health.components import components, weights
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    PresentDiagnosis,
    went,
)
from verl_tui.health.finding import Severity
from verl_tui.health.learnt import gains
from verl_tui.means import finite
from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.finding import Finding
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series


_HIGHEST = 0.95
"""The total is at its top at so much of its highest so far: heuristic."""
_EQUAL = 1e-9
_HAVE = ("has", "have")
_A_SCORE = pattern(
    r"acc|correct|reward|score|right|format|answer|pass|solve|success", re.I
)
"""Names of figures of samples that are scores: others, as of tools, may well be 0."""


class NeverScored(PresentDiagnosis):
    """A part at its floor at all points, under a total that is at its top or rises."""

    def look(self, context: RuleContext) -> Finding | str | None:
        """Look at all parts from their first points on."""
        window = self.rule.window
        reward = context.known(context.indicators.get("reward"))
        parts = components(context.run.keys, reward.key if reward is not None else None)
        if reward is None or len(parts) < 2:
            return "the log has no components of the reward"
        if len(reward) < window:
            return f"needs {window} points, has {len(reward)}"
        silent = silent_parts(context, parts, window)
        return self._finding(reward, silent) if silent else None

    def _finding(self, reward: Series, silent: Sequence[Series]) -> Finding | None:
        level = fmean(finite(reward.tail(self.rule.window)) or [0.0])
        at_top = level >= _HIGHEST * reward.highest > 0
        if not at_top and not gains(reward.values):
            return None
        return self.finding(
            {
                "names": ", ".join(one.key for one in silent),
                "have": _HAVE[len(silent) > 1],
                "points": max(map(len, silent)),
                "level": level,
            },
            [
                f"{one.key}: {number(one.highest)} at all of {len(one)} points"
                for one in silent
            ],
            case="" if at_top else "rises",
            since=min(one.steps[0] for one in silent),
            step=reward.steps[-1],
            key=silent[0].key,
            # what still rises may come to score
            severity=None if at_top else Severity.INFO,
        )


def silent_parts(
    context: RuleContext, parts: Sequence[str], least: int
) -> Sequence[Series]:
    """Return the parts of a reward that count in it, have so many points at least, and have never
    scored.
    """
    known = weights(context.run, parts)
    counted = [key for key in parts if known.get(key, 1.0) > 0 and _is_score(key)]
    return [
        one
        for one in map(context.known, counted)
        if one is not None and len(one) >= least and _is_at_its_floor(one)
    ]


def _is_score(key: str) -> bool:
    return not key.startswith(PREFIX) or _A_SCORE.search(key) is not None


def _is_at_its_floor(part: Series) -> bool:
    floor = part.highest
    return floor <= 0 and part.first_beyond(floor - _EQUAL, down=True) is None


_MOST = 12
_WINDOW = 12
"""Newest blocks in which it is saturated: 120 points, longer than any start: heuristic."""
_CLIMB = 0.2
"""A saturated component must have gained a fifth of its top, or it is a constant: heuristic."""
_TOP = 0.9
"""On average it stays within a tenth of its range from its top."""
_FOOT = 0.25
"""Its climb began where it was last within a quarter of its range from its lowest."""
_STILL = 0.08
"""Another component moves if since then it has gained so much of that range: heuristic."""
_CEILING = 0.9
"""One that stays within a tenth of the saturated one's top is at its ceiling: heuristic."""
_HIGH = 0.75
"""One that is never below three quarters of a scale from 0 to 1 is at its ceiling, too: heuristic.
"""
_ROUNDING = 1e-6
"""Share of their size by which equal values differ."""
_SURE_T, _OWN = 4.0, 0.25
"""Or if it has gained, beyond doubt, a quarter of its own level."""
_DONE = 0.25
"""One that has climbed a quarter of that range before, and stays there, is done rather than
stuck.
"""


_NEWEST = 4
"""Newest blocks that show a component's present level."""
_LONGEST = 300
"""Newest blocks in which a climb is searched for."""


class _Saturated(NamedTuple):
    column: int
    low: float
    top: float
    climb: int
    """Place of the block at the foot of the climb."""

    @property
    def reach(self) -> float:
        return self.top - self.low


class ComponentImbalance(BlockDiagnosis):
    """A component at its top for long, while no other has gained anything."""

    needs: ClassVar[int] = 14

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at the reward's components."""
        reward = context.indicators.get("reward")
        keys = components(context.run.keys, reward)
        if reward is None:
            return "no reward"
        if len(keys) < 2:
            return "the log has no components of the reward"
        return BlockInputs((reward, *keys[:_MOST]))

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Find a component that carries the reward while the others gain nothing."""
        columns = range(1, len(self.keys))
        for one in filter(None, (_saturated(blocks, i) for i in columns)):
            others = [j for j in columns if j != one.column]
            stuck = [j for j in others if _stuck(blocks, j, one)]
            if stuck and not any(_moves(blocks, j, one) for j in stuck):
                return self._told(blocks, one, stuck)
        return None

    def _told(
        self, blocks: BlockHistory, one: _Saturated, others: Sequence[int]
    ) -> BlockFinding:
        climb = blocks[one.climb :]
        floor = one.top - (1 - _TOP) * one.reach
        since = next(block.last for block in climb if block.levels[one.column] >= floor)
        fell = [_fell(blocks, j, one) for j in others]
        foot, last = climb[0].last, blocks[-1].last
        evidence = [
            went(self.keys[j], [climb.known(j)[0], blocks.known(j)[-1]], foot, last)
            + f" (means of {self.size} points)"
            for j in (one.column, *others, 0)
        ]
        return self.told(
            since,
            self.keys[one.column],
            evidence,
            top=one.top,
            names=", ".join(self.keys[j] or "" for j in others),
            have=_HAVE[len(others) > 1],
            done=_DONE_WORDS[any(fell) + all(fell)],
            foot=foot,
        )


_DONE_WORDS = ("gained nothing", "gained nothing or fallen", "fallen")
"""What the others have done where none, some, and all have fallen."""


def _saturated(blocks: BlockHistory, i: int) -> _Saturated | None:
    """Return a component that has climbed and stays at its top."""
    window = blocks[-_WINDOW:].known(i)
    if len(window) < _WINDOW // 2:
        return None
    low, top = blocks.reach(i)
    reach = top - low
    if reach <= _CLIMB * max(abs(top), abs(low)):
        return None
    if fmean(window) < top - (1 - _TOP) * reach or min(window) < top - _FOOT * reach:
        return None
    levels = blocks[-_LONGEST:].levels(i)
    climb = int(max(np.flatnonzero(levels <= low + _FOOT * reach), default=0))
    return _Saturated(i, low, top, len(blocks) - len(levels) + climb)


def _stuck(blocks: BlockHistory, j: int, saturated: _Saturated) -> bool:
    """Return whether a component may be stuck: it is still logged, and has not reached its own top
    before.
    """
    window = blocks[-_WINDOW:].known(j)
    if len(window) < _WINDOW // 2:
        return False
    low, top = blocks.reach(j)
    reach = top - low
    if min(window) >= _CEILING * max(saturated.top, top) > 0:
        return False  # at its ceiling all along
    if min(window) >= (1 - _ROUNDING) * top > 0:
        return False  # at its own: all answers have got as much as any ever did
    if top <= 1 and low >= _HIGH:
        return False  # at that of a scale from 0 to 1
    if top <= 0 and fmean(window[-_NEWEST:]) >= top - _FOOT * reach > low:
        return False  # a penalty, as small as it ever was
    has_climbed = reach >= _DONE * saturated.reach
    return not (has_climbed and min(window) >= top - (1 - _FOOT) * reach)


def _moves(blocks: BlockHistory, j: int, saturated: _Saturated) -> bool:
    """Return whether a component has gained anything since the saturated one began to climb.

    By the saturated one's measure, or surely by its own: parts of a reward have scales of their
    own.
    """
    gain, now = _gain(blocks, j, saturated)
    if math.isnan(gain) or gain >= _STILL * saturated.reach:
        return True
    line = blocks[saturated.climb :].course(j)
    return line.t >= _SURE_T and line.change >= _OWN * abs(now)


def _fell(blocks: BlockHistory, j: int, saturated: _Saturated) -> bool:
    """Return whether a component has fallen since then, by the saturated one's measure or by its
    own.
    """
    gain, now = _gain(blocks, j, saturated)
    return -gain >= min(_STILL * saturated.reach, _OWN * (abs(now) + abs(gain)))


def _gain(blocks: BlockHistory, j: int, saturated: _Saturated) -> tuple[float, float]:
    """Return what one has gained since the saturated one began to climb, and its level now; nan if
    unknown.
    """
    before = blocks[max(0, saturated.climb - 2) : saturated.climb + 2].known(j)
    now = blocks[-_NEWEST:].known(j)
    if not before or not now:
        return math.nan, math.nan
    level = fmean(now)
    return level - fmean(before), level
