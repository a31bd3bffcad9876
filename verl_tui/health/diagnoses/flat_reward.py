"""A reward that has gained nothing since the run began, by statistics: its gain is bounded, not
only unseen.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.blocks import Blocks, InBlocks, Signs
from verl_tui.health.conditions.windows import Numbers, means, trend
from verl_tui.health.diagnoses.diagnosis import diagnosis
from verl_tui.health.finding import WORDS, filled
from verl_tui.health.limits import KL_COEF, kl_coefficient
from verl_tui.health.reward import gaining_components
from verl_tui.indicators import validation_keys
from verl_tui.means import median_along

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_BOUNDS = {"held-back": 0.5, "moved": 0.25, "": 0.1}
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
_NO_ENDS = (
    "the ends of the reward's scale are unknown, or 0 is its middle, as in self-play: "
    "no gain can be called small"
)


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


@diagnosis("nothing-learns/flat", "reward")
def nothing_learns(context: RuleContext, _: Rule) -> InBlocks:
    """Find a reward that has been level since the run's first points, and of which more than a
    small gain is ruled out.
    """
    reward = context.indicators["reward"]
    figure = reward.removesuffix("mean")
    keys = {
        "reward": reward,
        "kl": context.indicators.get("reference_kl"),
        "top": context.names.get(f"{figure}max"),
        "bottom": context.names.get(f"{figure}min"),
    }
    parts = gaining_components(context.run, reward)
    others = [*validation_keys(context.run.keys), *parts][:_MOST]
    keys |= {key: key for key in others}
    return InBlocks(
        keys, _find, kl_coefficient(context.run) or ("", 0.0), needs=10, patience=2
    )


def _find(blocks: Blocks, of: InBlocks) -> Signs:
    """Bound what the reward can have gained since the beginning, until it has gained, or where the
    log does not hold the run's beginning.
    """
    begins, lasts = np.zeros(blocks.size, bool), np.ones(blocks.size, bool)
    lines: dict[int, tuple[_Line, str]] = {}
    start = int(blocks.first[0])
    # Where a log begins late, it has learnt before.
    from_start = start <= max(1, blocks.last[of.needs - 1] - start)
    for at in range(of.needs - 1, blocks.size if from_start else 0):
        if (at + 1) % ((at + 1) // _OFTEN + 1):
            continue
        lasts[at] = False
        levels = _known(blocks.levels[0], at)
        if len(levels) < 4 or abs(levels).max() > _HUGE:
            continue
        line = _line(levels, _known(blocks.errors[0], at))
        if _gained(levels, line):
            lasts[at:] = False
            break
        others = blocks.levels[_OTHERS:]
        if all(trend(_known(one, at)).t < _GAINS for one in others):
            case, why = _reason(blocks, of, at)
            lines[at], lasts[at] = (line, why), True
            begins[at] = _is_flat(blocks, line, at, _BOUNDS[case])

    def facts(at: int, _: int) -> Mapping[str, object]:
        line, reason = lines[max(judged for judged in lines if judged <= at)]
        low, high = (line.change + way * line.error for way in (-_SIGMAS, _SIGMAS))
        own = {"steps": int(blocks.last[at]) - start + 1, "points": (at + 1) * of.size}
        figures = {"low": low, "high": high, "most": max(high, 0.0)}
        return {**own, **figures, **line._asdict(), "reason": reason}

    reason = None if _ends(blocks, blocks.size - 1) else _NO_ENDS
    return Signs(begins, lasts, lambda _: 0, facts, reason)


def _known(figures: Numbers, at: int) -> Numbers:
    """Return the figures of a metric up to a block, without blocks that lack it."""
    known: Numbers = figures[: at + 1]
    return known[~np.isnan(known)]


def _is_flat(blocks: Blocks, line: _Line, at: int, bound: float) -> bool:
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
    is_small = line.change + _SIGMAS * line.error <= bound * min(spread, left)
    return is_small and left > (1 - _SOLVED) * (high - low)


def _reason(blocks: Blocks, of: InBlocks, at: int) -> tuple[str, str]:
    """Return why the reward may be level, as a case and in words: a KL term that is stronger
    than the guide's, and costs much beside advantages; or nothing, although the policy has moved.
    """
    newer = _known(blocks.levels[_KL, (at + 1) // 2 :], at - (at + 1) // 2)
    far = float(median_along(newer)) if len(newer) else 0.0
    name, coefficient = of.of
    case = "moved" if far >= _MOVED else ""
    if coefficient > KL_COEF[1] and coefficient * far >= _COST:
        case = "held-back"
    words = WORDS["nothing-learns/flat"]["reasons"].get(case, "")
    facts = {"far": far, "name": name, "cost": coefficient * far}
    facts |= {"coefficient": coefficient, "least": KL_COEF[0], "most": KL_COEF[1]}
    return case, filled(words, facts)


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
