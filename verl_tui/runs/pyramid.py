"""The least and greatest value of each stretch of a series, for charts of any width."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from array import array


_LARGE = 2**61


class Pyramid:
    """Minimum and maximum over the two columns of a series, which it refers to and never copies.

    Steps must ascend; gaps and repetitions are fine. A value that is not finite never counts as
    minimum or maximum, it only makes its bucket odd. The owner of the columns counts up `revision`
    when a point before the last one has changed: cached answers are void then.
    """

    __slots__ = ("revision", "steps", "values")

    def __init__(self, steps: array[int], values: array[float]) -> None:
        self.steps = steps
        self.values = values
        self.revision = 0

    @property
    def seen(self) -> int:
        """How many points there are; the columns may be of unequal length while one is filled."""
        return min(len(self.steps), len(self.values))

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
        seen = self.seen
        begin = bisect_left(self.steps, first_step, 0, seen)
        end = bisect_left(
            self.steps, first_step + buckets * steps_per_bucket, begin, seen
        )
        if begin == end:
            return lows, highs, odds
        # Steps near the ends of 64 bits differ by more than these hold.
        ends = (first_step, steps_per_bucket, self.steps[begin], self.steps[end - 1])
        kind = object if max(map(abs, ends)) >= _LARGE else np.int64
        steps = np.array(self.steps[begin:end], dtype=kind)
        bucket = ((steps - first_step) // steps_per_bucket).astype(np.int64)
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        values = np.array(self.values[begin:end])
        is_odd = ~np.isfinite(values)
        least: Any = np.minimum.reduceat(np.where(is_odd, np.inf, values), starts)
        most: Any = np.maximum.reduceat(np.where(is_odd, -np.inf, values), starts)
        found = (bucket[starts], least, most, np.logical_or.reduceat(is_odd, starts))
        for i, low, high, odd in zip(*(one.tolist() for one in found), strict=True):
            odds[i] = odd
            if low <= high:
                lows[i], highs[i] = low, high
        return lows, highs, odds

    def bounds(self, first_step: int, last_step: int) -> tuple[float, float] | None:
        """Return the least and greatest finite value from `first_step` to `last_step`, both
        included.
        """
        import numpy as np

        start = bisect_left(self.steps, first_step, 0, self.seen)
        stop = bisect_right(self.steps, last_step, start, self.seen)
        values = np.array(self.values[start:stop])
        finite = values[np.isfinite(values)]
        if not len(finite):
            return None
        return float(finite.min()), float(finite.max())
