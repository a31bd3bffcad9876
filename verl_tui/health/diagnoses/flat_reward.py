"""A reward that stands still: neither it nor validation has had a trend for long, or it has gained
nothing since the run began, by statistics: its gain is bounded, not only unseen.
"""

from __future__ import annotations

import math
from itertools import compress
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.diagnoses.diagnosis import (
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
    words_of,
)
from verl_tui.health.exemptions import RATES
from verl_tui.health.finding import filled
from verl_tui.health.limits import KL_COEF, kl_coefficient
from verl_tui.health.reward import gaining_components
from verl_tui.indicators import validation_keys
from verl_tui.means import finite

if TYPE_CHECKING:
    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.guide import Rule
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


@diagnosis("nothing-learns/flat", "reward")
def nothing_learns(context: RuleContext, _: Rule) -> InBlocks:
    """Find a reward that has been level since the run's first points, and of which more than a
    small gain is ruled out.
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
    keys = (reward, *figures, *others)
    return InBlocks(keys, _find, kl_coefficient(context.run), needs=10, patience=2)


def _find(blocks: Blocks, of: InBlocks) -> Onsets:
    """Bound what the reward can have gained since the beginning, until it has gained, or where the
    log does not hold the run's beginning.
    """
    begins, lasts = np.zeros(len(blocks), bool), np.ones(len(blocks), bool)
    counts = np.arange(of.needs, len(blocks) + 1)
    counts = counts[counts % (counts // _OFTEN + 1) == 0]
    lines: dict[int, _Line] = {}
    for count in counts.tolist():
        known = blocks[:count]
        lasts[count - 1] = False
        if len(known.known(0)) < _LINE:
            continue  # most rewards are not finite
        is_huge = max(map(abs, known.reach(0))) > _HUGE
        if is_huge or not _begins(known) or _gained(known, line := _line(known)):
            lasts[count - 1 :] = False
            break
        if not _others_gain(known, range(_OTHERS, len(of.keys))):
            lines[count - 1] = line
            lasts[count - 1] = True
            begins[count - 1] = _is_flat(known, line, of)

    def told(at: int, since: int) -> Told:
        at = max(judged for judged in lines if judged <= at)
        line, first = lines[at], int(blocks.first[0])
        return Told(
            {
                "steps": int(blocks.last[at]) - first + 1,
                "points": (at + 1) * of.size,
                "mean": line.mean,
                "change": line.change,
                "low": line.low,
                "high": line.high,
                "most": max(line.high, 0.0),
                "reason": _reason(blocks[: at + 1], of),
            },
            since=since,
            key=of.keys[0],
        )

    reason = None if _ends(blocks) else _NO_ENDS
    return Onsets(begins, lambda _: Onset(int(blocks.first[0]), lasts, told), reason)


_NO_ENDS = (
    "the ends of the reward's scale are unknown, or 0 is its middle, as in self-play: "
    "no gain can be called small"
)


def _is_flat(blocks: Blocks, line: _Line, of: InBlocks) -> bool:
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
    share = _BOUND if _distance(blocks) >= _MOVED else _STRICT
    share = _HELD if _held_back(blocks, of) else share
    return line.high <= share * min(spread, left)


def _held_back(blocks: Blocks, of: InBlocks) -> bool:
    """Return whether the KL term is stronger than the guide's, and its cost matters beside
    advantages.
    """
    _, coefficient = of.of or ("", 0.0)
    return coefficient > KL_COEF[1] and coefficient * _distance(blocks) >= _COST


def _reason(blocks: Blocks, of: InBlocks) -> str:
    far = _distance(blocks)
    case = "moved" if far >= _MOVED else ""
    facts: dict[str, object] = {"far": far, "least": KL_COEF[0], "most": KL_COEF[1]}
    if _held_back(blocks, of):
        case, (name, coefficient) = "held-back", of.of
        facts |= {"name": name, "coefficient": coefficient, "cost": coefficient * far}
    return filled(words_of("nothing-learns/flat", case).get("reason", ""), facts)


def _ends(blocks: Blocks) -> tuple[float, float] | None:
    """Return the ends of the reward's scale: the extremes of single scores where they are logged,
    or 0 and 1. None where they are unknown, or the reward is in the middle between wins and
    defeats, which is where players who are equals stay.
    """
    levels = blocks.levels[:, -1].tolist()
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


def _line(blocks: Blocks) -> _Line:
    """Fit a line through the reward's levels."""
    levels = np.array(blocks.known(0))
    count, mean = len(levels), fmean(levels)
    middle = np.arange(count) - (count - 1) / 2
    spread = count * (count * count - 1) / 12
    slope = math.fsum(middle * levels) / spread  # exact: of what is level it is 0
    rest = levels - mean - slope * middle
    squares = math.fsum(rest * rest)
    within = finite(blocks.errors[0].tolist())
    own = math.sqrt(fmean(error * error for error in within)) if within else 0.0
    noise = max(math.sqrt(squares / (count - 2)), own)
    # Correlated neighbours hold less information than their number suggests.
    shared = math.fsum(rest[:-1] * rest[1:]) / squares if squares else 0.0
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


