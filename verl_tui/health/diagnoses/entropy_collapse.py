"""Entropy falls towards 0 while the reward stands still; with a rising reward it would be convergence."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import BlockDiagnosis, Inputs, Told, column, course, since
from verl_tui.health.finding import NotJudged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Block
    from verl_tui.health.moment import Moment

_LAGS = (5, 10, 20, 40)
"""Blocks over which a fall is looked for: collapses take from 50 to some hundred steps."""
_FALL = 0.5
"""Over such a stretch entropy must have lost half of what it was: heuristic."""
_LEFT = 0.15
"""And be at no more than so much of the run's beginning: heuristic."""
_FALL_T = -4.0
_NEAR = 0.75
"""Down to three quarters it has not begun to fall: entropy always declines somewhat."""
_FLAT_T = 2.0
_SURE_T = 4.0
_GAIN, _SURE_GAIN = 0.05, 0.01
"""A reward has risen if it likely gained a twentieth of its size, or beyond doubt a hundredth: near its ceiling it
gains little, and that is convergence."""


class EntropyCollapse(BlockDiagnosis):
    """Entropy halves and nears 0 over a stretch in which the reward gains nothing."""

    needs: ClassVar[int] = 7

    def inputs(self, moment: Moment) -> Inputs | NotJudged:
        """Look at entropy and reward."""
        entropy, reward = moment.indicators.get("entropy"), moment.indicators.get("reward")
        if entropy is None or reward is None:
            return NotJudged(self.rule.id, f"the log has no {'reward' if entropy else 'entropy'}")
        return Inputs((entropy, reward))

    def look(self, blocks: Sequence[Block], inputs: Inputs) -> Told | None:
        """Compare the newest block with earlier ones."""
        opening, now = max(column(blocks[:3], 0), default=0.0), blocks[-1].levels[0]
        if opening <= 0 or not 0 <= now <= _LEFT * opening:
            return None
        if self.spans.open is not None and not _risen(blocks[-10:]):
            return self._told and self._tell(blocks, self._told.since, opening, inputs)
        for lag in _LAGS:
            stretch = blocks[-lag - 1 :]
            if len(stretch) > lag and _fallen(stretch) and not _risen(stretch):
                return self._tell(blocks, _brink(stretch), opening, inputs)
        return None

    def _tell(self, blocks: Sequence[Block], start: int, opening: float, inputs: Inputs) -> Told:
        stretch = since(blocks, start)
        now = blocks[-1]
        entropy, reward = column(stretch, 0), column(stretch, 1)
        change = reward[-1] - reward[0] if reward else 0.0
        return Told(
            start,
            f"fell to {number(entropy[-1])} with a flat reward",
            f"entropy fell from {number(entropy[0])} at step {start} to {number(now.levels[0])} at step {now.last} "
            f"({now.levels[0] / opening:.0%} of the run's beginning) while the reward did not rise ({change:+.2g})",
            (
                f"{inputs.keys[0]}: {number(opening)} at the beginning, {number(entropy[0])} at step {start}, "
                f"{number(now.levels[0])} at step {now.last} (means of {self.size} points)",
                f"{inputs.keys[1]}: {number(reward[0])} at step {start}, {number(reward[-1])} at step {now.last}: "
                f"slope {course(stretch, 1).t:+.1f} standard errors from level",
            ),
            inputs.keys[0],
        )


def _brink(stretch: Sequence[Block]) -> int:
    """Return the last step at which entropy was still near where the stretch begins."""
    near = _NEAR * stretch[0].levels[0]
    return [block.last for block in stretch if block.levels[0] >= near or block is stretch[0]][-1]


def _fallen(stretch: Sequence[Block]) -> bool:
    values = column(stretch, 0)
    return len(values) >= 4 and values[-1] <= _FALL * values[0] and course(stretch, 0).t <= _FALL_T


def _risen(stretch: Sequence[Block]) -> bool:
    values, line = column(stretch, 1), course(stretch, 1)
    if len(values) < 4:
        return True
    size = max(abs(max(values)), abs(min(values)))
    return (line.t >= _FLAT_T and line.change >= _GAIN * size) or (
        line.t >= _SURE_T and line.change >= _SURE_GAIN * size
    )
