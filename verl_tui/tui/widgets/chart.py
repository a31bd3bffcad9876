"""A chart in the terminal: it repaints only rows that changed, and has a cursor to read values; and
charts in tiles, drawn now or, where all would take too long for one frame, in the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from textual.containers import Container
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import DockArrangeResult, WidgetPlacement
from textual.message import Message

from verl_tui.rendering.charts.chart_data import ChartData
from verl_tui.rendering.charts.downsample import neighbour
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.charts.values import cursor_values
from verl_tui.tui.keys import actions
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.role_styled import LOOKS_IN, RoleStyled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events
    from textual.strip import Strip

    from verl_tui.rendering.text.piece import Pieces


READING = actions("""
    left        read(-1)      chart.read_left   Move the cursor left
    right       read(1)       chart.read_right  Move the cursor right
    ctrl+left   read(-10)     chart.far_left    Move the cursor far left
    ctrl+right  read(10)      chart.far_right   Move the cursor far right
    home        read_end(-1)  chart.read_first  Cursor to the first point
    end         read_end(1)   chart.read_last   Cursor to the last point
""")
"""Keys that move the cursor."""


@dataclass
class MoveCursor(Message):
    """All parts of the screen are to show another step, the newest for None: charts, samples and
    logs are read at one.
    """

    step: int | None


class Chart(RoleStyled, can_focus=True):
    """Draws `ChartData` at any size: a full plot, a sparkline below its title, or a single row.

    The keys count only while the widget has the focus.
    """

    LOOKS = LOOKS_IN["charts"]
    BINDINGS = READING
    DEFAULT_CSS = """
    Chart { height: 1fr; width: 1fr; }
    """

    chosen = False
    """True if it looks as with the focus."""
    _late = False
    """True while a slow drawing is left to a later frame."""

    @dataclass
    class CursorMoved(Message):
        """The reader moved the cursor, or took it away."""

        chart: Chart
        step: int | None
        """Step that the cursor is at, None without a cursor."""

    def __init__(
        self,
        data: ChartData | None = None,
        *,
        grid: bool = False,
        id: str | None = None,
    ) -> None:
        """Make a chart of some data; with a grid where it is drawn large."""
        super().__init__(id=id, markup=False)
        self.data = data or ChartData(key="")
        """What is shown."""
        self.cursor = self._given_cursor = self.data.cursor
        """Step that the cursor is at, None without a cursor."""
        self.drawing = ChartRenderer()
        self.drawing.grid = grid
        self.rows: list[Pieces] = []
        """What is shown: the rows of the last drawing."""
        self._strips: dict[int, Strip] = {}
        """Rows as they are written, as far as they have been."""
        self._drawn_size = Size(0, 0)

    def show(self, data: ChartData) -> None:
        """Show other data, or the same after their series grew; repaints the rows that differ and
        no others. It is blank no more.
        """
        self._late = False
        other_axis = data.axis.time != self.data.axis.time
        self.data = data
        # The owner may not know yet where the reader moved the cursor: only its own changes count.
        if data.cursor != self._given_cursor or other_axis:  # and a time is no step
            self.cursor = self._given_cursor = data.cursor
        self._redraw()

    def draw(self, width: int, height: int) -> list[Pieces]:
        """Return its rows; none while it is blank."""
        if self._late:
            return []
        return self.drawing.rows(
            self.data,
            width,
            height,
            cursor=self.cursor,
            focus=self.has_focus or self.chosen,
        )

    def mark(self, *, chosen: bool) -> None:
        """Look chosen, or no longer; a class or the focus would have the styles of all charts
        worked out anew.
        """
        if chosen != self.chosen:
            self.chosen = chosen
            self._redraw()

    def expect_layout(self) -> None:
        """Draw nothing before a layout in progress has placed the chart, and something is shown.

        Widgets that the layout moves are painted with it; one that keeps its place would keep its
        old rows.
        """
        if self._drawn_size == self.outer_size:
            self.refresh()
        self._drawn_size = Size(0, 0)
        self._late = True

    def catch_up(self) -> None:
        """Paint the chart if the layout left it where it was."""
        if self._drawn_size != self.outer_size:
            self.refresh()

    def cursor_values(self, at: int | None = None) -> list[str]:
        """Return what the cursor reads, `at` this step on an axis of time; nothing while there is
        no cursor.
        """
        if self.cursor is None or not self.data.lines:
            return []
        return [*cursor_values(self.data, self.cursor, self.drawing.cache, at)]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the content."""
        size = self.outer_size
        if self._drawn_size != size:
            self._drawn_size = size
            self._strips.clear()
            self.rows = self._drawn_rows()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return row `y` of the last drawing."""
        if y not in self._strips:
            row = self.rows[y] if 0 <= y < len(self.rows) else ()
            width, ground = self._drawn_size.width, self.role_style("")
            self._strips[y] = self.inked(row).adjust_cell_length(width, ground)
        return self._strips[y]

    def _drawn_rows(self) -> list[Pieces]:
        """Return the rows as the terminal can show them."""
        # None of a terminal's sixteen colours is a shade of its background.
        self.drawing.shades = not (self.app.no_color or self.app.current_theme.ansi)
        return self.draw(*self.outer_size)

    def notify_style_update(self) -> None:
        """Forget the styles, and the rows: the theme has changed."""
        self._strips.clear()
        self._drawn_size = Size(0, 0)
        super().notify_style_update()
        self.refresh()

    def action_read(self, columns: int) -> None:
        """Move the cursor by so many columns of points, to the right if positive; it starts at the
        last point.

        It may leave the steps that are shown: whoever shows them then moves on.
        """
        main, window, step = self.data.main, self.drawing.window, self.cursor
        if main is None or window is None:
            return
        if step is None:
            self.action_read_end(1)
            return
        for _ in range(abs(columns)):
            found = neighbour(main.points, step, window, columns)
            step = found if found is not None else step
        self._move(step)

    def action_read_end(self, direction: int) -> None:
        """Move the cursor to the first (-1) or last (1) point shown."""
        shown = self.data.extent
        if shown is not None:
            self._move(shown[0] if direction < 0 else shown[1])

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse points."""
        offset = event.get_content_offset(self)
        window, left = self.drawing.window, self.drawing.left
        if offset is None or window is None or offset.x < left:
            return
        step = window.step((offset.x - left) * 2)
        shown = self.data.extent
        if shown is not None:
            self._move(min(max(step, shown[0]), shown[1]))

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Show the focus, or that it went: the title has a role for it, so that no styles are
        worked out anew.
        """
        self._redraw()

    def _move(self, step: int | None) -> None:
        if step != self.cursor:
            self.cursor = step
            self._redraw()
            self.post_message(self.CursorMoved(self, step))

    def _redraw(self) -> None:
        size = self.outer_size
        if self._drawn_size != size or not self.is_mounted:
            return  # never painted at this size: that comes by itself
        before, self.rows = self.rows, self._drawn_rows()
        if len(before) != len(self.rows):
            self._strips.clear()
            self.refresh()
            return
        pairs = zip(before, self.rows, strict=True)
        changed = [y for y, (old, new) in enumerate(pairs) if old != new]
        for y in changed:
            self._strips.pop(y, None)
        if changed:
            self.refresh(*(Region(0, y, size.width, 1) for y in changed))


_FRAME = 0.05
"""Seconds of drawing after which the charts that are left wait for the next frame: a key may have
been pressed. The first charts of a run of 100,000 steps take longer.
"""
Tile = tuple[int, int, int, int]
"""Left, top, width and height."""


class ChartTiles(ContainedWidget, Container):
    """As many charts as are asked for; those that are not needed any more wait out of sight.

    How many fit is asked while the screen is being laid out: the contents of a stylesheet's grid
    can only be changed after a layout, when the size is known, and each new size would be laid out
    and painted twice.
    """

    BLANK = True
    """It has nothing of its own to draw: the ground is blank."""
    DEFAULT_CSS = "ChartTiles { height: 1fr; }"
    CHART: type[Chart] = Chart
    """What the charts are."""

    def __init__(
        self,
        tiles: Callable[[Size], Sequence[Tile]],
        data: Callable[[Size], Sequence[ChartData]],
        *,
        id: str | None = None,
    ) -> None:
        """Begin without charts.

        Args:
            tiles: Called at each layout with the size there is; returns where charts stand.
            data: Returns what the charts show at a size; called where they are drawn.
            id: As of every widget.
        """
        super().__init__(id=id)
        self._tiles = tiles
        self._data = data
        self._laid: object = None
        """What the last layout has placed; further charts may be on their way."""
        self.waiting: list[tuple[Chart, ChartData]] = []
        """Charts that the next frame draws, and what they show then."""

    def draw(self) -> None:
        """Draw the charts: now where they keep their places, else in the layout that it takes."""
        if not self.is_attached or not self.size:
            return
        tiles = self._tiles(self.size)
        self._have(len(tiles))
        if (self.size, tiles, len(self.children)) != self._laid:
            self.refresh(layout=True)
        else:
            self._fill(self.size, in_layout=False)

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Place the charts; unlike Textual's layouts asked anew each time, whatever it was for the
        same size.
        """
        tiles = self._tiles(size) if size else ()
        if len(self.children) < len(tiles):
            self.call_later(self._have, len(tiles))
        if (size, tiles, len(self.children)) != self._laid:
            self._laid = size, tiles, len(self.children)
            self._fill(size, in_layout=True)
        children = self.children[: len(tiles)]
        placed = [
            WidgetPlacement(Region(*tile), NULL_OFFSET, NULL_SPACING, child)
            for child, tile in zip(children, tiles, strict=False)
        ]
        return DockArrangeResult(placed, set(children), NULL_SPACING)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the ground through the filters, which Textual leaves out where all is blank: with
        NO_COLOR it has no colour either.
        """
        if not crop.height:
            return []
        (row,) = super().render_lines(Region(crop.x, crop.y, crop.width, 1))
        ground = self.background_colors[1]
        for one in self.get_line_filters():
            row = row.apply_filter(one, ground)
        return [row] * crop.height

    def _have(self, count: int) -> None:
        """Make the charts that there are too few of."""
        missing = count - len(self.children)
        if self.is_attached and missing > 0:
            self.mount(*(self.CHART() for _ in range(missing)))

    @property
    def charts(self) -> list[Chart]:
        """All charts there are, without a search by the stylesheet's rules."""
        return [one for one in self.children if isinstance(one, Chart)]

    def _fill(self, size: Size, *, in_layout: bool) -> None:
        """Show in each chart what it is of: as many as a frame has time for, then the others.

        In a layout, which gives charts other sizes, those that are drawn later are blank until
        then.
        """
        data = self._data(size) if size else ()
        self.waiting = [*zip(self.charts, data, strict=False)]
        for chart, _ in self.waiting if in_layout else ():
            chart.expect_layout()
        self._draw_waiting()
        if in_layout or self.waiting:
            self.call_after_refresh(self._fill_waiting)

    def _fill_waiting(self) -> None:
        """Draw the charts that were left to this frame, and those that a layout left where they had
        been.
        """
        for chart in self.charts:
            chart.catch_up()
        self._draw_waiting()
        if self.waiting:
            self.call_after_refresh(self._fill_waiting)

    def _draw_waiting(self) -> None:
        """Draw the waiting charts, no more after a frame's time."""
        until = monotonic() + _FRAME
        while self.waiting:
            chart, data = self.waiting.pop(0)
            chart.show(data)
            if monotonic() > until:
                break
