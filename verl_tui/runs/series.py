"""Values of one metric over steps."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.pyramid import Pyramid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.table import Table

_ROW_BITS = 40


class Point(NamedTuple):
    """One value at one step."""

    step: int
    value: float


class Series:
    """Values of one metric, ascending in step, one value a step; catches up with its tables when asked.

    Only metrics that somebody looks at become a series: the columns of all others cost their bytes and nothing else.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.steps = array("q")
        self.values = array("d")
        self.times = array("d")
        """Wall-clock time of each point in seconds since the epoch, nan where unknown."""
        self.counts = array("q")
        """How many measurements each point is the mean of; empty where points are single values."""
        self.revision = 0
        """Grows when a point other than the last one changes, or one is put before the last: readers start over."""
        self._orders = array("q")
        self._cursors: dict[int, int] = {}
        self._pyramid: Pyramid | None = None
        self._highest = (-1, 0, -math.inf)
        """Revision, number of settled points, and the greatest of them."""
        self._beyond: dict[tuple[float, bool], tuple[int, int, Point | None]] = {}
        """Value and way -> revision, number of settled points looked at, and the first of them beyond."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def last(self) -> Point | None:
        """The newest point, finite or not."""
        return Point(self.steps[-1], self.values[-1]) if self.steps else None

    @property
    def last_finite(self) -> Point | None:
        """The newest point whose value is a number."""
        for i in range(len(self.values) - 1, -1, -1):
            if math.isfinite(self.values[i]):
                return Point(self.steps[i], self.values[i])
        return None

    @property
    def highest(self) -> float:
        """The greatest value that is a number, `-inf` where there is none; asking again costs what is new."""
        revision, count, highest = self._highest
        settled = max(0, len(self.values) - 1)  # the newest point may still be replaced
        if revision != self.revision or count > settled:
            count, highest = 0, -math.inf
        highest = max([highest, *filter(math.isfinite, self.values[count:settled])])
        self._highest = (self.revision, settled, highest)
        return max([highest, *filter(math.isfinite, self.values[settled:])])

    def first_beyond(self, value: float, *, down: bool = False) -> Point | None:
        """Return the first point at or above a value (`down`: at or below); asking again costs what is new."""
        revision, count, found = self._beyond.get((value, down), (-1, 0, None))
        settled = max(0, len(self.values) - 1)  # the newest point may still be replaced
        if revision != self.revision or count > settled:
            count, found = 0, None
        if found is None:
            found = self._find(value, count, settled, down=down)
            self._beyond[value, down] = (self.revision, settled, found)
        return found if found is not None else self._find(value, settled, len(self.values), down=down)

    def _find(self, value: float, start: int, stop: int, *, down: bool) -> Point | None:
        values = self.values
        hits = (i for i in range(start, stop) if (values[i] <= value if down else values[i] >= value))
        at = next(hits, None)
        return None if at is None else Point(self.steps[at], values[at])

    @property
    def pyramid(self) -> Pyramid:
        """Minima and maxima for drawing; made when first drawn."""
        if self._pyramid is None:
            self._pyramid = Pyramid(self.steps, self.values)
        self._pyramid.catch_up()
        return self._pyramid

    def at(self, step: int) -> Point | None:
        """Return the newest point at or before `step`."""
        i = bisect_left(self.steps, step + 1) - 1
        return Point(self.steps[i], self.values[i]) if i >= 0 else None

    def order_at(self, step: int) -> int | None:
        """Return the precedence of the point at exactly `step`, None where there is none."""
        i = bisect_left(self.steps, step)
        return self._orders[i] if i < len(self.steps) and self.steps[i] == step else None

    @property
    def orders(self) -> Sequence[int]:
        """The precedence of each point, see `verl_tui.runs.table.precedence`."""
        return self._orders

    def tail(self, count: int) -> Sequence[float]:
        """Return the last `count` values, oldest first."""
        return self.values[-count:] if count > 0 else self.values[:0]

    def catch_up(self, tables: Sequence[tuple[Table, int]]) -> None:
        """Take over what is new in the tables that hold this metric.

        Args:
            tables: Each table with the index of this metric's column; the order and identity of tables never change,
                new ones are added at the end.
        """
        fresh = [
            (number, table, column, self._cursors.get(number, 0))
            for number, (table, column) in enumerate(tables)
            if len(table) > self._cursors.get(number, 0)
        ]
        if not fresh:
            return
        if len(fresh) == 1 and self._append(*fresh[0][1:]):
            self._cursors[fresh[0][0]] = len(fresh[0][1])
            return
        self._merge(fresh)

    def _append(self, table: Table, column: int, start: int) -> bool:
        """Append the rows from `start` in one go if they all come after the last point; return whether they did."""
        behind = self.steps and table.steps[start] <= self.steps[-1]
        if behind or table.mean or not table.ascending:
            return False
        self.steps.extend(table.steps[start:])
        self.values.extend(table.columns[column][start:])
        self.times.extend(table.times[start:])
        self._orders.extend(table.orders[start:])
        return True

    def _merge(self, fresh: Sequence[tuple[int, Table, int, int]]) -> None:
        rows = [
            (table.steps[i], table.orders[i], table.columns[column][i], table.times[i], table.mean)
            for _, table, column, start in fresh
            for i in range(start, len(table))
        ]
        rows.sort(key=lambda row: row[:2])
        for row in rows:
            self._put(*row)
        for number, table, _, _ in fresh:
            self._cursors[number] = len(table)

    def _put(self, step: int, order: int, value: float, time: float, mean: bool) -> None:
        """Put one point in its place: at the end, over an older one of its step, or between two."""
        at = len(self.steps)
        if at and step <= self.steps[-1]:
            at = bisect_left(self.steps, step)
        if mean and len(self.counts) < len(self.steps):
            self.counts.extend([1] * (len(self.steps) - len(self.counts)))
        if at < len(self.steps) and self.steps[at] == step:
            self._replace(at, order, value, time, mean)
            return
        inside = at < len(self.steps)
        self.steps.insert(at, step)
        self.values.insert(at, value)
        self.times.insert(at, time)
        self._orders.insert(at, order)
        if mean or self.counts:
            self.counts.insert(at, 1)
        if inside:
            self.revision += 1
            if self._pyramid is not None:
                self._pyramid.rebuild()

    def _replace(self, at: int, order: int, value: float, time: float, mean: bool) -> None:
        if mean and order >> _ROW_BITS == self._orders[at] >> _ROW_BITS:
            self.counts[at] += 1
            value = self.values[at] + (value - self.values[at]) / self.counts[at]
        elif order < self._orders[at]:
            return
        elif self.counts:
            self.counts[at] = 1
        changed = value != self.values[at] and not (math.isnan(value) and math.isnan(self.values[at]))
        self._orders[at] = order
        if not math.isnan(time):
            self.times[at] = time
        if changed:
            self.values[at] = value
            if at < len(self.steps) - 1:
                self.revision += 1
            if self._pyramid is not None:
                self._pyramid.update(at)
