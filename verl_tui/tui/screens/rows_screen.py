"""A screen of rows over the dashboard: sources, timing, finding history, configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.screen import ScreenResultType

from verl_tui.rendering.text.part_colours import HUES
from verl_tui.text import one_line
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.entries import Entries
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.widgets.role_styled import Looks


_FLAT = 8
"""Least height of a list with the names of its columns."""


class RowsPage(NamedTuple):
    """What such a screen shows."""

    rows: Sequence[Pieces]
    starts: Sequence[int] = ()
    """The rows that entries begin at, where one can be chosen."""
    names: Sequence[object] = ()
    """A name for each entry: it stays chosen though newer ones push it down."""
    caption: str = ""
    """A few words for the frame."""
    heading: Pieces | None = None
    """Names of columns, which stay above the rows; None for none."""
    detail: Callable[[int | None, int, int], Sequence[Pieces]] | None = None
    """Returns an entry in full, given its index, cells and rows; None for no such rows."""


class _PagedEntries(Entries):
    """Entries of which the one a screenful away is chosen."""

    def action_page(self, by: int) -> None:
        """Choose the entry a screenful away, or scroll where there is none."""
        if not self._heads:
            super().action_page(by)
            return
        at = (self.chosen or 0) + by * max(1, self.size.height - 1)
        self._choose(min(max(self._heads[0], at), self._stop - 1))


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
        "setting": "$text-primary",
        "override": "$text-success",
        "differs": "$text-warning",
        "down": "bold $text-error",
        "critical": "bold $text-error",
        **HUES,
    }
    DEFAULT_CSS = """
    _RowsPanel {
        border: round $accent;
        border-title-color: $accent;
        background: $surface;
        & > Entries { height: 1fr; scrollbar-gutter: stable; }
        & > #heading { height: 1; display: none; }
        & > #detail { height: 1; background: $panel; display: none; }
    }
    """

    def __init__(self, screen: RowsScreen[ScreenResultType]) -> None:
        super().__init__()
        self.entries = _PagedEntries()
        self._head, self._detail = Rows(id="heading"), Rows(id="detail")
        self._head.can_focus = self._detail.can_focus = False
        self._of = screen
        self._chosen: object = None
        """Name of the chosen entry."""
        self._page = RowsPage([])

    def compose(self) -> ComposeResult:
        """Make the names of the columns, the rows, and those for the chosen entry."""
        yield self._head
        yield self.entries
        yield self._detail

    def on_rows_chosen(self, message: Entries.Chosen) -> None:
        """Remember the entry that the user chose."""
        message.stop()
        at = self.entries.entry
        if at is not None and at < len(self._page.names):
            self._chosen = self._page.names[at]
        self._draw_detail()

    def redraw(self) -> None:
        """Write the rows anew, for another size or theme."""
        self._of.redraw()

    def show_page(self, page: RowsPage) -> None:
        """Write the rows; the chosen entry stays chosen, the first where it is gone."""
        self._page = page
        stop = len(page.rows) if page.starts else 0
        self.entries.set_entries(self.strips(page.rows), page.starts, stop)
        if page.names:
            at = page.names.index(self._chosen) if self._chosen in page.names else 0
            self._chosen = page.names[at]
            self.entries.choose(at)
        self._head.display = page.heading is not None and self.size.height >= _FLAT
        self._head.set_strips(self.strips([page.heading or []]))
        self._draw_detail()

    def _draw_detail(self) -> None:
        detail = self._page.detail
        self._detail.display = detail is not None
        if detail is None:
            return
        # The height is computed, since the layout may still have the one before.
        height = max(1, min(4, self.size.height // 6))
        self._detail.styles.height = height
        rows = detail(self.entries.entry, self._detail.size.width, height)
        self._detail.set_strips(self.strips(rows))


class RowsScreen(Overlay[ScreenResultType]):
    """Rows of the shown run over the dashboard; a screen says which."""

    TITLE_WORDS: ClassVar[str] = ""
    """Begins the title, before the run's name."""

    _panel: _RowsPanel

    def __init__(self, view: View | None = None) -> None:
        """Make the screen.

        Args:
            view: What to show first; without it the screen is empty until `show`.
        """
        super().__init__(_RowsPanel(self), view)

    def title_words(self) -> str:
        """Return the words before the run's name."""
        return self.TITLE_WORDS

    def page(self, view: View, width: int) -> RowsPage:
        """Return what is shown in rows of so many cells."""
        raise NotImplementedError

    def draw(self, view: View) -> None:
        """Draw the newest state."""
        name = f" of {one_line(view.run.name, 80)}" if view.run is not None else ""
        self.entitle(self.title_words() + name)
        width = self._panel.entries.width
        if width > 0:
            page = self.page(view, width)
            self._panel.show_page(page)
            self._panel.subtitle(self.edge(*filter(None, [page.caption])))
