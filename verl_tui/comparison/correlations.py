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
    def levels(self) -> tuple[str, ...]:
        """Its values in words, none for numbers."""
        stated = [value for value in self.values if value is not ABSENT]
        if all(math.isfinite(_number(value)) for value in stated):
            return ()
        return tuple(sorted(set(map(short, stated))))

    @cached_property
    def places(self) -> tuple[float | None, ...]:
        """What the groups are ranked by: its numbers, or which of its levels; None where absent."""
        place = self.levels.index if self.levels else None
        return tuple(
            None
            if value is ABSENT
            else (_number(value) if place is None else place(short(value)))
            for value in self.values
        )

    @cached_property
    def partition(self) -> tuple[int, ...]:
        """Equal for settings that divide the groups in the same way; meaningless where all
        differ.
        """
        texts = [repr(_plain(value)) for value in self.values]
        return tuple(map(texts.index, texts))

    @cached_property
    def ranked(self) -> tuple[int | None, ...]:
        """The ranks of its places."""
        known = iter(ranks([place for place in self.places if place is not None]))
        return tuple(None if place is None else next(known) for place in self.places)

    @property
    def order(self) -> Hashable:
        """Equal for settings whose correlations are the same."""
        if not self.levels:
            return self.ranked
        absent = tuple(place is None for place in self.places)
        return len(self.levels), self.partition, absent


def associate(groups: Sequence[RunGroup]) -> Association:
    """Return which settings go with which outcomes."""
    if len(groups) < LEAST:
        return Association((), (), (), _too_few(len(groups)))
    varying = _varying(groups)
    if not varying:
        reason = "no setting is known to differ: none can be ranked"
        return Association((), (), (), reason)
    confounded = _confounded(varying)
    unranked = tuple(setting.key for setting in varying if len(setting.levels) > 2)
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
    alike: dict[Hashable, list[_Varying]] = {}
    for setting in varying:
        alike.setdefault(setting.order, []).append(setting)
    for settings in alike.values():
        found = _correlation(settings[0], kind, outcomes)
        if found is not None:
            yield found._replace(settings=tuple(setting.key for setting in settings))


def _correlation(
    setting: _Varying, kind: FigureKind, outcomes: Sequence[float | None]
) -> Correlation | None:
    """Return the rank correlation of a setting, the rank-biserial one for two values without an
    order; None for more of these, and where too few groups have both.
    """
    both = zip(setting.places, outcomes, strict=True)
    pairs = [(x, y) for x, y in both if x is not None and y is not None]
    if len(pairs) < LEAST or len(setting.levels) not in (0, 2):
        return None
    places, reached = zip(*pairs, strict=True)
    xs, ys = ranks(places), ranks(reached)
    found = _of_two(pairs) if setting.levels else rank_correlation(xs, ys)
    if found is None:
        return None
    clear = beyond_chance(xs, ys)
    levels = (setting.levels[0], setting.levels[1]) if setting.levels else None
    return Correlation((), kind.id, found, len(pairs), clear, levels)


def _of_two(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the rank-biserial correlation, None where only one of the values is there."""
    ones, others = ([y for x, y in pairs if x == place] for place in (0, 1))
    return rank_biserial(ones, others) if ones and others else None


def _number(value: object) -> float:
    """Return a setting as a number, nan if it is none."""
    found = number(value)
    return math.nan if found is None else found


def _plain(value: object) -> object:
    """Return a value so that equal ones are written alike."""
    found = number(value)
    return value if found is None else found


def _confounded(varying: Sequence[_Varying]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of settings that change together."""
    keys = [setting.key for setting in varying]
    together = {key: {key} for key in keys}
    for first, second in combinations(varying, 2):
        if _change_together(first, second):
            joined = together[first.key] | together[second.key]
            together.update(dict.fromkeys(joined, joined))
    sets = {id(joined): joined for joined in together.values() if len(joined) > 1}
    return tuple(tuple(sorted(joined, key=keys.index)) for joined in sets.values())


def _change_together(first: _Varying, second: _Varying) -> bool:
    parts = first.partition
    if parts == second.partition and len(set(parts)) < len(parts):
        return True
    if first.levels or second.levels:
        return False
    xs, ys = map(_all_known, (first.ranked, second.ranked))
    return abs((xs and ys and rank_correlation(xs, ys)) or 0.0) >= _TOGETHER


def _all_known(ranked: Sequence[int | None]) -> tuple[int, ...]:
    """Return the ranks of a setting that all groups state, none for another."""
    known = tuple(rank for rank in ranked if rank is not None)
    return known if len(known) == len(ranked) else ()
