"""The differences between each group of runs and the baseline, with intervals where possible; the
bands around a baseline; and which setting goes with which outcome, by ranks, over groups of runs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.outcomes import (
    FIGURES,
    KINDS,
    FigureKind,
    MeasuredRun,
    direction,
    incomparable,
    measure,
)
from verl_tui.comparison.settings import ABSENT, RunGroup, difference, grouped, is_own
from verl_tui.comparison.statistics import Spread, combined, of_one_run, of_seeds
from verl_tui.given_files import UsageError
from verl_tui.means import gathered, mean
from verl_tui.runs.settings import number
from verl_tui.runs.time.step_clocks import Alignment, stops
from verl_tui.runs.views.identity import short
from verl_tui.words import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run


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


def differences(base: RunGroup, other: RunGroup) -> Iterator[Difference]:
    """Yield how a group differs from the baseline, in the figures that both have and that mean the
    same.
    """
    for kind in FIGURES:
        ours, theirs = base.values(kind.id), other.values(kind.id)
        # The best reward is mostly that of the luckiest batch.
        known = kind.indicator and kind.id != "best_reward" and ours and theirs
        if not known or incomparable(kind, (*base.members, *other.members)):
            continue
        one, two = mean(ours), mean(theirs)
        change = two - one
        basis, spread, reason = _spread(kind, base, other)
        low = high = verdict = None
        if spread:
            low, high = change - spread.reach, change + spread.reach
            verdict = _verdict(low, high, direction(kind, base.members))
        runs = len(ours), len(theirs)
        yield Difference(
            other.name,
            kind.id,
            one,
            two,
            change,
            low,
            high,
            basis,
            runs,
            verdict,
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
    kind: FigureKind, base: RunGroup, other: RunGroup
) -> tuple[str | None, Spread | None, str | None]:
    """Return the evidence of a difference and how certain it is, or why that is unknown."""
    basis = SEEDS
    ours, theirs = (of_seeds(group.values(kind.id)) for group in (base, other))
    if not ours or not theirs:
        if kind.of != "mean":
            return (
                None,
                None,
                "a single value a run: two seeds or more of each would tell",
            )
        basis = WITHIN_RUN
        ours, theirs = (within_run(kind, one.members) for one in (base, other))
    if not ours or not theirs:
        return None, None, "too few values logged for an interval"
    return basis, combined((-1, ours), (1, theirs)), None


def within_run(kind: FigureKind, runs: Sequence[MeasuredRun]) -> Spread | None:
    """Return the mean over runs with the uncertainty that their last values show, None where these
    are too few.
    """
    values = (run.last_values(kind.indicator) for run in runs)
    found = [of_one_run(known) for known in values if known]
    spreads = [(1 / len(found), spread) for spread in found if spread]
    return combined(*spreads) if spreads and len(spreads) == len(found) else None


# -- bands, within which a run of the same kind as a baseline is expected to stay ------------------


_GREATEST = sys.float_info.max
_LEAST_RECENT, _RECENT, _LOOKED_AT = 5, 10, 2000
"""Fewest and most of the last validations whose differences show how much a single one varies by
chance, and the steps in which they are searched for: heuristic.
"""


WIDTHS: Mapping[str, float | None] = {
    id: None for id, kind in KINDS.items() if kind.band
}
"""Figure -> how far it may lie from the baseline's, on either side, as a share of that: so far and
no further, or None for the usual band, which is widened by what may be chance.
"""


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
    widths: Mapping[str, float | None] = WIDTHS,
) -> Against:
    """Compare a run with a baseline, both up to the last step that all have reached.

    Args:
        run: The run.
        baseline: One run, or several that differ only by their seed.
        guide: Knows the healthy bands.
        widths: As `WIDTHS`; other figures are not compared.

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
    for id, share in widths.items():
        kind, reason = KINDS[id], ""
        if base.figures[id].value is None:
            reason = "the baseline has none"
        elif mine.figures[id].value is not None:
            reason = incomparable(kind, (mine, *base.members))
        if reason:
            left.append({"figure": id, "reason": reason})
        else:
            held.append(_held(kind, mine, base, share))
    names = [one.name for one in baseline]
    return Against(names, mine.stop.step, mine.count, held, left)


