"""The least and greatest value of any stretch of a series, without reading the stretch.

Over the values stand levels of blocks: the first level keeps the minimum and maximum of every 32
values, the next of every 1024, and so on. A chart asks for a few hundred buckets, whatever the
length of the run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

FACTOR = 32
"""How many nodes one node of the next level stands for."""
_ALIGNMENT = FACTOR**2
"""Blocks begin where a step is a multiple of their length, as buckets usually do, up to blocks of
this many steps.
"""
_DIRECT = 2 * FACTOR
"""Up to so many nodes are compared one by one: cheaper than going a level up."""

Node = tuple[float, float, bool]
"""Minimum, maximum, whether there is anything that is not finite."""


class _Level:
    """Minimum, maximum and soundness of complete blocks; a block without a finite value has `inf`
    and `-inf`.
    """

    __slots__ = ("hi", "lo", "odd")

    def __init__(self, empty: array[float]) -> None:
        self.lo = empty[:]
        self.hi = empty[:]
        self.odd = bytearray()

    def append(self, node: Node) -> None:
        self.lo.append(node[0])
        self.hi.append(node[1])
        self.odd.append(node[2])

    def replace(self, i: int, node: Node) -> None:
        self.lo[i], self.hi[i], self.odd[i] = node

    def node(self, start: int, stop: int) -> Node:
        return (
            min(self.lo[start:stop]),
            max(self.hi[start:stop]),
            1 in self.odd[start:stop],
        )


class Pyramid:
    """Minimum and maximum over the two columns of a series, which it refers to and never copies.

    Steps must ascend; gaps and repetitions are fine. A value that is not finite never counts as
    minimum or maximum, it only makes its bucket odd. The owner of the columns reports each change
    here: `catch_up` after appending, `update` after replacing one value, `rebuild` after anything
    else.
    """

    __slots__ = (
        "_any_odd",
        "_levels",
        "_offset",
        "revision",
        "seen",
        "steps",
        "values",
    )

    def __init__(self, steps: array[int], values: array[float]) -> None:
        self.steps = steps
        self.values = values
        self.seen = 0
        """How many points have been taken in."""
        self.revision = 0
        """Grows when a point before the last one may have changed: cached answers are void then."""
        self._any_odd = False
        self._offset = 0
        """Index of the first value if there had been one at each step since a multiple of
        `_ALIGNMENT`.
        """
        self._levels: list[_Level] = []
        self.catch_up()

    def catch_up(self) -> None:
        """Take in the values appended to the columns since the last call; columns that got shorter
        are read anew.
        """
        count = min(len(self.steps), len(self.values))
        if count < self.seen:
            self.rebuild()
            return
        if count == self.seen:
            return
        if self.seen == 0:
            self._offset = self.steps[0] % _ALIGNMENT
        self._any_odd = self._any_odd or not _all_finite(self.values[self.seen : count])
        done = len(self._levels[0].odd) if self._levels else 0
        for block in range(done, (count + self._offset) // FACTOR):
            self._close(block)
        self.seen = count

    def update(self, i: int) -> None:
        """Take in that value `i` was replaced; nothing to do where it has not been taken in yet."""
        if not 0 <= i < self.seen:
            return
        if i < self.seen - 1:
            self.revision += 1
        self._any_odd = self._any_odd or not isfinite(self.values[i])
        i += self._offset
        for k, level in enumerate(self._levels):
            i //= FACTOR
            if i >= len(level.odd):
                break
            level.replace(i, self._block(k, i))

    def rebuild(self) -> None:
        """Read the columns anew, after values were inserted, removed or replaced in bulk."""
        self.revision += 1
        self.seen = 0
        self._any_odd = False
        self._levels.clear()
        self.catch_up()

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
        if steps_per_bucket < 1:
            raise ValueError(steps_per_bucket)
        buckets = max(0, buckets)
        lows: list[float | None] = [None] * buckets
        highs: list[float | None] = [None] * buckets
        odds = [False] * buckets
        for i, start, stop in self._occupied(first_step, steps_per_bucket, buckets):
            lo, hi, odds[i] = self._span(start, stop)
            if lo <= hi:
                lows[i], highs[i] = lo, hi
        return lows, highs, odds

    def bounds(self, first_step: int, last_step: int) -> tuple[float, float] | None:
        """Return the least and greatest finite value from `first_step` to `last_step`, both
        included.
        """
        start = bisect_left(self.steps, first_step, 0, self.seen)
        stop = bisect_right(self.steps, last_step, start, self.seen)
        if start == stop:
            return None
        lo, hi, _ = self._span(start, stop)
        return (lo, hi) if lo <= hi else None

    def _occupied(
        self, first_step: int, width: int, buckets: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield number, first index and last index + 1 of every bucket that holds a point."""
        steps = self.steps
        seen = self.seen
        start = bisect_left(steps, first_step, 0, seen)
        count = 1
        while start < seen:
            i = (steps[start] - first_step) // width
            if i >= buckets:
                return
            edge = first_step + (i + 1) * width
            # Buckets of evenly spaced steps are equally full, which saves the search.
            stop = start + count
            if (
                stop > seen
                or steps[stop - 1] >= edge
                or (stop < seen and steps[stop] < edge)
            ):
                stop = bisect_left(steps, edge, start + 1, seen)
                count = stop - start
            yield i, start, stop
            start = stop

    def _close(self, block: int) -> None:
        """Append a block of values that just became complete, and every block above that it
        completes.
        """
        for k in range(64):
            if k == len(self._levels):
                self._levels.append(_Level(self.values[:0]))
            self._levels[k].append(self._block(k, block))
            block += 1
            if block % FACTOR:
                return
            block = block // FACTOR - 1

    def _block(self, k: int, i: int) -> Node:
        start = i * FACTOR
        stop = (i + 1) * FACTOR
        if k:
            return self._levels[k - 1].node(start, stop)
        return self._raw(max(0, start - self._offset), max(0, stop - self._offset))

    def _raw(self, start: int, stop: int) -> Node:
        values = self.values[start:stop]
        if values and (not self._any_odd or _all_finite(values)):
            return min(values), max(values), False
        finite = [v for v in values if isfinite(v)]
        return (
            min(finite, default=inf),
            max(finite, default=-inf),
            len(finite) < len(values),
        )

    def _span(self, start: int, stop: int) -> Node:
        """Combine the largest blocks that fit between two indices of values, `start` < `stop`."""
        offset = self._offset
        if stop - start <= _DIRECT or not self._levels:
            return self._raw(start, stop)
        inner = -(-(start + offset) // FACTOR)
        outer = (stop + offset) // FACTOR
        parts = [self._blocks(inner, outer)]
        if start < inner * FACTOR - offset:
            parts.append(self._raw(start, inner * FACTOR - offset))
        if outer * FACTOR - offset < stop:
            parts.append(self._raw(outer * FACTOR - offset, stop))
        lows, highs, odds = zip(*parts, strict=True)
        return min(lows), max(highs), any(odds)

    def _blocks(self, start: int, stop: int) -> Node:
        """Combine blocks `start` to `stop` of the lowest level, `start` < `stop`, by way of the
        levels above.
        """
        lows: list[float] = []
        highs: list[float] = []
        odd = False
        last = len(self._levels) - 1
        for k, level in enumerate(self._levels):
            inner = -(-start // FACTOR)
            outer = stop // FACTOR
            if k == last or stop - start <= _DIRECT:
                lows.append(min(level.lo[start:stop]))
                highs.append(max(level.hi[start:stop]))
                return (
                    min(lows),
                    max(highs),
                    odd or (self._any_odd and 1 in level.odd[start:stop]),
                )
            for a, b in ((start, inner * FACTOR), (outer * FACTOR, stop)):
                if a < b:
                    lows.append(min(level.lo[a:b]))
                    highs.append(max(level.hi[a:b]))
                    odd = odd or (self._any_odd and 1 in level.odd[a:b])
            start = inner
            stop = outer
        raise AssertionError("the last level ends the loop")


def _all_finite(values: array[float]) -> bool:
    # One pass in C: a sum is finite only if every term is. An overflow of huge terms merely costs
    # the slower check.
    return isfinite(sum(values)) or all(map(isfinite, values))
