"""What every panel has: a title in its frame, and a way to be shown the newest state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container
from textual.content import Content

if TYPE_CHECKING:
    from verl_tui.tui.view import View


class Panel(Container):
    """A titled part of the screen."""

    TITLE = ""
    """Name shown in the frame."""
    DEFAULT_CSS = """
    Panel {
        border: round $panel-lighten-2;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        &:focus-within { border: round $accent; border-title-color: $accent; }
        &.-ascii { border: ascii $panel-lighten-2; }
        &.-ascii:focus-within { border: ascii $accent; }
    }
    """

    def on_mount(self) -> None:
        """Write the title."""
        self.border_title = Content(self.TITLE)

    def show(self, view: View) -> None:
        """Draw the newest state; refreshes nothing that has not changed."""
        raise NotImplementedError

    def subtitle(self, text: str) -> None:
        """Write a few words into the lower edge of the frame; foreign text is no markup here."""
        content = Content(text)
        if self.border_subtitle != content.markup:
            self.border_subtitle = content
