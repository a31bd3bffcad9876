"""Batches the rows of one file into blocks that share their keys, and notices restarts."""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.records import (
    Event,
    EventKind,
    Histogram,
    MetricRows,
    Progress,
    Record,
    Restart,
)
from verl_tui.runs.table import KeyGrouping
from verl_tui.text import safe
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


_MOST_HELD = 10_000
"""Rows that are held back at most: those of a step are some hundred."""
_KEPT = 16
"""Rows of one step that a new one is compared with: a trainer writes a handful."""


def packed(values: Collection[float]) -> array[float]:
    """Return numbers as an array.

    Raises:
        struct.error: One is no number.
        OverflowError: One is too large.
    """
    # An array takes twice as long to look at one value after the other.
    return array("d", struct.pack(f"{len(values)}d", *values))


def numbers(values: Sequence[float]) -> array[float]:
    """Return numbers as an array, which they may be already."""
    if isinstance(values, array) and values.typecode == "d":
        return values
    return packed(values)


class MetricRow(NamedTuple):
    """Metrics of one step, as a decoder reads them from one line."""

    step: int
    keys: tuple[str, ...]
    values: Sequence[float]
    time: float | None = None
    """Time that the record states, in seconds since the epoch."""
    mean: bool = False
    """True if a repeated step is one more measurement to be averaged."""
    progress: bool = True
    """True if the row shows that training has reached its step."""
    estimated: bool = False
    """True if the record states no step: it was found from the records around it."""
    of_worker: bool = False
    """True if it is the row of one of several ranks or devices, over which it is averaged."""

    @classmethod
    def of(
        cls, step: int, numbers: Mapping[str, float], prefix: str = "", **more: Any
    ) -> MetricRow:
        """Return the row of metrics by foreign names; what else it is by the names above."""
        keys = tuple([prefix + safe(name, 300) for name in numbers])
        return cls(step, keys, tuple(numbers.values()), **more)

    @property
    def traits(self) -> tuple[bool, bool, bool]:
        """Whether it is a mean, shows progress, and has an estimated step."""
        return self.mean, self.progress, self.estimated

    @property
    def leads(self) -> bool:
        """True if it tells which step the trainer is at, as measurements within a step do not."""
        return self.of_worker or not self.mean


def replaced_note(count: int) -> str | None:
    """Say how many records are hidden since a later one of the same step replaced them."""
    if not count:
        return None
    records = counted(count, "record was", "records were")
    by = "by a later one of the same step with other values"
    return f"{records} replaced, in whole or in part, {by}"


def joined_notes(*notes: str | None) -> str | None:
    """Return several notes on one source as one, None if there are none."""
    return "; ".join(filter(None, notes)) or None


@dataclass(slots=True)
class _RowBlock:
    """Rows with the same keys that wait to be passed on together."""

    seen: array[int] = field(default_factory=lambda: array("q"))
    """Steps of this segment, ascending."""
    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    """Row after row."""
    times: list[float | None] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)

    def append(self, row: MetricRow, order: int) -> None:
        """Have a row wait."""
        self.steps.append(row.step)
        self.values += numbers(row.values)
        self.times.append(row.time)
        self.orders.append(order)

    def taken(self, keys: tuple[str, ...], kind: Sequence[bool]) -> MetricRows:
        """Return the rows that wait; the next ones wait anew."""
        count = len(keys)
        values = tuple([self.values[at::count] for at in range(count)])
        times: tuple[float, ...] = ()
        if self.times.count(None) < len(self.times):
            times = tuple([math.nan if time is None else time for time in self.times])
        rows = MetricRows(keys, self.steps, values, self.orders, times, *kind)
        self.steps, self.values = array("q"), array("d")
        self.times, self.orders = [], []
        return rows


_Kind = tuple[tuple[str, ...], bool, bool, bool]
"""Keys of rows, or those that they have in common, and whether they are means, show progress, and
have an estimated step.
"""

_Last = tuple[_RowBlock, "tuple[str, ...] | None", "Sequence[bool]"]


