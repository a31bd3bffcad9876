"""Which setting goes with which outcome, by ranks, over groups of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.differences import incomparable
from verl_tui.comparison.outcomes import FIGURES
from verl_tui.comparison.seeds import is_own
from verl_tui.comparison.setting_differences import ABSENT, difference
from verl_tui.comparison.statistics import (
    beyond_chance,
    rank_biserial,
    rank_correlation,
    ranks,
)
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import short
from verl_tui.words import counted

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
        known = [size for size in found if size is not None and math.isfinite(size)]
        if len(known) != len(stated):
            return None
        return tuple(found)

    @cached_property
    def partition(self) -> tuple[Hashable, ...]:
        """Equal for settings that divide the groups in the same way; meaningless where all
        differ.
        """
        seen: dict[str, int] = {}
        texts = [repr(_plain(value)) for value in self.values]
        return tuple(seen.setdefault(text, len(seen)) for text in texts)

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
        reason = "no setting is known to differ: none can be ranked"
        return Association((), (), (), reason)
    confounded = _confounded(varying)
    unranked = tuple(setting.key for setting in varying if setting.is_unranked)
    runs = list(chain.from_iterable(group.members for group in groups))
    found: list[Correlation] = []
    for kind in _OUTCOMES:
        if not incomparable(kind, runs):
            found += _correlations(varying, kind, groups)
    found.sort(key=_by_strength)
    reason = "" if found else "no outcome is known of five groups whose settings differ"
    return Association(tuple(found), confounded, unranked, reason)


def _by_strength(found: Correlation) -> tuple[bool, float, tuple[str, ...]]:
    """Order correlations: first those beyond chance, and of these the strongest."""
    return not found.beyond_chance, -abs(found.coefficient), found.settings


def _too_few(count: int) -> str:
    things = counted(count, "group")
    return f"{things} of runs: too few for rank correlations, which take {LEAST}"


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
    for setting in varying:
        if setting.numbers is None:
            found = _two(setting, kind, outcomes)
            order: Hashable = setting.partition
        else:
            found = _ranked(setting.key, setting.numbers, kind, outcomes)
            order = _order(setting.numbers)
        if found is None:
            continue
        order = (order, found.levels is None)
        alike.setdefault(order, []).append(setting.key)
        made.setdefault(order, found)
    for order, keys in alike.items():
        yield made[order]._replace(settings=tuple(keys))


def _order(numbers: Sequence[float | None]) -> Hashable:
    known = [value for value in numbers if value is not None]
    places = iter(ranks(known))
    return tuple(None if value is None else next(places) for value in numbers)


def _ranked(
    key: str,
    numbers: Sequence[float | None],
    kind: FigureKind,
    outcomes: Sequence[float | None],
) -> Correlation | None:
    """Return the rank correlation of a setting with an order, None where too few have both."""
    known: list[float] = []
    reached: list[float] = []
    for value, outcome in zip(numbers, outcomes, strict=True):
        if value is not None and outcome is not None:
            known.append(value)
            reached.append(outcome)
    if len(known) < LEAST:
        return None
    xs = ranks(known)
    ys = ranks(reached)
    found = rank_correlation(xs, ys)
    if found is None:
        return None
    return Correlation((key,), kind.id, found, len(known), beyond_chance(xs, ys))


def _two(
    setting: _Varying, kind: FigureKind, outcomes: Sequence[float | None]
) -> Correlation | None:
    """Return the rank-biserial correlation of a setting with two values, None for another."""
    levels: dict[str, list[float]] = {}
    for value, outcome in zip(setting.values, outcomes, strict=True):
        if value is not ABSENT and outcome is not None:
            levels.setdefault(short(value), []).append(outcome)
    if len(levels) != 2 or sum(map(len, levels.values())) < LEAST:
        return None
    (first, ones), (second, others) = sorted(levels.items())
    found = rank_biserial(ones, others)
    sides = ranks([0.0] * len(ones) + [1.0] * len(others))
    clear = beyond_chance(sides, ranks([*ones, *others]))
    count = len(sides)
    return Correlation((setting.key,), kind.id, found, count, clear, (first, second))


def _plain(value: object) -> object:
    """Return a value so that equal ones are written alike."""
    found = number(value)
    return value if found is None else found


def _confounded(varying: Sequence[_Varying]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of settings that change together."""
    keys = [setting.key for setting in varying]
    together = {key: {key} for key in keys}
    for first, second in _pairs_together(varying):
        joined = together[first] | together[second]
        together.update(dict.fromkeys(joined, joined))
    sets = {id(joined): joined for joined in together.values() if len(joined) > 1}
    return tuple(tuple(sorted(joined, key=keys.index)) for joined in sets.values())


def _pairs_together(varying: Sequence[_Varying]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of settings that change together."""
    places = {setting.key: _places(setting) for setting in varying}
    groups = len(varying[0].values)
    for first, second in combinations(varying, 2):
        same = first.partition == second.partition
        alike = same and len(set(first.partition)) < groups
        if alike or _alike(places[first.key], places[second.key]):
            yield first.key, second.key


def _places(setting: _Varying) -> tuple[int, ...] | None:
    """Return the ranks of a setting that all groups state as a number."""
    numbers = setting.numbers
    if numbers is None:
        return None
    known = [value for value in numbers if value is not None]
    if len(known) != len(numbers):
        return None
    return ranks(known)


def _alike(ones: tuple[int, ...] | None, others: tuple[int, ...] | None) -> bool:
    if ones is None or others is None:
        return False
    return abs(rank_correlation(ones, others) or 0.0) >= _TOGETHER
