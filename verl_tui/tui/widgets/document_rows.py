"""A sample as scrolling rows, wrapped only as far as it has come into sight."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip

from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.style import Style

    from verl_tui.rendering.samples.document import Document

_ALL = 1 << 30


class DocumentRows(Rows):
    """Shows a document."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.document: Document | None = None
        """The document that is shown."""

    def show(self, document: Document | None, styles: Mapping[str, Style]) -> None:
        """Show a document, in the colours of its roles."""
        self.document = document
        if document is None:
            self.set_strips([])
            return
        self._grow()
        self.set_strips(LazyStrips(len(document), partial(_strip, document, styles)))

    def go_to(self, row: int) -> None:
        """Show a row, with some before it; the document has to know it."""
        self._extend()
        self.scroll_to(
            y=max(0, row - self.size.height // 3),
            animate=False,
            immediate=True,
            force=True,
        )

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Wrap more before the end of the wrapped part comes into sight."""
        super().watch_scroll_y(old_value, new_value)
        self._extend()

    def action_end(self, way: int) -> None:
        """Go to the first or last row."""
        if way > 0 and self.document is not None:
            self.document.grow(_ALL)
            self._extend()
        super().action_end(way)

    def _extend(self) -> None:
        self._grow()
        if self.document is not None and len(self.document) != len(self.strips):
            strips = self.strips
            assert isinstance(strips, LazyStrips)
            self.set_strips(strips.grown(len(self.document)))

    def _grow(self) -> None:
        if self.document is not None:
            self.document.grow(self.scroll_offset.y + 3 * max(1, self.size.height))


def _strip(document: Document, styles: Mapping[str, Style], at: int) -> Strip:
    return Strip(
        [Segment(text, styles.get(role)) for text, role in document.row(at) if text]
    )
