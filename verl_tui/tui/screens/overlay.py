"""The base of the screens over the dashboard: one framed panel, and the keys that all have."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.content import Content
from textual.screen import ModalScreen, ScreenResultType

from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.bindings import first_keys
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.entries import Entries
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.geometry import Size
    from textual.widget import Widget

    from verl_tui.rendering.session.snapshot import View


_DOT = " · "
_RIM = 20
"""Cells beside the panel from which on the dashboard is seen there: fewer would show too little."""


class Overlay(BufferedScreen[ScreenResultType], ModalScreen[ScreenResultType]):
    """A screen over the dashboard that shows something of one run."""

    EDGE: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Names of actions in the configuration, and the words for their keys in the frame."""
    WIDEST: ClassVar[int | None] = None
    """Cells that the panel takes at most, where its lines would be too long to read otherwise."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]  # noqa: RUF012 - as Textual has it
    BINDINGS: ClassVar[list[BindingType]] = [
        act("left_square_bracket", "other(-1)", "run.previous", "Previous run"),
        act("right_square_bracket", "other(1)", "run.next", "Next run"),
        # A modal screen hides the app's keys. Without a description: the help has them under
        # `everywhere`.
        act("question_mark", "app.look_at('help')", "help"),
        act("ctrl+l", "app.redraw", "redraw"),
        act("ctrl+z", "app.suspend_process", "suspend"),
    ]

    DEFAULT_CSS = """
    Overlay {
        align: center middle;
        overflow: hidden hidden;
        /* Of what is behind nothing is seen: painting it would be half of the work. */
        background: $background;
        &.-apart { background: $background 60%; }
        &.-apart:ansi { background: transparent; }
        &.-line > * { border: none; }
    }
    """

    def __init__(self, panel: Widget, view: View | None) -> None:
        """Make the screen.

        Args:
            panel: Fills the frame; the first rows in it get the focus.
            view: The state to draw first; without it the screen is empty until `show`.
        """
        super().__init__()
        self._panel = panel
        # there is nothing else that could have the focus
        self._panel.add_class("-focused")
        self._view = view

    def compose(self) -> ComposeResult:
        """The panel is all there is."""
        yield self._panel

    def on_mount(self) -> None:
        """Listen to the keys at once."""
        # the first that can have them; none where the app ends meanwhile
        self.query(Rows).focus()

    def fit(self, size: Size) -> None:
        """Let the panel fill the screen, unless that is far wider than it."""
        apart = self.WIDEST is not None and size.width >= self.WIDEST + _RIM
        if apart != self.has_class("-apart"):
            self.set_class(apart, "-apart", update=False)
            if self.is_mounted:
                self.app.stylesheet.apply(self)
            self._panel.styles.max_width = self.WIDEST if apart else None
            self._panel.styles.margin = (1, 0) if apart else 0

    def show(self, view: View) -> None:
        """Draw the newest state."""
        self._view = view
        self.redraw()

    def draw(self, view: View) -> None:
        """Draw a state in the panel; changes nothing that is as it was."""
        raise NotImplementedError

    @property
    def title_room(self) -> int:
        """Cells that the title may take."""
        width = (
            self.size.width
            if self.WIDEST is None
            else min(self.WIDEST, self.size.width)
        )
        return max(1, width - 8)

    def entitle(self, words: str) -> None:
        """Write the panel's title, cut where the frame ends."""
        title = Content(fit(printable(words), self.title_room))
        # else Textual would paint all of it anew
        if self._panel.border_title != title.markup:
            self._panel.border_title = title

    def edge(self, *words: str) -> str:
        """Return words, then the first keys of the screen and what they do: as many as the frame
        has room for. The last key, which leaves the screen, is left out last.
        """
        kinds = (type(self.app), Entries, type(self))
        keys = [
            f"{first_keys(self.app, kinds, names)} {does}" for names, does in self.EDGE
        ]
        while keys and cell_len(_DOT.join((*words, *keys))) > self.title_room:
            del keys[-2 if len(keys) > 1 else -1]
        return fit(_DOT.join((*words, *keys)), self.title_room)

    def redraw(self) -> None:
        """Draw the newest state again."""
        if self._view is not None and self._panel.is_mounted:
            self.draw(self._view)

    def action_other(self, way: int) -> None:
        """Look at the next or previous run."""
        other = self._view.beside(way) if self._view is not None else None
        if other is not None:
            self.post_message(RunsPanel.Picked(other.name))
