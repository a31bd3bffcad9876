"""One line of a log in full: as printed, or one row for each field of a JSONL record."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from verl_tui.rendering.log.line_rows import whole_line
from verl_tui.rendering.text.wrap import wrap
from verl_tui.tui.keys.act import act
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.widgets.role_styled import Looks

_MOST = 5000
"""Most rows: more than any line takes on a terminal of twenty columns."""


class LinePanel(TextPanel):
    """The text of a line, wrapped."""

    LOOKS: ClassVar[Looks] = {
        "text": "$foreground",
    }
    DEFAULT_CSS = """
    LinePanel {
        border: round $accent;
        background: $surface;
    }
    """

    def __init__(self, line: str) -> None:
        super().__init__()
        self.text = whole_line(line)
        self._rows = Rows()

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def redraw(self) -> None:
        """Wrap the text."""
        lines: list[Pieces] = [
            [(row, "text")] for row in islice(wrap(self.text, self._rows.width), _MOST)
        ]
        self._rows.set_strips(self.strips(lines))


class LineScreen(Overlay[None]):
    """A line over the log."""

    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,q,enter", "dismiss", "line.close", "Close", show=True),
    ]
    EDGE = (("copy", "copies"), ("line.close", "closes"))
    WIDEST = 140

    _panel: LinePanel

    def __init__(self, line: str, title: str, view: View) -> None:
        """Make the screen.

        Args:
            line: As it was printed.
            title: Which line it is.
            view: The state of everything.
        """
        super().__init__(LinePanel(line), view)
        self._title = title

    def draw(self, view: View) -> None:
        """Wrap the line for the width there is."""
        self.entitle(self.edge(self._title))
        self._panel.redraw()

    def clip(self) -> str:
        """Return what is copied: all of it."""
        return self._panel.text

    def action_other(self, way: int) -> None:
        """Do nothing: the line is of this run."""
