"""The differences between each group of runs and the baseline, with intervals where possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.outcomes import FIGURES, direction, incomparable
from verl_tui.comparison.statistics import Spread, combined, of_one_run, of_seeds
from verl_tui.means import mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.comparison.outcomes import FigureKind, MeasuredRun
    from verl_tui.comparison.settings import RunGroup

SEEDS, WITHIN_RUN = "seeds", "within run"
"""What an interval is based on: runs that differ only by their seed, so that it holds for further
seeds, or the last values of one run each.
"""


class Difference(NamedTuple):
    """How much a group exceeds the baseline in one figure, as JSON has it."""

    group: str
    figure: str
    """Id of the figure."""
    baseline: float
    value: float
    difference: float
    low: float | None
    """Where its interval begins, None without one."""
    high: float | None
    basis: str | None
    """`SEEDS` or `WITHIN_RUN`."""
    n: tuple[int, int]
    """Number of runs with this figure: of the baseline, of the group."""
    verdict: str | None
    """`better`, `worse`, `higher`, `lower`, `no clear difference`."""
    reason: str | None
    """Why there is no interval."""


def differences(base: RunGroup, other: RunGroup, count: int) -> Iterator[Difference]:
    """Yield how a group differs from the baseline, in the figures that both have and that mean the
    same.

    Args:
        base: The baseline.
        other: The group.
        count: Number of last logged values that means are made of.
    """
    for kind in FIGURES:
        ours, theirs = base.values(kind.id), other.values(kind.id)
        # The best reward is mostly that of the luckiest batch.
        known = kind.indicator and kind.id != "best_reward" and ours and theirs
        if not known or incomparable(kind, (*base.members, *other.members)):
            continue
        one, two = mean(ours), mean(theirs)
        change = two - one
        basis, spread, reason = _spread(kind, base, other, count)
        low = high = verdict = None
        if spread is not None:
            low, high = change - spread.reach, change + spread.reach
            verdict = _verdict(low, high, direction(kind, base.members))
        runs = len(ours), len(theirs)
        yield Difference(
            *(other.name, kind.id, one, two, change, low, high, basis, runs, verdict),
            reason,
        )


def _verdict(low: float, high: float, better: int) -> str:
    """Return the verdict of an interval: none if it contains zero."""
    if not (low > 0 or high < 0):
        return "no clear difference"
    if not better:
        return "higher" if low > 0 else "lower"
    return "better" if (low > 0) is (better > 0) else "worse"


def _spread(
    kind: FigureKind, base: RunGroup, other: RunGroup, count: int
) -> tuple[str | None, Spread | None, str | None]:
    """Return the evidence of a difference and how certain it is, or why that is unknown."""
    basis = SEEDS
    ours, theirs = (of_seeds(group.values(kind.id)) for group in (base, other))
    if ours is None or theirs is None:
        if kind.of != "mean":
            return (
                None,
                None,
                "a single value a run: two seeds or more of each would tell",
            )
        basis = WITHIN_RUN
        ours, theirs = (within_run(kind, one.members, count) for one in (base, other))
    if ours is None or theirs is None:
        return None, None, "too few values logged for an interval"
    return basis, combined((-1, ours), (1, theirs)), None


def within_run(
    kind: FigureKind, runs: Sequence[MeasuredRun], count: int
) -> Spread | None:
    """Return the mean over runs with the uncertainty that their last values show, None where these
    are too few.
    """
    values = (run.last_values(kind.indicator, count) for run in runs)
    found = [of_one_run(known) for known in values if known]
    spreads = [(1 / len(found), spread) for spread in found if spread is not None]
    return combined(*spreads) if spreads and len(spreads) == len(found) else None
