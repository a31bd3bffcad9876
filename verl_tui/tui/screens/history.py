"""Finding history: what was raised and cleared, at which steps."""

from __future__ import annotations

from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.screens.rows_screen import EpisodesScreen, RowsPage


class HistoryScreen(EpisodesScreen):
    """All episodes, the newest first; one that is opened is followed on the dashboard."""

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

        self.episodes = self.view.verdict.history[::-1]
        return RowsPage(*history_page(self.view, self.episodes, width))
