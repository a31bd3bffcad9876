"""A screen that is painted no more often than it has to be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from textual.await_complete import AwaitComplete
from textual.events import Resize
from textual.reactive import Reactive
from textual.screen import Screen

from verl_tui.tui.terminal.net import Contained, ContainedPart

if TYPE_CHECKING:
    from textual import events
    from textual.app import App
    from textual.geometry import Region, Size
    from textual.widget import Widget
    from typing_extensions import Self


class BufferedScreen(ContainedPart, Screen[None]):
    """A screen that is laid out and filled before anything of it is painted.

    Textual paints a screen several times while it opens: empty, at its size, styled, filled.
    """

    DEFAULT_CSS = "BufferedScreen { overflow: hidden hidden; }"
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """The widget with the focus, as in `Screen`; a change repaints only that widget."""

    _seen = False
    """True while what is drawn is of this size, and may be painted."""
    _classed_for: Size | None = None
    """The size that the classes of the breakpoints are of."""
    drawn_at: Size | None = None
    """The size at which the screen was drawn last."""
    _previous_map: Any = None
    """Textual's map of all widgets after the last layout."""

    def redraw(self) -> None:
        """Draw at the current size; called before the first paint and when all may have changed."""

    # -- opening, returning and new sizes --------------------------------------------------

    def _post_register(self, app: App[object]) -> None:
        super()._post_register(app)
        self._set_classes(app.size)  # Textual applies the stylesheet next

    def _set_classes(self, size: Size) -> None:
        """Set the classes of the breakpoints before Textual does."""
        if size == self._classed_for:
            return
        self._classed_for = size
        across = self.HORIZONTAL_BREAKPOINTS or self.app.HORIZONTAL_BREAKPOINTS or ()
        down = self.VERTICAL_BREAKPOINTS or self.app.VERTICAL_BREAKPOINTS or ()
        for length, breakpoints in zip(size, (across, down), strict=True):
            reached = self._get_breakpoint_classes(length, [*breakpoints])
            for _, name in breakpoints:
                self.set_class(name in reached, name, update=False)
        if self.is_attached:
            self.app.stylesheet.update(self)

    def key_escape(self, event: events.Key) -> None:
        """Leave a screen that has failed, whatever its own keys do."""
        if self.failed:
            event.stop()
            self.dismiss()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Draw once Textual has laid out the screen, before it is painted."""
        # A new screen has the styles that it was composed with.
        event.refresh_styles = self._seen and event.refresh_styles
        # Textual sends no resize to a screen far behind the front one
        self._set_classes(self.app.size)
        self.call_next(self._reveal)

    def _reveal(self) -> None:
        if self.drawn_at != self.size:
            self.drawn_at = self.size
            self.attempt(self.redraw)
        self._let_go()

    def _let_go(self, *, anew: bool = False) -> None:
        """Paint what is drawn; all of it in a new size, as what asked for it meanwhile is lost."""
        self._seen = True
        self._repaint_required |= anew
        self._on_timer_update()

    def on_resize(self, event: Resize) -> None:
        """Draw for a new size, also where another screen is in front.

        Only the app's present size counts: Textual also reports each size that was laid out before,
        and two sizes would be laid out in turn for ever.
        """
        size = self.app.size
        if event.size != size:
            event.prevent_default()
            # the message about it may have been dropped for this one
            if size != self.outer_size:
                self.post_message(Resize(size, size))
        elif size != self.drawn_at:
            self.drawn_at = size
            self._set_classes(size)
            self.call_after_refresh(self._redraw_resized)

    def _redraw_resized(self) -> None:
        """Draw, and paint once what that asks for has been laid out and drawn, too."""
        self.attempt(self.redraw)
        if not self._seen:
            let_go = partial(self._let_go, anew=True)
            self.call_after_refresh(self.call_after_refresh, let_go)

    def _screen_resized(self, size: Size) -> None:
        """Lay out, unless the screen has this size; Textual would paint at once, with the contents
        of the size before, and lay out all screens with each that opens.
        """
        if size == self.outer_size:
            return
        if self.is_current:
            self._seen = False
            self.drawn_at = None
        super()._screen_resized(size)

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close, unless the screen is closing already: keys may come faster than it goes."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    # -- layout and painting -----------------------------------------------------------------------

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Lay out, which repaints what has changed by it: Textual would paint all, for each screen
        that has opened or closed. Else repaint all, also where regions are given: those of a screen
        below that shines through.

        For such regions Textual drops the pending repaints of widgets on this screen.
        """
        if layout:
            # Textual keeps a screen's layout as long as its size is the same, even if its rules
            # have changed.
            self._clear_arrangement_cache()
            repaint = False
        return super().refresh(repaint=repaint, layout=layout, recompose=recompose)

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out, and repaint widgets that have moved since the last layout.

        Textual's layout diff uses the last widget lookup as its baseline, so a widget just shown
        is missed: restore the map of the last layout.
        """
        compositor: Any = self._compositor
        if self._previous_map is not None:
            compositor._full_map = self._previous_map
        super()._refresh_layout(size, scroll)
        self._previous_map = compositor._full_map
        if self.app.screen is not self and self._seen:
            self.app.screen.refresh()  # this one may shine through

    def _compositor_refresh(self) -> None:
        """Paint nothing before the screen is filled; a full repaint only once, after the layout."""
        if not self._seen:
            return
        if self.is_current and self._repaint_required:
            self._repaint_required = False
            self._compositor.update_widgets({self})
        # Also of a screen that has failed: it has a sentence to paint.
        Contained.attempt(self, super()._compositor_refresh)
