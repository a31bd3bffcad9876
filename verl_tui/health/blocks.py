"""Several metrics cut into blocks at the same steps, so that diagnoses compare like with like."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, overload

from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.runs.series import Series

_TRIM = 5
"""From so many values on, a block's mean leaves out the least and the greatest (outliers)."""


class Block(NamedTuple):
    """A stretch of steps, with the level of each metric in it."""

    first: int
    last: int
    """Steps of the first metric's first and last point."""
    levels: tuple[float, ...]
    """Mean of each metric over these steps, nan where it has no finite value there."""
    settled_step: int
    """Step of the first metric's next point: until then the last one might have changed."""
    errors: tuple[float, ...] = ()
    """Standard error of each level by the differences of neighbours, nan below two values; empty if
    not computed.
    """


class BlockHistory(Sequence[Block]):
    """Blocks of the same metrics, one after the other.

    They are held as columns of numbers: as objects they would take several times the memory of all
    that was logged.
    """

    __slots__ = ("_errors", "_levels", "_metrics", "_steps")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._metrics = 0
        self._steps = array("q")
        """First, last and settled step of each block."""
        self._levels = array("d")
        self._errors = array("d")
        for block in blocks:
            self.append(block)

    def append(self, block: Block) -> None:
        """Put a block behind the last one."""
        self._metrics = len(block.levels)
        self._steps.extend((block.first, block.last, block.settled_step))
        self._levels.extend(block.levels)
        self._errors.extend(block.errors)

    def levels(self, i: int) -> Sequence[float]:
        """Return the level of a metric in each block."""
        return self._levels[range(self._metrics)[i] :: self._metrics]

    def errors(self, i: int) -> Sequence[float]:
        """Return the standard error of a metric's level in each block, if they have errors."""
        return self._errors[range(self._metrics)[i] :: self._metrics]

    def __len__(self) -> int:
        return len(self._steps) // 3

    @overload
    def __getitem__(self, at: int) -> Block: ...

    @overload
    def __getitem__(self, at: slice) -> BlockHistory: ...

    def __getitem__(self, at: int | slice) -> Block | BlockHistory:
        places = range(len(self))[at]
        if isinstance(places, int):
            return self._block(places)
        if places.step == 1:
            return self._stretch(places.start, places.stop)
        return BlockHistory(map(self._block, places))

    def _stretch(self, start: int, stop: int) -> BlockHistory:
        """Return the blocks from one place up to another."""
        found = BlockHistory()
        count = self._metrics
        found._metrics = count
        found._steps = self._steps[3 * start : 3 * stop]
        found._levels = self._levels[count * start : count * stop]
        found._errors = self._errors[count * start : count * stop]
        return found

    def _block(self, i: int) -> Block:
        first, last, settled = self._steps[3 * i : 3 * i + 3]
        start = self._metrics * i
        stop = self._metrics * (i + 1)
        levels = self._levels[start:stop]
        errors = self._errors[start:stop]
        return Block(first, last, tuple(levels), settled, tuple(errors))


class Blocks:
    """Cuts metrics at every so many points of the first one, as far as these will not change any
    more.
    """

    def __init__(self, size: int, *, errors: bool = False) -> None:
        """Begin without blocks.

        Args:
            size: Points of the first metric a block.
            errors: Whether blocks have standard errors of their levels.
        """
        self._size = size
        self._errors = errors
        self._next = 0
        """Points of the first metric that are in blocks."""
        self._reached: list[tuple[int, int] | None] = []
        """For each metric its revision and how many of its points lie in blocks."""

    def advance(
        self, series: Sequence[Series | None], end: int | None
    ) -> tuple[bool, list[Block]]:
        """Return whether blocks start over, and the new blocks.

        Args:
            series: The metrics, always as many; the first one sets the pace. None where the log has
                none.
            end: Step the run has reached; points of an abandoned segment beyond it are left out.
                None = no end.
        """
        over = self._changed(series)
        if over or len(self._reached) != len(series):
            self._next = 0
            self._reached = [(0, 0) if one is not None else None for one in series]
        driver = series[0]
        blocks: list[Block] = []
        if driver is None:
            return over, blocks
        # The newest point may still change.
        settled = (len(driver) if end is None else bisect_right(driver.steps, end)) - 1
        while self._next + self._size <= settled:
            first = driver.steps[self._next]
            last = driver.steps[self._next + self._size - 1]
            values = [self._values(i, one, last) for i, one in enumerate(series)]
            levels = tuple(map(trimmed_mean, values))
            errors = tuple(map(error, values)) if self._errors else ()
            self._next += self._size
            blocks.append(Block(first, last, levels, driver.steps[self._next], errors))
        return over, blocks

    def _changed(self, series: Sequence[Series | None]) -> bool:
        """Return whether points within the blocks so far have changed, come or gone."""
        if not self._next or series[0] is None or len(self._reached) != len(series):
            return bool(self._next)
        if len(series[0]) <= self._next:
            return True
        last = series[0].steps[self._next - 1]
        reached: list[tuple[int, int] | None] = []
        for one in series:
            if one is None:
                reached.append(None)
            else:
                reached.append((one.revision, bisect_right(one.steps, last)))
        return self._reached != reached

    def _values(self, i: int, series: Series | None, last: int) -> Sequence[float]:
        reached = self._reached[i]
        if series is None or reached is None:
            return ()
        start = reached[1]
        stop = bisect_right(series.steps, last, start)
        self._reached[i] = (series.revision, stop)
        return series.values[start:stop]


def trimmed_mean(values: Sequence[float]) -> float:
    """Return the mean of the finite values, without the least and the greatest where there are
    several.
    """
    if not math.isfinite(sum(values)):
        values = finite(values)
    if len(values) >= _TRIM:
        return (math.fsum(values) - min(values) - max(values)) / (len(values) - 2)
    if not values:
        return math.nan
    return math.fsum(values) / len(values)


def error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of the finite values; a slope or a step within them
    hardly counts.
    """
    known = finite(values)
    if len(known) < 2:
        return math.nan
    changes = [after - before for before, after in pairwise(known)]
    squares = sum([change * change for change in changes])
    return math.sqrt(squares / (2 * (len(known) - 1)) / len(known))
