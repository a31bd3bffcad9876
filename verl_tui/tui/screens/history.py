"""Finding history: what was raised and cleared, at which steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.screens import ScreenContext, ScreenSpec
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.widgets.rows import Entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from verl_tui.health.finding import Episode
    from verl_tui.rendering.session.snapshot import View


class HistoryScreen(RowsScreen[None]):
    """All episodes, the newest first; one that is opened is followed on the dashboard."""

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

    def __init__(self, view: View, follow: Callable[[Episode], None]) -> None:
        """Make the screen; `follow` is called with the episode that is opened."""
        super().__init__(view)
        self._follow = follow
        self._listed: tuple[Episode, ...] = ()

    def page(self, view: View, width: int) -> RowsPage:
        """Return the rows of all episodes."""
        from verl_tui.rendering.health_rows import history_page

        self._listed = view.verdict.history[::-1]
        return RowsPage(*history_page(view, self._listed, width))

    @on(Entries.Opened)
    def _opened(self, message: Entries.Opened) -> None:
        self.dismiss()
        self._follow(self._listed[message.entry])

    @classmethod
    def opened(cls, context: ScreenContext) -> Self:
        """Return the screen, from which an episode is followed on the dashboard."""
        return cls(context.view, context.dashboard.follow_episode)


SCREEN = ScreenSpec(HistoryScreen, "A", "finding.history", "Finding history", "History")
