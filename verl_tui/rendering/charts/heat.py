"""A strip below a plot: the share of a step's values in each of a few ranges, as shades."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING

from verl_tui.distributions import shares
from verl_tui.means import clamp
from verl_tui.rendering.text.numbers import axis_texts
from verl_tui.rendering.text.piece import TextRows, fit, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.axes import Window
    from verl_tui.rendering.charts.chart_data import ChartData, Heat

_LEAST, _MOST = 3, 6
"""Rows of shades."""
_FAR = 20
"""Of so many steps one at each end may lie beyond the limits, else one odd step would stretch
them.
"""
_STEPS = (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10)
"""Distances of limits as shares of a power of ten."""
_SHADES = ((0.5, "█"), (0.25, "▓"), (0.1, "▒"), (1e-9, "░"))
"""Share from which on a shade stands, the greatest first."""
_LEGEND = "  ░ few ▒ 10% ▓ 25% █ 50%"


def heat_limits(data: ChartData, rows: int) -> list[float]:
    """Return round values between the ranges of the strip, which has so many rows at most with its
    title; none where all values are alike, or there are too few rows or several curves.
    """
    if data.heat is None or data.lettered or rows <= _LEAST:
        return []
    low, high = _ends(data.heat)
    power = 10.0 ** floor(log10(high - low)) if high > low else 0.0
    for step in (share * power for share in _STEPS if power):
        first, last = floor(low / step) + 1, ceil(high / step)
        if last - first < min(rows - 1, _MOST):
            return [float(f"{at * step:.9g}") for at in range(first, last)]
    return []


def _ends(heat: Heat) -> tuple[float, float]:
    """Return the least and the greatest value, but for those of odd steps."""
    lows = sorted(one.low for one in heat.bins)
    highs = sorted(one.high for one in heat.bins)
    far = len(lows) // _FAR
    if lows[far] < highs[-1 - far]:
        return lows[far], highs[-1 - far]
    return lows[0], highs[-1]


def limit_texts(limits: Sequence[float], unit: str) -> list[str]:
    """Write where each range begins, the highest first, and where the lowest one ends."""
    texts = axis_texts(limits, unit)
    return [*(f"≥{one}" for one in texts[::-1]), *(f"<{one}" for one in texts[:1])]


def heat_rows(
    data: ChartData, limits: Sequence[float], window: Window, left: int, width: int
) -> TextRows:
    """Return the strip: a row that says what it is of, then its shades behind their limits."""
    if data.heat is None or data.main is None:
        return []
    words = fit(data.heat.words, width)
    words += _LEGEND * (len(words) + len(_LEGEND) <= width)
    columns, role = _columns(data, limits, window, width), data.main.role
    rows: TextRows = [[(" " * left + words, "axis")]]
    for row, label in enumerate(limit_texts(limits, data.unit), start=1):
        cells = "".join(_shade(found[-row]) if found else " " for found in columns)
        side = fit(label, left - 1).rjust(left - 1)
        rows.append(joined([(side, "axis"), ("│", "rule"), (cells, role)]))
    return rows


def _columns(
    data: ChartData, limits: Sequence[float], window: Window, width: int
) -> list[list[float]]:
    """Return the shares of each column of cells: those of its newest step, else of the one before
    as far as twice what steps usually lie apart; empty where nothing is known.
    """
    heat, shown = data.heat, data.shown
    columns: list[list[float]] = [[] for _ in range(width)]
    if heat is None or shown is None:
        return columns
    known = {window.column(at) // 2: i for i, at in enumerate(heat.places)}
    inside = sorted(at for at in known if 0 <= at < width)
    first, last = heat.places[0], heat.places[-1]
    apart = first + (last - first) // max(1, len(heat.places) - 1)
    reach = window.column(apart) - window.column(first) + 1
    end = clamp(window.column(shown[1]) // 2 + 1, 0, width)
    for at, following in zip(inside, [*inside[1:], end], strict=True):
        found = shares(heat.bins[known[at]], limits)
        stop = max(at + 1, min(following, at + reach))
        columns[at:stop] = [found] * (stop - at)
    return columns


def _shade(share: float) -> str:
    return next((sign for least, sign in _SHADES if share >= least), " ")
