"""The bases of panels: a titled frame that draws the newest state, and one with rows of text."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from rich.control import strip_control_codes
from rich.segment import Segment
from rich.style import Style
from textual.containers import Container
from textual.content import Content
from textual.strip import Strip

from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.terminal.net import ContainedPart
from verl_tui.tui.widgets.role_styled import RoleStyled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.panels.spec import PanelSpec


class Panel(ContainedPart, Container):
    """A titled part of the screen."""

    TITLE = ""
    """Name in the frame."""
    PANEL: ClassVar[PanelSpec | None] = None
    """Name, key and place of a panel of the dashboard; None of one that only a screen has."""
    ABRIDGED: ClassVar[bool] = False
    """True if it shows less in a row without a frame than with the focus, which needs more."""
    FOOTER: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Keys that the last row of the screen begins with while the panel has the focus, and what they
    do.
    """
    DEFAULT_CSS = """
    Panel {
        border: round $panel-lighten-2;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        &.-focused { border: round $accent; }
        &.-bare { border: none; padding: 0 1; }
        &.-bare.-focused { border-left: thick $accent; border-right: thick $accent; padding: 0; }
        &.-bare.-narrow { border-right: none; padding: 0; }
        &.-plain { border: none; }
        &:nocolor.-focused { border-title-style: bold reverse; }
    }
    """

    def on_mount(self) -> None:
        """Write the title."""
        self.write_title()

    def on_descendant_focus(self) -> None:
        """Mark the frame of the panel that has the focus.

        Only the frame looks different, so the stylesheet is applied to it alone: with
        `:focus-within` each move of the focus would apply it to all charts in the panel.
        """
        focused = self.screen.focused
        within = focused is not None and self in focused.ancestors
        if within != self.has_class("-focused"):
            self.set_class(within, "-focused", update=False)
            self.app.stylesheet.apply(self)
            if self.TITLE:  # else a screen writes it
                self.write_title()

    on_descendant_blur = on_descendant_focus

    def write_title(self) -> None:
        """Write the title into the upper edge of the frame."""
        # The colour is not the stylesheet's: a change there repaints all in the frame.
        self.border_title = self.title(focused=self.has_class("-focused"))

    def title(self, *, focused: bool) -> Content:
        """Return what stands in the upper edge of the frame."""
        return Content.styled(self.TITLE, "$accent" if focused else "")

    def show(self, view: View) -> None:
        """Draw the newest state; refreshes nothing that has not changed."""
        raise NotImplementedError

    def needed(self, view: View, width: int, height: int) -> int:
        """Return how many rows there are to show: 1 for a sentence, for which no frame is drawn;
        0 where there is nothing.

        Args:
            view: The state to show.
            width: Cells of a row.
            height: Rows of the whole dashboard.
        """
        return 1

    def subtitle(self, text: str) -> None:
        """Write a few words into the lower edge of the frame; text from logs is no markup here."""
        content = Content(text)
        if self.border_subtitle != content.markup:
            self.border_subtitle = content


class TextPanel(Panel, RoleStyled):
    """A panel of rows of text, each piece in the colour of its role."""

    GROUNDED: ClassVar[frozenset[str]] = frozenset()
    """Roles that have a ground of their own, such as bars; others leave it to the row."""

    def on_resize(self) -> None:
        """Write the rows anew for the new width."""
        self.redraw()

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._looks: dict[str, Style] = {}
        """How pieces of each role look on any ground."""

    @abstractmethod
    def redraw(self) -> None:
        """Write the rows of the newest state."""

    def strips(self, lines: Sequence[Pieces]) -> LazyStrips:
        """Return rows in their colours, each made when it comes into sight."""
        return LazyStrips(len(lines), lambda at: self.strip(lines[at]))

    def strip(self, pieces: Pieces) -> Strip:
        """Return a row of text, ready to be shown, in its colours."""
        segments = [
            Segment(strip_control_codes(words), self._ink(role))
            for words, role in pieces
            if words
        ]
        return Strip(segments).simplify()

    def notify_style_update(self) -> None:
        """Forget the colours: the theme has changed."""
        self._looks.clear()
        super().notify_style_update()

    def _ink(self, role: str) -> Style:
        if role not in self._looks:
            style = self.role_style(role)
            ground = style.bgcolor if role in self.GROUNDED else None
            self._looks[role] = (
                Style(color=style.color, bold=style.bold, bgcolor=ground)
                if role
                else Style.null()
            )
        return self._looks[role]
