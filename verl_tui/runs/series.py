"""Values of one metric over steps."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.runs.pyramid import Pyramid
from verl_tui.runs.table import ROW_BITS, STATED, superseded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from verl_tui.runs.table import Table


class Point(NamedTuple):
    """One value at one step."""

    step: int
    value: float


class MergedPoints(NamedTuple):
    """Points ascending in step, one value a step."""

    steps: array[int]
    values: array[float]
    times: array[float]
    """Wall-clock time of each point in seconds since the epoch, nan where unknown."""
    orders: array[int]
    """The precedence of each point, see `verl_tui.runs.table.precedence`."""
    counts: array[int]
    """How many measurements each point is the mean of; empty where points are single values."""
    picks: tuple[NDArray[Any], ...] = ()
    """Rows by step and precedence, and for each point the first and the last of these that it is
    of.
    """


class Series:
    """Values of one metric, ascending in step, one value a step; catches up with its tables when
    asked.
    """

    def __init__(self, key: str, revision: int = 0) -> None:
        self.key = key
        self.steps = array("q")
        self.values = array("d")
        self.times = array("d")
        self.counts = array("q")
        self.revision = revision
        """Grows when a point other than the last one changes, or one is put before the last:
        readers start over.
        """
        self._parts: Sequence[tuple[Table, int]] = ()
        self._rows: Sequence[int] = ()
        """Rows of each table that have been taken over."""
        self._pyramid: Pyramid | None = None
        self._cut: tuple[tuple[int, int], Series] | None = None
        """What `until` returned last, with its revision and number of points."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def last_finite(self) -> Point | None:
        """The newest point whose value is a number."""
        for at in range(len(self) - 1, -1, -1):
            if math.isfinite(self.values[at]):
                return Point(self.steps[at], self.values[at])
        return None

    @property
    def highest(self) -> float:
        """The greatest value that is a number, `-inf` if there is none."""
        point = self.highest_point()
        return -math.inf if point is None else point.value

    def highest_point(self, sign: float = 1.0) -> Point | None:
        """Return the first point with the highest value times `sign`, None without a number."""
        import numpy as np

        values = sign * np.array(self.values, np.float64)
        values[~np.isfinite(values)] = -np.inf
        at = int(np.argmax(values)) if len(values) else -1
        finite = at >= 0 and math.isfinite(values[at])
        return Point(self.steps[at], self.values[at]) if finite else None

    def first_beyond(self, value: float, *, down: bool = False) -> Point | None:
        """Return the first point at or above a value (`down`: at or below)."""
        import numpy as np

        values = np.array(self.values, np.float64)
        beyond = np.flatnonzero(values <= value if down else values >= value)
        return (
            Point(self.steps[beyond[0]], self.values[beyond[0]])
            if len(beyond)
            else None
        )

    @property
    def pyramid(self) -> Pyramid:
        """Minima and maxima for drawing; made when first drawn."""
        if self._pyramid is None:
            self._pyramid = Pyramid(self.steps, self.values)
        self._pyramid.catch_up()
        return self._pyramid

    def at(self, step: int) -> Point | None:
        """Return the newest point at or before `step`."""
        i = bisect_right(self.steps, step) - 1
        return Point(self.steps[i], self.values[i]) if i >= 0 else None

    def since(self, step: int) -> dict[int, float]:
        """Return the values from a step on, by step, ascending."""
        at = bisect_left(self.steps, step)
        return dict(zip(self.steps[at:], self.values[at:], strict=True))

    def until(self, step: int | None) -> Series:
        """Return the series up to a step, itself where it has nothing beyond."""
        stop = len(self) if step is None else bisect_right(self.steps, step)
        if stop == len(self):
            return self
        asked = self.revision, stop
        if self._cut is None or self._cut[0] != asked:
            cut = Series(self.key, self.revision)
            cut._parts = self._parts
            cut.steps, cut.values = self.steps[:stop], self.values[:stop]
            cut.times, cut.counts = self.times[:stop], self.counts[:stop]
            self._cut = asked, cut
        return self._cut[1]

    @property
    def orders(self) -> array[int]:
        """The precedence of each point, see `verl_tui.runs.table.precedence`."""
        return merged(self._parts).orders[: len(self)]

    def tail(self, count: int) -> Sequence[float]:
        """Return the last `count` values, oldest first."""
        return self.values[max(0, len(self) - count) :] if count > 0 else ()

    def catch_up(self, parts: Sequence[tuple[Table, int]]) -> None:
        """Take over the new rows of the tables that hold this metric.

        Args:
            parts: The order and identity of tables never change, new ones are added at the end.
        """
        rows = [len(table) for table, _ in parts]
        known = [*self._rows, *[0] * (len(rows) - len(self._rows))]
        if rows == known:
            return
        first = min(
            table.least_step(start)
            for (table, _), start in zip(parts, known, strict=True)
        )
        if any(table.estimated for table, _ in parts):
            first = -math.inf  # whether a stated step supersedes it may show only now
        self._lay_over(first, merged(parts, first))
        self._parts = parts
        self._rows = rows

    def _lay_over(self, first: float, new: MergedPoints) -> None:
        """Put points in the place of those from a step on."""
        at = bisect_left(self.steps, first)
        settled = max(at, len(self) - 1)
        before = self.steps[at:settled], self.values[at:settled].tobytes()
        if new.counts or self.counts:
            one = array("q", [1])
            self.counts = (self.counts or one * len(self))[:at]
            self.counts += new.counts or one * len(new.steps)
        self.steps[at:] = new.steps
        self.values[at:] = new.values
        self.times[at:] = new.times
        if before != (self.steps[at:settled], self.values[at:settled].tobytes()):
            self.revision += 1
            if self._pyramid is not None:
                self._pyramid.rebuild()


