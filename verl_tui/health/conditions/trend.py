"""Trends: least squares over a window, and metrics that rise block by block."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Spell, Terms, condition
from verl_tui.health.conditions.windows import pieces, rows
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def trend(values: Sequence[float]) -> Trend:
    """Fit a line by least squares; too few values have no trend."""
    last = np.array([len(values) - 1])
    change, t = trends(np.array(values, np.float64), len(values), last)
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


@condition
def rising(column: Column, window: int, factor: float) -> Iterator[Terms | Spell]:
    """Rises continuously: the medians of five blocks each exceed the one before, the last far above
    the first.

    Medians of blocks, because gradient norms have spikes; judged when a block is full. Slow rises
    are seen in every second and every fourth block. What has all but vanished does not rise.
    """
    yield Terms(window, window)
    size = max(1, window // _BLOCKS)
    count = len(column) // size
    blocks = column.values[: count * size].reshape(count, size)
    levels = np.median(blocks, axis=1) if count else np.empty(0)
    ends = [(at + 1) * size - 1 for at in range(count)]
    newest = [
        f"{number(level)} up to step {column.steps[end]}"
        for level, end in zip(levels[-_BLOCKS:], ends[-_BLOCKS:], strict=True)
    ]
    falls = np.flatnonzero(np.diff(levels) < 0) + 1
    until = -1
    strides = _rises(levels, factor)
    for block in np.flatnonzero(strides).tolist():
        if block <= until:
            continue
        stride = int(strides[block])
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
            "size": size,
            "medians": ", ".join(newest),
        }
        over = falls[falls > block][:1].tolist()
        yield Spell(ends[foot], ends[block], ends[over[0]] if over else None, facts)
        if not over:
            return
        until = over[0]


def _rises(levels: Numbers, factor: float) -> Places:
    """Return at the blocks that end a rise the least stride that shows it, 0 at others."""
    highest = np.maximum.accumulate(np.append(0.0, levels))[1:]
    strides = np.zeros(len(levels), np.int64)
    for stride in reversed(_STRIDES):
        blocks = [levels[at * stride :] for at in range(_BLOCKS)]
        low, *_, high = [one[: len(blocks[-1])] for one in blocks]
        rises = (factor * low > 0) & (factor * low <= high)
        for before, after in pairwise(blocks):
            rises &= before[: len(high)] < after[: len(high)]
        strides[(_BLOCKS - 1) * stride :][rises] = stride
    strides[levels < _VANISHED * highest] = 0
    return strides