def _begins(blocks: Blocks) -> bool:
    """Return whether a log holds the run's beginning: otherwise it may have learnt before."""
    first, last = blocks.first[0], blocks.last[0]
    return bool(first <= max(1, last - first))


def _warm(blocks: Blocks) -> bool:
    """Return whether the learning rate's warm-up is over; a rate of 0 has its own rule."""
    rates = [abs(rate) for rate in blocks.known(_RATE)]
    return not rates or fmean(rates[: len(rates) // 2 + 1]) >= _WARM * max(rates) > 0


def _level(blocks: Blocks, line: _Line) -> bool:
    """Return whether neither the line nor the newest points suggest a gain, nor a fall."""
    if not _FALLS * line.alone < line.change < _LIKELY * line.error:
        return False
    levels = blocks.known(0)
    quarter = len(levels) // 4
    gain = fmean(levels[-quarter:]) - fmean(levels[:quarter])
    return gain <= _LIKELY * line.noise * math.sqrt(2 / quarter)


def _gained(blocks: Blocks, line: _Line) -> bool:
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


def _others_gain(blocks: Blocks, columns: range) -> bool:
    """Return whether another score has gained: validation, or a part of the reward that others
    hide.
    """
    lines = (blocks.course(i) for i in columns)
    return any(line.t >= _GAINS and line.change > 0 for line in lines)


def _distance(blocks: Blocks) -> float:
    """Return the usual KL to the reference over the newer half, 0 where there is none."""
    return median(blocks[len(blocks) // 2 :].known(_KL) or [0.0])


_FLAT_T = 2.0
"""Below two standard errors a slope is no trend."""
_VALIDATIONS = 5
"""Validations in the window without which their trend is not known: heuristic."""
_MOST_VALIDATIONS = 8
_SIZE = 20
_VALIDATED = ("the log has no validation", "validation shows none either")


@diagnosis("plateau", "reward")
def plateau(context: RuleContext, rule: Rule) -> InBlocks:
    """Find a window in which neither the reward nor any validation score has a trend."""
    validations = validation_keys(context.run.keys)[:_MOST_VALIDATIONS]
    keys = (context.indicators["reward"], *validations)
    needs = max(4, rule.window // _SIZE)
    return InBlocks(keys, _find_plateau, size=_SIZE, needs=needs, patience=2)


def _find_plateau(blocks: Blocks, of: InBlocks) -> Onsets:
    places = np.arange(len(blocks))
    slopes = [blocks.slopes(i, places, of.needs) for i in range(len(of.keys))]
    counts, changes, t = map(np.array, zip(*slopes, strict=True))
    is_flat = (counts >= _VALIDATIONS) & (abs(t) < _FLAT_T)
    flat: Flags = np.logical_and.reduce(is_flat)

    def told(at: int, since: int) -> Told:  # noqa: ARG001 - the window moves on
        window = blocks[at + 1 - of.needs : at + 1]
        first, last = int(window.first[0]), int(window.last[-1])
        return Told(
            {
                "steps": last - first + 1,
                "mean": fmean(window.known(0)),
                "change": float(changes[0, at]),
                "validated": _VALIDATED[len(of.keys) > 1],
            },
            [
                f"{key}: slope {slope:+.1f} standard errors from level over {len(window)} "
                f"blocks of {of.size} points"
                for key, slope in zip(of.keys, t[:, at], strict=True)
            ],
            key=of.keys[0],
        )

    def sign(at: int) -> Onset:
        return Onset(int(blocks.first[at + 1 - of.needs]), flat, told)

    few = [*compress(of.keys[1:], counts[1:, -1] < _VALIDATIONS)]
    last = f"validations in the last {of.needs * of.size} points"
    reason = f"needs {_VALIDATIONS} {last}, {few[0]} has fewer" if few else None
    return Onsets(flat, sign, reason)
