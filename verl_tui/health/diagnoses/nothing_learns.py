"""A reward that has gained nothing since the run began, by statistics: its gain is bounded, not
only unseen.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.applicability.metrics import RATES
from verl_tui.health.components import gaining_components
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    filled,
)
from verl_tui.health.limits import KL_COEF, kl_coefficient
from verl_tui.indicators import validation_keys
from verl_tui.means import finite

if TYPE_CHECKING:
    from verl_tui.health.blocks import Block, BlockHistory
    from verl_tui.health.finding import Finding
    from verl_tui.health.rule_context import RuleContext

_KL, _TOP, _BOTTOM, _RATE, _SPREAD, _OTHERS = 1, 2, 3, 4, 5, 6
"""Columns behind the reward's."""
_MOST = 16
"""Most validation scores and parts of the reward to compare."""
_SIGMAS = 2.0
"""Standard errors on either side that make an interval of 95%."""
_LIKELY = 1.5
"""Standard errors from which on a gain is likely enough to wait: heuristic."""
_BEGAN = 2.5
"""Standard errors by which its first points must not lie below the others: it has learnt at once,
then.
"""
_FALLS = -3.0
"""Standard errors of a fall, which is another fault."""
_HELD, _BOUND, _STRICT = 0.5, 0.25, 0.1
"""Share of the spread that scores may have, and of what is left to the top of their scale, that a
gain must stay below: half where a strong penalty explains it, a quarter where the policy has moved
for nothing, else a tenth. Heuristic: what learns slowly gains as much in 100 points.
"""
_MOVED = 0.1
"""Nats a token by which a policy has moved that should have gained something: the top of the
guide's band.
"""
_COST = 0.02
"""Coefficient × KL from which on the penalty matters compared with advantages, whose size is 1:
heuristic.
"""
_GAINS = 3.0
"""Standard errors that make the gain of another score, or of a reward that was flat, sure."""
_SOLVED = 0.9
"""Share of the scale from which on little is left to be gained: heuristic."""
_WARM = 0.5
"""Over its first half the learning rate must have been at half of its highest: else it is only just
warming up.
"""
_MIDDLE, _WIDER = 0.05, 1.5
"""Share of a scale that is next to its middle, and by how much the spread of few answers may exceed
that of many.
"""
_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""
_LINE = 4
"""Blocks with a reward that a line and its quarters take."""
_OFTEN = 20
"""Blocks up to which every one is judged; later every second, third … one, as evidence grows with
the run.
"""
_NEWEST = 3
"""Blocks in which a gain shows that is not there over all: lately, or for a time."""
_FIRST, _HUMP = 2, 4.0
"""Blocks that it began with, and standard errors by which such a gain must lie above them: the best
of many is sought."""


class _Line(NamedTuple):
    """The reward's course over all blocks."""

    mean: float
    change: float
    error: float
    """Standard error of the change, with what neighbouring blocks have in common."""
    alone: float
    """The same as if they had nothing in common."""
    noise: float
    """Standard deviation of a block's level about the line."""
    own: float
    """The same by the points within blocks: without the changes of the course itself."""

    @property
    def low(self) -> float:
        return self.change - _SIGMAS * self.error

    @property
    def high(self) -> float:
        """Largest gain that is not ruled out."""
        return self.change + _SIGMAS * self.error