def merged(
    parts: Sequence[tuple[Table, int]], first: float = -math.inf
) -> MergedPoints:
    """Merge tables by step: of several rows with one step the one of the highest precedence holds,
    with the last time that is known; measurements of one source are averaged.

    Args:
        parts: Each table with the index of the metric's column.
        first: The first step that counts.
    """
    found = [
        (table, at, rows)
        for table, at in parts
        if (rows := table.rows_from(first)).start < rows.stop
    ]
    if not found:
        return MergedPoints(array("q"), array("d"), array("d"), array("q"), array("q"))
    table, at, rows = found[0]
    if len(found) == 1 and table.ascending:
        return MergedPoints(
            table.steps[rows],
            table.columns[at][rows],
            table.times[rows],
            table.orders[rows],
            array("q", [1] * (rows.stop - rows.start) if table.mean else ()),
        )
    import numpy as np

    tables = tuple([(table, rows.start, rows.stop) for table, _, rows in found])
    common = _common_points(tables, first)
    columns = [np.array(table.columns[at][rows]) for table, at, rows in found]
    turn, begins, last = common.picks
    values = np.concatenate(columns)[turn]
    if common.counts:
        edges = np.column_stack((begins, last + 1)).ravel()
        totals = np.add.reduceat(np.append(values, 0.0), edges)[::2]
        means = totals / (last + 1 - begins)
        return common._replace(values=array("d", means.tobytes()))
    return common._replace(values=array("d", values[last].tobytes()))


@lru_cache(maxsize=4)
def _common_points(
    tables: tuple[tuple[Table, int, int], ...], first: float
) -> MergedPoints:
    """Find how rows become points, once for all metrics in the same tables; values are to come.

    Args:
        tables: Each table with the first of its rows that count, and the one behind the last.
        first: The first step that counts.
    """
    import numpy as np

    def column(name: str) -> NDArray[Any]:
        parts = (getattr(table, name)[start:stop] for table, start, stop in tables)
        return np.concatenate(list(map(np.array, parts)))

    steps, orders, times = map(column, ("steps", "orders", "times"))
    means = np.concatenate([np.full(b - a, table.mean) for table, a, b in tables])
    turn = np.lexsort((orders, steps))
    turn = turn[steps[turn] >= first]
    steps, orders, times, means = steps[turn], orders[turn], times[turn], means[turn]
    is_first, is_last = np.ones((2, len(steps)), bool)
    is_first[1:] = is_last[:-1] = steps[1:] != steps[:-1]
    source = orders >> ROW_BITS
    measured_again = means & ~is_first & (source == np.roll(source, 1))
    last = np.flatnonzero(is_last)
    dated = np.where(np.isnan(times), -1, np.arange(len(times)))
    dated = np.maximum.reduceat(dated, np.flatnonzero(is_first))
    times = np.where(dated < 0, math.nan, times[dated])
    begins = np.flatnonzero(~measured_again)
    begins = begins[np.searchsorted(begins, last, side="right") - 1]
    stays = np.ones(len(last), bool)
    for low, high in superseded([table for table, *_ in tables]):
        inside = (steps[last] >= low) & (steps[last] <= high)
        stays &= ~(inside & (orders[last] < STATED))
    last, begins, times = last[stays], begins[stays], times[stays]
    counts = last + 1 - begins if means.any() else np.empty(0, np.int64)
    return MergedPoints(
        array("q", steps[last].tobytes()),
        array("d"),
        array("d", times.tobytes()),
        array("q", orders[last].tobytes()),
        array("q", counts.tobytes()),
        (turn, begins, last),
    )
