"""Bands around a baseline's figures, within which a run of the same kind is expected to stay."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.differences import direction, incomparable, within_run
from verl_tui.comparison.outcomes import KINDS, measure, usual_last
from verl_tui.comparison.seeds import grouped
from verl_tui.comparison.statistics import LEVEL, interval, jitter, of_seeds, t_quantile
from verl_tui.given_files import UsageError
from verl_tui.runs.views.alignment import Alignment, stops

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.comparison.outcomes import Figure, FigureKind, MeasuredRun
    from verl_tui.comparison.seeds import RunGroup
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run


_GREATEST = sys.float_info.max
_RECENT, _LOOKED_AT = 10, 2000
"""Number of last validations whose differences show how much a single one varies by chance, and of
steps in which they are searched for: heuristic.
"""


class Width(NamedTuple):
    """How far a figure may lie from the baseline's, on either side."""

    share: float
    """As a share of the baseline's value."""
    least: float = 0.0
    """In the figure's own unit: near 0, a share would be nothing."""
    fixed: bool = False
    """True if the user set it: then it is not widened by what may be chance."""


WIDTHS: Mapping[str, Width] = {
    "final_reward": Width(0.05, 0.01),
    "final_loss": Width(0.05, 0.01),
    "last_validation": Width(0.05, 0.01),
    "highest_policy_kl": Width(0.5, 0.01),
    "highest_reference_kl": Width(0.5, 0.01),
    "response_length": Width(0.2),
    "throughput": Width(0.1),
    "step_time": Width(0.1),
}
"""Figure -> its usual band: heuristic, wide enough for a repetition on the same machines."""


class Held(NamedTuple):
    """One figure of a run, compared with the baseline's."""

    figure: str
    value: float | None
    baseline: float
    low: float
    high: float
    unit: str
    breach: str
    """`worse`, `better` or `changed` outside the band, `missing` without a value, else empty."""


class NotHeld(NamedTuple):
    """A figure that is not compared with the baseline's."""

    figure: str
    reason: str


class Against(NamedTuple):
    """A run compared with a baseline."""

    baseline: tuple[str, ...]
    """Names of its runs."""
    step: int | None
    """The last step that all have reached, up to which all are measured."""
    last: int
    """Number of last logged values that means are made of."""
    figures: tuple[Held, ...]
    not_held: tuple[NotHeld, ...]


class BaselineError(UsageError):
    """The runs cannot be one baseline; the text is one sentence."""


def hold(
    run: Run,
    baseline: Sequence[Run],
    guide: Guide,
    widths: Mapping[str, Width] = WIDTHS,
    last: int | None = None,
) -> Against:
    """Compare a run with a baseline, both up to the last step that all have reached.

    Args:
        run: The run.
        baseline: One run, or several that differ only by their seed.
        guide: Knows the healthy bands.
        widths: Figure -> how far it may lie from the baseline's; others are not compared.
        last: Number of last logged values that means are made of; None: the usual.

    Raises:
        BaselineError: The baseline's runs differ by more than their seed.
    """
    runs = [run, *baseline]
    ends = stops(runs, Alignment.STEP)
    count = usual_last(runs, ends) if last is None else last
    mine, *others = measure(runs, ends, count, guide)
    groups = grouped(others)
    if len(groups) > 1:
        listed = ", ".join(group.name for group in groups)
        raise BaselineError(f"these runs differ by more than their seed: {listed}")
    held: list[Held] = []
    left: list[NotHeld] = []
    for id, width in widths.items():
        found = _held(KINDS[id], mine, groups[0], width, count)
        (held if isinstance(found, Held) else left).append(found)  # type: ignore[arg-type]
    names = tuple(one.name for one in baseline)
    return Against(names, ends[0].step, count, tuple(held), tuple(left))


def _held(
    kind: FigureKind, mine: MeasuredRun, base: RunGroup, width: Width, count: int
) -> Held | NotHeld:
    figure = mine.figures[kind.id]
    known = base.figures[kind.id]
    if known.value is None:
        return NotHeld(kind.id, "the baseline has none")
    if figure.value is not None and (
        reason := incomparable(kind, (mine, *base.members))
    ):
        return NotHeld(kind.id, reason)
    half = max(width.share * abs(known.value), width.least)
    if not width.fixed:
        half = max(half, _by_chance(kind, mine, base, count))
    low = max(-_GREATEST, known.value - half)
    high = min(_GREATEST, known.value + half)
    breach = _breach(figure, low, high, direction(kind, base.members))
    unit = figure.unit or known.unit or kind.unit
    return Held(kind.id, figure.value, known.value, low, high, unit, breach)


def _breach(figure: Figure, low: float, high: float, better: int) -> str:
    if figure.value is None:
        return "missing"
    if low <= figure.value <= high:
        return ""
    if not better:
        return "changed"
    if (figure.value > high) is (better > 0):
        return "better"
    return "worse"


def _by_chance(
    kind: FigureKind, mine: MeasuredRun, base: RunGroup, count: int
) -> float:
    """Return how far a run of the same kind may lie from the baseline by chance (95%): by the
    spread of the baseline's seeds, else by that of both runs' last values; 0 where neither is
    known.
    """
    seeds = of_seeds(base.values(kind.id))
    if seeds is not None:
        # A further run varies as the others do, beside the uncertainty of their mean.
        runs = seeds.freedom + 1
        error = seeds.error * math.sqrt(runs + 1)
        return _finite(t_quantile((1 + LEVEL) / 2, seeds.freedom) * error)
    if kind.id == "last_validation":
        return _single(kind, (mine, *base.members))
    one, other = (
        within_run(kind, members, count) if kind.is_mean else None
        for members in (base.members, (mine,))
    )
    if one is None or other is None:
        return 0.0
    found = interval(one, other)
    return _finite(found.estimate - found.low)


def _single(kind: FigureKind, runs: Sequence[MeasuredRun]) -> float:
    """Return how far two single values may lie apart by chance, by the differences within each
    run.
    """
    # In a table of all steps most have no validation: these values are not finite.
    values = [run.last_values(kind.indicator, _LOOKED_AT)[-_RECENT:] for run in runs]
    jumps = [found for found in map(jitter, values) if found is not None]
    if len(jumps) < len(runs):
        return 0.0
    freedom = min(map(len, values)) - 1
    return _finite(t_quantile((1 + LEVEL) / 2, freedom) * math.hypot(*jumps))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
