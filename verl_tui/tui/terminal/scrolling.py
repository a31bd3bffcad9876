"""Long lists: rows made when they are asked for, and a view over them that grows in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.geometry import Size
from textual.scroll_view import ScrollView

from verl_tui.rendering.text.piece import Pieces

_KEPT = 2000
"""Rows that are remembered: more than a screenful by far."""


class LazyRows(Sequence[Pieces]):
    """A long list of rows, each made when first asked for and then remembered."""

    def __init__(self, count: int, make: Callable[[int], Pieces]) -> None:
        """Describe the list: how many there are, and what makes one."""
        self._count = count
        self._make = make
        self._made: dict[int, Pieces] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        """Return the row at an index, or those of a slice."""
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(self._count))]
        if not 0 <= at < self._count:
            raise IndexError(at)
        if at not in self._made:
            if len(self._made) >= _KEPT:
                self._made.clear()
            self._made[at] = self._make(at)
        return self._made[at]

    def grown(self, count: int) -> LazyRows:
        """Return the same rows with more behind them."""
        more = LazyRows(count, self._make)
        more._made = self._made
        return more


class ScrollingRows(ScrollView):
    """Scrolls over rows; sets its scroll bar at once, so that the width left for rows is known."""

    def scroll_over(self, size: Size) -> None:
        """Scroll over content of this size from now on."""
        self.virtual_size = size
        self._scroll_update(size)
        # the bar may have come or gone; no news for the next drawing
        width = self.scrollable_content_region.width
        self.virtual_size = Size(width, size.height)
