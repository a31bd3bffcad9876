"""Compare runs, side by side; without a selection the shown one and those next to it in the list,
twelve at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.means import clamp, next_of
from verl_tui.rendering.text.piece import paragraph
from verl_tui.runs.time.step_clocks import Alignment
from verl_tui.tui.keys import COMPARE, HelpSection, actions
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run

_SPARKED = 14
"""Least height of a table with the course of each run's reward above it."""
_MOST = 12
"""Most runs that are compared where none is selected."""
_NONE = "No run yet, so there is nothing to compare."


class CompareScreen(RowsScreen):
    """The compared runs in columns."""

    SCREEN = ("C", "compare", "Compare runs side by side", "Compare")
    HELP_SECTION = HelpSection("compare", COMPARE, 50)
    FILTER = ("filter runs: ", "reward > 0.6 and lr < 1e-5", "runs")
    BINDINGS = actions("""
        escape      back        compare.back      Back
        q,C         dismiss     compare.close     Close
        /           filter      compare.filter    Filter the runs: reward > 0.6 and lr < 1e-5
        left,h      column(-1)  compare.left      Previous column  EVERYWHERE
        right,l     column(1)   compare.right     Next column  EVERYWHERE
        b           baseline    compare.baseline  Make this run the baseline
        x           align       compare.align     Align: at the end, the same step, the same time
        enter       open        compare.open      Show this run
    """)
    FOOTER = """
        compare.left compare.right  run
        compare.baseline            baseline
        compare.align               align
        compare.open                shows the run
        compare.filter              filter
        compare.back                closes
    """

    _current = ""
    """Name of the run that the cursor is at."""
    _alignment = Alignment.END
    _narrows = False
    """True once a filter has been typed here, which is that of the list."""

    @property
    def runs(self) -> list[Run]:
        """The runs that are compared, the baseline first."""
        view = self.view
        listed, chosen = view.listed, view.selected
        runs = [run for run in chosen if run in listed] or chosen
        if not runs:
            at = listed.index(view.run) if view.run in listed else 0
            start = max(0, min(at - _MOST // 2, len(listed) - _MOST))
            runs = listed[start : start + _MOST]
        baseline = view.selection.baseline
        if not chosen and view.run and baseline not in [run.name for run in runs]:
            baseline = view.run.name
        return sorted(runs, key=lambda run: run.name != baseline)

    def _at(self, runs: Sequence[Run]) -> int:
        """Return the column of the cursor, the first one where its run is gone."""
        return next((at for at, run in enumerate(runs) if run.name == self._current), 0)

    def page(self, width: int) -> RowsPage:
        """Return the figures and settings of these runs, the baseline first."""
        from verl_tui.rendering.compare_rows import comparison

        view = self.view
        if self._narrows:
            view.listing.filter = self.wanted
        runs = self.runs
        title = self._title(runs)
        if not runs:
            rows = paragraph(_NONE, "dim", width)
            return RowsPage(rows, title=title)
        sparks = self.size.height > _SPARKED
        at, alignment = self._at(runs), self._alignment
        heading, rows = comparison(view, runs, alignment, width, at, sparks=sparks)
        return RowsPage(rows, title=title, heading=heading, matches=view.matches)

    def _title(self, runs: Sequence[Run]) -> str:
        """Return how many runs are compared, up to where, and the key that selects others."""
        from verl_tui.rendering.compare_rows import where

        view = self.view
        select = f"{view.keys['runs.select']} in the list selects"
        if len(runs) < 2:
            return f"compare: {select} more"
        count = len(runs) if view.selected else len(view.listed)
        part = more = ""
        if len(runs) < count:
            part, more = f" of {count}", f" · {select} others"
        title = f"compare {len(runs)}{part} runs, {where(runs, self._alignment)}"
        return title + more * (cell_len(title + more) <= self.title_room)

    # -- keys --------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Open the line to type a filter in, which holds for the list, too."""
        self._narrows, self.wanted = True, self.view.listing.filter
        super().action_filter()

    def action_column(self, way: int) -> None:
        """Go to the next or previous run."""
        runs = self.runs
        if runs:
            self._current = runs[clamp(self._at(runs) + way, 0, len(runs) - 1)].name
            self.redraw()

    def action_baseline(self) -> None:
        """Make the run of the current column the baseline."""
        runs = self.runs
        if runs:
            self._current = self.view.selection.baseline = runs[self._at(runs)].name
            self.redraw()

    def action_align(self) -> None:
        """Compare at each run's end, at the last step all have, or after the same time."""
        self._alignment = next_of([*Alignment], self._alignment)
        self.redraw()

    def action_open(self) -> None:
        """Show the run of the current column on the dashboard."""
        runs = self.runs
        if runs:
            self.app.post_message(RunsPanel.Picked(runs[self._at(runs)].name))
        self.dismiss()
