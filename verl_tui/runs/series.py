"""Values of one metric over steps, and the least and greatest of each stretch, for any chart."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.runs.cached import LastResult
from verl_tui.runs.table import ROW_BITS, STATED, Table, superseded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_REVISIONS = count()


class Point(NamedTuple):
    """One value at one step."""

    step: int
    value: float


# -- points ----------------------------------------------------------------------------------------

_LARGE = 2**61


class Points:
    """Values along an axis, in two columns that are referred to and never copied.

    Steps must ascend; gaps and repetitions are fine. A value that is not finite never counts as
    minimum or maximum, it only makes its bucket odd.
    """

    def __init__(self, steps: array[int], values: array[float]) -> None:
        self.steps = steps
        """Positions along the x axis."""
        self.values = values
        self.revision = 0
        """Another one when a point other than the last one changes, or one is put before the last:
        readers start over.
        """
        self.kept: dict[str, LastResult] = defaultdict(LastResult)
        """What was last worked out from the series, one result of each kind. It must not refer to
        the series.
        """

    def query(
        self, first_step: int, steps_per_bucket: int, buckets: int
    ) -> tuple[list[float | None], list[float | None], list[bool]]:
        """Return minimum, maximum and oddness of each of `buckets` neighbouring stretches of steps.

        Bucket `i` holds the points whose step is at least `first_step + i * steps_per_bucket` and
        less than the start of the next. Minimum and maximum are None where it holds no finite
        value; odd means that it holds a `nan` or an infinity.

        Raises:
            ValueError: `steps_per_bucket` is not positive.
        """
        import numpy as np

        if steps_per_bucket < 1:
            raise ValueError(steps_per_bucket)
        buckets = max(0, buckets)
        lows: list[float | None] = [None] * buckets
        highs: list[float | None] = [None] * buckets
        odds = [False] * buckets
        begin = bisect_left(self.steps, first_step)
        end = bisect_left(self.steps, first_step + buckets * steps_per_bucket, begin)
        if begin == end:
            return lows, highs, odds
        # Steps near the ends of 64 bits differ by more than these hold.
        ends = (first_step, steps_per_bucket, self.steps[begin], self.steps[end - 1])
        kind = object if max(map(abs, ends)) >= _LARGE else np.int64
        steps = np.asarray(self.steps)[begin:end].astype(kind, copy=False)
        bucket = ((steps - first_step) // steps_per_bucket).astype(np.int64, copy=False)
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        values = np.asarray(self.values)[begin:end]
        is_odd = ~np.isfinite(values)
        least: Any = np.minimum.reduceat(np.where(is_odd, np.inf, values), starts)
        most: Any = np.maximum.reduceat(np.where(is_odd, -np.inf, values), starts)
        found = (bucket[starts], least, most, np.logical_or.reduceat(is_odd, starts))
        for i, low, high, odd in zip(*(one.tolist() for one in found), strict=True):
            odds[i] = odd
            if low <= high:
                lows[i], highs[i] = low, high
        return lows, highs, odds

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the greatest finite value, None without any."""
        import numpy as np

        values = np.asarray(self.values)
        finite = values[np.isfinite(values)]
        if not len(finite):
            return None
        return float(finite.min()), float(finite.max())

    def highest_point(self, sign: float = 1.0, end: float = math.inf) -> Point | None:
        """Return the first point up to `end` with the highest value times `sign`, None without a
        number.
        """
        import numpy as np

        values = sign * np.asarray(self.values)[: bisect_right(self.steps, end)]
        values[~np.isfinite(values)] = -np.inf
        return self._first(np.flatnonzero(values == values.max(initial=-np.inf)))

    def _first(self, found: NDArray[Any]) -> Point | None:
        """Return the first of some points, None where it has no number."""
        at = found[0] if len(found) else None
        if at is None or not math.isfinite(self.values[at]):
            return None
        return Point(self.steps[at], self.values[at])

    def at(self, step: int) -> Point | None:
        """Return the newest point at or before `step`."""
        i = bisect_right(self.steps, step) - 1
        return Point(self.steps[i], self.values[i]) if i >= 0 else None


# -- series ----------------------------------------------------------------------------------------


