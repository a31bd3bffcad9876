"""Gathers the rows of one file into blocks that share their keys, and notices where the steps start anew."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from verl_tui.records import Event, EventKind, Histogram, Record, Restart, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_KEPT = 16
"""Rows of one step that a further one is compared with: a trainer writes a handful."""


@dataclass(frozen=True, slots=True)
class Row:
    """Numbers of one step, as a decoder reads them from one line."""

    step: int
    keys: tuple[str, ...]
    values: tuple[float, ...]
    time: float | None = None
    """Wall-clock time stated in the record, seconds since the epoch."""
    mean: bool = False
    """Whether a repeated step is one more measurement to be averaged."""
    progress: bool = True
    """Whether it shows that training has reached its step."""
    reckoned: bool = False
    """Whether the record states no step: it was found from what stands around it."""


@dataclass(slots=True)
class _Pending:
    """Rows with the same keys that wait to be handed on together."""

    seen: array[int]
    """Steps of this segment, ascending; rows with the same keys in another order share them."""
    rows: list[Row] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)


class Gather:
    """Turns a stream of rows and other records into records, with rows in blocks and restarts in their place.

    Whether steps start anew is decided here, in the order of the file, so that it does not depend on how the rows
    were batched.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[tuple[str, ...], bool, bool, bool], _Pending] = {}
        self._seen: dict[tuple[frozenset[str], bool, bool, bool], array[int]] = {}
        self._keys: dict[frozenset[str], tuple[str, ...]] = {}
        """The order in which keys were last written."""
        self._started = False
        """Whether something says that a process has begun, and no row has come since."""
        self._order = 0
        self._of_step: list[Row] = []
        """The last rows, as long as they are of one step."""
        self._replaced = 0
        self._out: list[Record] = []

    def add(self, items: Iterable[Row | Record]) -> None:
        """Take what a line has said."""
        for item in items:
            if isinstance(item, Row):
                self._add_row(item)
            elif isinstance(item, Histogram):
                self._out.append(item)  # what comes of rows first changes nothing, and they stay in blocks
            else:
                self._flush()
                if isinstance(item, Restart):
                    self._forget()
                elif isinstance(item, Event):
                    self._note(item)
                self._out.append(item)

    @property
    def note(self) -> str | None:
        """What should be known of rows that cannot be seen any more."""
        if not self._replaced:
            return None
        records = "1 record was" if self._replaced == 1 else f"{self._replaced:,} records were"
        return f"{records} replaced, in whole or in part, by a later one of the same step with other values"

    def take(self) -> tuple[Record, ...]:
        """Return everything gathered since the last call."""
        self._flush()
        out, self._out = self._out, []
        return tuple(out)

    def _note(self, event: Event) -> None:
        """Begin anew where a process says that it goes on from a checkpoint; note where one says that it has begun."""
        self._started = self._started or event.kind is EventKind.STARTED
        if event.kind is EventKind.RESUMED and self._seen:
            self._forget()
            self._out.append(Restart(event.text))

    def _forget(self) -> None:
        self._tables.clear()
        self._seen.clear()
        self._keys.clear()
        self._of_step = []
        self._started = False

    def _add_row(self, row: Row) -> None:
        kind = row.keys, row.mean, row.progress, row.reckoned
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = self._pending(row)
        seen = table.seen
        if not seen or row.step > seen[-1]:
            seen.append(row.step)
        elif not row.mean and self._begins_anew(row, seen):
            said = f"steps went back from {seen[-1]} to {row.step}"
            self.add((Restart(said if row.step < seen[-1] else f"step {row.step} was made a second time"),))
            self._add_row(row)
            return
        elif row.step < seen[-1] and not row.mean:
            seen.insert(bisect_left(seen, row.step), row.step)
        if not row.mean:
            self._compare(row)
        self._started = False
        table.rows.append(row)
        table.orders.append(self._order)
        self._order += 1

    def _pending(self, row: Row) -> _Pending:
        """Return a table for keys in an order that is new."""
        keys = frozenset(row.keys)
        self._keys.setdefault(keys, row.keys)
        return _Pending(self._seen.setdefault((keys, row.mean, row.progress, row.reckoned), array("q")))

    def _begins_anew(self, row: Row, seen: array[int]) -> bool:
        """Tell whether a row whose step is not beyond those before it is of another process.

        verl takes some keys from a set, whose order is another one in each process: then, or where a start was printed,
        even the same step once more shows it.
        """
        another = self._started or self._keys[frozenset(row.keys)] != row.keys
        return (another and row.step == seen[-1]) or (row.step < seen[-1] and _went_back(seen, row.step))

    def _compare(self, row: Row) -> None:
        """Count a row that takes the place of one before it."""
        if not self._of_step or self._of_step[0].step != row.step:
            self._of_step = [row]
            return
        if any(_contradicts(row, before) for before in self._of_step):
            self._replaced += 1
            self._of_step = [before for before in self._of_step if not _contradicts(row, before)]
        self._of_step.append(row)
        del self._of_step[:-_KEPT]

    def _flush(self) -> None:
        for (keys, mean, progress, reckoned), table in self._tables.items():
            rows = table.rows
            if not rows:
                continue
            columns = tuple(map(_column, zip(*(row.values for row in rows), strict=True)))
            times: tuple[float, ...] = ()
            if any(row.time is not None for row in rows):
                times = tuple(float("nan") if row.time is None else row.time for row in rows)
            steps = array("q", [row.step for row in rows])
            self._out.append(Rows(keys, steps, columns, table.orders, times, mean, progress, reckoned))
            table.rows, table.orders = [], []


def _contradicts(row: Row, before: Row) -> bool:
    """Tell whether two rows of one step have a metric in common, with different values."""
    if row.keys == before.keys:
        return not all(map(_same, row.values, before.values))
    known = dict(zip(before.keys, before.values, strict=True))
    return any(key in known and not _same(value, known[key]) for key, value in zip(row.keys, row.values, strict=True))


def _same(value: float, other: float) -> bool:
    return value == other or (math.isnan(value) and math.isnan(other))


def _column(values: Sequence[float]) -> array[float]:
    try:
        return array("d", values)
    except OverflowError:
        return array("d", map(_number, values))


def _number(value: float) -> float:
    """Return a number as a float; a whole one too large for that is infinite, as `1e999` is."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _went_back(seen: array[int], step: int) -> bool:
    """Tell a restart from a row that merely arrives late: a restart repeats a step, or goes far back."""
    at = bisect_left(seen, step)
    repeats = at < len(seen) and seen[at] == step
    gap = max(1, (seen[-1] - seen[0]) // max(1, len(seen) - 1))
    return repeats or step < seen[0] or seen[-1] - step > 10 * gap
