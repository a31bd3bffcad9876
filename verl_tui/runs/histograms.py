"""Histograms of a run's metrics, by step, within a budget of memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import BINS, Bins, added

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from verl_tui.records import Histogram


class BinsAt(NamedTuple):
    """The histogram of a step."""

    step: int
    bins: Bins


class Histograms:
    """The histograms kept, by metric and step; when the budget is spent every second one goes."""

    def __init__(self, budget: int = 200_000) -> None:
        self.budget = budget
        """Histograms kept at most, of 160 bytes each."""
        self._columns: dict[str, _BinColumns] = {}
        self._count = 0

    @property
    def keys(self) -> Collection[str]:
        """The metrics that have histograms, in the order of first appearance."""
        return self._columns.keys()

    def add(self, found: Histogram, precedence: int) -> None:
        """Keep a histogram, unless its step has one of a higher precedence.

        Args:
            found: The histogram from a source.
            precedence: The precedence of that source and segment, see
                `verl_tui.runs.table.precedence`.
        """
        columns = self._columns.get(found.key)
        if columns is None:
            columns = self._columns[found.key] = _BinColumns()
        self._count += columns.add(found, precedence)
        if self._count > self.budget:
            for one in self._columns.values():
                one.thin_out()
            self._count = sum(map(len, self._columns.values()))

    def at(self, key: str, step: int) -> BinsAt | None:
        """Return the newest histogram at or before a step, None where there is none."""
        columns = self._columns.get(key)
        if columns is None:
            return None
        return columns.at(step)

    def since(self, key: str, step: int) -> Iterator[BinsAt]:
        """Yield the histograms at a step and behind it, ascending."""
        columns = self._columns.get(key)
        if columns is not None:
            return columns.since(step)
        return iter(())


class _BinColumns:
    """The histograms of one key, ascending in step."""

    def __init__(self) -> None:
        self._steps = array("q")
        self._orders = array("q")
        self._ends = array("d")
        """The edges of the bins of each histogram."""
        self._counts = array("f")

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, found: Histogram, precedence: int) -> int:
        """Insert a histogram at its step; return how many more there are now."""
        order = precedence + found.order
        bins = Bins(found.low, found.high, found.counts)
        at = bisect_left(self._steps, found.step)
        if at == len(self._steps) or self._steps[at] != found.step:
            self._steps.insert(at, found.step)
            self._orders.insert(at, order)
            self._ends[2 * at : 2 * at] = array("d", bins[:2])
            self._counts[BINS * at : BINS * at] = array("f", bins.counts)
            return 1
        if order < self._orders[at]:
            return 0
        if found.mean and order == self._orders[at]:
            bins = added(self._bins(at), bins)
        self._orders[at] = order
        self._ends[2 * at : 2 * at + 2] = array("d", bins[:2])
        self._counts[BINS * at : BINS * (at + 1)] = array("f", bins.counts)
        return 0

    def at(self, step: int) -> BinsAt | None:
        at = bisect_right(self._steps, step) - 1
        if at >= 0:
            return BinsAt(self._steps[at], self._bins(at))
        return None

    def since(self, step: int) -> Iterator[BinsAt]:
        for at in range(bisect_left(self._steps, step), len(self._steps)):
            yield BinsAt(self._steps[at], self._bins(at))

    def thin_out(self) -> None:
        """Drop every second one, but never the newest."""
        kept = [*range(len(self._steps) - 1, -1, -2)][::-1]
        counts = array("f")
        ends = array("d")
        for at in kept:
            counts += self._counts[BINS * at : BINS * (at + 1)]
            ends += self._ends[2 * at : 2 * (at + 1)]
        self._counts = counts
        self._ends = ends

        self._orders = array("q", [self._orders[at] for at in kept])
        self._steps = array("q", [self._steps[at] for at in kept])

    def _bins(self, at: int) -> Bins:
        return Bins(
            self._ends[2 * at],
            self._ends[2 * at + 1],
            self._counts[BINS * at : BINS * (at + 1)],
        )
