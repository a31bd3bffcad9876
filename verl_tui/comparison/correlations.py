"""Which setting goes with which outcome, by ranks, over groups of runs."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from itertools import chain, combinations, permutations
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.differences import incomparable
from verl_tui.comparison.outcomes import FIGURES
from verl_tui.comparison.seeds import is_own
from verl_tui.comparison.setting_differences import ABSENT, difference
from verl_tui.comparison.statistics import t_quantile
from verl_tui.means import clamp
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import short
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from verl_tui.comparison.outcomes import FigureKind
    from verl_tui.comparison.seeds import RunGroup

LEAST = 5
"""Groups below which a rank correlation means nothing: of 4, chance alone reaches 1 in one case of
12.
"""
FEW = 10
"""Groups below which the caveat is written: heuristic."""
_OUTCOMES = tuple(
    kind for kind in FIGURES if kind.indicator and not kind.id.startswith("best")
)
_TOGETHER = 0.8
"""Rank correlation from which on two settings are said to change together: heuristic."""
_RARE = 0.05
"""How often chance alone may produce something that is called beyond chance."""
_CRITICAL = {5: 1.0, 6: 0.886, 7: 0.786, 8: 0.738, 9: 0.700, 10: 0.648}
"""Number of pairs -> rank correlation that chance alone reaches in one case of twenty, two-sided.

