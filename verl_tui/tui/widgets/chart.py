"""A chart in the terminal: it repaints only rows that changed, and has a cursor to read values.
Charts in tiles, drawn now or, where all would take too long for one frame, in the next. The keys
that change how all of them are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual.containers import Container
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import DockArrangeResult, WidgetPlacement
from textual.message import Message

from verl_tui.means import clamp
from verl_tui.rendering.charts.axes import holding, panned, zoomed
from verl_tui.rendering.charts.chart_data import ChartData
from verl_tui.rendering.charts.downsample import WEIGHTS, neighbour
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.charts.values import cursor_values
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.tui.keys import actions
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.rows import RoleStyled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual import events
    from textual.strip import Strip

    from verl_tui.rendering.charts.plan import ChartLook
    from verl_tui.rendering.charts.tiles import PageOfTiles
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run


READING = actions("""
    left        screen.read(-1)      chart.read_left   Move the cursor left
    right       screen.read(1)       chart.read_right  Move the cursor right
    ctrl+left   screen.read(-10)     chart.far_left    Move the cursor far left
    ctrl+right  screen.read(10)      chart.far_right   Move the cursor far right
    home        screen.read_end(-1)  chart.read_first  Cursor to the first point
    end         screen.read_end(1)   chart.read_last   Cursor to the last point
