"""Sources: how each file is doing, and every line that could not be read."""

from __future__ import annotations

from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.screens.rows_screen import SCROLLS, RowsPage, RowsScreen


class SourcesScreen(RowsScreen):
    """The state of each source of the shown run, and its lines that could not be read."""

    SCREEN = ("i", "sources", "Sources", "Sources")
    TITLE_WORDS = "sources"
    HELP_SECTION = HelpSection("sources", WHY, 90)
    BINDINGS = actions("""
        escape,q,i  dismiss  sources.close  Close
    """)
    FOOTER = SCROLLS + "sources.close  closes"
    WIDEST = 180

    def page(self, width: int) -> RowsPage:
        """Return the rows of all sources."""
        from verl_tui.rendering.source_rows import source_rows

        return RowsPage(source_rows(self.view, width))