class RowBatcher:
    """Turns a stream of rows and other records into records, with rows in blocks.

    Restarts are detected here, in the order of the file, so that they do not depend on the batches.
    """

    def __init__(self, *, holds_back: bool = False) -> None:
        """Begin with a file.

        Args:
            holds_back: Whether measurements of earlier steps wait for the next row that leads:
                trainers write rewards before the row of their step, and only that row tells whether
                the rewards came late or belong to a restart. `release` ends the wait.
        """
        self._holds_back = holds_back
        self._held: list[MetricRow] = []
        self._blocks: dict[_Kind, _RowBlock] = {}
        self._alike: dict[tuple[frozenset[str], bool, bool, bool], _RowBlock] = {}
        """Blocks by their keys in any order: those of the first order in this segment."""
        self._orders: set[tuple[str, ...]] = set()
        """All orders of keys in the file."""
        self._grouping = KeyGrouping()
        self._varying: list[MetricRows] = []
        """Rows that wait to be passed on, each by itself: they ever have other keys."""
        self._order = 0
        """Rows so far."""
        self._replaced = 0
        self._forget()
        self._out: list[Record] = []

    def _forget(self) -> None:
        self._blocks.clear()
        self._alike.clear()
        self._of_step: list[MetricRow] = []
        """The last rows, all of one step."""
        self._last: _Last = _RowBlock(), None, ()
        """Block, keys and traits of the last row that leads."""
        self._reached: int | None = None
        """Step of the last row of this segment that leads."""
        self._started = False
        """True from a process's start until its first row."""

    def add(self, items: Iterable[MetricRow | Record]) -> None:
        """Take the rows and records of lines."""
        for item in items:
            if isinstance(item, MetricRow):
                if not self._takes_next(item):
                    self._take_row(item)
            elif isinstance(item, Histogram | Progress):
                # Nothing changes where it comes before rows, which so stay together in blocks.
                self._out.append(item)
            else:
                self._take_record(item)

    def _takes_next(self, row: MetricRow) -> bool:
        """Take a row if it is of a further step and else like the one before, as most are."""
        block, keys, traits = self._last
        if (
            row.keys is not keys
            or row[4:7] != traits
            or self._held
            or row.step <= block.seen[-1]
        ):
            return False
        block.seen.append(row.step)
        block.append(row, self._order)
        self._order += 1
        self._of_step = [row]
        self._reached = row.step
        self._started = False
        return True

    @property
    def note(self) -> str | None:
        """Say how many rows were replaced."""
        return replaced_note(self._replaced)

    def release(self) -> None:
        """Take the rows that were held back as late ones of this segment."""
        held = self._held
        self._held = []
        for row in held:
            self._add_row(row)

    def take(self) -> tuple[Record, ...]:
        """Return everything added since the last call, without the rows that are held back."""
        self._flush()
        out = self._out
        self._out = []
        return tuple(out)

    def _take_record(self, record: Record) -> None:
        if isinstance(record, Event):
            self.release()
        self._flush()
        if isinstance(record, Event):
            self._note(record)
        elif isinstance(record, Restart):
            self._forget()
        self._out.append(record)
        if isinstance(record, Restart):
            self.release()

    def _note(self, event: Event) -> None:
        """Note the start of a process; restart where one resumes from a checkpoint."""
        self._started = self._started or event.kind is EventKind.STARTED
        if event.kind is EventKind.RESUMED and self._blocks:
            self._forget()
            self._out.append(Restart(event.text))

    def _take_row(self, row: MetricRow) -> None:
        if row.leads:
            self._add_row(row)
            self._reached = row.step
            return
        if self._holds_back and self._reached is not None and row.step < self._reached:
            self._held.append(row)
            if len(self._held) > _MOST_HELD:
                self.release()
        else:
            self._add_row(row)

    def _add_row(self, row: MetricRow) -> None:
        core = self._grouping.core(row.keys)
        kind = core, *row.traits
        block = self._blocks.get(kind)
        if block is None:
            before = self._in_another_order(row) if core == row.keys else None
            if before is not None:
                self._begin_anew(row, before)
                return
            block = self._blocks[kind] = _RowBlock()
            self._alike.setdefault((frozenset(core), *kind[1:]), block)
        last = self._trained_again(block.seen, row) if core else None
        if last is not None:
            self._begin_anew(row, last)
            return
        if row.leads:
            self.release()
        if not row.mean:
            self._compare(row)
        self._started = False
        self._keep(block if core == row.keys else None, row)

    def _trained_again(self, seen: array[int], row: MetricRow) -> int | None:
        """Note the step of a row among those seen; return the last of these where it is trained
        again, else None.
        """
        if not seen or row.step > seen[-1]:
            seen.append(row.step)
        elif not row.mean:
            late = row.step < seen[-1]
            if _went_back(seen, row.step) if late else self._started:
                return seen[-1]
            if late:
                insort(seen, row.step)
        return None

    def _keep(self, block: _RowBlock | None, row: MetricRow) -> None:
        """Have a row wait to be passed on, in a block or by itself."""
        into = block if block is not None else _RowBlock()
        into.append(row, self._order)
        self._order += 1
        if block is None:
            self._varying.append(into.taken(row.keys, row.traits))
            self._last = into, None, ()
        elif not row.mean:
            self._last = block, row.keys, row.traits

    def _begin_anew(self, row: MetricRow, last: int) -> None:
        back = f"steps went back from {last} to {row.step}"
        self._flush()
        self._forget()
        again = back if row.step < last else f"step {row.step} was made a second time"
        self._out.append(Restart(again))
        self._add_row(row)

    def _in_another_order(self, row: MetricRow) -> int | None:
        """Return the last of the steps that a row trains again, where its keys have a new order.

        A new order shows another process, since verl takes some keys from a set. Where several
        processes write by turns, that shows in the first steps: so two are needed.
        """
        if row.keys in self._orders:
            return None
        self._orders.add(row.keys)
        kind = frozenset(row.keys), *row.traits
        before = self._alike.get(kind)
        if before is None or row.mean or len(before.seen) < 2:
            return None
        return before.seen[-1] if _went_back(before.seen, row.step) else None

    def _compare(self, row: MetricRow) -> None:
        """Count a row that replaces an earlier one."""
        if not self._of_step or self._of_step[0].step != row.step:
            self._of_step = [row]
            return
        known = {
            key: value
            for before in self._of_step
            for key, value in zip(before.keys, before.values, strict=True)
        }
        self._replaced += any(
            not _same(known.get(key, value), value)
            for key, value in zip(row.keys, row.values, strict=True)
        )
        self._of_step = [*self._of_step, row][-_KEPT:]

    def _flush(self) -> None:
        for (keys, *kind), block in self._blocks.items():
            if block.steps:
                self._out.append(block.taken(keys, kind))
        self._out += self._varying
        self._varying = []


def _same(value: float, other: float) -> bool:
    return value == other or (math.isnan(value) and math.isnan(other))


def _went_back(seen: array[int], step: int) -> bool:
    """Return True for a restart, which repeats a step or goes far back, False for a late row."""
    at = bisect_left(seen, step)
    repeats = at < len(seen) and seen[at] == step
    gap = max(1, (seen[-1] - seen[0]) // max(1, len(seen) - 1))
    return repeats or step < seen[0] or seen[-1] - step > 10 * gap
