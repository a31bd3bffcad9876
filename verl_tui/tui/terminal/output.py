"""Output of the app: only changed cells, and the frame as text."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from textual.app import App, ReturnType
from textual.filter import Monochrome, NoColor

from verl_tui.patterns import pattern
from verl_tui.tui.terminal.ascii_filter import AsciiOnly
from verl_tui.tui.terminal.cell_diff import Cells, Written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from textual.filter import LineFilter
    from textual.screen import Screen

_SVG_TEXT = pattern(
    r'<text class="[^"<]*-r\d+" x="([\d.]+)"[^<>]*-line-(\d+)\)">([^<]*)</text>'
)
_SVG_CELL = 12.2
"""Width of a cell in Rich's SVG pictures."""


class TerminalOutput(App[ReturnType]):
    """An app that writes only changed cells, on request in ASCII or without colours."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.ascii_only = ascii_only
        self._cells = Cells()
        self._no_colour = NoColor()
        self._ascii = AsciiOnly()
        # we have none; each screen would hold a widget for them
        self._disable_tooltips = True

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters for rows on their way to the terminal.

        Without colours Textual draws in shades of grey; NO_COLOR means none (https://no-color.org).
        """
        filters = [
            self._no_colour if isinstance(line_filter, Monochrome) else line_filter
            for line_filter in super().get_line_filters()
        ]
        if self.ascii_only:
            return [*filters, self._ascii]
        return filters

    def _display(
        self, screen: Screen[object], renderable: RenderableType | None
    ) -> None:
        update: Any = self._cells.diffed(renderable)
        if update is not renderable and self._is_written():
            text = update.render_segments(self.console)
            if not text and not self._cursor_moved():
                # Textual would write where the cursor is, though it is there already
                return
            update = Written(text)
        super()._display(screen, update)

    def _is_written(self) -> bool:
        """Return whether Textual writes a frame now, or drops it."""
        app: Any = self
        live = app._running and not app._closed and app._driver is not None
        return live and not app._batch_count and not self.is_headless

    def _cursor_moved(self) -> bool:
        """Return whether the terminal's cursor is to be elsewhere than it was last."""
        app: Any = self
        place = self.screen.outer_size.clamp_offset(self.cursor_position)
        return bool(place != app._previous_cursor_position)

    def forget_cells(self) -> None:
        """Have the next frame written whole: the terminal may have lost part of the last one."""
        self._cells.forget()

    def write_all_cells(self) -> None:
        """Write the whole screen again now."""
        self.forget_cells()
        self.refresh(repaint=True, layout=True)

    def write_sequence(self, sequence: str) -> None:
        """Write an escape sequence that moves no cursor and draws nothing."""
        driver = getattr(self, "_driver", None)
        if driver is not None:
            driver.write(sequence)


def screen_rows(app: App[Any]) -> list[str]:
    """Return the rows of the screen without colours."""
    compositor: Any = getattr(app.screen, "_compositor", None)
    if hasattr(compositor, "render_strips"):
        return [strip.text for strip in compositor.render_strips()]
    return _rows_of_picture(app.export_screenshot(), app.size.height)


def _rows_of_picture(svg: str, height: int) -> list[str]:
    """Return the rows that an SVG picture of Rich's shows."""
    rows = [""] * height
    for x, y, text in _SVG_TEXT.findall(svg):
        column = round(float(x) / _SVG_CELL)
        row = int(y)
        shown = unescape(text).replace("\xa0", " ")
        rows[row] += " " * (column - cell_len(rows[row])) + shown
    return rows
