"""Sources: how each file is doing, and every line that could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from verl_tui.tui.keys.act import WHY, HelpSection, act
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.screens.spec import ScreenSpec

if TYPE_CHECKING:
    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View


class SourcesScreen(RowsScreen[None]):
    """The state of each source of the shown run, and its lines that could not be read."""

    TITLE_WORDS = "sources"
    HELP_SECTION = HelpSection("sources", (RowsScreen,), rank=80, task=WHY)
    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,q,i", "dismiss", "sources.close", "Close", show=True)
    ]
    EDGE = (
        ("list.down list.up", "scroll"),
        ("run.previous run.next", "run"),
        ("sources.close", "closes"),
    )
    WIDEST = 180

    def page(self, view: View, width: int) -> RowsPage:
        """Return the rows of all sources."""
        from verl_tui.rendering.source_rows import source_rows

        return RowsPage(source_rows(view, width))


SCREEN = ScreenSpec(
    "sources",
    "i",
    "sources",
    "Sources",
    lambda context: SourcesScreen(context.view),
    rank=90,
    short="Sources",
    task=WHY,
)
