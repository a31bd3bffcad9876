"""The sources of the shown run and the lines that could not be read, over the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.content import Content

from verl_tui.rendering.source_rows import source_rows
from verl_tui.text import one_line
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.widgets.role_styled import Looks


class SourceRows(Rows):
    """The rows of the screen in a frame."""

    LOOKS: ClassVar[Looks] = {
        **Rows.LOOKS,
        "heading": "bold $text-accent",
        "dim": "$text-muted",
        "path": "$foreground",
        "up": "$text-success",
        "down": "bold $text-error",
        "warning": "$text-warning",
    }
    DEFAULT_CSS = """
    SourceRows {
        border: round $accent;
        border-title-color: $accent;
        border-subtitle-color: $text-muted;
        background: $surface;
        scrollbar-gutter: stable;
    }
    """

    def show(self, rows: Sequence[Pieces]) -> None:
        """Show these rows in the colours of their roles."""
        self.set_strips([self.inked(row) for row in rows])


class SourcesScreen(Overlay[None]):
    """The state of each source of the shown run, and its lines that could not be read."""

    HELP_SECTION = HelpSection("sources", (Overlay,), rank=80, task=WHY)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,i", "dismiss", "Close", id="sources.close")
    ]
    EDGE = (
        ("list.down list.up", "scroll"),
        ("run.previous run.next", "run"),
        ("sources.close", "closes"),
    )
    WIDEST = 180
    DEFAULT_CSS = "SourcesScreen.-wide > SourceRows { padding: 0 0 0 1; }"

    _panel: SourceRows

    def __init__(self, view: View | None = None) -> None:
        """Make the screen.

        Args:
            view: What to show first; without it the screen is empty until `show`.
        """
        super().__init__(SourceRows(), view)

    def draw(self, view: View) -> None:
        """Draw the newest state."""
        if self._panel.width > 0:
            self.entitle(
                f"sources of {one_line(view.run.name, 80)}"
                if view.run is not None
                else "sources"
            )
            self._panel.show(source_rows(view, self._panel.width))
        edge = Content(self.edge())
        # else Textual would paint all of it anew
        if self._panel.border_subtitle != edge.markup:
            self._panel.border_subtitle = edge
