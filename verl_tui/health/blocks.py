"""Several metrics cut into blocks at the same steps, so that diagnoses compare like with like."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.series import Series

_TRIM = 5
"""From so many values on, the least and the greatest stay out of a block's mean: single outliers are no level."""


class Block(NamedTuple):
    """A stretch of steps, with the level of each metric in it."""

    first: int
    last: int
    """Steps of the first metric's first and last point."""
    levels: tuple[float, ...]
    """Mean of each metric over these steps, nan where it has no finite value there."""
    told: int
    """Step of the first metric's next point: until then the last one might have changed."""


class Blocks:
    """Cuts metrics at every so many points of the first one, as far as these will not change any more."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._next = 0
        """Points of the first metric that are in blocks."""
        self._reached: list[tuple[int, int] | None] = []
        """For each metric its revision and how many of its points lie in blocks."""

    def advance(self, series: Sequence[Series | None], end: int | None) -> tuple[bool, list[Block]]:
        """Return whether everything begins anew, and the new blocks.

        Args:
            series: The metrics, always as many; the first one sets the pace. None where the log has none.
            end: Step the run has reached; points of an abandoned segment beyond it are left out. None = no end.
        """
        over = self._changed(series)
        if over or len(self._reached) != len(series):
            self._next, self._reached = 0, [(0, 0) if one is not None else None for one in series]
        driver = series[0]
        blocks: list[Block] = []
        if driver is None:
            return over, blocks
        # The newest point may still change.
        settled = (len(driver) if end is None else bisect_right(driver.steps, end)) - 1
        while self._next + self._size <= settled:
            first, last = driver.steps[self._next], driver.steps[self._next + self._size - 1]
            levels = tuple(self._level(i, one, last) for i, one in enumerate(series))
            self._next += self._size
            blocks.append(Block(first, last, levels, driver.steps[self._next]))
        return over, blocks

    def _changed(self, series: Sequence[Series | None]) -> bool:
        """Return whether points within the blocks so far have changed, come or gone."""
        if not self._next or series[0] is None or len(self._reached) != len(series):
            return bool(self._next)
        if len(series[0]) <= self._next:
            return True
        last = series[0].steps[self._next - 1]
        for one, reached in zip(series, self._reached, strict=True):
            if one is None or reached is None:
                if one is not None or reached is not None:
                    return True
            elif (one.revision, bisect_right(one.steps, last)) != reached:
                return True
        return False

    def _level(self, i: int, series: Series | None, last: int) -> float:
        reached = self._reached[i]
        if series is None or reached is None:
            return math.nan
        start = reached[1]
        stop = bisect_right(series.steps, last, start)
        self._reached[i] = (series.revision, stop)
        return level(series.values[start:stop])


def level(values: Sequence[float]) -> float:
    """Return the mean of the finite values, without the least and the greatest where there are several."""
    if not math.isfinite(sum(values)):
        values = [value for value in values if math.isfinite(value)]
    if len(values) >= _TRIM:
        return (math.fsum(values) - min(values) - max(values)) / (len(values) - 2)
    return math.fsum(values) / len(values) if values else math.nan
