"""Finding history: what was raised and cleared, at which steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen

if TYPE_CHECKING:
    from verl_tui.tui.screens.dashboard import Dashboard


class HistoryScreen(RowsScreen):
    """All episodes, the newest first; one that is opened is followed on the dashboard."""

    dashboard: Dashboard
    SCREEN = ("A", "finding.history", "Finding history", "History")
    TITLE_WORDS = "finding history"
    HELP_SECTION = HelpSection("finding history", WHY, 80)
    BINDINGS = actions("""
        escape,q,A  dismiss  history.close  Close
    """)
    FOOTER = """
        entries.open   goes there
        history.close  closes
    """
    WIDEST = 140

    def page(self, width: int) -> RowsPage:
        """Return the rows of all episodes."""
        from verl_tui.rendering.health_rows import history_page

        episodes, follow = (
            self.view.verdict.history[::-1],
            self.dashboard.follow_episode,
        )
        page = RowsPage(*history_page(self.view, episodes, width))
        return page._replace(opens=lambda at: follow(episodes[at]))
