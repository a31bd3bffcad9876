"""A screen that is not painted anew for every move of the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.reactive import Reactive
from textual.screen import Screen, ScreenResultType

if TYPE_CHECKING:
    from textual._compositor import CompositorMap
    from textual.geometry import Size
    from textual.widget import Widget


class StillScreen(Screen[ScreenResultType]):
    """A screen that shows nothing but its widgets, which paint their own focus."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As of every screen; Textual writes all of it whenever this changes."""

    _laid_out: CompositorMap | None = None
    """Where everything was at the last layout."""

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out anew, and paint what is elsewhere than at the last layout.

        Textual compares with where it has last looked for a widget, be it before the layout. Where it looked for one
        that was just shown it finds nothing new, and paints nothing.
        """
        if self._laid_out is not None:
            self._compositor._full_map = self._laid_out
        super()._refresh_layout(size, scroll)
        self._laid_out = self._compositor._full_map
