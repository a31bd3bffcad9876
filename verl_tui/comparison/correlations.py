"""Which setting goes with which outcome, by ranks, over groups of runs."""

from __future__ import annotations

import math
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.differences import incomparable
from verl_tui.comparison.outcomes import FIGURES
from verl_tui.comparison.seeds import is_own
from verl_tui.comparison.setting_differences import ABSENT, difference
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import short
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from verl_tui.comparison.seeds import RunGroup

LEAST = 5
"""Groups below which a rank correlation means nothing: of 4, chance alone reaches 1 in one case of
12.
"""
FEW = 10
"""Groups below which the caveat is written: heuristic."""
_TOGETHER = 0.8
"""Rank correlation from which on two settings are said to change together: heuristic."""
_RARE = 0.05
"""How often chance alone may produce something that is called beyond chance."""
_ORDERS = 999
"""Orders by chance that a correlation is held against."""


class Correlation(NamedTuple):
    """The correlation between a setting and an outcome."""

    settings: tuple[str, ...]
    """More than one if they have the same order in all groups."""
    figure: str
    """Id of the figure."""
    coefficient: float
    """From -1 to 1."""
    groups: int
    """Number of groups of runs that it is over."""
    beyond_chance: bool
    """True if chance alone reaches it in fewer than one case of twenty."""
    levels: tuple[str, ...] | None = None
    """For a setting of two values without an order: 1 means that the second goes with more."""


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
    values: NDArray[Any] | None
    """In each group, nan where it states none; None for texts of more than two kinds."""
    levels: tuple[str, ...] | None
    """The texts that the values 0 and 1 stand for, None for numbers."""
    partition: tuple[int, ...]
    """Equal for settings that divide the groups in the same way; meaningless where all differ."""


def associate(groups: Sequence[RunGroup]) -> Association:
    """Return which settings go with which outcomes."""
    if len(groups) < LEAST:
        things = counted(len(groups), "group")
        reason = f"{things} of runs: too few for rank correlations, which take {LEAST}"
        return Association(reason=reason)
    varying = [*_varying(groups)]
    if not varying:
        return Association(reason="no setting is known to differ: none can be ranked")
    found = sorted(_found(varying, groups), key=_by_strength)
    unranked = tuple(one.key for one in varying if one.values is None)
    reason = "" if found else "no outcome is known of five groups whose settings differ"
    return Association(found, _confounded(varying), unranked, reason)


def _found(
    varying: Sequence[_Varying], groups: Sequence[RunGroup]
) -> Iterator[Correlation]:
    runs = list(chain.from_iterable(group.members for group in groups))
    for kind in FIGURES:
        best = kind.id.startswith("best")
        if kind.indicator and not best and not incomparable(kind, runs):
            outcomes = [group.figures[kind.id].value for group in groups]
            yield from _correlations(varying, kind.id, outcomes)


def _by_strength(found: Correlation) -> tuple[bool, float, tuple[str, ...]]:
    """Order correlations: first those beyond chance, and of these the strongest."""
    return not found.beyond_chance, -abs(found.coefficient), found.settings


def _varying(groups: Sequence[RunGroup]) -> Iterator[_Varying]:
    for row in difference([group.members[0].run.settings for group in groups]):
        if not (row.naming or row.silent or is_own(row.key)):
            yield _coded(row.key, row.values)


def _coded(key: str, values: Sequence[object]) -> _Varying:
    import numpy as np

    numbers = [math.nan if one is ABSENT else number(one) for one in values]
    # `1e-6` as text is 1e-06
    kinds = list(map(repr, map(_first, numbers, values)))
    partition = tuple(map(list(dict.fromkeys(kinds)).index, kinds))
    if None not in numbers and math.inf not in map(_size, numbers):
        return _Varying(key, np.array(numbers, np.float64), None, partition)
    names = ["" if one is ABSENT else short(one) for one in values]
    levels = tuple(sorted({*names} - {""}))
    if len(levels) != 2:
        return _Varying(key, None, None, partition)
    codes = {levels[0]: 0.0, levels[1]: 1.0}
    found = np.array([codes.get(name, math.nan) for name in names])
    return _Varying(key, found, levels, partition)


def _first(size: float | None, value: object) -> object:
    return value if size is None else size


def _size(size: float | None) -> float:
    return abs(size or 0.0)


def _correlations(
    varying: Iterable[_Varying], figure: str, outcomes: Sequence[float | None]
) -> Iterator[Correlation]:
    """Yield the correlations of one outcome; settings of the same order share one."""
    import numpy as np

    reached = np.array(outcomes, np.float64)
    made: dict[Hashable, Correlation] = {}
    for setting in varying:
        if setting.values is None:
            continue
        known = ~np.isnan(setting.values) & ~np.isnan(reached)
        xs, ys = _ranks(setting.values[known]), _ranks(reached[known])
        found = correlation(xs, ys) if len(xs) >= LEAST else None
        if found is None:
            continue
        order = setting.levels, tuple(np.unique(setting.values, return_inverse=True)[1])
        clear = _is_beyond_chance(xs, ys, found)
        if (
            setting.levels
        ):  # rank-biserial: how much more often one side exceeds the other
            upper = xs == xs.max()
            found = 2 * float(ys[upper].mean() - ys[~upper].mean()) / len(ys)
        fresh = Correlation((), figure, found, len(xs), clear, setting.levels)
        one = made.setdefault(order, fresh)
        made[order] = one._replace(settings=(*one.settings, setting.key))
    yield from made.values()


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
    kinds = len(set(first.partition))
    if first.partition == second.partition and kinds < len(first.partition):
        return True
    if first.values is None or second.values is None or first.levels or second.levels:
        return False
    found = correlation(_ranks(first.values), _ranks(second.values))
    return abs(found or 0.0) >= _TOGETHER


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Return the rank of each value, the mean of their ranks for equal ones."""
    import numpy as np

    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[Any] = (np.cumsum(counts) - (counts - 1) / 2)[at]
    return ranks


def correlation(xs: NDArray[Any], ys: NDArray[Any]) -> float | None:
    """Return the correlation of two rows of ranks, from -1 to 1: Spearman's; None where one is all
    the same.
    """
    xs, ys = xs - xs.mean(), ys - ys.mean()
    squares = (xs @ xs) * (ys @ ys)
    return round(float(xs @ ys / math.sqrt(squares)), 12) if squares else None


def _is_beyond_chance(xs: NDArray[Any], ys: NDArray[Any], found: float) -> bool:
    """Return whether fewer than one order of twenty by chance, the same each time, reaches a
    correlation.
    """
    import numpy as np

    rows = np.tile(ys - ys.mean(), (_ORDERS, 1))
    orders = np.random.default_rng(0).permuted(rows, axis=1)
    deviation = xs - xs.mean()
    by_chance = (
        orders @ deviation / math.sqrt((deviation @ deviation) * (rows[0] @ rows[0]))
    )
    reached = (np.abs(by_chance) >= abs(found) - 1e-9).sum() + 1
    return bool(reached <= _RARE * (_ORDERS + 1))
