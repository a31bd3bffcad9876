"""The bases of panels: a titled frame that draws the newest state, and one with rows of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.containers import Container
from textual.content import Content

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.rendering.session.snapshot import View
from verl_tui.tui.keys import actions
from verl_tui.tui.terminal.net import ContainedPart
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

NOTHING = View(Monitor(Config()), None, 0.0)
"""What there is to show before the app has shown anything."""


class PanelSpec(NamedTuple):
    """How a panel is declared: its name, the key that leads to it, its place on the dashboard."""

    name: str
    """The widget's id; its key is `panel.NAME` in the configuration."""
    key: str
    words: str
    """Its name in the help and in the command palette."""
    rank: int = 100
    """Place in the reading order of the wide layout, from 0."""
    tab: int = 100
    """Place in the order of the tab key, from 0."""
    share: float = 0.0
    """Largest share of the dashboard's rows that it gets; with none it is seen over the full screen
    only. The charts get what the others leave.
    """
    least: int = 0
    """Columns of a screen from which it is in sight; a tall narrow one will do where it has more to
    show than a sentence.
    """


class Panel(ContainedPart, Container):
    """A titled part of the screen."""

    TITLE = ""
    """Name in the frame."""
    PANEL: ClassVar[PanelSpec]
    """Name, key and place of a panel of the dashboard; one that only a screen has has none."""
    ABRIDGED = False
    """True if it shows less in a row without a frame than with the focus, which needs more."""
    view = NOTHING
    """What is shown."""
    due: object = ()
    """Width and height that the layout in progress gives it; nothing where that is not known."""
    FOOTER = ""
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
        &.-bare.-zoomed, &#charts.-bare { border: none; padding: 0; }
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
        if self.has_focus_within != self.has_class("-focused"):
            self.set_class(self.has_focus_within, "-focused", update=False)
            self.app.stylesheet.apply(self)
            self.write_title()

    on_descendant_blur = on_descendant_focus

    def write_title(self) -> None:
        """Write the title into the upper edge of the frame."""
        # The colour is not the stylesheet's: a change there repaints all in the frame.
        title = self.title(focused=self.has_class("-focused"))
        # an equal title would have Textual repaint the whole panel
        if self.border_title != title.markup:
            self.border_title = title

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

    def subtitle(self, text: str, style: str = "") -> None:
        """Write a few words into the lower edge of the frame; text from logs is no markup here."""
        content = Content.styled(text, style)
        if self.border_subtitle != content.markup:
            self.border_subtitle = content


class TextPanel(Panel):
    """A panel of rows of text."""

    BINDINGS = actions("space  app.simulate_key('pagedown')  list.space")
    DEFAULT_CSS = "TextPanel > Rows { height: 1fr; }"
    ROWS: ClassVar[type[Rows]] = Rows
    """What the rows are."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows = self.ROWS()

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def on_mount(self) -> None:
        """Have rows written for each width, as where the mark of the focus takes a cell of them."""
        self._rows.resized = self.redraw

    def show(self, view: View) -> None:
        """Write the rows of the newest state."""
        self.view = view
        self.redraw()

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        if self.due not in ((), self.outer_size):
            return  # it gets another size, and is written then
        width, height = self._rows.size
        if self.view is not NOTHING and width > 0 and height > 0:
            self.write(self.view, width, height)

    def write(self, view: View, width: int, height: int) -> None:
        """Write rows of so many cells, as many as are in sight or more."""
        raise NotImplementedError
