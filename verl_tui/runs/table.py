"""Metrics as they arrived: one table for the keys that arrive together, with one step column for
all of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import chain
from math import inf
from operator import lt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.records import MetricRows, SourceStatus

ROW_BITS = 40
_SEGMENT_BITS = 9
_ORDINAL_BITS = 9
_RANK_BITS = 4
STATED = 1 << (ROW_BITS + _SEGMENT_BITS + _ORDINAL_BITS + _RANK_BITS)
"""The least precedence of a row whose step its log states."""


def precedence(source: SourceStatus, segment: int, *, estimated: bool = False) -> int:
    """Return the base of a row's precedence: of two values for one step, the higher one holds.

    A step that is stated beats one that was estimated from what stands around a row, whatever the
    sources are. A better source beats a lossier one, a later file an earlier one, a later segment
    (the run was restarted) an earlier one. The rank comes first, since it is unknown which segments
    of different files are the same: verl's file logger starts its file over at each start, a
    console goes on. It depends on what was written only, never on how it was read, so that every
    way of reading a log gives the same series.

    Args:
        source: The row's source, one of at most 512.
        segment: How often the source started over before this row, 0..511.
        estimated: Whether the row's step was estimated.
    """
    place = (source.rank << _ORDINAL_BITS) | min(source.ordinal, 511)
    order = ((place << _SEGMENT_BITS) | min(segment, 511)) << ROW_BITS
    return order if estimated else order | STATED


def origin_of(order: int) -> tuple[int, int]:
    """Return the rank and the ordinal of the source whose row has this precedence."""
    return divmod((order % STATED) >> (ROW_BITS + _SEGMENT_BITS), 1 << _ORDINAL_BITS)


class Table:
    """Rows of one source and segment that share the same keys. Grows only."""

    def __init__(
        self, keys: tuple[str, ...], *, mean: bool, estimated: bool = False
    ) -> None:
        self.keys = keys
        self.mean = mean
        """True if repeated steps are measurements to be averaged."""
        self.estimated = estimated
        """True if its steps are not stated by the log."""
        self.steps = array("q")
        self.orders = array("q")
        """Precedence of each row, see `precedence`."""
        self.times = array("d")
        """Wall-clock time of each row in seconds since the epoch, nan where unknown."""
        self.columns: Sequence[array[float]] = tuple([array("d") for _ in keys])
        self.ascending = True
        """True while every step is greater than the one before."""
        self._finite = [0] * len(keys)
        """Rows up to which a column is known to have only finite values."""

    def __len__(self) -> int:
        return len(self.steps)

    def extend(self, rows: MetricRows, precedence: int, times: array[float]) -> None:
        """Append rows.

        Args:
            rows: Rows with exactly this table's keys.
            precedence: Of the rows' source and segment, see `precedence`; the place in the file
                decides within it.
            times: Wall-clock time of each row.
        """
        steps = [*self.steps[-1:], *rows.steps]
        self.ascending &= all(map(lt, steps, steps[1:]))
        self.steps.extend(rows.steps)
        self.orders.extend(map(precedence.__add__, rows.orders))
        self.times.extend(times)
        for column, values in zip(self.columns, rows.columns, strict=True):
            column.extend(values)

    def is_finite(self, at: int) -> bool:
        """Return whether a column has only finite values; each is looked at once."""
        import numpy as np

        known, column = self._finite[at], self.columns[at]
        if known < len(self) and np.isfinite(np.asarray(column)[known:]).all():
            known = self._finite[at] = len(self)
        return known == len(self)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last step of a table with rows."""
        if self.ascending:
            return self.steps[0], self.steps[-1]
        return min(self.steps), max(self.steps)


def superseded(tables: Sequence[Table]) -> Iterator[tuple[float, float]]:
    """Yield the first and last steps of spans in which rows at estimated steps add nothing new.

    There another log states the steps of at least as many records. Where it has as many from the
    very beginning, the estimated steps below its first are wrong ones of the same records.
    """
    guessed = sorted(chain(*(table.steps for table in tables if table.estimated)))
    stated = [table for table in tables if len(table) and not table.estimated]
    for table in stated if guessed else ():
        first, last = table.span
        upto = bisect_right(guessed, last)
        if len(table) >= upto:
            yield -inf, last
        elif len(table) >= upto - bisect_left(guessed, first):
            yield first, last


# -- which keys share a table ----------------------------------------------------------------------

# Most logs write a few kinds of rows over and over: all rows with the same keys make one table. But
# the keys of a row may depend on its step's batch: there is one for each of the data sources, or
# tools, that it happened to have. Thousands of steps then have thousands of sets of keys, and
# tables of one row each would take some twenty times the memory, and the time of every look at a
# metric.

_MOST_WHOLE = 128
"""Kinds of rows that are kept as they are: devices and workers of a large cluster have one each."""
_MOST_CORES = 64
"""How often the core may become smaller."""


class KeyGrouping:
    """Divides the keys of a log's rows, from some number of kinds on.

    Most rows of further kinds have many keys in common, the core. It is learnt as the rows come: at
    first it is all keys of such a row, then those of them that similar rows have, too.
    """

    def __init__(self) -> None:
        self._whole: set[tuple[str, ...]] = set()
        self._core: tuple[str, ...] = ()
        self._left = _MOST_CORES

    def core(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return which keys of the next row are kept together, each of the others by itself; none
        where the row has little in common with any other.
        """
        if len(keys) < 2 or keys in self._whole:
            return keys
        if len(self._whole) < _MOST_WHOLE:
            self._whole.add(keys)
            return keys
        shared = tuple(filter(frozenset(keys).__contains__, self._core or keys))
        if 3 * len(shared) < len(keys) or (shared != self._core and not self._left):
            return ()
        self._left -= shared != self._core
        self._core = shared
        return shared

    def parts(self, rows: MetricRows) -> Sequence[MetricRows]:
        """Return the next rows, which share their keys, with those keys apart that are kept
        apart.
        """
        core = self.core(rows.keys)
        if core == rows.keys:
            return (rows,)
        columns = dict(zip(rows.keys, rows.columns, strict=True))
        together = frozenset(core)
        alone = [(key,) for key in rows.keys if key not in together]
        return [
            rows._replace(keys=keys, columns=tuple(map(columns.__getitem__, keys)))
            for keys in (core, *alone)
            if keys
        ]