class NothingLearns(BlockDiagnosis):
    """The reward has been level since the run's first points, and more than a small gain is ruled
    out.
    """

    RULE = "nothing-learns/flat"
    requires: ClassVar[tuple[str, ...]] = ("reward",)
    size: ClassVar[int] = 10
    patience: ClassVar[int] = 2
    needs: ClassVar[int] = 10
    _learnt: bool = False
    """True if it has ever gained, or the log does not hold the run's beginning: then it is not
    judged any more.
    """

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at the reward and its ends, KL, the learning rate, and at all that may gain
        instead.
        """
        reward = context.indicators["reward"]
        figure = reward.removesuffix("mean")
        figures = (
            context.indicators.get("reference_kl"),
            context.names.get(f"{figure}max"),
            context.names.get(f"{figure}min"),
            context.first_key(RATES),
            context.indicators.get("reward_std"),
        )
        parts = gaining_components(context.run, reward)
        others = [*validation_keys(context.run.keys), *parts][:_MOST]
        return BlockInputs((reward, *figures, *others), kl_coefficient(context.run))

    def look(self, context: RuleContext) -> Finding | str | None:
        """Judge only rewards whose possible gain is known."""
        found = super().look(context)
        if found is None and _ends(self.history) is None:
            return (
                "the ends of the reward's scale are unknown, or 0 is its middle, as in self-play: "
                "no gain can be called small"
            )
        return found

    def forget(self) -> None:
        """Start over."""
        super().forget()
        self._learnt = False

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Bound what the reward can have gained since the beginning."""
        if self._learnt or max(map(abs, blocks.reach(0))) > _HUGE:
            return None
        if len(blocks) % (len(blocks) // _OFTEN + 1):
            return self.newest
        if len(blocks.known(0)) < _LINE:
            return None  # most rewards are not finite
        line = _line(blocks)
        if not _begins(blocks[0]) or _gained(blocks, line):
            self._learnt = True
            return None
        if _others_gain(blocks, range(_OTHERS, len(self.keys))):
            return None
        if self.newest is None and not self._is_flat(blocks, line):
            return None
        first = blocks[0].first
        return self.told(
            first,
            self.keys[0],
            steps=blocks[-1].last - first + 1,
            points=len(blocks) * self.size,
            mean=line.mean,
            change=line.change,
            low=line.low,
            high=line.high,
            most=max(line.high, 0.0),
            reason=self._reason(blocks),
        )

    def _is_flat(self, blocks: BlockHistory, line: _Line) -> bool:
        """Return whether a gain is ruled out for a reward that still has something to gain."""
        ends = _ends(blocks)
        if ends is None or not _warm(blocks) or not _level(blocks, line):
            return False
        low, high = ends
        if line.mean >= low + _SOLVED * (high - low):
            return False
        # The largest spread that scores of this mean between these ends can have (Bhatia and Davis
        # 2000).
        left = high - line.mean
        spread = math.sqrt(max(0.0, left * (line.mean - low)))
        if self._held_back(blocks):
            share = _HELD
        else:
            share = _BOUND if _distance(blocks) >= _MOVED else _STRICT
        return line.high <= share * min(spread, left)

    def _held_back(self, blocks: BlockHistory) -> bool:
        """Return whether the KL term is stronger than the guide's, and its cost matters beside
        advantages.
        """
        _, coefficient = self.depends_on or ("", 0.0)
        return coefficient > KL_COEF[1] and coefficient * _distance(blocks) >= _COST

    def _reason(self, blocks: BlockHistory) -> str:
        far = _distance(blocks)
        case = "moved" if far >= _MOVED else ""
        facts: dict[str, object] = {"far": far}
        if self._held_back(blocks):
            case, (name, coefficient) = "held-back", self.depends_on
            known = {
                "name": name,
                "coefficient": coefficient,
                "cost": coefficient * far,
            }
            facts |= known | {"least": KL_COEF[0], "most": KL_COEF[1]}
        return filled(self.words(case).get("reason", ""), (), facts)


def _ends(blocks: BlockHistory) -> tuple[float, float] | None:
    """Return the ends of the reward's scale: the extremes of single scores where they are logged,
    or 0 and 1. None where they are unknown, or the reward is in the middle between wins and
    defeats, which is where players who are equals stay.
    """
    levels = blocks[-1].levels
    low, high = blocks.reach(0)
    mean = levels[0]
    if math.isfinite(levels[_TOP]) and math.isfinite(levels[_BOTTOM]):
        low = min(blocks.reach(_BOTTOM)[0], low)
        high = max(blocks.reach(_TOP)[1], high)
        near = _MIDDLE * (high - low)
        is_draw = low < 0 and abs(low + high) <= near and abs(mean) <= near
        return None if is_draw else (low, high)
    # Scores between 0 and 1 spread by the root of m(1−m) at most, of few answers by more.
    widest = math.sqrt(max(0.0, mean * (1 - mean)))
    is_share = 0.0 <= low <= high <= 1.0
    return (
        (0.0, 1.0)
        if is_share and not levels[_SPREAD] > _WIDER * widest + _MIDDLE
        else None
    )


def _line(blocks: BlockHistory) -> _Line:
    """Fit a line through the reward's levels."""
    levels = blocks.known(0)
    count = len(levels)
    mean = fmean(levels)
    middle = (count - 1) / 2
    spread = count * (count * count - 1) / 12
    slope = math.fsum((i - middle) * level for i, level in enumerate(levels)) / spread
    rest = [level - mean - slope * (i - middle) for i, level in enumerate(levels)]
    squares = math.fsum(one * one for one in rest)
    within = [error * error for error in finite(blocks.errors(0).tolist())]
    own = math.sqrt(fmean(within)) if within else 0.0
    noise = max(math.sqrt(squares / (count - 2)), own)
    # Correlated neighbours hold less information than their number suggests.
    shared = math.fsum(a * b for a, b in pairwise(rest)) / squares if squares else 0.0
    shared = min(0.9, max(0.0, shared))
    alone = noise * (count - 1) / math.sqrt(spread)
    return _Line(
        mean,
        slope * (count - 1),
        alone * math.sqrt((1 + shared) / (1 - shared)),
        alone,
        noise,
        own,
    )


def _begins(block: Block) -> bool:
    """Return whether a log holds the run's beginning: otherwise it may have learnt before."""
    return block.first <= max(1, block.last - block.first)


def _warm(blocks: BlockHistory) -> bool:
    """Return whether the learning rate's warm-up is over; a rate of 0 has its own rule."""
    rates = [abs(rate) for rate in blocks.known(_RATE)]
    return not rates or fmean(rates[: len(rates) // 2 + 1]) >= _WARM * max(rates) > 0


def _level(blocks: BlockHistory, line: _Line) -> bool:
    """Return whether neither the line nor the newest points suggest a gain, nor a fall."""
    if not _FALLS * line.alone < line.change < _LIKELY * line.error:
        return False
    levels = blocks.known(0)
    quarter = len(levels) // 4
    gain = fmean(levels[-quarter:]) - fmean(levels[:quarter])
    return gain <= _LIKELY * line.noise * math.sqrt(2 / quarter)


def _gained(blocks: BlockHistory, line: _Line) -> bool:
    """Return whether a reward has gained: over all, for a time, lately, or at once with its first
    points.
    """
    levels = blocks.known(0)
    starts = range(_FIRST, len(levels) - _NEWEST + 1)
    best = max(math.fsum(levels[at : at + _NEWEST]) for at in starts) / _NEWEST
    error = line.own * math.sqrt(1 / _FIRST + 1 / _NEWEST)
    if best - fmean(levels[:_FIRST]) > _HUMP * error:
        return True
    if line.change >= _GAINS * line.alone:
        return True
    newest = len(levels) - _NEWEST
    for at, sigmas in ((1, _BEGAN), (_FIRST, _BEGAN), (newest, _GAINS)):
        gain = fmean(levels[at:]) - fmean(levels[:at])
        error = line.noise * math.sqrt(1 / at + 1 / (len(levels) - at))
        if gain > sigmas * error:
            return True
    return False


def _others_gain(blocks: BlockHistory, columns: range) -> bool:
    """Return whether another score has gained: validation, or a part of the reward that others
    hide.
    """
    lines = (blocks.course(i) for i in columns)
    return any(line.t >= _GAINS and line.change > 0 for line in lines)


def _distance(blocks: BlockHistory) -> float:
    """Return the usual KL to the reference over the newer half, 0 where there is none."""
    return median(blocks[len(blocks) // 2 :].known(_KL) or [0.0])
