"""A sample as scrolling rows, wrapped only as far as it has come into sight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from verl_tui.rendering.samples.document import Document
from verl_tui.tui.terminal.scrolling import LazyRows
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.widgets.role_styled import Looks

_ALL = 1 << 30


class DocumentRows(Rows):
    """Shows a document; at the ends of a folded one it is unfolded first."""

    LOOKS: ClassVar[Looks] = {
        "label": "$text-accent",
        "differs": "bold underline $text-accent",
    }

    def __init__(
        self, *, id: str | None = None, unfold: Callable[[], bool] = lambda: False
    ) -> None:
        """Make the rows.

        Args:
            id: As of every widget.
            unfold: Shows all of a folded document, from its beginning; returns False if that is
                shown already.
        """
        super().__init__(id=id)
        self.document: Document | None = None
        """The document that is shown."""
        self._of: object = None
        """What it was made of."""
        self._unfold = unfold

    def show(self, *asked: Any, **look: Any) -> None:
        """Show the document of a sample; the arguments are those of `Document`."""
        if self.document is None or (asked, look) != self._of:
            self._of = asked, look
            self.document = document = Document(*asked, **look)
            document.grow(self._ahead)
            self.set(LazyRows(len(document), document.row))

    def show_rows(self, rows: Sequence[Pieces]) -> None:
        """Show these rows in place of a document."""
        self.document = None
        self.set(rows)

    def go_to(self, row: int) -> None:
        """Show a row, with some before it; the document has to know it."""
        self._grow()
        top = max(0, row - self.size.height // 3)
        self.scroll_to(y=top, animate=False, immediate=True, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Wrap more before the end of the wrapped part comes into sight."""
        super().watch_scroll_y(old_value, new_value)
        self._grow()

    @property
    def _ahead(self) -> int:
        return int(self.scroll_offset.y + 3 * max(1, self.size.height))

    def _grow(self, rows: int = 0) -> None:
        if self.document is not None and isinstance(self.rows, LazyRows):
            self.document.grow(max(rows, self._ahead))
            if len(self.document) != len(self.rows):
                self.set(self.rows.grown(len(self.document)))

    # -- moving ------------------------------------------------------------------------------------

    def _unfolded(self, way: int) -> bool:
        """Unfold at an end; return whether there was something to unfold."""
        at_end = self.scroll_y >= self.max_scroll_y if way > 0 else self.scroll_y <= 0
        return at_end and self._unfold()

    def action_move(self, by: int) -> None:
        """Scroll by one, or unfold."""
        if not self._unfolded(by):
            super().action_move(by)

    def action_page(self, by: int) -> None:
        """Scroll by a screenful, or unfold."""
        if not self._unfolded(by):
            super().action_page(by)

    def action_end(self, way: int) -> None:
        """Go to the first or last row of the whole text."""
        self._unfold()
        if way > 0:
            self._grow(_ALL)
        super().action_end(way)