class Series(Points):
    """Values of one metric, ascending in step, one value a step; catches up with its tables when
    asked. While one table has them so, its own columns are shown: they grow with it.
    """

    def __init__(self, key: str) -> None:
        super().__init__(array("q"), array("d"))
        self.key = key
        self.times = array("d")
        """Wall-clock time of each point in seconds since the epoch, nan where unknown."""
        self.counts = array("q")
        """How many measurements each point is the mean of; empty where each is a single one."""
        self.revision = next(_REVISIONS)
        self._rows: Sequence[int] = ()
        """Rows of each table that have been merged."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def last_finite(self) -> Point | None:
        """The newest point whose value is a number."""
        for at, value in enumerate(reversed(self.values), 1):
            if math.isfinite(value):
                return Point(self.steps[-at], value)
        return None

    @property
    def highest(self) -> float:
        """The greatest value that is a number, `-inf` if there is none."""
        point = self.highest_point()
        return point.value if point else -math.inf

    def first_beyond(self, value: float, *, down: bool = False) -> Point | None:
        """Return the first point at or above a value (`down`: at or below)."""
        import numpy as np

        values = np.asarray(self.values)
        return self._first(np.flatnonzero(values <= value if down else values >= value))

    def since(self, step: int) -> dict[int, float]:
        """Return the values from a step on, by step, ascending."""
        at = bisect_left(self.steps, step)
        return dict(zip(self.steps[at:], self.values[at:], strict=True))

    def until(self, step: int | None) -> Series:
        """Return the series up to a step, itself where it has nothing beyond."""
        stop = len(self) if step is None else bisect_right(self.steps, step)
        if stop == len(self):
            return self
        return self.kept["until"].of((self.revision, stop), lambda: self._begin(stop))

    def _begin(self, stop: int) -> Series:
        cut = Series(self.key)
        cut.revision = self.revision
        cut.steps, cut.values = self.steps[:stop], self.values[:stop]
        cut.times, cut.counts = self.times[:stop], self.counts[:stop]
        return cut

    def tail(self, count: int) -> Sequence[float]:
        """Return the last `count` values, oldest first."""
        return self.values[max(0, len(self) - count) :] if count > 0 else ()

    def catch_up(self, parts: Sequence[tuple[Table, int]]) -> None:
        """Take over the new rows of the tables that hold this metric.

        Args:
            parts: Each table with the index of the metric's column. The order and identity of
                tables never change, new ones are added at the end.
        """
        table, at = parts[0]
        if len(parts) == 1 and table.ascending:
            self.steps, self.times = table.steps, table.times
            self.values = table.columns[at]
            return
        rows = [len(table) for table, _ in parts]
        if rows == self._rows:
            return
        self._rows = rows
        settled = max(0, len(self) - 1)
        before = self.steps[:settled], self.values[:settled].tobytes()
        new, self.values = merged(parts)
        self.steps, self.times, self.counts = new.steps, new.times, new.counts
        if before != (self.steps[:settled], self.values[:settled].tobytes()):
            self.revision = next(_REVISIONS)


# -- merging tables --------------------------------------------------------------------------------


class MergedRows(NamedTuple):
    """The points that rows of tables become, ascending in step, one a step."""

    steps: array[int]
    times: array[float]
    """The last time that is known of each point, nan where none is."""
    orders: array[int]
    """The precedence of each point, see `verl_tui.runs.table.precedence`."""
    counts: array[int]
    """How many measurements each point is the mean of; empty where points are single values."""
    by_step: NDArray[Any]
    """The rows by step and precedence."""
    begins: NDArray[Any]
    """The first of these that each point is of, and in `last` its last."""
    last: NDArray[Any]


def merged(parts: Sequence[tuple[Table, int]]) -> tuple[MergedRows, array[float]]:
    """Merge tables by step: of several rows with one step the one of the highest precedence holds,
    with the last time that is known; measurements of one source are averaged.

    Args:
        parts: Each table with the index of the metric's column.

    Returns:
        The points, and their values.
    """
    import numpy as np

    common = _merged_rows(tuple([(table, len(table)) for table, _ in parts]))
    columns = [np.array(table.columns[at]) for table, at in parts]
    values = np.concatenate(columns)[common.by_step]
    held = values[common.last]
    if common.counts:
        edges = np.column_stack((common.begins, common.last + 1)).ravel()
        with np.errstate(all="ignore"):  # not finite is what a log may say
            totals = np.add.reduceat(np.append(values, 0.0), edges)[::2]
        held = totals / (common.last + 1 - common.begins)
    return common, array("d", held.tobytes())


@lru_cache(maxsize=4)
def _merged_rows(tables: tuple[tuple[Table, int], ...]) -> MergedRows:
    """Find how rows become points, once for all metrics in the same tables.

    Args:
        tables: Each table, with how many rows it has by now.
    """
    import numpy as np

    steps, orders, times = (
        np.concatenate([np.array(getattr(table, name)) for table, _ in tables])
        for name in ("steps", "orders", "times")
    )
    means = np.concatenate([np.full(count, table.mean) for table, count in tables])
    by_step = np.lexsort((orders, steps))
    steps, orders, times, means = (
        one[by_step] for one in (steps, orders, times, means)
    )
    is_last = np.diff(steps, append=~steps[-1:]) != 0
    is_first = np.roll(is_last, 1)
    last, firsts = np.flatnonzero(is_last), np.flatnonzero(is_first)
    dated = np.where(np.isnan(times), -1, np.arange(len(times)))
    dated = np.maximum.reduceat(dated, firsts)
    times = np.where(dated < 0, math.nan, times[dated])
    source = orders >> ROW_BITS
    of_source = np.flatnonzero(is_first | (source != np.roll(source, 1)))
    begins = of_source[np.searchsorted(of_source, last, side="right") - 1]
    begins = np.where(means[last], begins, last)
    stays = np.ones(len(last), bool)
    for low, high in superseded([table for table, _ in tables]):
        inside = (steps[last] >= low) & (steps[last] <= high)
        stays &= ~(inside & (orders[last] < STATED))
    last, begins, times = last[stays], begins[stays], times[stays]
    counts = last + 1 - begins if means.any() else np.empty(0, np.int64)
    return MergedRows(
        array("q", steps[last].tobytes()),
        array("d", times.tobytes()),
        array("q", orders[last].tobytes()),
        array("q", counts.tobytes()),
        *(by_step, begins, last),
    )