def _held(
    kind: FigureKind, mine: MeasuredRun, base: RunGroup, share: float | None
) -> Held:
    figure, known = mine.figures[kind.id], base.figures[kind.id]
    centre = known.value or 0.0
    half = abs(centre) * (kind.band if share is None else share)
    if share is None:
        reach = _by_chance(kind, mine, base)
        half = max(half, kind.least, reach if math.isfinite(reach) else 0.0)
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
    if seeds:
        # A further run varies as the others do, beside the uncertainty of their mean.
        return seeds._replace(error=seeds.error * math.sqrt(seeds.freedom + 2)).reach
    sides = [within_run(kind, one) for one in (base.members, (mine,))]
    if kind.id == "last_validation":
        sides = [_single(one, kind.indicator) for one in (*base.members, mine)]
    elif kind.of != "mean":
        return 0.0
    known = [(1.0, side) for side in sides if side]
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


# -- which setting goes with which outcome ---------------------------------------------------------


_OUTCOMES = [kind for kind in FIGURES if kind.indicator and kind.of != "best"]
_LEAST = 5
"""Groups below which a rank correlation means nothing: of 4, chance alone reaches 1 in one case of
12.
"""
_TOGETHER = 0.8
"""Rank correlation from which two settings are said to change together: heuristic."""
_RARE = 0.05
"""How often chance alone may produce something that is called beyond chance."""
_ORDERS = 999
"""Random orders that a correlation is compared with."""


class Correlation(NamedTuple):
    """The correlation between a setting and an outcome, as JSON has it."""

    settings: tuple[str, ...]
    """More than one if they have the same order in all groups."""
    figure: str
    """Id of the figure."""
    kind: str
    """`spearman`, or `rank-biserial` for a setting of two values without an order."""
    coefficient: float
    """From -1 to 1."""
    n: int
    """Number of groups of runs that it is over."""
    beyond_chance: bool
    """True if chance alone reaches it in fewer than one case of twenty."""
    levels: tuple[str, ...] | None
    """Those two values: 1 means that the second goes with more."""


class Association(NamedTuple):
    """Which settings go with which outcomes, and which questions stay open."""

    found: Sequence[Correlation] = ()
    """The strongest first."""
    confounded: Sequence[Sequence[str]] = ()
    """Settings that change together, so that their effects cannot be separated."""
    unranked: Sequence[str] = ()
    """Settings without an order, of more than two values."""
    reason: str = ""
    """Why there is no correlation."""


class _Varying(NamedTuple):
    """A setting that differs between groups."""

    key: str
    codes: NDArray[Any]
    """Its value in each group, for texts the place among all of them; nan where it states none."""
    levels: tuple[str, ...] | None
    """The texts, None for numbers."""

    @property
    def partition(self) -> list[int]:
        """For each group the first one of the same value."""
        kinds = list(map(repr, self.codes.tolist()))
        return list(map(kinds.index, kinds))


def associate(groups: Sequence[RunGroup]) -> Association:
    """Return which settings go with which outcomes."""
    if len(groups) < _LEAST:
        things = counted(len(groups), "group")
        reason = f"{things} of runs: too few for rank correlations, which take {_LEAST}"
        return Association(reason=reason)
    varying = [*_varying(groups)]
    if not varying:
        return Association(reason="no setting is known to differ: none can be ranked")
    found = sorted(
        _found(varying, groups),
        key=lambda one: (not one.beyond_chance, -abs(one.coefficient), one.settings),
    )
    unranked = [one.key for one in varying if not _is_ranked(one)]
    reason = "" if found else "no outcome is known of five groups whose settings differ"
    return Association(found, _confounded(varying), unranked, reason)


