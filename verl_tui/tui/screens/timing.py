"""Timing: where a step's time goes, what it yields, when the run is done, where its hours went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys import SPEED, HelpSection, actions
from verl_tui.tui.screens.rows_screen import SCROLLS, RowsPage, RowsScreen

if TYPE_CHECKING:
    from verl_tui.tui.screens.dashboard import Dashboard


class TimingScreen(RowsScreen):
    """The time of a step, part by part, the throughput, when the run ends, and the lines of its
    hours, each of which leads to where it begins.
    """

    SCREEN = ("t", "timing", "Timing: where a step's time and the hours go", "Timing")
    TITLE_WORDS = "timing"
    HELP_SECTION = HelpSection("timing", SPEED, 70)
    BINDINGS = actions("""
        escape,q,t  dismiss  timing.close  Close
    """)
    FOOTER = f"""{SCROLLS}
        entries.open  goes there
        timing.close  closes
    """
    WIDEST = 140
    dashboard: Dashboard

    def page(self, width: int) -> RowsPage:
        """Return all figures, which scroll together."""
        from verl_tui.ledger import ledger
        from verl_tui.rendering.timing import hours_rows, timing_rows

        view, run = self.view, self.view.run
        solid = not (self.app.no_color or self.app.current_theme.ansi)
        rows = timing_rows(view, width, solid=solid)
        guide, verdict = view.monitor.guide, view.verdict
        found = self.known.of(
            (run, run and run.revision, verdict, view.now // 60),
            lambda: ledger(run, verdict, guide, view.now) if run else None,
        )
        more, starts, begun = hours_rows(found, width)
        follow = self.dashboard.follow_episode
        return RowsPage(
            [*rows, [], *more],
            [len(rows) + 1 + one for one in starts],
            opens=lambda at: follow(begun[at]),
        )
