"""The differences between each group of runs and the baseline, with intervals where possible."""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.outcomes import FIGURES, LOSS, better_low, one_scale
from verl_tui.comparison.statistics import (
    Interval,
    Spread,
    interval,
    of_one_run,
    of_seeds,
)
from verl_tui.means import mean
from verl_tui.metrics import modern
from verl_tui.runs.views.identity import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.comparison.outcomes import FigureKind, MeasuredRun
    from verl_tui.comparison.seeds import RunGroup


DIFFERING = tuple(
    kind for kind in FIGURES if kind.indicator and kind.id != "best_reward"
)
"""Figures that are compared with the baseline's; the best reward is mostly that of the luckiest
batch.
"""


class Basis(Enum):
    """The evidence that an interval is based on."""

    SEEDS = "seeds"
    """Runs that differ only by their seed: it holds for further seeds."""
    WITHIN_RUN = "within run"
    """The last values of one run each: it does not hold for other seeds."""


class Difference(NamedTuple):
    """How much a group exceeds the baseline in one figure."""

    figure: str
    """Id of the figure."""
    group: str
    baseline: float
    value: float
    interval: Interval | None
    basis: Basis | None
    runs: tuple[int, int]
    """Number of runs with this figure: of the baseline, of the group."""
    verdict: str
    """`better`, `worse`, `higher`, `lower`, `no clear difference`, or empty without an interval."""
    reason: str = ""
    """Why there is no interval."""

    @property
    def change(self) -> float:
        """By how much it exceeds the baseline."""
        return self.value - self.baseline


def differences(base: RunGroup, other: RunGroup, count: int) -> Iterator[Difference]:
    """Yield how a group differs from the baseline, in the figures that both have and that mean the
    same.

    Args:
        base: The baseline.
        other: The group.
        count: Number of last logged values that means are made of.
    """
    for kind in DIFFERING:
        if incomparable(kind, (*base.members, *other.members)):
            continue
        ours, theirs = base.values(kind.id), other.values(kind.id)
        if not ours or not theirs:
            continue
        basis, found, reason = _interval(kind, base, other, count)
        better = direction(kind, base.members)
        yield Difference(
            figure=kind.id,
            group=other.name,
            baseline=mean(ours),
            value=mean(theirs),
            interval=found,
            basis=basis,
            runs=(len(ours), len(theirs)),
            verdict="" if found is None else interval_verdict(found, better),
            reason=reason,
        )


def incomparable(kind: FigureKind, runs: Sequence[MeasuredRun]) -> str:
    """Return why a figure does not mean the same in several runs; empty if it does."""
    having = [run for run in runs if run.figures[kind.id].value is not None]
    if kind.indicator == "reward" and not one_scale([one.run for one in having]):
        return (
            "rewards are on different scales: some are scores from 0 to 1, others go "
            "beyond"
        )
    units = (
        f"{kind.label} is in different units",
        lambda run: run.figures[kind.id].unit or "none",
    )
    for words, name in (_UNLIKE.get(kind.indicator, units), units):
        names = sorted({name(run) for run in having} - {None})
        if len(names) > 1:
            return f"{words}: {', '.join(names)}"
    return ""


def _algorithm(run: MeasuredRun) -> str | None:
    fact = identity(run.run).algorithm
    return None if fact is None else fact.value


_UNLIKE: Mapping[str, tuple[str, Callable[[MeasuredRun], Any]]] = {
    "validation": (
        "validations are of different metrics",
        lambda run: modern(run.key("validation") or "None"),
    ),
    LOSS: ("losses are of different algorithms", _algorithm),
}
"""Indicator -> words and a name that tells whether it means the same in all runs that have it."""


def direction(kind: FigureKind, runs: Sequence[MeasuredRun]) -> int:
    """Return 1 where more of a figure is better, -1 where less is, 0 where neither is."""
    if kind.indicator in ("reward", "validation"):
        return -1 if better_low([one.run for one in runs], kind.indicator) else 1
    return kind.better


def interval_verdict(found: Interval, better: int) -> str:
    """Return the verdict of an interval: none if it contains zero."""
    if not found.excludes_zero:
        return "no clear difference"
    if not better:
        return "higher" if found.estimate > 0 else "lower"
    return "better" if found.estimate * better > 0 else "worse"


def _interval(
    kind: FigureKind, base: RunGroup, other: RunGroup, count: int
) -> tuple[Basis | None, Interval | None, str]:
    """Return the interval of a difference and its evidence, or why there is none."""
    ours, theirs = of_seeds(base.values(kind.id)), of_seeds(other.values(kind.id))
    if ours is not None and theirs is not None:
        return Basis.SEEDS, interval(ours, theirs), ""
    if not kind.is_mean:
        return None, None, "a single value a run: two seeds or more of each would tell"
    one, two = (within_run(kind, group.members, count) for group in (base, other))
    if one is None or two is None:
        return None, None, "too few values logged for an interval"
    return Basis.WITHIN_RUN, interval(one, two), ""


def within_run(
    kind: FigureKind, runs: Sequence[MeasuredRun], count: int
) -> Spread | None:
    """Return the mean over runs with the uncertainty that their last values show, None where these
    are too few.
    """
    values = (run.last_values(kind.indicator, count) for run in runs)
    found = [of_one_run(known) for known in values if known]
    spreads = [spread for spread in found if spread is not None]
    if spreads and len(spreads) == len(found):
        return combined(spreads)
    return None


def combined(spreads: Sequence[Spread]) -> Spread:
    """Return the mean of independent means."""
    centre = mean([spread.mean for spread in spreads])
    count = len(spreads)
    error = math.hypot(*(spread.error for spread in spreads))
    if not error or not math.isfinite(error):
        return Spread(centre, error / count, sum(spread.freedom for spread in spreads))
    shares = math.fsum(
        (spread.error / error) ** 4 / spread.freedom for spread in spreads
    )
    return Spread(centre, error / count, 1 / shares)
