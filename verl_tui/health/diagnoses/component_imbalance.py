"""One component of the reward is saturated and carries the total; the others do not move."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import BlockDiagnosis, Inputs, Told, column, course
from verl_tui.health.finding import NotJudged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Block
    from verl_tui.health.moment import Moment

_COMPONENT = re.compile(r"(?:train/)?(?:samples/.+|rewards/(.+?)(?:/mean)?)")
"""Figures of the samples' extras, and TRL's `rewards/{function}/mean`."""
_NO_COMPONENT = re.compile(
    r".*/(?:count|score|score_std|repetition|ngram_entropy|distinct_\d|unique_share|dead_groups|groups_all_\w+"
    r"|.*(?:length|len|tokens?|turns?|time|std|kl|entropy))"
)
_MOST = 12
_WINDOW = 12
"""Blocks in which one is saturated and the others stand still: 120 points, longer than any start: heuristic."""
_CLIMB = 0.2
"""A saturated component must have gained a fifth of its top since the start, or it is a constant: heuristic."""
_TOP = 0.9
"""It stays within a tenth of its range from its top."""
_STILL = 0.05
"""Another component moves if, beyond doubt, it gains a twentieth of that range: heuristic."""


class _Component(NamedTuple):
    key: str
    column: int
    opening: float
    top: float
    gain: float
    """What it surely gained at most within the window."""


class ComponentImbalance(BlockDiagnosis):
    """A component at its top for long, while no other has gained anything."""

    needs: ClassVar[int] = 14

    def inputs(self, moment: Moment) -> Inputs | NotJudged:
        """Look at the reward's components."""
        reward = moment.indicators.get("reward")
        named = [key for name, key in sorted(moment.names.items()) if name == key or key not in moment.names]
        keys = [key for key in named if _COMPONENT.fullmatch(key) and not _NO_COMPONENT.fullmatch(key)]
        if reward is None or len(keys) < 2:
            return NotJudged(self.rule.id, "the log has no components of the reward" if reward else "no reward")
        return Inputs((reward, *keys[:_MOST]))

    def look(self, blocks: Sequence[Block], inputs: Inputs) -> Told | None:
        """Tell when one component has all and the others nothing."""
        components = [
            one for i, key in enumerate(inputs.keys[1:], 1) if key and (one := _component(blocks, i, key)) is not None
        ]
        window = blocks[-_WINDOW:]
        for one in components:
            others = [other for other in components if other is not one]
            reach = one.top - one.opening
            levels = column(window, one.column)
            if not others or reach < _CLIMB * abs(one.top) or min(levels) < one.top - (1 - _TOP) * reach:
                continue
            if all(other.gain < _STILL * reach for other in others):
                return self._tell(blocks, one, others, inputs)
        return None

    def _tell(self, blocks: Sequence[Block], one: _Component, others: Sequence[_Component], inputs: Inputs) -> Told:
        floor = one.top - (1 - _TOP) * (one.top - one.opening)
        since = next(block.last for block in blocks if block.levels[one.column] >= floor)
        names = ", ".join(other.key for other in others)
        window = blocks[-_WINDOW:]
        told = [
            f"{c.key}: {number(column(blocks, c.column)[0])} at the beginning, "
            f"{number(column(window, c.column)[0])} at step {window[0].last}, "
            f"{number(column(window, c.column)[-1])} at step {window[-1].last}"
            for c in (one, *others)
        ]
        total = column(blocks, 0)
        told.append(f"{inputs.keys[0]}: {number(total[0])} at the beginning, {number(total[-1])} now")
        return Told(
            since,
            f"carried by {one.key} alone",
            f"{one.key} is saturated at {number(one.top)} since step {since} and carries the reward: {names} "
            f"{'have' if len(others) > 1 else 'has'} not moved for {len(window) * self.size} points",
            tuple(told),
            one.key,
        )


def _component(blocks: Sequence[Block], i: int, key: str) -> _Component | None:
    levels, window = column(blocks, i), blocks[-_WINDOW:]
    if len(column(window, i)) < _WINDOW // 2:
        return None
    line = course(window, i)
    error = abs(line.change / line.t) if line.t else 0.0
    return _Component(key, i, levels[0], max(levels), line.change + 2 * error)
