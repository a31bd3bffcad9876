"""The samples and the histograms of a run, by step, each within a budget of memory; dumps of
samples stay on disk.

Trainers write the same samples in several ways: TRL prints them, cut to the width of a table, and
writes them into Parquet files and a table of W&B. Samples of one step in two formats are taken to
be the same ones: the format with the most samples is shown or, if they have equally many, the one
of the higher rank, which does not round scores. Files of one format complement each other.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import Bins

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from verl_tui.records import Dump, Histogram, Sample


# -- samples ---------------------------------------------------------------------------------------


SAMPLE_BYTES = 64 * 2**20
"""Memory that the samples which logs print may take, those of all runs together."""


class Place(NamedTuple):
    """A step's samples of training, or of its validation."""

    step: int
    validation: bool


class Samples:
    """Samples grouped by place, newest step last; the oldest ones in memory are dropped when the
    budget is spent.
    """

    def __init__(self) -> None:
        self.size = 0
        """Bytes that they take."""
        self.dropped = 0
        """Samples given up to stay within the budget."""
        self.revision = 0
        """Grows with every change."""
        self._kept: dict[Place, dict[str, list[Sample]]] = {}
        """By place and format."""
        self._ranks: dict[str, int] = {}
        """Format -> trust in it, see `verl_tui.records.SourceStatus`."""
        self._dumps: dict[Place, Dump] = {}
        self._places: list[Place] = []

    @property
    def places(self) -> Sequence[Place]:
        """Where there are samples, in memory or in a dump; ascending."""
        if not self._places:
            self._places = sorted({*self._kept, *self._dumps})
        return self._places

    def up_to(self, end: int | None) -> Sequence[Place]:
        """Return the places up to a step, all of them where it is None or all lie beyond it."""
        if end is None:
            return self.places
        return [place for place in self.places if place.step <= end] or self.places

    def add(
        self, sample: Sample, step: int, format_name: str = "", rank: int = 0
    ) -> None:
        """Keep a sample under a step.

        Args:
            sample: The sample.
            step: Its step, which logs may state elsewhere.
            format_name: The format of its source.
            rank: Trust in that format.
        """
        place = Place(step, sample.validation)
        if place not in self._kept:
            self._kept[place] = {}
            self._places = []
        self._kept[place].setdefault(format_name, []).append(sample)
        self._ranks[format_name] = rank
        self.size += _size(sample)
        self.revision += 1
        while self.size > SAMPLE_BYTES and self.spare:
            self.give_way()

    @property
    def spare(self) -> int:
        """Bytes that all but the newest samples take."""
        if not self._kept:
            return 0
        newest = self._kept[max(self._kept)]
        return self.size - sum(map(_size, chain(*newest.values())))

    def give_way(self) -> None:
        """Give up the oldest samples in memory."""
        oldest = min(self._kept)
        self.dropped += len(self.kept(oldest))
        for format_name in list(self._kept[oldest]):
            self.forget(*oldest, format_name)

    def add_dump(self, dump: Dump) -> None:
        """Note that a dump has come, has changed, or is gone."""
        place = Place(dump.step, dump.validation)
        known = self._dumps.get(place)
        if not dump.removed:
            self._dumps[place] = dump
        elif known and known.path == dump.path:
            del self._dumps[place]
        self._places = []
        self.revision += 1

    def kept(self, place: Place) -> Sequence[Sample]:
        """Return the samples of a place that are in memory, in the order of the log. If several
        formats have some, the one with the most counts, then the one of the highest rank.
        """
        versions = self._kept.get(place, {})
        fullest = max(
            versions,
            key=lambda name: (len(versions[name]), self._ranks[name]),
            default=None,
        )
        return () if fullest is None else tuple(versions[fullest])

    def dump(self, place: Place) -> Dump | None:
        """Return the dump of a place, None where there is none."""
        return self._dumps.get(place)

    def nearest_place(self, step: int, validation: bool | None = None) -> Place | None:
        """Return the place nearest to a step, the newer of two; None where there is none.

        Args:
            step: Where to look.
            validation: Whether only validations count (True) or only training (False); of both,
                training first.
        """
        fitting = (
            place for place in self.places if validation in (None, place.validation)
        )
        return min(
            fitting,
            key=lambda place: (abs(place.step - step), -place.step, place.validation),
            default=None,
        )

    def forget(self, step: int, validation: bool, format_name: str = "") -> None:
        """Drop the samples in memory of one step, kind and format: they are being written again."""
        place = Place(step, validation)
        versions = self._kept.get(place, {})
        self.size -= sum(map(_size, versions.pop(format_name, ())))
        self.revision += 1
        if not versions:
            self._kept.pop(place, None)
            self._places = []


def _size(sample: Sample) -> int:
    """Return about how many bytes a sample takes."""
    texts = (
        sample.prompt,
        sample.response,
        sample.ground_truth,
        *sample.extras.values(),
    )
    return 200 + sum(map(sys.getsizeof, texts))


# -- histograms ------------------------------------------------------------------------------------


HISTOGRAMS = 100_000
"""Histograms kept at most, of 400 bytes each."""


class BinsAt(NamedTuple):
    """The histogram of a step."""

    step: int
    bins: Bins


class Histograms:
    """The histograms kept, by metric and step; when the budget is spent every second one goes."""

    def __init__(self) -> None:
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
        if found.step in kept and order < kept[found.step][0]:
            return
        self._count += found.step not in kept
        kept[found.step] = order, Bins(found.low, found.high, array("f", found.counts))
        if self._count > HISTOGRAMS:
            for kept in self._of.values():  # every second one goes, never the newest
                for step in sorted(kept)[-2::-2]:
                    del kept[step]
            self._count = sum(map(len, self._of.values()))

    def at(self, key: str, step: int) -> BinsAt | None:
        """Return the newest histogram at or before a step, None where there is none."""
        kept = self._of.get(key, {})
        at = max((one for one in kept if one <= step), default=None)
        return None if at is None else BinsAt(at, kept[at][1])

    def some(
        self, key: str, ends: tuple[int, int] | None, most: int
    ) -> Sequence[BinsAt]:
        """Return the histograms from a step to another, or all, ascending: of more than so many the
        newest one, and others that stay the same while there is room for more.
        """
        kept = self._of.get(key, {})
        steps = sorted(kept)
        if ends:
            first, last = ends
            steps = steps[bisect_left(steps, first) : bisect_right(steps, last)]
        stride = 1 << ((len(steps) - 1) // most).bit_length() if steps else 1
        chosen = sorted({*steps[::stride], *steps[-1:]})
        return [BinsAt(at, kept[at][1]) for at in chosen]
