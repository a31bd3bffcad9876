"""Windows and blocks of columns: lines through them, their levels, and where something happens
first.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from verl_tui.runs.series import Series

Numbers: TypeAlias = "NDArray[np.float64]"
Flags: TypeAlias = "NDArray[np.bool_]"
Places: TypeAlias = "NDArray[np.int64]"
_AT_ONCE = 2**16
"""Values of windows that are looked at together: what a processor's cache holds."""
_TO_SIGMA = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""
_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""


def rows(values: Numbers, size: int, last: Places) -> Numbers:
    """Return the windows of so many values that end at some places, a row each."""
    if not len(last):
        return np.empty((0, size))
    return sliding_window_view(values, size)[np.asarray(last) - size + 1]


def pasts(values: Numbers, places: Places, size: int, gap: int) -> Numbers:
    """Return so many values before the last few up to some places, a row each; nan where there are
    fewer.
    """
    return rows(np.append(np.full(size + gap, np.nan), values), size, places + size)


def medians(windows: Numbers, share: float = 0.5) -> Numbers:
    """Return the median of what is known in each row, or another quantile."""
    ordered = np.sort(windows, axis=1)
    last = np.maximum(0, (~np.isnan(ordered)).sum(axis=1) - 1)
    each, at = np.arange(len(ordered)), share * last
    low, high = (
        ordered[each, np.floor(at).astype(int)],
        ordered[each, np.ceil(at).astype(int)],
    )
    found: Numbers = low + (high - low) * (at % 1)
    return found


def sigmas(windows: Numbers, levels: Numbers) -> Numbers:
    """Return the standard deviation of normal noise with the same median distance from a level, of
    each row of values.
    """
    return _TO_SIGMA * medians(abs(windows - levels[:, None]))


def rolling(values: NDArray[Any], size: int, of: np.ufunc = np.add) -> NDArray[Any]:
    """Return the sum, or the minimum, of the last so many values at each place; nan where there are
    fewer.
    """
    part = values.astype(np.result_type(values, np.float64))
    found, done, width = None, 0, 1
    while done < size:  # by sums of 1, 2, 4, … values
        if size & width:
            found = part if found is None else of(found, _shifted(part, done))
            done += width
        part = of(part, _shifted(part, width))
        width *= 2
    assert found is not None
    found[: size - 1] = np.nan
    return found


def _shifted(values: NDArray[Any], by: int) -> NDArray[Any]:
    found = np.empty_like(values)
    found[:by] = np.nan
    found[by:] = values[: max(0, len(values) - by)]
    return found


def means(values: Numbers, size: int) -> Numbers:
    """Return the mean of the last so many values at each place; nan where there are fewer."""
    # Ties are common, as with values of two decimals: they must not depend on rounding.
    return rolling(values.astype(np.longdouble), size).astype(np.float64) / size


def first(found: Flags, start: int) -> int | None:
    """Return the first place from `start` on where something is found."""
    at = np.flatnonzero(found[start:])
    return start + int(at[0]) if len(at) else None


class Trend(NamedTuple):
    """A straight line through equally spaced values."""

    change: float
    """By how much the line rises from the first value to the last."""
    t: float
    """Change in units of its own standard error; beyond ±2 it is hardly chance."""


def trend(values: ArrayLike) -> Trend:
    """Fit a line by least squares; too few values have no trend."""
    known = np.array(values, np.float64)
    change, t = trends(known, len(known), np.array([len(known) - 1]))
    return Trend(float(change[0]), float(t[0]))


