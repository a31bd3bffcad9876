"""The signs that distinguish the lines of a chart without colours."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.symbols import SYMBOLS

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine

_STAMP = 18
"""Cells from one letter on a line to its next."""


def signs(data: ChartData) -> list[tuple[ChartLine, str]]:
    """Return each line with its sign: the letter at its end, or the marker of its points.

    The only line of a chart has no letter.
    """
    lines = data.all_lines
    alone = [line.kind for line in lines].count("line") == 1
    letters = cycle("abcdefghijklmnopqrstuvwxyz")
    markers = cycle(SYMBOLS.points)
    signed: list[tuple[ChartLine, str]] = []
    for line in lines:
        sign = line.sign
        if not sign and line.kind == "points":
            sign = next(markers)
        elif not sign and not alone:
            sign = next(letters)
        signed.append((line, sign))
    return signed


def layered(data: ChartData) -> list[tuple[ChartLine, str]]:
    """Return lines and signs from the farthest to the nearest: of several runs the shown one's line
    is on top.
    """
    signed = signs(data)
    main = data.main
    if len(signed) < 2:
        return signed
    return sorted(signed, key=lambda pair: bool(pair[0].sign) and pair[0] is main)


def stamps(sign: str, cells: int) -> range:
    """Return the cells at which a letter stands on its line, so that lines can be distinguished
    without colours.

    Letters next to each other in the alphabet stand three cells apart.
    """
    if sign:
        return range(ord(sign) * 3 % _STAMP, cells, _STAMP)
    return range(0)
