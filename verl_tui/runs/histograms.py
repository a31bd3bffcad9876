"""Histograms of a run's metrics, by step, within a budget of memory."""

from __future__ import annotations

from array import array
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
        self._of: dict[str, dict[int, tuple[int, Bins]]] = {}
        """Metric -> step -> the precedence of its histogram, and the histogram."""
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
        kept = self._of.setdefault(found.key, {})
        order = precedence + found.order
        bins = Bins(found.low, found.high, found.counts)
        known, before = kept.get(found.step, (-1, bins))
        if order < known:
            return
        if found.mean and order == known:
            bins = added(before, bins)
        self._count += known < 0
        kept[found.step] = order, bins._replace(counts=array("f", bins.counts))
        if self._count > self.budget:
            self._thin_out()

    def _thin_out(self) -> None:
        """Drop every second one of each metric, but never the newest."""
        for kept in self._of.values():
            for step in sorted(kept)[-2::-2]:
                del kept[step]
        self._count = sum(map(len, self._of.values()))

    def at(self, key: str, step: int) -> BinsAt | None:
        """Return the newest histogram at or before a step, None where there is none."""
        kept = self._of.get(key, {})
        at = max((one for one in kept if one <= step), default=None)
        return None if at is None else BinsAt(at, kept[at][1])

    def since(self, key: str, step: int) -> Iterator[BinsAt]:
        """Yield the histograms at a step and behind it, ascending."""
        kept = self._of.get(key, {})
        for at in sorted(one for one in kept if one >= step):
            yield BinsAt(at, kept[at][1])
