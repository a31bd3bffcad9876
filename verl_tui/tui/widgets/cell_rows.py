"""A list that repaints only the pieces of a row that have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Region

from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.strip import Strip


class CellRows(Rows):
    """Rows of pieces of the same lengths, such as a table's: of a number that changed only the
    number is written.

    Textual crops what it writes at the ends of segments, so a piece that may change alone must be a
    segment.
    """

    def set_strips(self, strips: Sequence[Strip]) -> None:
        """Show these strips; refreshes only the pieces in sight that differ from what is shown."""
        old = self._strips
        if len(old) != len(strips) or self.virtual_size.width != self.width:
            super().set_strips(strips)
            self.refresh()
            return
        self._strips = strips
        top = self.scroll_offset.y
        regions = [
            Region(start, y, stop - start, 1)
            for y in range(min(self.size.height, len(strips) - top))
            for start, stop in _changes(old[top + y], strips[top + y])
        ]
        if regions:
            self.refresh(*regions)


def _changes(before: Strip, after: Strip) -> Iterator[tuple[int, int]]:
    """Yield where two rows differ, in cells."""
    if before is after:
        return
    if [segment.cell_length for segment in before] != [segment.cell_length for segment in after]:
        yield 0, max(before.cell_length, after.cell_length)
        return
    start = 0
    for one, other in zip(before, after, strict=True):
        stop = start + other.cell_length
        if one != other:
            yield start, stop
        start = stop
