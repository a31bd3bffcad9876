"""Trends: least squares over a window, and metrics that rise block by block."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Condition, Spell
from verl_tui.health.conditions.windows import pieces, rows
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Numbers, Places


_FOOT = 0.1
"""Share of a rise below which it has not begun."""


_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""
_VANISHED = 0.1
"""Share of the highest block so far below which a metric has all but vanished: heuristic. The
gradient norm of a task that is solved may double between a thousandth and two of what it was.
"""

_BLOCKS, _STRIDES = 5, (1, 2, 4)
"""Blocks whose medians must rise; every so many blocks are looked at."""


class Trend(NamedTuple):
    """A straight line through equally spaced values."""

    change: float
    """By how much the line rises from the first value to the last."""
    t: float
    """Change in units of its own standard error; beyond ±2 it is hardly chance."""


def trend(values: ArrayLike) -> Trend:
    """Fit a line by least squares; too few values have no trend."""
    values = np.asarray(values, np.float64)
    size = len(values)
    change, t = trends(values, size, np.array([size - 1]))
    return Trend(float(change[0]), float(t[0]))


def trends(values: Numbers, size: int, last: Places) -> tuple[Numbers, Numbers]:
    """Return change and t of the windows of so many values that end at some places."""
    if size < 4:
        return np.zeros(len(last)), np.zeros(len(last))
    found = [_lines(rows(values, size, some)) for some in pieces(last, size)]
    change, t = np.concatenate(found, axis=1)
    return change, t


def _lines(windows: Numbers) -> Numbers:
    """Return change and t of each row of values."""
    size = windows.shape[1]
    unit = np.ones(len(windows))
    if abs(windows).max(initial=0.0) > _HUGE:
        unit = np.maximum(1.0, abs(windows).max(axis=1))
        windows = windows / unit[:, None]
    middle = np.arange(size) - (size - 1) / 2
    spread = size * (size * size - 1) / 12
    mean = windows.mean(axis=1)
    windows = windows - mean[:, None]
    slope = np.einsum("ij,j->i", windows, middle) / spread
    windows -= slope[:, None] * middle
    error = np.sqrt(np.einsum("ij,ij->i", windows, windows) / (size - 2) / spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        t: Numbers = slope / error
    # A perfect line has no error: any slope is then beyond chance, none is none. Rounding leaves a
    # trace of both.
    perfect = error <= 1e-12 * np.maximum(abs(mean), abs(slope))
    is_level = abs(slope) * size <= 1e-9 * abs(mean)
    t[perfect] = np.where(is_level, 0.0, np.copysign(np.inf, slope))[perfect]
    return np.array((slope * (size - 1) * unit, t))


@dataclass
class Rising(Condition):
    """Rises continuously: the medians of five blocks each exceed the one before, the last far above
    the first.

    Medians of blocks, because gradient norms have spikes; judged when a block is full. Slow rises
    are seen in every second and every fourth block. What has all but vanished does not rise.
    """

    window: int
    factor: float
    what = "rose from {low} to {high}"
    words = (
        "{title} has risen for {long}, from {foot} to {now} (medians of {size} points)",
        "medians: {medians}",
        "newest value {newest}",
    )

    def __post_init__(self) -> None:
        self.needs = self.cooldown = self.window
        self._size = max(1, self.window // _BLOCKS)

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return all rises, each with the level that it began at."""
        count = len(column) // self._size
        blocks = column.values[: count * self._size].reshape(count, self._size)
        levels = np.median(blocks, axis=1) if count else np.empty(0)
        ends = [(at + 1) * self._size - 1 for at in range(count)]
        newest = [
            f"{number(level)} up to step {column.steps[end]}"
            for level, end in zip(levels[-_BLOCKS:], ends[-_BLOCKS:], strict=True)
        ]
        falls = np.flatnonzero(np.diff(levels) < 0) + 1
        until = -1
        for block, stride in self._rises(levels):
            if block <= until:
                continue
            rise = levels[block - (_BLOCKS - 1) * stride : block + 1 : stride]
            # The last block at the old level: chance alone may order the blocks before it.
            low, high = float(rise[0]), float(rise[-1])
            at = int(np.flatnonzero(rise <= low + _FOOT * (high - low))[-1])
            foot = block - (_BLOCKS - 1 - at) * stride
            facts = {
                "low": low,
                "high": high,
                "foot": float(levels[foot]),
                "now": float(levels[-1]),
                "size": self._size,
                "medians": ", ".join(newest),
            }
            after = int(np.searchsorted(falls, block + 1))
            if after == len(falls):
                yield Spell(ends[foot], ends[block], None, facts)
                return
            until = int(falls[after])
            yield Spell(ends[foot], ends[block], ends[until], facts)

    def _rises(self, levels: Numbers) -> Iterator[tuple[int, int]]:
        """Yield the blocks that end a rise, each with the least stride that shows it."""
        highest = np.maximum.accumulate(np.append(0.0, levels))[1:]
        strides = np.zeros(len(levels), np.int64)
        for stride in reversed(_STRIDES):
            blocks = [levels[at * stride :] for at in range(_BLOCKS)]
            low, *_, high = [one[: len(blocks[-1])] for one in blocks]
            rises = (self.factor * low > 0) & (self.factor * low <= high)
            for before, after in pairwise(blocks):
                rises &= before[: len(high)] < after[: len(high)]
            strides[(_BLOCKS - 1) * stride :][rises] = stride
        strides[levels < _VANISHED * highest] = 0
        for block in np.flatnonzero(strides).tolist():
            yield block, int(strides[block])
