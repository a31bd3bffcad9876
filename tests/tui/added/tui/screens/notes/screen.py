"""The notes about the shown run, over the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.binding import BindingType

    from verl_tui.tui.widgets.role_styled import Looks


class NotesPanel(TextPanel):
    """One row."""

    LOOKS: ClassVar[Looks] = {"text": "$foreground"}

    def compose(self):
        yield Rows()

    def redraw(self):
        self.query_one(Rows).set_strips(
            self.strips([[("learning rate halved", "text")]])
        )


class NotesScreen(Overlay[None]):
    """The notes."""

    HELP_SECTION = HelpSection("notes", (Overlay,), notes=("a note is a line of text",))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,B", "dismiss", "Close", id="notes.close"),
        Binding("w", "write", "Write a note", id="notes.write"),
    ]

    def __init__(self, view):
        super().__init__(NotesPanel(), view)

    def draw(self, view):
        self.entitle(f"notes about {view.run.name}")
        self._panel.redraw()
