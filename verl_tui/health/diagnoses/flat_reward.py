"""A reward that stands still: neither it nor validation has had a trend for long, or it has gained
nothing since the run began, by statistics: its gain is bounded, not only unseen.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.windows import means, trend
from verl_tui.health.diagnoses.diagnosis import (
    InBlocks,
    Shown,
    Told,
    diagnosis,
    words_of,
)
from verl_tui.health.finding import filled
from verl_tui.health.limits import KL_COEF, kl_coefficient
from verl_tui.health.reward import gaining_components
from verl_tui.indicators import validation_keys
from verl_tui.means import median_along

if TYPE_CHECKING:
    from verl_tui.health.conditions.windows import Blocks, Flags, Numbers
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_KL, _TOP, _BOTTOM, _OTHERS = 1, 2, 3, 4
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
_MIDDLE = 0.05
"""Share of a scale that is next to its middle."""
_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""
_OFTEN = 20
"""Blocks up to which every one is judged; later every second, third … one, as evidence grows with
the run.
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
    own: float
    """Standard deviation of a block's level by the points within blocks: without the changes of the
    course itself.
    """

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
        levels, others = _known(blocks.levels[0], at), blocks.levels[_OTHERS:]
        if len(levels) < 4 or abs(levels).max() > _HUGE:
            continue
        line = _line(levels, _known(blocks.errors[0], at))
        if _gained(levels, line):
            lasts[at:] = False
            break
        if all(trend(_known(one, at)).t < _GAINS for one in others):
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


def _known(figures: Numbers, at: int) -> Numbers:
    """Return the figures of a metric up to a block, without blocks that lack it."""
    known: Numbers = figures[: at + 1]
    return known[~np.isnan(known)]


def _is_flat(blocks: Blocks, line: _Line, at: int, case: str) -> bool:
    """Return whether a gain is ruled out for a reward that still has something to gain: its line
    suggests neither a gain nor a fall.
    """
    ends = _ends(blocks, at)
    if ends is None or not _FALLS * line.alone < line.change < _LIKELY * line.error:
        return False
    low, high = ends
    left = high - line.mean
    # The largest spread that scores of this mean between these ends can have (Bhatia and Davis
    # 2000).
    spread = math.sqrt(max(0.0, left * (line.mean - low)))
    share = {"held-back": _HELD, "moved": _BOUND}.get(case, _STRICT)
    most = share * min(spread, left)
    return left > (1 - _SOLVED) * (high - low) and line.high <= most


def _reason(blocks: Blocks, of: InBlocks, at: int) -> tuple[str, str]:
    """Return why it may have gained nothing, as a case and in words: a KL term that is stronger
    than the guide's, and costs much beside advantages; or nothing, although the policy has moved.
    """
    newer = _known(blocks.levels[_KL, (at + 1) // 2 :], at - (at + 1) // 2)
    far = float(median_along(newer)) if len(newer) else 0.0
    name, coefficient = of.of or ("", 0.0)
    case = "moved" if far >= _MOVED else ""
    if coefficient > KL_COEF[1] and coefficient * far >= _COST:
        case = "held-back"
    least, most = KL_COEF
    facts = {"far": far, "name": name, "cost": coefficient * far, "least": least}
    facts |= {"coefficient": coefficient, "most": most}
    return case, filled(words_of("nothing-learns/flat", case).get("reason", ""), facts)


def _ends(blocks: Blocks, at: int) -> tuple[float, float] | None:
    """Return the ends of the reward's scale: the extremes of single scores where they are logged,
    or 0 and 1. None where they are unknown, or the reward is in the middle between wins and
    defeats, which is where players who are equals stay.
    """
    low, high = float(blocks.lowest[0, at]), float(blocks.highest[0, at])
    if np.isnan(blocks.levels[_TOP : _BOTTOM + 1, at]).any():
        return (0.0, 1.0) if 0.0 <= low <= high <= 1.0 else None
    low = min(float(blocks.lowest[_BOTTOM, at]), low)
    high = max(float(blocks.highest[_TOP, at]), high)
    near, mean = _MIDDLE * (high - low), float(blocks.levels[0, at])
    is_draw = low < 0 and abs(low + high) <= near and abs(mean) <= near
    return None if is_draw else (low, high)


def _line(levels: Numbers, within: Numbers) -> _Line:
    """Fit a line through the reward's levels."""
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
    return _Line(mean, slope * (count - 1), error, alone, own)


def _gained(levels: Numbers, line: _Line) -> bool:
    """Return whether a reward has gained: over all, for a time, or at once behind its first
    points.
    """
    best = means(levels[_FIRST:], _NEWEST)[_NEWEST - 1 :].max(initial=-np.inf)
    error = line.own * math.sqrt(1 / _FIRST + 1 / _NEWEST)
    is_hump = bool(best - levels[:_FIRST].mean() > _HUMP * error)
    return is_hump or line.change >= _GAINS * line.alone


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

    def told(at: int, _: int) -> Told:
        start = at + 1 - of.needs
        steps = int(blocks.last[at]) - int(blocks.first[start]) + 1
        has = "validation shows none either"
        return Told(
            {
                "steps": steps,
                "mean": float(np.nanmean(blocks.levels[0, start : at + 1])),
                "change": float(changes[0, at]),
                "validated": has if len(of.keys) > 1 else "the log has no validation",
            },
            [
                f"{key}: slope {slope:+.1f} standard errors from level over {of.needs} "
                f"blocks of {of.size} points"
                for key, slope in zip(of.keys, t[:, at], strict=True)
            ],
            key=of.keys[0],
        )

    few = [key for at, key in enumerate(of.keys) if counts[at, -1] < _VALIDATIONS]
    last = f"validations in the last {of.needs * of.size} points"
    reason = f"needs {_VALIDATIONS} {last}, {few[0]} has fewer" if few else None
    return Shown(
        flat, flat, lambda at: int(blocks.first[at + 1 - of.needs]), told, reason
    )