def _varying(groups: Sequence[RunGroup]) -> Iterator[_Varying]:
    for row in difference([group.members[0].run.settings for group in groups]):
        if not (row.naming or row.silent or is_own(row.key)):
            yield _coded(row.key, row.values)


def _is_ranked(setting: _Varying) -> bool:
    """Return whether a setting is of numbers, or of two texts."""
    return setting.levels is None or len(setting.levels) == 2


def _coded(key: str, values: Sequence[object]) -> _Varying:
    import numpy as np

    numbers = [math.nan if one is ABSENT else number(one) for one in values]
    if None not in numbers:
        return _Varying(key, np.array(numbers, np.float64), None)
    names = ["" if one is ABSENT else short(one) for one in values]
    levels = tuple(sorted({*names} - {""}))
    places = [levels.index(name) if name else math.nan for name in names]
    return _Varying(key, np.array(places, np.float64), levels)


def _found(
    varying: Sequence[_Varying], groups: Sequence[RunGroup]
) -> Iterator[Correlation]:
    """Yield the correlations of all outcomes; settings of the same order share one."""
    import numpy as np

    runs = list(chain.from_iterable(group.members for group in groups))
    for kind in _OUTCOMES:
        if incomparable(kind, runs):
            continue
        outcomes = [group.figures[kind.id].value for group in groups]
        reached = np.array(outcomes, np.float64)
        alike = gathered(
            ((one.levels, *np.unique(one.codes, return_inverse=True)[1]), one)
            for one in filter(_is_ranked, varying)
        )
        for settings in alike.values():
            one = _correlation(settings[0], kind.id, reached)
            if one:
                yield one._replace(settings=tuple(same.key for same in settings))


def _correlation(
    setting: _Varying, figure: str, reached: NDArray[Any]
) -> Correlation | None:
    """Return the correlation with an outcome, compared with random orders that are the same each
    time; None where too little is known, or one side is all the same.
    """
    import numpy as np

    known = ~np.isnan(setting.codes) & ~np.isnan(reached)
    xs, ys = _ranks(setting.codes[known]), _ranks(reached[known])
    strength = xs @ ys
    size = math.sqrt((xs @ xs) * (ys @ ys))
    if len(xs) < _LEAST or not size:
        return None
    orders = np.random.default_rng(0).permuted(np.tile(ys, (_ORDERS, 1)), axis=1)
    as_strong = np.abs(orders @ xs) >= abs(strength) - 1e-9 * size
    coefficient = strength / size
    if setting.levels:  # how much more often one side exceeds the other
        coefficient = 2 * (ys[xs > 0].mean() - ys[xs < 0].mean()) / len(ys)
    return Correlation(
        (),
        figure,
        "rank-biserial" if setting.levels else "spearman",
        round(float(coefficient), 12),
        len(xs),
        bool(as_strong.sum() + 1 <= _RARE * (_ORDERS + 1)),
        setting.levels,
    )


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Return how far the rank of each value, the mean of their ranks for equal ones, lies from the
    middle.
    """
    import numpy as np

    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[Any] = (np.cumsum(counts) - (counts + len(values)) / 2)[at]
    return ranks


def _confounded(varying: Sequence[_Varying]) -> list[list[str]]:
    """Return the sets of settings that change together."""
    together = {setting.key: {setting.key} for setting in varying}
    for first, second in combinations(varying, 2):
        if _change_together(first, second):
            joined = together[first.key] | together[second.key]
            together.update(dict.fromkeys(joined, joined))
    sets = {id(joined): joined for joined in together.values() if len(joined) > 1}
    return [[key for key in together if key in joined] for joined in sets.values()]


def _change_together(first: _Varying, second: _Varying) -> bool:
    partition = first.partition
    if partition == second.partition and len({*partition}) < len(partition):
        return True
    if first.levels or second.levels:
        return False
    xs, ys = _ranks(first.codes), _ranks(second.codes)
    return bool(abs(xs @ ys) >= _TOGETHER * math.sqrt((xs @ xs) * (ys @ ys)) > 0)
