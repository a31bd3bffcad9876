"""A screen of rows over the dashboard: sources, timing and the finding history are such screens."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.screen import ScreenResultType

from verl_tui.rendering.text.part_colours import HUES
from verl_tui.text import one_line
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.entries import Entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.widgets.role_styled import Looks


class RowsPage(NamedTuple):
    """What such a screen shows."""

    rows: Sequence[Pieces]
    starts: Sequence[int] = ()
    """The rows that entries begin at, where one can be chosen."""
    names: Sequence[object] = ()
    """A name for each entry: it stays chosen though newer ones push it down."""
    caption: str = ""
    """A few words for the frame."""


class _RowsPanel(TextPanel):
    """The rows in a frame."""

    LOOKS: ClassVar[Looks] = {
        "heading": "bold $text-accent",
        "label": "$foreground",
        "text": "$foreground",
        "path": "$foreground",
        "value": "bold $foreground",
        "dim": "$text-muted",
        "good": "$text-success",
        "up": "$text-success",
        "info": "$text-primary",
        "warning": "$text-warning",
        "down": "bold $text-error",
        "critical": "bold $text-error",
        **HUES,
    }
    DEFAULT_CSS = """
    _RowsPanel {
        border: round $accent;
        border-title-color: $accent;
        background: $surface;
        & > Entries { scrollbar-gutter: stable; }
    }
    """

    def __init__(self, screen: RowsScreen[ScreenResultType]) -> None:
        super().__init__()
        self.entries = Entries()
        self._of = screen
        self._chosen: object = None
        self._names: Sequence[object] = ()

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self.entries

    def on_rows_chosen(self, message: Entries.Chosen) -> None:
        """Remember the entry that the user chose."""
        message.stop()
        at = self.entries.entry
        self._chosen = self._names[at] if at is not None else None

    def redraw(self) -> None:
        """Write the rows anew, for another size or theme."""
        self._of.redraw()

    def show_page(self, page: RowsPage) -> None:
        """Write the rows; the chosen entry stays chosen, the first where it is gone."""
        stop = len(page.rows) if page.starts else 0
        self.entries.set_entries(self.strips(page.rows), page.starts, stop)
        self._names = page.names
        if page.names:
            at = page.names.index(self._chosen) if self._chosen in page.names else 0
            self._chosen = page.names[at]
            self.entries.choose(at)


class RowsScreen(Overlay[ScreenResultType]):
    """Rows of the shown run over the dashboard; a screen says which."""

    TITLE_WORDS: ClassVar[str]
    """Begins the title, before the run's name."""

    _panel: _RowsPanel

    def __init__(self, view: View | None = None) -> None:
        """Make the screen.

        Args:
            view: What to show first; without it the screen is empty until `show`.
        """
        super().__init__(_RowsPanel(self), view)

    def page(self, view: View, width: int) -> RowsPage:
        """Return what is shown in rows of so many cells."""
        raise NotImplementedError

    def draw(self, view: View) -> None:
        """Draw the newest state."""
        name = f" of {one_line(view.run.name, 80)}" if view.run is not None else ""
        self.entitle(self.TITLE_WORDS + name)
        width = self._panel.entries.width
        if width > 0:
            page = self.page(view, width)
            self._panel.show_page(page)
            self._panel.subtitle(self.edge(*filter(None, [page.caption])))
