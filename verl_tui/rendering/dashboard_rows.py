"""How many rows each panel of the dashboard gets: as many as it has something to say in, up to a
share of the screen; the charts get what the others leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

FRAME = 2
"""Rows of a frame."""
_FRAMED = 5
"""Least height of a panel with a frame: in fewer rows that would take half of them."""
_SENTENCE = 2
"""Most rows of a panel without a frame: a row of marks, and a message below it."""
_SHARES = {"runs": 0.4, "health": 0.34, "gpus": 0.25, "samples": 0.25}
"""Largest shares of the rows that panels other than the charts get."""
_CHARTS = 0.4
"""Least share of the rows that is left to the charts."""
_COLUMNS = 118
"""Least width with room for a column of runs beside the charts, in cells."""
_COLUMN = 2 / 3
"""Share of a column that the runs must fill to get one of their own."""


class PanelRows(NamedTuple):
    """The height of a panel."""

    height: int
    framed: bool


def rows_of_panels(
    rows: int, needs: Mapping[str, int], *, frames: bool = True
) -> dict[str, PanelRows]:
    """Return the heights of the panels beside the charts.

    Args:
        rows: The rows there are for all, with the charts.
        needs: Name of each panel -> rows that it could fill, in the order of the screen.
        frames: Whether panels have frames where there is room.
    """
    given = {name: _rows(name, need, rows, frames=frames) for name, need in needs.items()}
    while sum(one.height for one in given.values()) > rows * (1 - _CHARTS):
        name, most = max(given.items(), key=lambda one: one[1].height)
        if most.height <= 1:
            break
        given[name] = _shorter(most)
    return given


def has_column(runs: int, width: int, rows: int) -> bool:
    """Return whether so many rows of runs fill a column of their own on a screen of a size."""
    return width >= _COLUMNS and runs + FRAME >= rows * _COLUMN


def _rows(name: str, need: int, rows: int, *, frames: bool) -> PanelRows:
    most = max(1, int(rows * _SHARES.get(name, _SHARES["gpus"])))
    if not frames:
        return PanelRows(min(need, most), framed=False)
    if need <= 1 or most < _FRAMED:
        return PanelRows(min(need, most, _SENTENCE), framed=False)
    return PanelRows(min(need + FRAME, most), framed=True)


def _shorter(panel: PanelRows) -> PanelRows:
    """Return the height a row lower; without a frame where little would be left in it."""
    if panel.framed and panel.height <= _FRAMED:
        return PanelRows(_SENTENCE, framed=False)
    return panel._replace(height=panel.height - 1)
