"""Batches the rows of one file into blocks that share their keys, and notices restarts."""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from verl_tui.records import (
    Event,
    EventKind,
    Histogram,
    MetricRows,
    Progress,
    Record,
    Records,
    Restart,
)
from verl_tui.runs.table import KeyGrouping
from verl_tui.text import safe
from verl_tui.words import counted

_MOST_HELD = 10_000
"""Rows that are held back at most: those of a step are some hundred."""
_UNNAMED = "(unnamed)"
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


@lru_cache(1000)  # a log may have others in every line
def metric_keys(names: tuple[str, ...], prefix: str = "") -> tuple[str, ...]:
    """Return the keys of metrics by foreign names, which hardly ever change."""
    keys = (safe(name, 300) for name in names)
    return tuple([prefix + (key if key.strip() else _UNNAMED) for key in keys])


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

    @classmethod
    def of(cls, step: int, numbers: Mapping[str, float], **more: Any) -> MetricRow:
        """Return the row of metrics by foreign names; what else it is by the names above."""
        return cls(step, metric_keys(tuple(numbers)), tuple(numbers.values()), **more)


Item: TypeAlias = "MetricRow | Record"
"""What a decoder makes of lines."""


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


class _RowBlock(NamedTuple):
    """Rows with the same keys that wait to be passed on together."""

    seen: array[int]
    """Steps of this segment that have rows with these keys, in any order, ascending."""
    rows: list[MetricRow]
    orders: list[int]


class RowBatcher:
    """Turns a stream of rows and other records into records, with rows in blocks.

    Restarts are detected here, in the order of the file, so that they do not depend on the batches.
    """

    def __init__(self, *, holds_back: bool = False) -> None:
        """Begin with a file.

        Args:
            holds_back: Whether measurements of earlier steps wait for the next row that is no mean:
                trainers write rewards before the row of their step, and only that row tells whether
                the rewards came late or belong to a restart. `release` ends the wait.
        """
        self._holds_back = holds_back
        self._held: list[MetricRow] = []
        self._grouping = KeyGrouping()
        self._order = 0
        """Rows so far."""
        self._replaced = 0
        self._out: list[Record] = []
        self._forget()

    def _forget(self) -> None:
        self._seen: dict[Any, array[int]] = {}
        """Steps by the keys of their rows, in any order, and their traits: whether they are means,
        show progress, and have an estimated step.
        """
        self._blocks: dict[Any, _RowBlock] = {}
        """By the keys of their rows, or those that they have in common, and their traits."""
        self._kind: Any = None
        """Keys and traits of the last row, whose block is known: to look up a hundred keys at each
        row takes longer than all else here.
        """
        self._of_step: list[MetricRow] = []
        """The last rows, all of one step."""
        self._reached = -math.inf
        """Step of the last row of this segment that is no mean."""
        self._started = False
        """True from a process's start until its first row."""

    @property
    def note(self) -> str | None:
        """Say how many rows were replaced."""
        return replaced_note(self._replaced)

    def add(self, items: Iterable[Item]) -> None:
        """Take the rows and records of lines."""
        for item in items:
            if isinstance(item, MetricRow):
                late = self._holds_back and item.mean and item.step < self._reached
                if late and len(self._held) < _MOST_HELD:
                    self._held.append(item)
                else:
                    self._add_row(item)
            elif isinstance(item, Histogram | Progress):
                # Nothing changes where it comes before rows, which so stay together in blocks.
                self._out.append(item)
            else:
                self._add_record(item)

    def release(self) -> None:
        """Take the rows that were held back as late ones of this segment."""
        held, self._held = self._held, []
        for row in held:
            self._add_row(row)

    def take(self) -> Records:
        """Return everything added since the last call, without the rows that are held back."""
        self._flush()
        out, self._out = self._out, []
        return tuple(out)

    def _add_record(self, record: Record) -> None:
        if isinstance(record, Event):
            self.release()
        self._flush()
        if isinstance(record, Event):
            self._started |= record.kind is EventKind.STARTED
            if record.kind is EventKind.RESUMED and self._seen:
                self._forget()
                self._out.append(Restart(record.text))
        self._out.append(record)
        if isinstance(record, Restart):
            self._forget()
            self.release()

    def _add_row(self, row: MetricRow) -> None:
        kind = row.keys, row[4:7]
        if kind != self._kind:
            keys, traits = self._kind = kind
            core = self._core = self._grouping.core(keys)
            seen = self._seen.setdefault((frozenset(core), traits), array("q"))
            new = _RowBlock(seen, [], [])
            self._block = self._blocks.setdefault((core, traits), new)
            self._is_core = core == keys
        block, is_core = self._block, self._is_core
        if not block.seen or row.step > block.seen[-1]:
            block.seen.append(row.step)
        elif self._core and self._begins_anew(block.seen, row):
            self._add_row(row)
            return
        if not row.mean:
            if self._held:
                self.release()
            if row.step == self._reached:
                self._compare(row)
            else:
                self._of_step = [row]
            self._reached = row.step
        self._started = False
        self._order += 1
        if is_core:
            block.rows.append(row)
            block.orders.append(self._order)
        else:
            self._out.append(_together([row], [self._order]))

    def _begins_anew(self, seen: array[int], row: MetricRow) -> bool:
        """Begin a segment where a step that is not beyond those seen is trained again, else note it
        among them; return which.
        """
        if row.mean:
            return False
        step, last = row.step, seen[-1]
        if step == last:
            again, reason = self._started, f"step {step} was made a second time"
        else:
            again = _went_back(seen, step)
            reason = f"steps went back from {last} to {step}"
        if again:
            self._flush()
            self._forget()
            self._out.append(Restart(reason))
        elif step < last:
            insort(seen, step)
        return again

    def _compare(self, row: MetricRow) -> None:
        """Count a row that replaces an earlier one of its step."""
        known: dict[str, float] = {}
        for before in self._of_step:
            known.update(zip(before.keys, before.values, strict=True))
        own = zip(row.keys, row.values, strict=True)
        self._replaced += any(not _same(known.get(key, one), one) for key, one in own)
        self._of_step = [*self._of_step, row][-_KEPT:]

    def _flush(self) -> None:
        blocks, self._blocks, self._kind = self._blocks, {}, None
        for _, rows, orders in blocks.values():
            self._out += [_together(rows, orders)] if rows else []


def _together(rows: Sequence[MetricRow], orders: Sequence[int]) -> MetricRows:
    """Return rows with the same keys and traits as a record."""
    steps, (keys, *_), every, stated, *_ = zip(*rows, strict=True)
    values = array("d")
    for one in every:
        values += one if isinstance(one, array) else packed(one)
    columns = tuple([values[at :: len(keys)] for at in range(len(keys))])
    times = [math.nan if time is None else time for time in stated]
    known = () if all(map(math.isnan, times)) else times
    return MetricRows(keys, steps, columns, orders, known, *rows[0][4:7])


def _same(value: float, other: float) -> bool:
    return value == other or (math.isnan(value) and math.isnan(other))


def _went_back(seen: array[int], step: int) -> bool:
    """Return True for a restart, which repeats a step or goes far back, False for a late row."""
    at = bisect_left(seen, step)
    repeats = at < len(seen) and seen[at] == step
    gap = max(1, (seen[-1] - seen[0]) // max(1, len(seen) - 1))
    return repeats or step < seen[0] or seen[-1] - step > 10 * gap
