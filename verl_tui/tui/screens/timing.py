"""Timing: where a step's time goes, what it yields, when the run is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys import SPEED, HelpSection, actions
from verl_tui.tui.screens import ScreenSpec
from verl_tui.tui.screens.rows_screen import SCROLLS, RowsPage, RowsScreen

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View


class TimingScreen(RowsScreen[None]):
    """The time of a step, part by part, the throughput, and when the run ends."""

    TITLE_WORDS = "timing"
    HELP_SECTION = HelpSection("timing", SPEED, 70)
    BINDINGS = actions("""
        escape,q,t  dismiss  timing.close  Close
    """)
    FOOTER = SCROLLS + "timing.close  closes"
    WIDEST = 140

    def page(self, view: View, width: int) -> RowsPage:
        """Return all figures, which scroll together."""
        from verl_tui.rendering.timing import timing_rows

        solid = not (self.app.no_color or self.app.current_theme.ansi)
        return RowsPage(timing_rows(view, width, solid=solid))


SCREEN = ScreenSpec(
    TimingScreen, "t", "timing", "Timing: where a step's time goes", "Timing"
)
