"""Windows of a column, and where something happens first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float64]"
Flags: TypeAlias = "NDArray[np.bool_]"
Places: TypeAlias = "NDArray[np.int64]"
_AT_ONCE = 2**16
"""Values of windows that are looked at together: what a processor's cache holds."""
TO_SIGMA = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""


def rows(values: Numbers, size: int, last: Places) -> Numbers:
    """Return the windows of so many values that end at some places, a row each."""
    if not len(last):
        return np.empty((0, size))
    return sliding_window_view(values, size)[np.asarray(last) - size + 1]


def pieces(places: Places, size: int) -> list[Places]:
    """Return places in pieces whose windows of so many values are looked at together, so that
    memory stays bounded.
    """
    many = max(1, _AT_ONCE // size)
    return np.split(places, range(many, len(places), many))


def by_size(places: Places, sizes: Places) -> Iterator[tuple[int, Places]]:
    """Yield places by the sizes of their windows, in pieces; sizes ascend."""
    for size in np.unique(sizes).tolist():
        for some in pieces(places[sizes == size], size):
            yield size, some


def rolling(values: NDArray[Any], size: int, of: np.ufunc = np.add) -> NDArray[Any]:
    """Return the sum, or the minimum, of the last so many values at each place; nan where there are
    fewer.
    """
    found = np.full(len(values), np.nan, np.result_type(values, np.float64))
    if len(values) >= size:
        windows = sliding_window_view(values.astype(found.dtype), size)
        found[size - 1 :] = of.reduce(windows, axis=1)
    return found


def means(values: Numbers, size: int) -> Numbers:
    """Return the mean of the last so many values at each place; nan where there are fewer."""
    # Ties are common, as with values of two decimals: they must not depend on rounding.
    return rolling(values.astype(np.longdouble), size).astype(np.float64) / size


def first(values: Numbers, beyond: np.ufunc, limit: float, start: int) -> int | None:
    """Return the first place from `start` on whose value is beyond a limit: `np.greater`, say."""
    found = np.flatnonzero(beyond(values[start:], limit))
    return start + int(found[0]) if len(found) else None


def sigmas(values: Numbers, levels: Numbers) -> Numbers:
    """Return the standard deviation of normal noise with the same median distance from a level, of
    each row of values.
    """
    found: Numbers = TO_SIGMA * np.median(abs(values - levels[:, None]), axis=1)
    return found
