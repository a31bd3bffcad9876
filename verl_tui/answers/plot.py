"""Points of metrics as charts in text, for scripts and over SSH: drawn by plotext."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from verl_tui.rendering.text.ascii_table import ascii_locale, in_ascii
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_HEIGHT = 20
"""Rows of a chart, fewer where the terminal is lower."""
_LEAST = 10
_HIGHEST = 1e300
"""Larger values are left out: plotext cannot scale to them."""


def plot_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of a chart for each metric of an answer of points, as wide as the terminal."""
    size = shutil.get_terminal_size((80, 24))
    for one in found.get("metrics", [found]):
        yield one_line(one["key"], size.columns)
        drawn, left_out = _finite(one["points"])
        if len(drawn):
            yield from _drawn(
                drawn, size.columns, min(_HEIGHT, max(_LEAST, size.lines - 4))
            )
        if left_out:
            yield f"not drawn: {counted(left_out, 'value')} that no axis can hold, such as nan"


def _finite(points: list[dict[str, Any]]) -> tuple[NDArray[np.float64], int]:
    """Return steps and values, [n x 2], of the points that can be drawn, and how many cannot."""
    drawn = [
        (one["step"], one["value"])
        for one in points
        if one["value"] is not None and abs(one["value"]) < _HIGHEST
    ]
    return np.array(drawn, dtype=float), len(points) - len(drawn)


def _drawn(points: NDArray[np.float64], width: int, height: int) -> list[str]:
    """Draw points; of many, the least and the greatest value of each column."""
    import plotext

    columns = np.array_split(points, min(len(points), 2 * width))
    kept = [
        block[row]
        for block in columns
        for row in sorted({block[:, 1].argmin(), block[:, 1].argmax()})
    ]
    plots: Any = plotext
    plots.terminal.limit(width=False, height=False)
    figure = plots.figure
    figure.clear.data()
    figure.clear.settings()
    figure.plot_size(width, height)
    steps, values = np.array(kept).T.tolist()
    is_ascii = ascii_locale()
    curve = figure.signal(steps, values, marker="*" if is_ascii else "braille")
    curve.lines(active=True)
    figure.draw(curve)
    text = str(plots.uncolorize(figure.build().string()))
    return (in_ascii(text) if is_ascii else text).rstrip().split("\n")
