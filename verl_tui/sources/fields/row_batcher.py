"""Gathers the rows of one file into blocks that share their keys, and notices where the steps start
anew.
"""

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
class MetricRow:
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
    estimated: bool = False
    """Whether the record states no step: it was found from what stands around it."""


def replaced_note(count: int) -> str | None:
    """Say how many records cannot be seen because a later one of the same step took their place."""
    if not count:
        return None
    records = "1 record was" if count == 1 else f"{count:,} records were"
    return f"{records} replaced, in whole or in part, by a later one of the same step with other values"


def joined(*notes: str | None) -> str | None:
    """Return several notes on one source as one, None where there are none."""
    return "; ".join(filter(None, notes)) or None


@dataclass(slots=True)
class _RowBlock:
    """Rows with the same keys that wait to be handed on together."""

    seen: array[int] = field(default_factory=lambda: array("q"))
    """Steps of this segment, ascending."""
    rows: list[MetricRow] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)


class RowBatcher:
    """Turns a stream of rows and other records into records, with rows in blocks and restarts in
    their place.

    Whether steps start anew is decided here, in the order of the file, so that it does not depend
    on how the rows were batched.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[tuple[str, ...], bool, bool, bool], _RowBlock] = {}
        self._alike: dict[tuple[frozenset[str], bool, bool, bool], _RowBlock] = {}
        """Rows whose keys are the same in any order: those of the order that came first in this
        segment.
        """
        self._orders: set[tuple[str, ...]] = set()
        """Orders of keys that the file has ever had."""
        self._started = False
        """Whether something says that a process has begun, and no row has come since."""
        self._order = 0
        self._of_step: list[MetricRow] = []
        """The last rows, as long as they are of one step."""
        self._replaced = 0
        self._out: list[Record] = []

    def add(self, items: Iterable[MetricRow | Record]) -> None:
        """Take what a line has said."""
        for item in items:
            if isinstance(item, MetricRow):
                self._add_row(item)
            elif isinstance(item, Histogram):
                self._out.append(
                    item
                )  # what comes of rows first changes nothing, and they stay in blocks
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
        return replaced_note(self._replaced)

    def take(self) -> tuple[Record, ...]:
        """Return everything gathered since the last call."""
        self._flush()
        out, self._out = self._out, []
        return tuple(out)

    def _note(self, event: Event) -> None:
        """Begin anew where a process says that it goes on from a checkpoint; note where one says
        that it has begun.
        """
        self._started = self._started or event.kind is EventKind.STARTED
        if event.kind is EventKind.RESUMED and self._tables:
            self._forget()
            self._out.append(Restart(event.text))

    def _forget(self) -> None:
        self._tables.clear()
        self._alike.clear()
        self._of_step = []
        self._started = False

    def _add_row(self, row: MetricRow) -> None:
        kind = row.keys, row.mean, row.progress, row.estimated
        table = self._tables.get(kind)
        if table is None:
            before = self._in_another_order(row)
            if before is not None and (row.step == before[-1] or _went_back(before, row.step)):
                self._begin_anew(row, before[-1])
                return
            table = self._tables[kind] = _RowBlock()
            self._alike.setdefault((frozenset(row.keys), *kind[1:]), table)
        seen = table.seen
        if not seen or row.step > seen[-1]:
            seen.append(row.step)
        elif not row.mean and (
            _went_back(seen, row.step) if row.step < seen[-1] else self._started
        ):
            self._begin_anew(row, seen[-1])
            return
        elif row.step < seen[-1] and not row.mean:
            seen.insert(bisect_left(seen, row.step), row.step)
        if not row.mean:
            self._compare(row)
        self._started = False
        table.rows.append(row)
        table.orders.append(self._order)
        self._order += 1

    def _begin_anew(self, row: MetricRow, last: int) -> None:
        back = f"steps went back from {last} to {row.step}"
        self.add((Restart(back if row.step < last else f"step {row.step} was made a second time"),))
        self._add_row(row)

    def _in_another_order(self, row: MetricRow) -> array[int] | None:
        """Return the steps of rows with the same keys, where a row has them in an order that the
        file never had.

        verl takes some keys from a set, whose order is another one in each process. Where several
        processes write by turns, that shows in the first steps: two at least are needed.
        """
        novel = row.keys not in self._orders
        self._orders.add(row.keys)
        before = (
            self._alike.get((frozenset(row.keys), row.mean, row.progress, row.estimated))
            if novel
            else None
        )
        told = (
            before is not None
            and len(before.seen) > 1
            and row.step <= before.seen[-1]
            and not row.mean
        )
        return before.seen if before is not None and told else None

    def _compare(self, row: MetricRow) -> None:
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
        for (keys, mean, progress, estimated), table in self._tables.items():
            rows = table.rows
            if not rows:
                continue
            columns = tuple(map(_column, zip(*(row.values for row in rows), strict=True)))
            times: tuple[float, ...] = ()
            if any(row.time is not None for row in rows):
                times = tuple(float("nan") if row.time is None else row.time for row in rows)
            steps = array("q", [row.step for row in rows])
            self._out.append(
                Rows(keys, steps, columns, table.orders, times, mean, progress, estimated)
            )
            table.rows, table.orders = [], []


def _contradicts(row: MetricRow, before: MetricRow) -> bool:
    """Tell whether two rows of one step have a metric in common, with different values."""
    if row.keys == before.keys:
        return not all(map(_same, row.values, before.values))
    known = dict(zip(before.keys, before.values, strict=True))
    return any(
        key in known and not _same(value, known[key])
        for key, value in zip(row.keys, row.values, strict=True)
    )


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
    """Tell a restart from a row that merely arrives late: a restart repeats a step, or goes far
    back.
    """
    at = bisect_left(seen, step)
    repeats = at < len(seen) and seen[at] == step
    gap = max(1, (seen[-1] - seen[0]) // max(1, len(seen) - 1))
    return repeats or step < seen[0] or seen[-1] - step > 10 * gap
