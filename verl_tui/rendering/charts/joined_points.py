"""The points of a curve through dot columns, for whatever draws lines between points."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.rendering.charts.downsample import DotColumns


class JoinedPoints(NamedTuple):
    """A curve: at most two points a dot column."""

    x: list[int]
    """Dot columns, ascending."""
    y: list[float]
    """Heights, 0 .. 1."""
    starts: list[int]
    """Indices at which a new stretch begins: the values before are no numbers."""


def joined(columns: DotColumns, fraction: Callable[[float], float]) -> JoinedPoints:
    """Return the curve through dot columns.

    Args:
        columns: Least and greatest value of each column.
        fraction: How high a value lies, 0 .. 1.
    """
    found = JoinedPoints([], [], [])
    end = 0.0
    for x, (lo, hi, odd) in enumerate(zip(*columns, strict=True)):
        if odd:
            found.starts.append(len(found.x))
        if lo is None or hi is None:
            continue
        low = fraction(lo)
        high = fraction(hi)
        # The end that is nearer to the point before comes first, so that the line does not
        # zigzag needlessly.
        near, end = (low, high) if abs(low - end) < abs(high - end) else (high, low)
        heights = (end,) if low == high else (near, end)
        found.x.extend([x] * len(heights))
        found.y.extend(heights)
    return found