def trends(values: Numbers, size: int, last: Places) -> tuple[Numbers, Numbers]:
    """Return change and t of the windows of so many values that end at some places."""
    if size < 4:
        return np.zeros(len(last)), np.zeros(len(last))
    many = max(1, _AT_ONCE // size)
    pieces = np.split(last, range(many, len(last), many))
    change, t = np.concatenate(
        [_lines(rows(values, size, some)) for some in pieces], axis=1
    )
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


_TRIM = 5
"""From so many values on, a block's mean leaves out the least and the greatest (outliers)."""
_STEP_TO_SIGMA = 0.886
"""Mean size of the differences between neighbours times this is the standard deviation of normal
noise.
"""


class Blocks(NamedTuple):
    """Blocks of the same metrics, one after the other, as columns of numbers. Methods return a
    figure for each block, which depends on none after it.
    """

    first: Places
    last: Places
    """Steps of the first metric's first and last point."""
    settled: Places
    """Step from which on a block does not change any more: the first metric's next one."""
    levels: Numbers
    """Level of each metric (first axis) in each block; nan where it has no finite value there."""
    errors: Numbers
    """Its standard error by the differences of neighbours, nan below two values."""
    known: Numbers
    """The newest level up to each block, nan before the first one."""
    lowest: Numbers
    highest: Numbers
    """The lowest and the highest level from the log's first block up to each."""

    @property
    def size(self) -> int:
        """Number of blocks."""
        return len(self.first)

    def slopes(self, i: int, size: int) -> tuple[Places, Numbers, Numbers]:
        """Return how many of the last so many blocks have a level of a metric, and change and t of
        the trend of these.
        """
        is_known = ~np.isnan(self.levels[i])
        until = np.append(0, np.cumsum(is_known))
        last, places = until[1:], np.arange(self.size)
        counts = last - until[np.maximum(0, places + 1 - size)]
        lines = np.zeros((2, self.size))
        for count in {*counts.tolist()}:
            some = counts == count
            lines[:, some] = trends(self.levels[i][is_known], count, last[some] - 1)
        return counts, lines[0], lines[1]

    def moves(self, i: int, size: int, t: float, share: float) -> Flags:
        """Return where the last so many blocks of a metric have a trend of so many standard errors
        by so large a share of its size; it falls where t is negative.
        """
        _, change, found_t = self.slopes(i, size)
        way = math.copysign(1, t)
        least = share * lately(abs(self.levels[i]), size, np.fmax)
        found: Flags = (way * found_t >= abs(t)) & (way * change >= least)
        return found

    def before(self, i: int, count: int) -> Numbers:
        """Return the level of a metric so many blocks before, the first one where there are
        fewer.
        """
        level: Numbers = self.known[i][np.maximum(0, np.arange(self.size) - count)]
        return level

    def brink(self, i: int, at: int, share: float, size: int) -> int:
        """Return the last of the last so many blocks in which a metric had gone no more than a
        share of its way from the first of them to a block.
        """
        start = max(0, at - size)
        way = self.known[i][start : at + 1]
        begun = way[np.isfinite(way)][0]
        gone = (way - begun) * np.sign(way[-1] - begun)
        return start + int(np.flatnonzero(gone <= share * abs(way[-1] - begun))[-1])


def full_blocks(series: Series | None, size: int, end: int | None) -> int:
    """Return how many blocks of so many points of a metric will not change any more.

    Args:
        series: The metric.
        size: Points a block.
        end: Step the run has reached; points of an abandoned segment beyond it are left out.
            None = no end.
    """
    if series is None:
        return 0
    # The newest point may still change.
    stop = (len(series) if end is None else bisect_right(series.steps, end)) - 1
    return max(0, stop // size)


def blocks(series: Sequence[Series | None], size: int, count: int) -> Blocks:
    """Cut metrics at every so many points of the first one into a number of blocks."""
    driver = series[0]
    steps = np.array([] if driver is None else driver.steps, np.int64)
    first, last, settled = (steps[at::size][:count] for at in (0, size - 1, size))
    figures = np.array([_levels_and_errors(one, last) for one in series])
    levels, errors = figures.transpose(1, 0, 2)
    known = np.array([*map(last_known, levels)])
    low, high = (of.accumulate(levels, axis=1) for of in (np.fmin, np.fmax))
    return Blocks(first, last, settled, levels, errors, known, low, high)


def last_known(levels: Numbers) -> Numbers:
    """Return at each block the level of the newest one that has one, nan before the first."""
    known = np.where(np.isnan(levels), 0, np.arange(len(levels)))
    return levels[np.maximum.accumulate(known)]


def lately(levels: Numbers, count: int, of: np.ufunc = np.fmin) -> Numbers:
    """Return the lowest of the last so many levels at each block, or the highest (`fmax`)."""
    padded = np.append(np.full(count - 1, np.nan), levels)
    return rolling(padded, count, of)[count - 1 :]


def noise(levels: Numbers) -> Numbers:
    """Return the usual error of all levels up to each block, by the differences of neighbours; nan
    before there are two.
    """
    is_known = ~np.isnan(levels)
    steps = np.append(0.0, abs(np.diff(levels[is_known])))
    with np.errstate(invalid="ignore"):
        errors = _STEP_TO_SIGMA * np.cumsum(steps) / np.arange(len(steps))
    found = np.full(len(levels), np.nan)
    found[is_known] = errors
    return last_known(found)


def _levels_and_errors(series: Series | None, last: Places) -> tuple[Numbers, Numbers]:
    """Return the mean of the finite values of each block, without the least and the greatest where
    there are several, and its standard error; a slope or a step within them hardly counts.
    """
    nothing = np.full(len(last), math.nan)
    if series is None or not len(series) or not len(last):
        return nothing, nothing
    stops = np.searchsorted(np.array(series.steps, np.int64), last, side="right")
    values = np.array(series.values, np.float64)[: stops[-1]]
    finite = np.isfinite(values)
    known = values[finite]
    ends = np.append(0, np.cumsum(finite))[stops]
    edges = np.append(0, ends)
    counts = np.diff(edges)
    with np.errstate(over="raise", divide="ignore", invalid="ignore"):
        total = _reduced(np.add, known.astype(np.longdouble), edges).astype(np.float64)
        low = _reduced(np.minimum, known, edges)
        high = _reduced(np.maximum, known, edges)
        inner = (total - low - high) / (counts - 2)
        level = np.where(counts >= _TRIM, inner, total / counts)
    level[counts == 0] = math.nan
    with np.errstate(all="ignore"):
        squares = np.square(np.diff(known))
        between = edges[(edges > 0) & (edges < len(known))]
        squares[between - 1] = 0.0  # between two blocks
        spread = _reduced(np.add, np.append(squares, 0.0)[: len(known)], edges)
        error = np.sqrt(spread / (2 * (counts - 1)) / counts)
    error[counts < 2] = math.nan
    return level, error


def _reduced(of: np.ufunc, values: NDArray[np.floating], edges: Places) -> Numbers:
    """Reduce the values between each two edges; anything where there are none."""
    found: Numbers = of.reduceat(np.append(values, values.dtype.type(0)), edges)[:-1]
    return found
