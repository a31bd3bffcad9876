"""Number of rows of each panel of the dashboard: as many as its content needs, up to a share of the
screen; the charts get the rest.
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
_SHARES = {"runs": 0.4, "health": 0.34, "gpus": 0.28, "samples": 0.25}
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


class Division(NamedTuple):
    """How the rows of a screen are divided."""

    column: bool
    """True where the runs have a column of their own beside the charts."""
    given: Mapping[str, PanelRows]
    """Name of each other panel that is in sight, but for the charts -> its rows."""


class PanelNeeds:
    """The most rows that each panel has needed for one run, at one size of the screen.

    Panels of a run only grow, so that the screen does not jump with every finding that comes and
    goes.
    """

    def __init__(self) -> None:
        self._of: object = None
        self._needs: dict[str, int] = {}

    def grow(self, of: object, needs: Mapping[str, int]) -> dict[str, int]:
        """Return what each panel needs now, or has needed before; for another run or size only
        now.
        """
        if of != self._of:
            self._of = of
            self._needs = {}
        grown = {
            name: max(need, self._needs.get(name, 0)) for name, need in needs.items()
        }
        self._needs.update(grown)
        return grown

    def most(self, name: str) -> int | None:
        """Return the most rows that a panel has needed, None if it was never in sight."""
        return self._needs.get(name)

    def forget(self, name: str) -> None:
        """Let a panel shrink once."""
        self._needs.pop(name, None)


def divided(
    needs: Mapping[str, int], width: int, rows: int, *, frames: bool
) -> Division:
    """Divide a screen among its panels.

    Args:
        needs: Name of each panel in sight -> rows that it could fill, in the order of the screen.
        width: Cells of the screen, without the frames at its sides.
        rows: The rows there are for all panels.
        frames: Whether panels have frames where there is room.
    """
    column = has_column(needs.get("runs", 0), width, rows)
    stacked = {
        name: need for name, need in needs.items() if not (column and name == "runs")
    }
    return Division(column, rows_of_panels(rows, stacked, frames=frames))


def rows_of_panels(
    rows: int, needs: Mapping[str, int], *, frames: bool = True
) -> dict[str, PanelRows]:
    """Return the heights of the panels beside the charts.

    Args:
        rows: The rows there are for all, with the charts.
        needs: Name of each panel -> rows that it could fill, in the order of the screen; of the
            charts only where they are rows of text, and leave the rest to the samples.
        frames: Whether panels have frames where there is room.
    """
    charts = needs.get("charts", 0)
    given = {
        name: _rows(name, need, rows, frames=frames)
        for name, need in needs.items()
        if name != "charts"
    }
    while sum(panel.height for panel in given.values()) > rows * (1 - _CHARTS):
        name, most = max(given.items(), key=lambda one: one[1].height)
        if most.height <= 1:
            break
        given[name] = _shorter(most)
    if charts and "samples" in given:
        left = (
            rows
            - charts
            - FRAME * frames
            - sum(panel.height for panel in given.values())
        )
        given["samples"] = _higher(given["samples"], left, needs["samples"])
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


def _higher(panel: PanelRows, left: int, need: int) -> PanelRows:
    """Return the height with as many of the rows that are left as there is need for."""
    most = need + FRAME * panel.framed
    return panel._replace(height=max(panel.height, min(most, panel.height + left)))


def _shorter(panel: PanelRows) -> PanelRows:
    """Return the height a row lower; without a frame where little would be left in it."""
    if panel.framed and panel.height <= _FRAMED:
        return PanelRows(_SENTENCE, framed=False)
    return panel._replace(height=panel.height - 1)
