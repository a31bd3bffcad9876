"""A reward that stands still: neither it nor validation has had a trend for long, or it has gained
nothing since the run began, by statistics: its gain is bounded, not only unseen.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.windows import trend
from verl_tui.health.diagnoses.diagnosis import (
    InBlocks,
    Shown,
    Told,
    diagnosis,
    words_of,
)
from verl_tui.health.exemptions import RATES
from verl_tui.health.finding import filled
from verl_tui.health.limits import KL_COEF, kl_coefficient
from verl_tui.health.reward import gaining_components
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags, Numbers
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_KL, _TOP, _BOTTOM, _RATE, _OTHERS = 1, 2, 3, 4, 5
"""Columns behind the reward's."""
_MOST = 16
"""Most validation scores and parts of the reward to compare."""
_SIGMAS, _LIKELY = 2.0, 1.5
"""Standard errors on either side that make an interval of 95%, and from which on a gain is likely
enough to wait: heuristic.
"""
_FALLS, _GAINS = -3.0, 3.0
"""Standard errors of a fall, which is another fault, and that make a gain sure."""
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
_SOLVED = 0.9
"""Share of the scale from which on little is left to be gained: heuristic."""
_WARM = 0.5
"""Over its first half the learning rate must have been at half of its highest: else it is only just
warming up.
"""
_MIDDLE = 0.05
"""Share of a scale that is next to its middle."""
_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""
_OFTEN = 20
"""Blocks up to which every one is judged; later every second, third … one, as evidence grows with
the run.
"""
_BEGAN = 2.5
"""Standard deviations by which its first block must not lie below the others: it has learnt at
once, then.
"""
_FIRST, _NEWEST, _HUMP = 2, 3, 4.0
"""Blocks that it began with, those in which a gain shows that is not there over all, and standard
errors by which the best of these must lie above the first.
"""


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
    def high(self) -> float:
        """Largest gain that is not ruled out."""
        return self.change + _SIGMAS * self.error


@diagnosis("nothing-learns/flat", "reward")
def nothing_learns(context: RuleContext, _: Rule) -> InBlocks | str:
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
    )
    parts = gaining_components(context.run, reward)
    others = [*validation_keys(context.run.keys), *parts][:_MOST]
    keys = (reward, *figures, *others)
    return InBlocks(keys, _find, kl_coefficient(context.run), needs=10, patience=2)


