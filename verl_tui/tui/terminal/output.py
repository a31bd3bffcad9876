"""Output of the app: only changed cells, and the frame as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from textual.app import App, ReturnType
from textual.filter import LineFilter, Monochrome, NoColor

from verl_tui.rendering.text.ascii_table import in_ascii
from verl_tui.tui.terminal.cell_diff import Cells, Written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from textual.color import Color
    from textual.screen import Screen


class AsciiOnly(LineFilter):
    """Keeps the whole screen to ASCII, Textual's frames and scroll bars as well: replaces other
    characters by one that resembles them, or by a question mark for each cell.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the line in ASCII, as wide as before."""
        return [
            one if one.text.isascii() else Segment(in_ascii(one.text), *one[1:])
            for one in segments
        ]


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
        text = None
        if self._is_written():
            text = self._cells.diffed(renderable, self.console)
        if text is None:
            super()._display(screen, renderable)
        elif text or self._cursor_moved():
            # else Textual would write where the cursor is, though it is there already
            known: Any = Written(text)
            super()._display(screen, known)

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
        if self._driver is not None:
            self._driver.write(sequence)


def screen_rows(app: App[Any]) -> list[str]:
    """Return the rows of the screen without colours."""
    return [strip.text for strip in app.screen._compositor.render_strips()]
