"""Long lists: rows made when they are asked for, and a view over them that grows in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from textual.geometry import Size
from textual.scroll_view import ScrollView

from verl_tui.rendering.text.piece import Pieces

T = TypeVar("T")
_KEPT = 2000
"""Rows that are remembered: more than a screenful by far."""


class LazyRows(Sequence[Pieces], Generic[T]):
    """A long list of rows, each made when first asked for and then remembered."""

    def __init__(self, items: Sequence[T], make: Callable[[T], Pieces]) -> None:
        """Describe the list: what the rows are of, and what makes one."""
        self._items = items
        self._make = make
        self._made: dict[int, Pieces] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: Any) -> Any:
        """Return the row at an index, or those of a slice."""
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        if at not in self._made:
            if len(self._made) >= _KEPT:
                self._made.clear()
            self._made[at] = self._make(self._items[at])
        return self._made[at]

    def grown(self, items: Sequence[T]) -> LazyRows[T]:
        """Return the same rows with more behind them."""
        more = LazyRows(items, self._make)
        more._made = self._made
        return more


class ScrollingRows(ScrollView):
    """Scrolls over rows; sets its scroll bar at once, so that the width left for rows is known."""

    def scroll_over(self, size: Size) -> None:
        """Scroll over content of this size from now on."""
        self.virtual_size = size
        self._scroll_update(size)
        # the bar may have come or gone; no news for the next drawing
        self.virtual_size = Size(self.scrollable_content_region.width, size.height)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw other rows, also of what is yet to come into sight: for Textual it has no cells."""
        super().watch_scroll_y(old_value, new_value)
        if not self.size:
            self.refresh()