def _find(blocks: Blocks, of: InBlocks) -> Shown:
    """Bound what the reward can have gained since the beginning, until it has gained, or where the
    log does not hold the run's beginning.
    """
    begins, lasts = np.zeros(blocks.size, bool), np.ones(blocks.size, bool)
    lines: dict[int, tuple[_Line, str]] = {}
    start = int(blocks.first[0])
    if start > max(1, blocks.last[of.needs - 1] - start):
        lasts[:] = False  # it has learnt before
        return Shown(begins, lasts, lambda _: start, lambda *_: Told({}))
    for at in range(of.needs - 1, blocks.size):
        if (at + 1) % ((at + 1) // _OFTEN + 1):
            continue
        lasts[at] = False
        levels = _known(blocks.levels, 0, at)
        if len(levels) < 4:
            continue  # most rewards are not finite
        line = _line(levels, _known(blocks.errors, 0, at))
        if line is None or _gained(levels, line):
            lasts[at:] = False
            break
        others = [trend(_known(one[None], 0, at)).t for one in blocks.levels[_OTHERS:]]
        if max(others, default=0.0) < _GAINS:
            case, why = _reason(blocks, of, at)
            lines[at] = line, why
            lasts[at] = True
            begins[at] = _is_flat(blocks, line, at, case)

    def told(at: int, since: int) -> Told:
        at = max(judged for judged in lines if judged <= at)
        line, reason = lines[at]
        return Told(
            {
                "steps": int(blocks.last[at]) - start + 1,
                "points": (at + 1) * of.size,
                "mean": line.mean,
                "change": line.change,
                "low": line.change - _SIGMAS * line.error,
                "high": line.high,
                "most": max(line.high, 0.0),
                "reason": reason,
            },
            since=since,
            key=of.keys[0],
        )

    reason = None if _ends(blocks, blocks.size - 1) else _NO_ENDS
    return Shown(begins, lasts, lambda _: start, told, reason)


_NO_ENDS = (
    "the ends of the reward's scale are unknown, or 0 is its middle, as in self-play: "
    "no gain can be called small"
)


def _known(figures: Numbers, i: int, at: int) -> Numbers:
    """Return the figures of a metric up to a block, without blocks that lack it."""
    known: Numbers = figures[i, : at + 1]
    return known[~np.isnan(known)]


def _is_flat(blocks: Blocks, line: _Line, at: int, case: str) -> bool:
    """Return whether a gain is ruled out for a reward that still has something to gain: it does not
    warm up, and neither the line nor the newest points suggest a gain, nor a fall.
    """
    ends = _ends(blocks, at)
    levels, rates = _known(blocks.levels, 0, at), abs(_known(blocks.levels, _RATE, at))
    quarter = len(levels) // 4
    lately = levels[-quarter:].mean() - levels[:quarter].mean()
    is_cold = len(rates) and rates[: len(rates) // 2 + 1].mean() < _WARM * rates.max()
    moves = not _FALLS * line.alone < line.change < _LIKELY * line.error
    if (
        ends is None
        or is_cold
        or moves
        or lately > _LIKELY * line.noise * math.sqrt(2 / quarter)
    ):
        return False
    low, high = ends
    left = high - line.mean
    # The largest spread that scores of this mean between these ends can have (Bhatia and Davis
    # 2000).
    spread = math.sqrt(max(0.0, left * (line.mean - low)))
    share = {"held-back": _HELD, "moved": _BOUND}.get(case, _STRICT)
    return left > (1 - _SOLVED) * (high - low) and line.high <= share * min(
        spread, left
    )


def _reason(blocks: Blocks, of: InBlocks, at: int) -> tuple[str, str]:
    """Return why it may have gained nothing, as a case and in words: a KL term that is stronger
    than the guide's, and costs much beside advantages; or nothing, although the policy has moved.
    """
    newer = blocks.levels[_KL, (at + 1) // 2 : at + 1]
    newer = newer[~np.isnan(newer)]
    far = float(np.median(newer)) if len(newer) else 0.0
    name, coefficient = of.of or ("", 0.0)
    case = "moved" if far >= _MOVED else ""
    if coefficient > KL_COEF[1] and coefficient * far >= _COST:
        case = "held-back"
    facts = {
        "far": far,
        "name": name,
        "coefficient": coefficient,
        "cost": coefficient * far,
        "least": KL_COEF[0],
        "most": KL_COEF[1],
    }
    return case, filled(words_of("nothing-learns/flat", case).get("reason", ""), facts)


def _ends(blocks: Blocks, at: int) -> tuple[float, float] | None:
    """Return the ends of the reward's scale: the extremes of single scores where they are logged,
    or 0 and 1. None where they are unknown, or the reward is in the middle between wins and
    defeats, which is where players who are equals stay.
    """
    mean, _, top, bottom, _ = blocks.levels[:_OTHERS, at].tolist()
    low, high = float(blocks.lowest[0, at]), float(blocks.highest[0, at])
    if math.isfinite(top + bottom):
        low = min(float(blocks.lowest[_BOTTOM, at]), low)
        high = max(float(blocks.highest[_TOP, at]), high)
        near = _MIDDLE * (high - low)
        is_draw = low < 0 and abs(low + high) <= near and abs(mean) <= near
        return None if is_draw else (low, high)
    return (0.0, 1.0) if 0.0 <= low <= high <= 1.0 else None


def _line(levels: Numbers, within: Numbers) -> _Line | None:
    """Fit a line through the reward's levels, None where these are too large for squares."""
    if abs(levels).max() > _HUGE:
        return None
    count, mean = len(levels), fmean(levels.tolist())
    middle = np.arange(count) - (count - 1) / 2
    spread = count * (count * count - 1) / 12
    slope = math.fsum(middle * levels) / spread  # exact: of what is level it is 0
    rest = levels - mean - slope * middle
    squares = math.fsum(rest * rest)
    own = math.sqrt((within * within).mean()) if len(within) else 0.0
    noise = max(math.sqrt(squares / (count - 2)), own)
    # Correlated neighbours hold less information than their number suggests.
    shared = math.fsum(rest[:-1] * rest[1:]) / squares if squares else 0.0
    shared = min(0.9, max(0.0, shared))
    alone = noise * (count - 1) / math.sqrt(spread)
    error = alone * math.sqrt((1 + shared) / (1 - shared))
    return _Line(mean, slope * (count - 1), error, alone, noise, own)


def _gained(levels: Numbers, line: _Line) -> bool:
    """Return whether a reward has gained: over all, for a time, or at once behind its first
    points.
    """
    best = np.convolve(levels[_FIRST:], np.ones(_NEWEST) / _NEWEST, "valid").max(
        initial=-np.inf
    )
    error = line.own * math.sqrt(1 / _FIRST + 1 / _NEWEST)
    if best - levels[:_FIRST].mean() > _HUMP * error:
        return True
    return line.change >= _GAINS * line.alone


_FLAT_T = 2.0
"""Below two standard errors a slope is no trend."""
_VALIDATIONS = 5
"""Validations in the window without which their trend is not known: heuristic."""
_MOST_VALIDATIONS, _SIZE = 8, 20


@diagnosis("plateau", "reward")
def plateau(context: RuleContext, rule: Rule) -> InBlocks:
    """Find a window in which neither the reward nor any validation score has a trend."""
    validations = validation_keys(context.run.keys)[:_MOST_VALIDATIONS]
    keys = (context.indicators["reward"], *validations)
    needs = max(4, rule.window // _SIZE)
    return InBlocks(keys, _find_plateau, size=_SIZE, needs=needs, patience=2)


def _find_plateau(blocks: Blocks, of: InBlocks) -> Shown:
    slopes = [blocks.slopes(i, of.needs) for i in range(len(of.keys))]
    counts, changes, t = map(np.array, zip(*slopes, strict=True))
    is_flat = (counts >= _VALIDATIONS) & (abs(t) < _FLAT_T)
    flat: Flags = np.logical_and.reduce(is_flat)

    def told(at: int, since: int) -> Told:  # noqa: ARG001 - the window moves on
        start = at + 1 - of.needs
        first, last = int(blocks.first[start]), int(blocks.last[at])
        others = "validation shows none either"
        return Told(
            {
                "steps": last - first + 1,
                "mean": float(np.nanmean(blocks.levels[0, start : at + 1])),
                "change": float(changes[0, at]),
                "validated": others
                if len(of.keys) > 1
                else "the log has no validation",
            },
            [
                f"{key}: slope {slope:+.1f} standard errors from level over {of.needs} "
                f"blocks of {of.size} points"
                for key, slope in zip(of.keys, t[:, at], strict=True)
            ],
            key=of.keys[0],
        )

    few = [
        key
        for key, count in zip(of.keys, counts[:, -1], strict=True)
        if count < _VALIDATIONS
    ]
    last = f"validations in the last {of.needs * of.size} points"
    reason = f"needs {_VALIDATIONS} {last}, {few[0]} has fewer" if few else None
    return Shown(
        flat, flat, lambda at: int(blocks.first[at + 1 - of.needs]), told, reason
    )
