"""Finding history: what was raised and cleared, at which steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.widgets.rows import Entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Episode
    from verl_tui.tui.screens.dashboard import Dashboard


class EpisodesScreen(RowsScreen):
    """Rows that begin at steps; one that is opened is followed on the dashboard."""

    dashboard: Dashboard
    episodes: Sequence[Episode] = ()
    """Those of the rows that can be opened."""

    @on(Entries.Opened)
    def _opened(self, message: Entries.Opened) -> None:
        self.dismiss()
        self.dashboard.follow_episode(self.episodes[message.entry])


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
