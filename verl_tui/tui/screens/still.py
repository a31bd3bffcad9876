"""A screen that is not painted anew for every move of the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.reactive import Reactive
from textual.screen import Screen, ScreenResultType

if TYPE_CHECKING:
    from textual._compositor import CompositorMap
    from textual.geometry import Region, Size
    from textual.widget import Widget
    from typing_extensions import Self


class StillScreen(Screen[ScreenResultType]):
    """A screen that shows nothing but its widgets, which paint their own focus."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As of every screen; Textual writes all of it whenever this changes."""

    _laid_out: CompositorMap | None = None
    """Where everything was at the last layout."""

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Paint anew; regions are of a screen below that shines through.

        For those Textual forgets what the widgets of this screen wait to have painted, and never paints it.
        """
        if not regions or layout or recompose:
            return super().refresh(repaint=repaint, layout=layout, recompose=recompose)
        self._compositor._dirty_regions.update(regions)
        self._dirty_widgets.add(self)
        self.check_idle()
        return self

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out anew, and paint what is elsewhere than at the last layout.

        Textual compares with where it has last looked for a widget, be it before the layout. Where it looked for one
        that was just shown it finds nothing new, and paints nothing.
        """
        if self._laid_out is not None:
            self._compositor._full_map = self._laid_out
        super()._refresh_layout(size, scroll)
        self._laid_out = self._compositor._full_map
