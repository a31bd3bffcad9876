"""Which setting goes with which outcome, by ranks, over groups of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.differences import incomparable
from verl_tui.comparison.outcomes import FIGURES
from verl_tui.comparison.seeds import is_own
from verl_tui.comparison.statistics import (
    RARE,
    beyond_chance,
    by_chance,
    rank_biserial,
    rank_correlation,
    ranks,
)
from verl_tui.runs.settings import number
from verl_tui.runs.views.facts import short
from verl_tui.runs.views.settings_diff import ABSENT, difference

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

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
    levels: tuple[str, str] | None = None
    """For a setting of two values without an order: 1 means that the second goes with more."""


class Association(NamedTuple):
    """Which settings go with which outcomes, and which questions stay open."""

    found: tuple[Correlation, ...]
    """The strongest first."""
    confounded: tuple[tuple[str, ...], ...]
    """Settings that change together, so that their effects cannot be separated."""
    unranked: tuple[str, ...]
    """Settings without an order, of more than two values."""
    reason: str = ""
    """Why there is no correlation."""


@dataclass(frozen=True)
class _Varying:
    """A setting that differs between groups."""

    key: str
    values: tuple[object, ...]
    """One for each group, `ABSENT` where it states none."""

    @cached_property
    def numbers(self) -> tuple[float | None, ...] | None:
        """The values as numbers, None if it has others."""
        found = [None if value is ABSENT else number(value) for value in self.values]
        stated = [value for value in self.values if value is not ABSENT]
        known = [one for one in found if one is not None and math.isfinite(one)]
        if len(known) != len(stated):
            return None
        return tuple(found)

    @cached_property
    def partition(self) -> tuple[Hashable, ...]:
        """Equal for settings that divide the groups in the same way; meaningless where all
        differ.
        """
        seen: dict[str, int] = {}
        return tuple(
            seen.setdefault(repr(_plain(value)), len(seen)) for value in self.values
        )

    @cached_property
    def is_unranked(self) -> bool:
        """True for values without an order, of more than two kinds."""
        return self.numbers is None and len(set(self.partition)) > 2


def associate(groups: Sequence[RunGroup]) -> Association:
    """Return which settings go with which outcomes."""
    if len(groups) < LEAST:
        return Association((), (), (), _too_few(len(groups)))
    varying = _varying(groups)
    if not varying:
        return Association(
            (), (), (), "no setting is known to differ: none can be ranked"
        )
    confounded = _confounded(varying)
    unranked = tuple(one.key for one in varying if one.is_unranked)
    runs = [one for group in groups for one in group.members]
    found: list[Correlation] = []
    for kind in _OUTCOMES:
        if not incomparable(kind, runs):
            found += _correlations(varying, kind, groups)
    found.sort(
        key=lambda one: (not one.beyond_chance, -abs(one.coefficient), one.settings)
    )
    reason = "" if found else "no outcome is known of five groups whose settings differ"
    return Association(tuple(found), confounded, unranked, reason)


def _too_few(count: int) -> str:
    things = "group" if count == 1 else "groups"
    return (
        f"{count} {things} of runs: too few for rank correlations, which take {LEAST}"
    )


def _varying(groups: Sequence[RunGroup]) -> list[_Varying]:
    rows = difference([group.members[0].run.settings for group in groups])
    return [
        _Varying(row.key, row.values)
        for row in rows
        if not (row.naming or row.silent or is_own(row.key))
    ]


def _correlations(
    varying: Sequence[_Varying], kind: FigureKind, groups: Sequence[RunGroup]
) -> Iterator[Correlation]:
    """Yield the correlations of one outcome; settings of the same order share one."""
    outcomes = [group.figures[kind.id].value for group in groups]
    alike: dict[Hashable, list[str]] = {}
    made: dict[Hashable, Correlation] = {}
    for one in varying:
        numbers = one.numbers
        found = (
            _ranked(one, kind, outcomes)
            if numbers is not None
            else _two(one, kind, outcomes)
        )
        if found is None:
            continue
        order: Hashable = one.partition if numbers is None else _order(numbers)
        order = (order, found.levels is None)
        alike.setdefault(order, []).append(one.key)
        made.setdefault(order, found)
    for order, keys in alike.items():
        yield made[order]._replace(settings=tuple(keys))


def _order(numbers: Sequence[float | None]) -> Hashable:
    known = [one for one in numbers if one is not None]
    places = iter(ranks(known))
    return tuple(None if one is None else next(places) for one in numbers)


def _ranked(
    one: _Varying, kind: FigureKind, outcomes: Sequence[float | None]
) -> Correlation | None:
    pairs = [
        (x, y)
        for x, y in zip(one.numbers or (), outcomes, strict=True)
        if x is not None and y is not None
    ]
    if len(pairs) < LEAST:
        return None
    xs = ranks([x for x, _ in pairs])
    ys = ranks([y for _, y in pairs])
    found = rank_correlation(xs, ys)
    if found is None:
        return None
    return Correlation((one.key,), kind.id, found, len(pairs), beyond_chance(xs, ys))


def _two(
    one: _Varying, kind: FigureKind, outcomes: Sequence[float | None]
) -> Correlation | None:
    """Return the rank-biserial correlation of a setting with two values, None for another."""
    levels: dict[str, list[float]] = {}
    for value, outcome in zip(one.values, outcomes, strict=True):
        if value is not ABSENT and outcome is not None:
            levels.setdefault(short(value), []).append(outcome)
    if len(levels) != 2 or sum(map(len, levels.values())) < LEAST:
        return None
    (first, ones), (second, others) = sorted(levels.items())
    found = rank_biserial(ones, others)
    clear = by_chance(len(ones), len(others), found) <= RARE
    count = len(ones) + len(others)
    return Correlation((one.key,), kind.id, found, count, clear, (first, second))


def _plain(value: object) -> object:
    """Return a value so that equal ones are written alike."""
    found = number(value)
    return value if found is None else found


def _confounded(varying: Sequence[_Varying]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of settings that change together."""
    together: dict[str, set[str]] = {one.key: {one.key} for one in varying}
    for one, other in _pairs_together(varying):
        joined = together[one] | together[other]
        together.update(dict.fromkeys(joined, joined))
    found = {id(keys): keys for keys in together.values() if len(keys) > 1}
    order = {one.key: at for at, one in enumerate(varying)}
    return tuple(tuple(sorted(keys, key=order.__getitem__)) for keys in found.values())


def _pairs_together(varying: Sequence[_Varying]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of settings that change together."""
    places = {one.key: _places(one) for one in varying}
    partitions = {one.key: one.partition for one in varying}
    groups = len(varying[0].values)
    for one, other in combinations(partitions, 2):
        alike = (
            partitions[one] == partitions[other] and len(set(partitions[one])) < groups
        )
        if alike or _alike(places[one], places[other]):
            yield one, other


def _places(one: _Varying) -> tuple[int, ...] | None:
    """Return the ranks of a setting that all groups state as a number."""
    numbers = one.numbers
    if numbers is None:
        return None
    known = [found for found in numbers if found is not None]
    if len(known) != len(numbers):
        return None
    return ranks(known)


def _alike(ones: tuple[int, ...] | None, others: tuple[int, ...] | None) -> bool:
    if ones is None or others is None:
        return False
    return abs(rank_correlation(ones, others) or 0.0) >= _TOGETHER