Exact, from all orders of so many ranks (Ramsey, Journal of Educational Statistics 14, 1989, gives
the same table).
"""
_PRINTED = 5e-4
"""Rounding of the printed table."""
_ALL_ORDERS, _ORDERS, _TRIED = 7, 999, 30
"""Most ranks for which all orders are tried, number of orders tried for more, and most ranks for
which any are.
"""


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
    values: Sequence[float | str | None]
    """Its value in each group, None where it states none: a number, or a text without an order."""
    is_ordered: bool
    partition: tuple[int, ...]
    """Equal for settings that divide the groups in the same way; meaningless where all differ."""

    @property
    def is_unranked(self) -> bool:
        """True for values without an order, of more than two kinds."""
        return not self.is_ordered and len(set(self.partition)) > 2


def associate(groups: Sequence[RunGroup]) -> Association:
    """Return which settings go with which outcomes."""
    if len(groups) < LEAST:
        things = counted(len(groups), "group")
        reason = f"{things} of runs: too few for rank correlations, which take {LEAST}"
        return Association(reason=reason)
    varying = _varying(groups)
    if not varying:
        return Association(reason="no setting is known to differ: none can be ranked")
    runs = list(chain.from_iterable(group.members for group in groups))
    found: list[Correlation] = []
    for kind in _OUTCOMES:
        if not incomparable(kind, runs):
            found += _correlations(varying, kind, groups)
    found.sort(key=_by_strength)
    unranked = tuple(one.key for one in varying if one.is_unranked)
    reason = "" if found else "no outcome is known of five groups whose settings differ"
    return Association(found, _confounded(varying), unranked, reason)


def _by_strength(found: Correlation) -> tuple[bool, float, tuple[str, ...]]:
    """Order correlations: first those beyond chance, and of these the strongest."""
    return not found.beyond_chance, -abs(found.coefficient), found.settings


def _varying(groups: Sequence[RunGroup]) -> list[_Varying]:
    rows = difference([group.members[0].run.settings for group in groups])
    return [
        _coded(row.key, row.values)
        for row in rows
        if not (row.naming or row.silent or is_own(row.key))
    ]


def _coded(key: str, values: Sequence[object]) -> _Varying:
    kinds = [str(_plain(value)) for value in values]
    partition = tuple(map(list(dict.fromkeys(kinds)).index, kinds))
    numbers = [None if value is ABSENT else number(value) for value in values]
    is_ordered = all(
        value is ABSENT or (size is not None and math.isfinite(size))
        for value, size in zip(values, numbers, strict=True)
    )
    texts = [None if value is ABSENT else short(value) for value in values]
    return _Varying(key, numbers if is_ordered else texts, is_ordered, partition)


def _plain(value: object) -> tuple[str, object]:
    """Return a value in a form in which equal ones are equal: `1e-6` as text is 1e-06."""
    found = None if value is ABSENT else number(value)
    return ("", found) if found is not None else (type(value).__name__, value)


def _correlations(
    varying: Sequence[_Varying], kind: FigureKind, groups: Sequence[RunGroup]
) -> Iterator[Correlation]:
    """Yield the correlations of one outcome; settings of the same order share one."""
    outcomes = [group.figures[kind.id].value for group in groups]
    made: dict[Hashable, Correlation] = {}
    for setting in varying:
        found = _correlation(setting, kind, outcomes)
        if found is None:
            continue
        order = (setting.is_ordered, setting.partition)
        if setting.is_ordered:
            places = iter(ranks([one for one in setting.values if one is not None]))
            order = (
                True,
                tuple(one is not None and next(places) for one in setting.values),
            )
        known = made.setdefault(order, found._replace(settings=()))
        made[order] = known._replace(settings=(*known.settings, setting.key))
    yield from made.values()


def _correlation(
    setting: _Varying, kind: FigureKind, outcomes: Sequence[float | None]
) -> Correlation | None:
    """Return the rank correlation of a setting with an outcome, the rank-biserial one for two
    levels; None for more levels, and where too few groups have both.
    """
    known = [
        pair for pair in zip(setting.values, outcomes, strict=True) if None not in pair
    ]
    if len(known) < LEAST:
        return None
    values, reached = zip(*known, strict=True)
    levels = None if setting.is_ordered else tuple(sorted(set(values)))
    if levels is not None and len(levels) != 2:
        return None
    xs, ys = ranks(values), ranks(reached)
    found = rank_correlation(xs, ys) if levels is None else _rank_biserial(xs, ys)
    if found is None:
        return None
    return Correlation((), kind.id, found, len(known), beyond_chance(xs, ys), levels)


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
    if not (first.is_ordered and second.is_ordered) or None in (
        *first.values,
        *second.values,
    ):
        return False
    found = rank_correlation(ranks(first.values), ranks(second.values))
    return abs(found or 0.0) >= _TOGETHER


# -- ranks -----------------------------------------------------------------------------------------


def ranks(values: Sequence[Any]) -> tuple[int, ...]:
    """Return twice the rank of each value, from 2 on, so that mean ranks of equal ones are whole
    numbers.
    """
    ordered = sorted(values)
    return tuple(
        bisect_left(ordered, value) + bisect_right(ordered, value) + 1
        for value in values
    )


def rank_correlation(xs: Sequence[int], ys: Sequence[int]) -> float | None:
    """Return Spearman's correlation, from -1 to 1, of two rows of ranks; None where one is all the
    same.
    """
    squares = _covariance(xs, xs) * _covariance(ys, ys)
    if not squares:
        return None
    return clamp(_covariance(xs, ys) / math.sqrt(squares), -1.0, 1.0)


def _rank_biserial(sides: Sequence[int], ys: Sequence[int]) -> float:
    """Return how much more often `ys` of the greater side exceed those of the other than the
    reverse, from -1 to 1, of all pairs.
    """
    chosen = [y for x, y in zip(sides, ys, strict=True) if x == max(sides)]
    count, every = len(chosen), len(ys)
    above = sum(chosen) - count * (every + 1)  # by Mann and Whitney's U
    return above / (count * (every - count))


def _covariance(xs: Sequence[int], ys: Sequence[int]) -> int:
    """Return n squared times the covariance."""
    products: Iterable[int] = map(mul, xs, ys)
    return len(xs) * sum(products) - sum(xs) * sum(ys)


def chance(count: int) -> float:
    """Return the rank correlation of so many pairs (5 at least) that chance alone reaches in one
    case of twenty, two-sided.
    """
    if count in _CRITICAL:
        return _CRITICAL[count]
    t = t_quantile(1 - _RARE / 2, count - 2)
    return t / math.sqrt(count - 2 + t * t)


def beyond_chance(xs: Sequence[int], ys: Sequence[int]) -> bool:
    """Return whether chance alone reaches the correlation of two rows of ranks in fewer than one
    case of twenty, equal ranks considered: two values of each side are soon in order.
    """
    found = rank_correlation(xs, ys)
    count = len(xs)
    if found is None or abs(found) < chance(count) - _PRINTED:
        return False
    if count > _TRIED or len(set(xs)) == len(set(ys)) == count:
        return True
    # All orders of few ranks, a fixed sample of the orders of many.
    if count <= _ALL_ORDERS:
        orders: list[Sequence[int]] = list(permutations(ys))
    else:
        chosen = random.Random(0)  # noqa: S311 - the same orders each time, nothing secret
        orders = [ys, *(chosen.sample(ys, count) for _ in range(_ORDERS))]
    known = abs(_covariance(xs, ys))
    reached = sum(abs(_covariance(xs, order)) >= known for order in orders)
    return reached <= _RARE * len(orders)