""")
"""Keys that move the cursor of the chart that a screen says."""


@dataclass
class MoveCursor(Message):
    """All parts of the screen are to show another step, the newest for None: charts, samples and
    logs are read at one.
    """

    step: int | None


class Chart(RoleStyled, can_focus=True):
    """Draws `ChartData` at any size: a full plot, a sparkline below its title, or a single row."""

    LOOKS = "charts"
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

    def __init__(self, data: ChartData | None = None, *, grid: bool = False) -> None:
        """Make a chart of some data; with a grid where it is drawn large."""
        super().__init__()
        self.data = data or ChartData("")
        """What is shown."""
        self.cursor = self._given_cursor = self.data.cursor
        """Step that the cursor is at, None without a cursor."""
        self.drawing = ChartRenderer()
        self.drawing.grid = grid
        self.rows: list[Pieces] = []
        """What is shown: the rows of the last drawing."""
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
        """Return its rows as the terminal can show them; none while it is blank."""
        if self._late:
            return []
        # None of a terminal's sixteen colours is a shade of its background.
        self.drawing.signs = self.app.no_color
        self.drawing.shades = not (self.app.no_color or self.app.current_theme.ansi)
        return self.drawing.rows(
            self.data,
            width,
            height,
            cursor=self.cursor,
            focus=self.has_focus or self.chosen,
        )

    def mark(self, *, chosen: bool) -> None:
        """Look chosen, or no longer; a class or the focus would have the styles of all charts
        worked out again.
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

    def cursor_values(self, at: int | None) -> list[str]:
        """Return what the cursor reads, `at` this step on an axis of time; nothing while there is
        no cursor.
        """
        if self.cursor is None or not self.data.lines:
            return []
        return [*cursor_values(self.data, self.cursor, at)]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the content."""
        size = self.outer_size
        if self._drawn_size != size:
            self._drawn_size = size
            self.rows = self.draw(*size)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return row `y` of the last drawing."""
        row = self.rows[y] if 0 <= y < len(self.rows) else ()
        strip = self.inked(row)
        return strip.adjust_cell_length(self._drawn_size.width, self.role_style(""))

    def notify_style_update(self) -> None:
        """Forget the styles, and the rows: the theme has changed."""
        self._drawn_size = Size(0, 0)
        super().notify_style_update()
        self.refresh()

    def read(self, columns: int) -> None:
        """Move the cursor by so many columns of points, to the right if positive; it starts at the
        last point.

        It may leave the steps that are shown: whoever shows them then moves on.
        """
        main, window, step = self.data.main, self.drawing.window, self.cursor
        if not window:
            return
        if step is None:
            self.read_end(1)
            return
        for _ in range(abs(columns)):
            found = neighbour(main.points, step, window, columns)
            if found is not None:
                step = found
        self._move(step)

    def read_end(self, direction: int) -> None:
        """Move the cursor to the first (-1) or last (1) point shown."""
        shown = self.data.extent
        if shown:
            self._move(shown[0] if direction < 0 else shown[1])

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse points."""
        offset = event.get_content_offset(self)
        window, left = self.drawing.window, self.drawing.left
        if offset is None or not window or offset.x < left:
            return
        shown = self.data.extent
        if shown:
            self._move(clamp(window.step((offset.x - left) * 2), *shown))

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Show the focus, or that it went: the title has a role for it, so that no styles are
        worked out again.
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
        before, self.rows = self.rows, self.draw(*size)
        self.repaint(before, self.rows)


_FRAME = 0.05
"""Seconds of drawing after which the charts that are left wait for the next frame: a key may have
been pressed. The first charts of a run of 100,000 steps take longer.
"""


class ChartTiles(ContainedWidget, Container):
    """As many charts as are asked for; those that are not needed any more wait out of sight.

    How many fit is asked while the screen is being laid out: the contents of a stylesheet's grid
    can only be changed after a layout, when the size is known, and each new size would be laid out
    and painted twice.
    """

    DEFAULT_CSS = "ChartTiles { height: 1fr; }"
    CHART: type[Chart] = Chart
    """What the charts are."""

    def __init__(
        self,
        tiles: Callable[[Size], PageOfTiles],
        data: Callable[[Size], Sequence[ChartData]],
    ) -> None:
        """Begin without charts.

        Args:
            tiles: Called at each layout with the size there is; returns where charts stand, and
                headings, which are charts of a row; where neither does one chart fills it.
            data: Returns what the charts show at a size; called where they are drawn.
        """
        super().__init__()
        self._tiles = tiles
        self._data = data
        self.laid: object = None
        """What the last layout placed, while further charts may be on their way; None once there is
        something else to show.
        """
        self.waiting: list[tuple[Chart, ChartData]] = []
        """Charts that the next frame draws, and what they show then."""

    def draw(self) -> None:
        """Draw the charts: now where they keep their places, else in the layout that it takes."""
        if not self.is_attached or not self.size:
            # else they would keep what they showed when they come back
            self.laid = None
            return
        tiles = self._places(self.size)
        self._have(len(tiles))
        if (self.size, tiles, len(self.children)) != self.laid:
            self.refresh(layout=True)
        else:
            self._fill(self.size, in_layout=False)

    def _places(self, size: Size) -> list[Region]:
        page = self._tiles(size)
        rooms = (*page.tiles, *page.headings)
        return [Region(*room[:4]) for room in rooms] or [size.region]

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Place the charts. Unlike Textual's own layouts, this is asked each time, also at the same
        size.
        """
        if not size:
            return DockArrangeResult([], set(), NULL_SPACING)
        tiles = self._places(size)
        if len(self.children) < len(tiles):
            self.call_later(self._have, len(tiles))
        laid = size, tiles, len(self.children)
        if laid != self.laid:
            self.laid = laid
            self.attempt(partial(self._fill, size, in_layout=True))
        children = self.children[: len(tiles)]
        placed = [
            WidgetPlacement(tile, NULL_OFFSET, NULL_SPACING, child)
            for child, tile in zip(children, tiles, strict=False)
        ]
        return DockArrangeResult(placed, set(children), NULL_SPACING)

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
        self.waiting = [*zip(self.charts, self._data(size), strict=False)]
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


# -- how charts are drawn: keys of the dashboard, of all metrics and over the full screen ----------

