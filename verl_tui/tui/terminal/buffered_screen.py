"""A screen that is painted no more often than it has to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.await_complete import AwaitComplete
from textual.events import Resize
from textual.geometry import Region
from textual.reactive import Reactive
from textual.screen import Screen, ScreenResultType

from verl_tui.tui.terminal.net import Contained, ContainedPart

if TYPE_CHECKING:
    from textual import events
    from textual.app import App
    from textual.await_remove import AwaitRemove
    from textual.geometry import Size
    from textual.strip import Strip
    from textual.widget import Widget
    from typing_extensions import Self


class BufferedScreen(ContainedPart, Screen[ScreenResultType]):
    """A screen that is laid out and filled before anything of it is painted.

    Textual paints a screen several times while it opens: empty, at its size, styled, filled.
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """The widget with the focus, as in `Screen`; a change repaints only that widget."""

    _seen = False
    """True once there has been something to see."""
    _fitted_to: Size | None = None
    """The size that `fit` was called with last."""
    drawn_at: Size | None = None
    """The size at which the screen was drawn last."""
    _held = False
    """True while nothing is painted: what is drawn is of another size."""
    _previous_map: Any = None
    """Textual's map of all widgets after the last layout."""

    # -- hooks for subclasses ----------------------------------------------------------------------

    def fit(self, size: Size) -> None:
        """Prepare for a size; called before styling and composing, and for each new size."""

    def redraw(self) -> None:
        """Draw at the current size; called before the first paint and when all may have changed."""

    def on_reveal(self) -> None:
        """Draw what must be up to date when the screen in front closes; the size is unchanged."""
        self.redraw()

    # -- opening, returning, new sizes and themes --------------------------------------------------

    def _post_register(self, app: App[object]) -> None:
        super()._post_register(app)
        self._fit_to(app.size)  # Textual applies the stylesheet next

    def _fit_to(self, size: Size) -> None:
        """Set the classes of the breakpoints before Textual does, then call `fit`."""
        self._fitted_to = size
        app = self.app
        across = self.HORIZONTAL_BREAKPOINTS
        down = self.VERTICAL_BREAKPOINTS
        self._set_breakpoint(
            size.width, app.HORIZONTAL_BREAKPOINTS if across is None else across
        )
        self._set_breakpoint(
            size.height, app.VERTICAL_BREAKPOINTS if down is None else down
        )
        self.attempt(self.fit, size, otherwise=None)

    def _set_breakpoint(
        self, length: int, breakpoints: list[tuple[int, str]] | None
    ) -> None:
        reached = [one for one in breakpoints or () if one[0] <= length]
        for one in breakpoints or ():
            self.set_class(one == max(reached, default=None), one[1], update=False)

    def on_mount(self) -> None:
        """Redraw when the theme changes."""
        self.app.theme_changed_signal.subscribe(
            self, lambda _: self.call_after_refresh(self.redraw)
        )

    def on_unmount(self) -> None:
        """Unsubscribe: the app would keep the callback for theme changes for ever."""
        self.app.theme_changed_signal.unsubscribe(self)

    def key_escape(self, event: events.Key) -> None:
        """Leave a screen that has failed, whatever its own keys do."""
        if self.failed:
            event.stop()
            self.dismiss()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Draw once Textual has laid out the screen, before it is painted."""
        size = self.app.size
        unchanged = self._seen and size == self.drawn_at
        # A new screen has the styles that it was composed with.
        event.refresh_styles = self._seen and event.refresh_styles
        # Textual sends no resize to a screen far behind the front one
        if size != self._fitted_to:
            self._fit_to(size)
            self.app.stylesheet.update(self)
        self.call_next(self._reveal, unchanged)

    def _reveal(self, unchanged: bool) -> None:
        self.drawn_at = self.size
        self._held = False
        self.attempt(self.on_reveal if unchanged else self.redraw, otherwise=None)
        self._seen = True
        paint_now = getattr(self, "_on_timer_update", None)
        if paint_now is not None:  # else with the next beat of Textual's timer
            paint_now()

    def on_resize(self, event: Resize) -> None:
        """Draw for a new size where that was laid out while another screen was in front.

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
            self._draw_at(size)

    def _draw_at(self, size: Size) -> None:
        """Draw for a size, once the stylesheet has been applied."""
        self.drawn_at = size
        if size != self._fitted_to:
            self._fit_to(size)
        self.call_after_refresh(self._redraw_resized)

    def _redraw_resized(self) -> None:
        """Draw, and paint once what that asks for has been laid out and drawn, too."""
        self.attempt(self.redraw, otherwise=None)
        self.call_after_refresh(self.call_after_refresh, self._let_go)

    def _let_go(self) -> None:
        """Paint all that was held back."""
        if self._held:
            self._held = False
            self._repaint_required = True
            self._compositor_refresh()

    def _screen_resized(self, size: Size) -> None:
        """Lay out, unless that has just been done for this size; paint when it has been drawn.

        Textual lays out and paints at once, with the breakpoints and contents of the size before.
        """
        if size == self.outer_size:
            return
        if self._seen and self.is_current:
            self._held = True
            self._draw_at(size)
            self.app.stylesheet.update(self)
        super()._screen_resized(size)

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close, unless the screen is closing already: keys may come faster than it goes."""
        if self.is_active:
            return super().dismiss(result)
        return AwaitComplete()

    def remove(self) -> AwaitRemove:
        """Remove, without another layout of the screen below."""
        prune = getattr(self.app, "_prune", None)
        if prune is None:
            return super().remove()
        return cast("AwaitRemove", prune(self))

    # -- layout and painting -----------------------------------------------------------------------

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Repaint all, also where regions are given: those of a screen below that shines through.

        For such regions Textual drops the pending repaints of widgets on this screen.
        """
        if layout:
            # Textual keeps a screen's layout as long as its size is the same, even if its rules
            # have changed.
            forget = getattr(self, "_clear_arrangement_cache", None)
            if forget is not None:
                forget()
        return super().refresh(repaint=repaint, layout=layout, recompose=recompose)

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out, and repaint widgets that have moved since the last layout.

        Textual's layout diff uses the last widget lookup as its baseline, so a widget just shown
        is missed: restore the map of the last layout.
        """
        compositor: Any = getattr(self, "_compositor", None)
        if self._previous_map is not None and hasattr(compositor, "_full_map"):
            compositor._full_map = self._previous_map
        super()._refresh_layout(size, scroll)
        self._previous_map = getattr(compositor, "_full_map", None)
        if self.app.screen is not self and self._seen:
            self.app.screen.refresh()  # this one may shine through

    def _compositor_refresh(self) -> None:
        """Paint nothing before the screen is filled; a full repaint only once, after the layout."""
        if not self._seen or self._held:
            return
        if self.is_current and getattr(self, "_repaint_required", False):
            self._repaint_required = False
            self._compositor.update_widgets({self})
        # Also of a screen that has failed: it has a sentence to paint.
        Contained.attempt(self, super()._compositor_refresh, otherwise=None)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the background; all its rows are alike, so one is rendered."""
        if self.styles.background.a < 1 or not crop.height or self.failed:
            return super().render_lines(crop)
        return super().render_lines(Region(crop.x, crop.y, crop.width, 1)) * crop.height
