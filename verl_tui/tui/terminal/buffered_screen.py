"""A screen that is painted no more often than it has to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.await_complete import AwaitComplete
from textual.geometry import Region
from textual.reactive import Reactive
from textual.screen import Screen, ScreenResultType

if TYPE_CHECKING:
    from textual import events
    from textual._compositor import CompositorMap
    from textual.app import App
    from textual.await_remove import AwaitRemove
    from textual.geometry import Size
    from textual.strip import Strip
    from textual.widget import Widget
    from typing_extensions import Self


class StillScreen(Screen[ScreenResultType]):
    """A screen that shows nothing but its widgets, which paint their own focus.

    Textual lays out and paints a screen again and again while it opens: empty, at its size, styled
    for that, filled. Here all of that comes first, and what is seen first is the whole of it. What
    is said of Textual is so in 8.2.
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As of every screen; Textual writes all of it whenever this changes."""

    _laid_out: CompositorMap | None = None
    """Where everything was at the last layout."""
    _seen = False
    """Whether there has been something to see."""
    _drawn_at: Size | None = None
    """The size it was drawn for last."""
    _row: Strip | None = None
    """A row of what there is behind the widgets."""

    # -- what a screen says of itself --------------------------------------------------------------

    def fit(self, size: Size) -> None:
        """Take on what depends on the size; called before anything is styled and composed, and with
        each new size.
        """

    def redraw(self) -> None:
        """Draw at the size there is; called before anything is seen, and whenever all of it may
        look different.
        """

    def come_back(self) -> None:
        """Draw what has to be seen first when the screen in front of it closes, at the size it was
        left at.
        """
        self.redraw()

    # -- opening, coming back, another size, other colours -----------------------------------------

    def _post_register(self, app: App[object]) -> None:
        super()._post_register(app)
        self._take_size(app.size)  # the stylesheet is applied next

    def _take_size(self, size: Size) -> None:
        """Take on all that the size decides, but for the styles."""
        across = (
            self.app.HORIZONTAL_BREAKPOINTS
            if self.HORIZONTAL_BREAKPOINTS is None
            else self.HORIZONTAL_BREAKPOINTS
        )
        down = (
            self.app.VERTICAL_BREAKPOINTS
            if self.VERTICAL_BREAKPOINTS is None
            else self.VERTICAL_BREAKPOINTS
        )
        for length, breakpoints in ((size.width, across or []), (size.height, down or [])):
            held = self._get_breakpoint_classes(length, breakpoints)
            for _, name in breakpoints:
                self.set_class(name in held, name, update=False)
        self.fit(size)

    def on_mount(self) -> None:
        """Take the colours of another theme."""
        self.app.theme_changed_signal.subscribe(
            self, lambda _: self.call_after_refresh(self.redraw)
        )

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        event.prevent_default()
        event.refresh_styles = (
            event.refresh_styles and self._seen
        )  # until then they are those it was composed with
        as_left = self._seen and self.app.size == self._drawn_at
        if self._seen and not as_left:  # of a resize far behind the screen in front nobody tells it
            self._take_size(self.app.size)
            self.app.stylesheet.update(self)
        super()._on_screen_resume(event)
        self._drawn_at = self.size
        if as_left:
            self.come_back()
        else:
            self.redraw()
        self._seen = True
        self._on_timer_update()  # now, not at the next beat

    def on_resize(self, event: events.Resize) -> None:
        """Draw for another size, once the stylesheet has been applied."""
        if event.size != self._drawn_at:
            self._drawn_at = event.size
            self.fit(event.size)
            self.call_after_refresh(self.redraw)

    def _screen_resized(self, size: Size) -> None:
        """Lay out anew; not for being told what has just been done."""
        if size != self._size:
            super()._screen_resized(size)

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close, unless that has been done: keys may come faster than a screen goes."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def remove(self) -> AwaitRemove:
        """End; Textual has the screen below laid out and painted once more for that."""
        return self.app._prune(self)

    # -- layout and painting -----------------------------------------------------------------------

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Paint anew; regions are of a screen below that shines through.

        For those Textual forgets what the widgets of this screen wait to have painted, and never
        paints it.
        """
        if not regions or layout or recompose:
            return super().refresh(repaint=repaint, layout=layout, recompose=recompose)
        self._compositor._dirty_regions.update(regions)
        self._dirty_widgets.add(self)
        self.check_idle()
        return self

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out anew, and paint what is elsewhere than at the last layout.

        Textual compares with where it has last looked for a widget, be it before the layout. Where
        it looked for one that was just shown it finds nothing new, and paints nothing.
        """
        if self._laid_out is not None:
            self._compositor._full_map = self._laid_out
        super()._refresh_layout(size, scroll)
        self._laid_out = self._compositor._full_map
        if self.app.screen is not self and self._seen:
            self.app.screen.refresh()  # through which it may shine

    def _compositor_refresh(self) -> None:
        """Paint; where all of it is to be painted, once, and not before and after a layout."""
        if not self._seen:
            return
        if self._repaint_required and self.is_current:
            self._repaint_required = False
            self._compositor.update_widgets({self})
        super()._compositor_refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return what there is behind the widgets: Textual makes and cuts each row of it by
        itself.
        """
        if self.styles.background.a < 1 or not crop.height:
            return super().render_lines(crop)
        (row,) = super().render_lines(Region(crop.x, crop.y, crop.width, 1))
        if self._row != row:
            self._row = row
        return [self._row] * crop.height
