"""Values of one metric over steps."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.column import Column
from verl_tui.runs.pyramid import Pyramid
from verl_tui.runs.table import STATED, superseded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.runs.column import Number
    from verl_tui.runs.table import Table

_ROW_BITS = 40

_MergedPoint = tuple[int, float, float, int]
"""Precedence, value, time and count of a point."""


class Point(NamedTuple):
    """One value at one step."""

    step: int
    value: float


class Series:
    """Values of one metric, ascending in step, one value a step; catches up with its tables when
    asked.

    Only metrics that are shown or judged become a series: all other columns cost only their bytes.
    """

    def __init__(self, key: str, revision: int = 0) -> None:
        self.key = key
        self.steps = array("q")
        self.values = array("d")
        self.times: Column[float] = Column("d")
        """Wall-clock time of each point in seconds since the epoch, nan where unknown."""
        self.counts = array("q")
        """How many measurements each point is the mean of; empty where points are single values."""
        self.revision = revision
        """Grows when a point other than the last one changes, or one is put before the last:
        readers start over.
        """
        self._orders: Column[int] = Column("q")
        self._cursors: dict[int, int] = {}
        self._pyramid: Pyramid | None = None
        self._highest = (-1, 0, -math.inf)
        """Revision, number of settled points, and the greatest of them."""
        self._beyond: dict[tuple[float, bool], tuple[int, int, Point | None]] = {}
        """Value and direction -> revision, number of settled points checked, and the first of them
        beyond the value.
        """
        self._cut: tuple[int, int, Series | None] = (-1, 0, None)
        """Revision, number of points, and the series of these that `until` returned last."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def last(self) -> Point | None:
        """The newest point, finite or not."""
        if not self.steps:
            return None
        return Point(self.steps[-1], self.values[-1])

    @property
    def last_finite(self) -> Point | None:
        """The newest point whose value is a number."""
        for i in range(len(self.values) - 1, -1, -1):
            if math.isfinite(self.values[i]):
                return Point(self.steps[i], self.values[i])
        return None

    @property
    def highest(self) -> float:
        """The greatest value that is a number, `-inf` if there is none; asking again costs only the
        new points.
        """
        revision, count, highest = self._highest
        settled = max(0, len(self.values) - 1)  # the newest point may still be replaced
        if revision != self.revision or count > settled:
            count = 0
            highest = -math.inf
        highest = max([highest, *filter(math.isfinite, self.values[count:settled])])
        self._highest = (self.revision, settled, highest)
        return max([highest, *filter(math.isfinite, self.values[settled:])])

    def first_beyond(self, value: float, *, down: bool = False) -> Point | None:
        """Return the first point at or above a value (`down`: at or below); asking again costs only
        the new points.
        """
        revision, count, found = self._beyond.get((value, down), (-1, 0, None))
        settled = max(0, len(self.values) - 1)  # the newest point may still be replaced
        if revision != self.revision or count > settled:
            count = 0
            found = None
        if found is None:
            found = self._find(value, count, settled, down=down)
            self._beyond[value, down] = (self.revision, settled, found)
        if found is not None:
            return found
        return self._find(value, settled, len(self.values), down=down)

    def _find(self, value: float, start: int, stop: int, *, down: bool) -> Point | None:
        values = self.values
        for i in range(start, stop):
            beyond = values[i] <= value if down else values[i] >= value
            if beyond:
                return Point(self.steps[i], values[i])
        return None

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
        if i >= 0:
            return Point(self.steps[i], self.values[i])
        return None

    def since(self, step: int) -> dict[int, float]:
        """Return the values from a step on, by step, ascending."""
        at = bisect_left(self.steps, step)
        return dict(zip(self.steps[at:], self.values[at:], strict=True))

    def until(self, step: int | None) -> Series:
        """Return the series up to a step, itself where it has nothing beyond.

        What was returned for an earlier step is returned again with the points in between, so that
        to go from step to step costs what is new.
        """
        stop = len(self) if step is None else bisect_right(self.steps, step)
        if stop == len(self):
            return self
        revision, count, cut = self._cut
        if cut is None or revision != self.revision or stop < count:
            count = stop
            cut = Series(self.key, self.revision)
            cut.steps = self.steps[:stop]
            cut.values = self.values[:stop]
            cut.times = self.times.first(stop)
            cut._orders = self._orders.first(stop)
        cut.steps += self.steps[count:stop]
        cut.values += self.values[count:stop]
        cut._orders.extend(self._orders[count:stop])
        cut.times.extend(self.times[count:stop])
        cut.counts = self.counts[:stop]
        self._cut = (self.revision, stop, cut)
        return cut

    def order_at(self, step: int) -> int | None:
        """Return the precedence of the point at exactly `step`, None where there is none."""
        i = bisect_left(self.steps, step)
        if i < len(self.steps) and self.steps[i] == step:
            return self._orders[i]
        return None

    @property
    def orders(self) -> Sequence[int]:
        """The precedence of each point, see `verl_tui.runs.table.precedence`."""
        return self._orders

    def tail(self, count: int) -> Sequence[float]:
        """Return the last `count` values, oldest first."""
        if count > 0:
            return self.values[-count:]
        return self.values[:0]

    def catch_up(self, tables: Sequence[tuple[Table, int]]) -> None:
        """Take over the new rows of the tables that hold this metric.

        Args:
            tables: Each table with the index of this metric's column; the order and identity of
                tables never change, new ones are added at the end.
        """
        fresh: list[_NewRows] = []
        for number, (table, column) in enumerate(tables):
            start = self._cursors.get(number, 0)
            if len(table.steps) > start:
                fresh.append(_NewRows(table, column, start))
                self._cursors[number] = len(table.steps)
        if not fresh:
            return
        if len(fresh) > 1 or not self._append(*fresh[0]):
            self._merge(fresh)
        if len(tables) > 1:
            for first, last in superseded(table for table, _ in tables):
                self._drop_estimated(first, last)

    def _append(self, table: Table, column: int, start: int) -> bool:
        """Append the rows from `start` in one go if they all come after the last point; return
        whether they did.
        """
        behind = self.steps and table.steps[start] <= self.steps[-1]
        if behind or table.mean or not table.ascending:
            return False
        if not self.steps and start == 0:
            self._begin_with(table, column)
            return True
        self._extend(
            table.steps[start:],
            table.orders[start:],
            table.columns[column][start:],
            table.times[start:],
        )
        return True

    def _begin_with(self, table: Table, column: int) -> None:
        """Take over a table as a whole, and share its packed columns."""
        self.steps.extend(table.steps)
        self.values.extend(table.columns[column][:])
        self._orders = table.orders.first(len(table))
        self.times = table.times.first(len(table))

    def _extend(
        self,
        steps: Iterable[int],
        orders: Iterable[int],
        values: Iterable[float],
        times: Iterable[float],
    ) -> None:
        """Append points."""
        self.steps.extend(steps)
        self._orders.extend(orders)
        self.values.extend(values)
        self.times.extend(times)
        if self.counts:
            self.counts.extend([1] * (len(self.steps) - len(self.counts)))

    def _merge(self, fresh: Sequence[_NewRows]) -> None:
        """Merge new rows by step; where several have the same step, their order decides. Points
        before the first new step stay as they are.
        """
        first = min(min(rows.table.steps[rows.start :]) for rows in fresh)
        at = bisect_left(self.steps, first)
        if at < len(self) or any(rows.table.mean for rows in fresh):
            self._lay_over(at, sorted(_rows(fresh), key=itemgetter(0, 1)))
            return
        parts = tuple((rows.table, rows.start, len(rows.table)) for rows in fresh)
        common = _common_rows(parts)
        known = array("d")
        for table, column, start in fresh:
            known += table.columns[column][start:]
        values = [known[i] for i in common.places]
        self._extend(common.steps, common.orders, values, common.times)

    def _lay_over(
        self, at: int, rows: Sequence[tuple[int, int, float, float, int]]
    ) -> None:
        """Lay rows over the points from index `at` on; the rows are ascending in step and
        precedence.
        """
        averages = bool(self.counts) or any(mean for *_, mean in rows)
        steps = self.steps[at:]
        values = self.values[at:]
        counts = self.counts[at:] or [1] * (len(self) - at)
        known = zip(self._orders[at:], values, self.times[at:], counts, strict=True)
        points: dict[int, _MergedPoint] = dict(zip(steps, known, strict=True))
        for step, order, value, time, mean in rows:
            before = points.get(step)
            if before is None:
                points[step] = (order, value, time, 1)
            else:
                points[step] = _laid_over(before, order, value, time, mean)
        merged = sorted(points)
        if averages:
            self.counts[at:] = array("q", [points[step][3] for step in merged])
            self.counts[:0] = array("q", [1] * (at - len(self.counts) + len(merged)))
        del self.steps[at:], self.values[at:]
        self._orders.cut(at)
        self.times.cut(at)
        orders, kept, times, _ = zip(*(points[step] for step in merged), strict=True)
        self._extend(merged, orders, kept, times)
        self._note_changes(at, steps, values)

    def _drop_estimated(self, first: float, last: float) -> None:
        """Take away the points at estimated steps from a step to another."""
        start = bisect_left(self.steps, first)
        stop = bisect_right(self.steps, last)
        if start == stop or min(self._orders[start:stop]) >= STATED:
            return
        stays = [order >= STATED for order in self._orders[start:stop]]
        for numbers in (self.steps, self.counts):
            numbers[start:stop] = array("q", compress(numbers[start:stop], stays))
        self.values[start:stop] = array("d", compress(self.values[start:stop], stays))
        _thin_out(self._orders, start, stays)
        _thin_out(self.times, start, stays)
        self.revision += 1
        if self._pyramid is not None:
            self._pyramid.rebuild()

    def _note_changes(self, at: int, steps: array[int], values: array[float]) -> None:
        """Make readers start over if points from index `at` on have changed.

        Args:
            at: Index of the first point that may have changed.
            steps: Steps of the points there before.
            values: Values of the points there before.
        """
        if self.steps[at : at + len(steps)] != steps:
            self.revision += 1
            if self._pyramid is not None:
                self._pyramid.rebuild()
            return
        pairs = zip(values, self.values[at:], strict=False)
        changed = [i for i, pair in enumerate(pairs, at) if _differ(*pair)]
        if any(i < len(self) - 1 for i in changed):
            self.revision += 1
        if self._pyramid is not None:
            for i in changed:
                self._pyramid.update(i)


