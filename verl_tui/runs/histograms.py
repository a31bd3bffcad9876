"""Histograms of a run's metrics, by step, within a budget of memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import Bins, added

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from verl_tui.records import Histogram


class BinsAt(NamedTuple):
    """The histogram of a step."""

    step: int
    bins: Bins


class Histograms:
    """The histograms kept, by metric and step; when the budget is spent every second one goes."""

    def __init__(self, budget: int = 100_000) -> None:
        self.budget = budget
        """Histograms kept at most, of 400 bytes each."""
        self._of: dict[str, _OfKey] = {}
        self._count = 0

    @property
    def keys(self) -> Collection[str]:
        """The metrics that have histograms, in the order of first appearance."""
        return self._of.keys()

    def add(self, found: Histogram, precedence: int) -> None:
        """Keep a histogram, unless its step has one of a higher precedence.

        Args:
            found: The histogram from a source.
            precedence: The precedence of that source and segment, see
                `verl_tui.runs.table.precedence`.
        """
        self._count += self._of.setdefault(found.key, _OfKey()).add(found, precedence)
        if self._count > self.budget:
            for one in self._of.values():
                one.thin_out()
            self._count = sum(len(one.steps) for one in self._of.values())

    def at(self, key: str, step: int) -> BinsAt | None:
        """Return the newest histogram at or before a step, None where there is none."""
        one = self._of.get(key)
        at = -1 if one is None else bisect_right(one.steps, step) - 1
        if one is None or at < 0:
            return None
        return BinsAt(one.steps[at], one.kept[one.steps[at]][1])

    def since(self, key: str, step: int) -> Iterator[BinsAt]:
        """Yield the histograms at a step and behind it, ascending."""
        one = self._of.get(key)
        if one is not None:
            for at in one.steps[bisect_left(one.steps, step) :]:
                yield BinsAt(at, one.kept[at][1])


class _OfKey:
    """The histograms of one key."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        """Ascending."""
        self.kept: dict[int, tuple[int, Bins]] = {}
        """The precedence and the histogram of each."""

    def add(self, found: Histogram, precedence: int) -> bool:
        """Keep a histogram at its step; return whether there is one more now."""
        order = precedence + found.order
        bins = Bins(found.low, found.high, found.counts)
        known, before = self.kept.get(found.step, (-1, bins))
        if order < known:
            return False
        if found.mean and order == known:
            bins = added(before, bins)
        self.kept[found.step] = order, bins._replace(counts=array("f", bins.counts))
        if known < 0:
            insort(self.steps, found.step)
        return known < 0

    def thin_out(self) -> None:
        """Drop every second one, but never the newest."""
        for step in self.steps[-2::-2]:
            del self.kept[step]
        self.steps = self.steps[::-2][::-1]