SMOOTHINGS = (0.0, None, *WEIGHTS)
"""Weights of the past that are offered, as in TensorBoard's slider; None is chosen by the noise."""
_LEAST_POINTS = 8
"""Nobody zooms in on fewer."""
KEYS = actions("""
    x              look('axis')      look.axis      X axis: step, time, relative       LEARN
    y              look('log')       look.log       Log scale                          LEARN
    Y              look('outliers')  look.outliers  Y axis with or without outliers    LEARN
    s              look('smoother')  look.smoother  Smoother                           LEARN
    S              look('rougher')   look.rougher   Less smooth, then raw values       LEARN
    +,=            look('in')        look.in        Zoom in on the cursor, or the end  LEARN
    -,_            look('out')       look.out       Zoom out                           LEARN
    H,shift+left   look('earlier')   look.earlier   Earlier steps, once zoomed in      LEARN
    L,shift+right  look('later')     look.later     Later steps, once zoomed in        LEARN
""")
TABLE = actions("W  write_table  table  Write the points in sight to a CSV file  TAKE")


def look_after(
    look: ChartLook, what: str, run: Run | None, cursor: int | None = None
) -> ChartLook:
    """Return the look after a key.

    Args:
        look: The look before.
        what: One of those in `KEYS`.
        run: The run that is shown.
        cursor: Step that is read.
    """
    match what:
        case "axis":
            return look.next_axis()
        case "log":
            return look._replace(log_y=not look.log_y)
        case "outliers":
            return look._replace(usual_y=not look.usual_y)
        case "smoother" | "rougher":
            at = SMOOTHINGS.index(look.smoothing) + (1 if what == "smoother" else -1)
            at = clamp(at, 0, len(SMOOTHINGS) - 1)
            return look._replace(smoothing=SMOOTHINGS[at])
    return _moved(look, what, run, cursor)


def _moved(
    look: ChartLook, what: str, run: Run | None, cursor: int | None
) -> ChartLook:
    """Return the look after a key that zooms or goes along the x axis."""
    whole = run.reach if run else None
    if not run or whole is None:
        return look
    if what in ("earlier", "later"):
        way = -1 if what == "earlier" else 1
        return look._replace(span=panned(look.span, whole, way))
    # a run may log only every hundredth step
    tables = (table for one in run.sources.values() for table in one.tables.values())
    points = max(1, *map(len, tables))
    least = max(1, _LEAST_POINTS * (whole[1] - whole[0]) // points)
    factor = 0.5 if what == "in" else 2.0
    return look._replace(span=zoomed(look.span, whole, factor, at=cursor, least=least))


def why_unchanged(
    look: ChartLook, what: str, run: Run | None, keys: Mapping[str, str]
) -> str:
    """Return why a key changes nothing that can be seen, empty where it does.

    Args:
        look: How charts were drawn before.
        what: What the key changes.
        run: The shown run.
        keys: The keys that sentences name, as the user has them.
    """
    whole = run.reach if run else None
    if what in ("earlier", "later", "out") and look.span is None:
        return f"all steps are shown already: {keys['look.in']} zooms in"
    if run and what == "axis":
        problem = on_axis(run, look.next_axis().axis).problem
        return f"{problem}: x stays at steps" if problem is not None else ""
    if whole is None or look_after(look, what, run) != look:
        return ""
    first, newest = whole
    ends = {
        "earlier": f"step {first} is the first",
        "later": f"step {newest} is the newest",
    }
    return ends.get(what, "that is as far as it goes")


def with_step_in_sight(
    look: ChartLook, run: Run | None, cursor: int | None
) -> ChartLook:
    """Return the look that has a step in sight."""
    whole = run.reach if run else None
    if look.span is None or whole is None or cursor is None:
        return look
    return look._replace(span=holding(look.span, whole, cursor))


def step_at(run: Run | None, key: str, look: ChartLook, position: int) -> int | None:
    """Return the step of a position on the x axis, where a metric has its points; None where it is
    not known.
    """
    series = run.series(key) if run else None
    if run and series is not None:
        return on_axis(run, look.axis).step(series, position)
    return None
