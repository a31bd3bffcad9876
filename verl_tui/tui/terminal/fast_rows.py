"""Widgets that are nothing but rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.color import Color
    from textual.geometry import Region


class Bare(Widget):
    """A widget that hands its rows over as they are written.

    Textual (8.2) takes each row through all that a frame, a padding and an opacity may do to it,
    which takes longer than to make the row. A widget that a stylesheet gives a frame or a padding
    is painted by Textual all the same.

    Among several bases of a widget it stands behind Textual's.
    """

    _behind: Color | None = None
    """What the rows are written on, None until that is asked for."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the widget."""
        if self.styles.gutter:
            return super().render_lines(crop)
        strips = [self.render_line(y) for y in crop.line_range]
        whole = crop.column_span == (0, self.outer_size.width)
        return strips if whole else [strip.crop(*crop.column_span) for strip in strips]

    def written(self, strip: Strip) -> Strip:
        """Return a row as it is written: what is returned by `render_line`."""
        for change in self.get_line_filters():
            if self._behind is None:
                self._behind = self.background_colors[1]
            strip = strip.apply_filter(change, self._behind)
        return strip

    def notify_style_update(self) -> None:
        """Forget the colours: the theme has changed."""
        self._behind = None
        super().notify_style_update()


class Bar(ScrollBar, Bare):
    """Textual's scroll bar: its rows are of few kinds, and one of each is made."""

    _rows: tuple[Strip, ...] = ()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the bar."""
        bar = self.render()
        assert isinstance(bar, ScrollBarRender)
        assert isinstance(bar.style, Style)
        assert bar.style.color is not None
        assert bar.style.bgcolor is not None
        segments = bar.render_bar(
            self.outer_size.height,
            bar.virtual_size,
            bar.window_size,
            bar.position,
            bar.thickness,
            bar.vertical,
            bar.style.bgcolor,
            bar.style.color,
        ).segments
        base = self.rich_style
        kinds = {id(segment): segment for segment in segments}
        made = {
            kind: self.written(Strip([segment], bar.thickness).apply_style(base))
            for kind, segment in kinds.items()
        }
        self._rows = tuple(made[id(segment)] for segment in segments)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return a row of the bar as it was painted last."""
        return self._rows[y]