def _differ(before: float, after: float) -> bool:
    """Return whether two values differ, of which nan is one like any other."""
    return before != after and not (math.isnan(before) and math.isnan(after))


class _NewRows(NamedTuple):
    """Rows of a table that a series has not taken over yet."""

    table: Table
    column: int
    """Index of the metric's column."""
    start: int
    """The first of the rows."""


def _rows(
    fresh: Sequence[_NewRows],
) -> Iterator[tuple[int, int, float, float, int]]:
    """Yield step, precedence, value, time and whether it is averaged of each new row."""
    for table, column, start in fresh:
        columns = (table.steps, table.orders, table.columns[column], table.times)
        new = (numbers[start:] for numbers in columns)
        for row in zip(*new, strict=True):
            yield *row, table.mean


class _CommonRows(NamedTuple):
    """Rows of several tables merged into one: for each step, the row that takes precedence."""

    steps: array[int]
    orders: array[int]
    times: array[float]
    places: Sequence[int]
    """Place of each row among the rows of the tables one behind the other."""


@lru_cache(maxsize=2)
def _common_rows(tables: tuple[tuple[Table, int, int], ...]) -> _CommonRows:
    """Return the rows of tables by their steps, of one step the row of the highest precedence with
    the last time that is known: found once for all metrics in these tables.

    Args:
        tables: Each table with the first of its rows that count, and the one behind the last.
    """
    steps = array("q")
    orders = array("q")
    times = array("d")
    for table, start, stop in tables:
        steps += table.steps[start:stop]
        orders += table.orders[start:stop]
        times += table.times[start:stop]
    turn = sorted(range(len(steps)), key=orders.__getitem__)
    highest = {steps[i]: i for i in turn}
    merged = sorted(highest)
    places = [highest[step] for step in merged]
    dated = {steps[i]: times[i] for i in turn if not math.isnan(times[i])}
    return _CommonRows(
        array("q", merged),
        array("q", [orders[i] for i in places]),
        array("d", [dated.get(step, math.nan) for step in merged]),
        places,
    )


def _thin_out(column: Column[Number], start: int, stays: Sequence[bool]) -> None:
    """Remove the numbers of a range that are not to stay."""
    known = column[start:]
    column.cut(start)
    column.extend(compress(known, stays))
    column.extend(known[len(stays) :])


def _laid_over(
    point: _MergedPoint, order: int, value: float, time: float, mean: int
) -> _MergedPoint:
    """Return what a point is once a row of the same step has come."""
    known, before, since, count = point
    if mean and order >> _ROW_BITS == known >> _ROW_BITS:
        count += 1
        value = before + (value - before) / count
    elif order < known:
        return point
    else:
        count = 1
    if math.isnan(time):
        time = since
    return order, value, time, count
