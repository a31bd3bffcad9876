"""Bands around a baseline's figures, within which a run of the same kind is expected to stay."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.differences import within_run
from verl_tui.comparison.outcomes import KINDS, direction, incomparable, measure
from verl_tui.comparison.settings import RunGroup, grouped
from verl_tui.comparison.statistics import Spread, combined, of_seeds
from verl_tui.given_files import UsageError
from verl_tui.runs.time.step_clocks import Alignment, stops

if TYPE_CHECKING:
    from verl_tui.comparison.outcomes import FigureKind, MeasuredRun
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run


_GREATEST = sys.float_info.max
_LEAST_RECENT, _RECENT, _LOOKED_AT = 5, 10, 2000
"""Fewest and most of the last validations whose differences show how much a single one varies by
chance, and the steps in which they are searched for: heuristic.
"""


class Width(NamedTuple):
    """How far a figure may lie from the baseline's, on either side."""

    share: float
    """As a share of the baseline's value."""
    least: float = 0.0
    """In the figure's own unit: near 0, a share would be nothing."""
    fixed: bool = False
    """True if the user set it: then it is not widened by what may be chance."""


WIDTHS = {id: Width(kind.band, kind.least) for id, kind in KINDS.items() if kind.band}
"""Figure -> its usual band."""


class Held(NamedTuple):
    """One figure of a run, compared with the baseline's."""

    figure: str
    value: float | None
    baseline: float
    low: float
    high: float
    unit: str
    breach: str | None
    """`worse`, `better` or `changed` outside the band, `missing` without a value, else None."""


class Against(NamedTuple):
    """A run compared with a baseline, as JSON has it."""

    baseline: Sequence[str]
    """Names of its runs."""
    step: int | None
    """The last step that all have reached, up to which all are measured."""
    last: int
    """Number of last logged values that means are made of."""
    figures: Sequence[Held]
    not_compared: Sequence[Mapping[str, str]]
    """A `figure` and a `reason` each."""


def hold(
    run: Run,
    baseline: Sequence[Run],
    guide: Guide,
    widths: Mapping[str, Width] = WIDTHS,
) -> Against:
    """Compare a run with a baseline, both up to the last step that all have reached.

    Args:
        run: The run.
        baseline: One run, or several that differ only by their seed.
        guide: Knows the healthy bands.
        widths: Figure -> how far it may lie from the baseline's; others are not compared.

    Raises:
        UsageError: The baseline's runs differ by more than their seed.
    """
    runs = [run, *baseline]
    mine, *others = measure(runs, stops(runs, Alignment.STEP), guide)
    base, *further = grouped(others)
    if further:
        listed = ", ".join(group.name for group in (base, *further))
        raise UsageError(f"these runs differ by more than their seed: {listed}")
    held: list[Held] = []
    left: list[Mapping[str, str]] = []
    for id, width in widths.items():
        kind, reason = KINDS[id], ""
        if base.figures[id].value is None:
            reason = "the baseline has none"
        elif mine.figures[id].value is not None:
            reason = incomparable(kind, (mine, *base.members))
        if reason:
            left.append({"figure": id, "reason": reason})
        else:
            held.append(_held(kind, mine, base, width))
    names = [one.name for one in baseline]
    return Against(names, mine.stop.step, mine.count, held, left)


def _held(kind: FigureKind, mine: MeasuredRun, base: RunGroup, width: Width) -> Held:
    figure, known = mine.figures[kind.id], base.figures[kind.id]
    centre = known.value or 0.0
    half = max(width.share * abs(centre), width.least)
    if not width.fixed:
        reach = _by_chance(kind, mine, base)
        half = max(half, reach if math.isfinite(reach) else 0.0)
    low, high = max(-_GREATEST, centre - half), min(_GREATEST, centre + half)
    breach = _breach(figure.value, low, high, direction(kind, base.members))
    unit = figure.unit or known.unit or kind.unit
    return Held(kind.id, figure.value, centre, low, high, unit, breach)


def _breach(value: float | None, low: float, high: float, better: int) -> str | None:
    if value is None:
        return "missing"
    if low <= value <= high:
        return None
    if not better:
        return "changed"
    return "better" if (value > high) is (better > 0) else "worse"


def _by_chance(kind: FigureKind, mine: MeasuredRun, base: RunGroup) -> float:
    """Return how far a run of the same kind may lie from the baseline by chance (95%): by the
    spread of the baseline's seeds, else by that of both runs' last values; 0 where neither is
    known.
    """
    seeds = of_seeds(base.values(kind.id))
    if seeds is not None:
        # A further run varies as the others do, beside the uncertainty of their mean.
        return seeds._replace(error=seeds.error * math.sqrt(seeds.freedom + 2)).reach
    sides = [within_run(kind, one) for one in (base.members, (mine,))]
    if kind.id == "last_validation":
        sides = [_single(one, kind.indicator) for one in (*base.members, mine)]
    elif kind.of != "mean":
        return 0.0
    known = [(1.0, side) for side in sides if side is not None]
    return combined(*known).reach if len(known) == 2 else 0.0


def _single(run: MeasuredRun, indicator: str) -> Spread | None:
    """Return how a single value varies, by the differences of consecutive ones (von Neumann, Annals
    of Mathematical Statistics 12, 1941); None where they are few.
    """
    # In a table of all steps most have no validation: these values are not finite.
    values = run.last_values(indicator, _LOOKED_AT)[-_RECENT:]
    if len(values) < _LEAST_RECENT:
        return None
    jumps = [after - before for before, after in pairwise(values)]
    spread = math.hypot(*jumps) / math.sqrt(2 * len(jumps))
    return Spread(values[-1], spread, len(jumps))
