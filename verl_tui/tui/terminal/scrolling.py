"""A scroll view whose content may grow without a layout of the whole screen."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


class ScrollingRows(ScrollView):
    """Scrolls over rows; sets its scroll bar at once, so that the width left for rows is known."""

    def scroll_over(self, size: Size) -> None:
        """Scroll over content of this size from now on.

        Textual lays out the whole screen for a new `virtual_size`, also where the height of the
        widget does not depend on it.
        """
        if self.styles.auto_dimensions:
            self.virtual_size = size
        else:
            self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(size)
        width = self.scrollable_content_region.width
        # the bar has come or gone; no news for the next drawing
        if width != size.width:
            self.set_reactive(Widget.virtual_size, Size(width, size.height))
