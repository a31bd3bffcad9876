"""The training reward rises while what it stands for does not: an audit after the fact, no early warning."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import BlockDiagnosis, Inputs, Told, column, course
from verl_tui.health.finding import NotJudged
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Block
    from verl_tui.health.moment import Moment

_LAGS = (10, 20, 40)
"""Blocks over which reward and validation are compared: 100 to 400 points."""
_RISE_T = 5.0
_RISE = 0.1
"""The reward must have gained a tenth of its range so far at least, beyond any doubt: heuristic."""
_VALIDATIONS = 5
"""Blocks with validations without which their course is not known: heuristic."""
_FALL_T = -2.5
_FALL = 0.05
"""A fall of validation by a twentieth of its level is one: heuristic."""
_SHARE = 0.25
"""Validation stands still where it surely gained less than a quarter of what the reward gained: heuristic."""
_SURE = 3.0
"""Standard errors that make it sure: every block asks anew."""
_FOLLOW_T, _FOLLOW = 2.0, 0.02
"""A validation that has likely gained a fiftieth of its level follows."""
_MOST_VALIDATIONS = 6
_REPEATS = 0.1
_POORER = 0.15
"""Repetition up by a tenth, or diversity down by so much of its level, beyond doubt: heuristic."""


class _Sign(NamedTuple):
    words: str
    key: str
    since: int


class RewardHacking(BlockDiagnosis):
    """Reward up, validation down or level; or reward up, and samples repeat themselves or lose their variety."""

    needs: ClassVar[int] = 11
    _before: bool = False
    """Whether the block before showed it, too: one alone may be chance."""

    def inputs(self, moment: Moment) -> Inputs | NotJudged:
        """Look at the reward, what samples tell, and the validation scores."""
        reward = moment.indicators.get("reward")
        if reward is None:
            return NotJudged(self.rule.id, "the log has no reward")
        validations = validation_keys(moment.run.keys)[:_MOST_VALIDATIONS]
        samples = tuple(moment.names.get(f"samples/{name}") for name in ("repetition", "distinct_2"))
        if not validations and not any(samples):
            return NotJudged(self.rule.id, "the log has neither validation nor samples")
        return Inputs((reward, *samples, *validations))

    def look(self, blocks: Sequence[Block], inputs: Inputs) -> Told | None:
        """Compare reward and the rest over several stretches; two blocks in a row must show it."""
        told = self._compare(blocks, inputs)
        before, self._before = self._before, told is not None
        return told if before or self.spans.open is not None else None

    def _compare(self, blocks: Sequence[Block], inputs: Inputs) -> Told | None:
        low, high = self.reach(0)
        shared = low >= 0.0 and high <= 1.0
        validations = range(3, len(inputs.keys))
        for lag in _LAGS:
            stretch = blocks[-lag:]
            line = course(stretch, 0)
            least = _RISE * max(high - low, abs(high + low) / 2)
            if len(stretch) < lag or line.t < _RISE_T or line.change < least:
                continue
            # Where any validation follows, the reward stands for something.
            if any(_follows(stretch, i) for i in validations):
                continue
            gain = line.change if shared else None
            signs = [_validation(stretch, i, gain, inputs.keys[i]) for i in validations]
            sign = next((one for one in signs if one is not None), None) or _samples(stretch, inputs.keys[1:3])
            if sign is not None:
                return self._tell(stretch, sign, inputs)
        return None

    def _tell(self, stretch: Sequence[Block], sign: _Sign, inputs: Inputs) -> Told:
        first, last = column(stretch, 0)[0], column(stretch, 0)[-1]
        told = [f"{inputs.keys[0]}: {number(first)} at step {stretch[0].last}, {number(last)} at {stretch[-1].last}"]
        told.append(f"{sign.key}: {sign.words}")
        return Told(
            sign.since,
            f"rose to {number(last)} while {sign.words}",
            f"the reward rose from {number(first)} to {number(last)} over steps {stretch[0].last}–{stretch[-1].last}, "
            f"but {sign.words}",
            (*told, "an audit after the fact: read samples with high scores"),
            sign.key,
        )


def _follows(stretch: Sequence[Block], i: int) -> bool:
    """Return whether a validation score rises with the reward."""
    line = course(stretch, i)
    values = column(stretch, i)
    return len(values) >= 4 and line.t >= _FOLLOW_T and line.change >= _FOLLOW * max(map(abs, values))


def _validation(stretch: Sequence[Block], i: int, gain: float | None, key: str | None) -> _Sign | None:
    """Return that validation falls, or surely does not follow the reward.

    Args:
        stretch: The blocks to look at.
        i: Column of the validation score.
        gain: What the reward has gained, where it is on validation's scale; else None.
        key: The score's key.
    """
    points = [(block.last, block.levels[i]) for block in stretch if not math.isnan(block.levels[i])]
    if key is None or len(points) < _VALIDATIONS:
        return None
    values = [value for _, value in points]
    line = course(stretch, i)
    size = max(abs(max(values)), abs(min(values)))
    best = max(points, key=lambda point: point[1])
    if line.t <= _FALL_T and -line.change >= _FALL * size:
        return _Sign(f"validation fell: {number(best[1])} at step {best[0]}, now {number(values[-1])}", key, best[0])
    error = abs(line.change / line.t) if line.t and math.isfinite(line.t) else 0.0
    # On another scale than the reward's it can only be said to stand still by itself.
    least = _SHARE * gain if gain is not None and size <= 1.0 else _FALL * size
    if line.change + _SURE * error < least:
        return _Sign(
            f"validation stood still ({number(values[0])} at step {points[0][0]}, {number(values[-1])} now)",
            key,
            stretch[0].last,
        )
    return None


def _samples(stretch: Sequence[Block], keys: Sequence[str | None]) -> _Sign | None:
    for i, (key, grows, what) in enumerate(
        ((keys[0], True, "samples repeat themselves more"), (keys[1], False, "samples have become more alike")), 1
    ):
        values, line = column(stretch, i), course(stretch, i)
        if key is None or len(values) < _VALIDATIONS:
            continue
        enough = line.change >= _REPEATS if grows else -line.change >= _POORER * abs(values[0])
        if enough and (line.t >= _RISE_T if grows else line.t <= -_RISE_T):
            return _Sign(f"{what}: {number(values[0])} before, {number(values[-1])} now", key, stretch[0].last)
    return None
