"""Numbers of any size: their mean, their median, those that are finite, and those held between two
others; also steps through a list, and lists by what their items have in common.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def finite(values: Iterable[float]) -> list[float]:
    """Return the values that are neither NaN nor infinite."""
    return list(filter(math.isfinite, values))


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one finite number, without overflow on the way."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        largest = max(map(abs, values))
        return largest * (math.fsum(value / largest for value in values) / len(values))


def median_along(values: NDArray[np.float64]) -> Any:
    """Return the median along the last axis, nan where there is one: numpy's own imports its masked
    arrays, which takes longer than what most commands do.
    """
    import numpy as np

    ordered, count = np.sort(values), values.shape[-1]
    both = ordered[..., (count - 1) // 2] / 2 + ordered[..., count // 2] / 2
    return np.where(np.isnan(ordered[..., -1]), np.nan, both)


_Size = TypeVar("_Size", int, float)


def clamp(value: _Size, low: _Size, high: _Size) -> _Size:
    """Return a number, or the bound that it lies beyond; the upper one where the two cross."""
    return min(max(value, low), high)


_One = TypeVar("_One")


def next_of(known: Collection[_One], current: object, way: int = 1) -> _One:
    """Return what comes after something (1) or before it (-1), in a circle; the first or the last
    where it is not there.
    """
    every = [*known]
    at = every.index(current) if current in every else min(0, -way)
    return every[(at + way) % len(every)]


_Key = TypeVar("_Key")


def gathered(pairs: Iterable[tuple[_Key, _One]]) -> dict[_Key, list[_One]]:
    """Return what stands beside each key, in order."""
    found: dict[_Key, list[_One]] = {}
    for key, one in pairs:
        found.setdefault(key, []).append(one)
    return found


def page_rows(screens: float, height: int) -> int:
    """Return by how many rows a list moves for so many screens; one row stays in sight."""
    rows = max(1, int(abs(screens) * (height - 1)))
    return rows if screens > 0 else -rows
