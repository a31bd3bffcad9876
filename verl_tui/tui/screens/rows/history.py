"""Finding history: what was raised and cleared, at which steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from textual.binding import BindingType

    from verl_tui.health.finding import Episode
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.widgets.entries import Entries


class HistoryScreen(RowsScreen["Episode | None"]):
    """All episodes, the newest first; returns the one that the user opened, if any."""

    TITLE_WORDS = "finding history"
    HELP_SECTION = HelpSection("finding history", (Overlay,), rank=90, task=WHY)
    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,q,A", "dismiss", "history.close", "Close", show=True)
    ]
    EDGE = (("entries.open", "goes there"), ("history.close", "closes"))
    WIDEST = 140

    def page(self, view: View, width: int) -> RowsPage:
        """Return the rows of all episodes."""
        from verl_tui.rendering.health_layout import history_page

        return RowsPage(*history_page(view, self._listed(view), width))

    def _listed(self, view: View | None) -> tuple[Episode, ...]:
        return tuple(reversed(view.verdict.history)) if view is not None else ()

    def on_entries_opened(self, message: Entries.Opened) -> None:
        """Close and return the chosen episode."""
        message.stop()
        self.dismiss(self._listed(self._view)[message.entry])


SCREEN = ScreenSpec(
    "history",
    "A",
    "finding.history",
    "Finding history",
    lambda context: ScreenWithCallback(
        HistoryScreen(context.view), context.dashboard.follow_episode
    ),
    rank=80,
    short="History",
    task=WHY,
)
