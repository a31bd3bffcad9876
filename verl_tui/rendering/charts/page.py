"""The page of charts on the dashboard, planned from a view, a filter and the room there is."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.metrics import counts
from verl_tui.rendering.arrange import Room
from verl_tui.rendering.charts.chart_data import ChartData, lined_up
from verl_tui.rendering.charts.plan import plan_charts
from verl_tui.rendering.charts.planned_data import chart_data, counterpart
from verl_tui.rendering.charts.title_row import name_cells
from verl_tui.rendering.session.snapshot import nothing_yet
from verl_tui.rendering.text.printable import short_names
from verl_tui.runs.views.state import is_of_one_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

_LEAST_WIDTH, _LEAST_HEIGHT = 26, 6
"""Cells below which a chart shows less than a line of text with a sparkline."""
_GOOD_WIDTH, _GOOD_HEIGHT = 38, 7
"""Cells from which on more room goes into more charts rather than larger ones."""
_PLOT_HEIGHT = 3
"""Rows from which on a chart has a plot: below that, each further row changes its form."""
_FEW = 3
"""Charts that may stand one below the other over the whole width."""
_ALWAYS = "reward"
"""The indicator that is a chart even when it is constant: a reward that does not move is news."""
_ENOUGH = 8
"""Number of charts that show a run's health; only to fit these are charts made smaller than is
good.
"""


class ChartFilter(NamedTuple):
    """A filter for charts by a text in their keys or labels."""

    text: str = ""
    lenient: bool = False
    """True if a text that no chart contains is meant for something else, so that all charts
    stay.
    """


def page_content(
    view: View, look: ChartLook, filter_: ChartFilter, revealed: str | None
) -> object:
    """Return everything but the room that a page of charts is drawn from: equal contents look
    equal.
    """
    run = view.run
    if run is None or not run.keys:
        return run, filter_, nothing_yet(view)
    selected = [(other.name, other.revision) for other in view.selected]
    listed = (filter_, revealed, tuple(view.monitor.config.charts), view.pins)
    state = (view.cursor, view.verdict, view.loading, view.selection.revision)
    return run, run.revision, look, listed, state, selected


def list_charts(
    view: View, filter_: ChartFilter, revealed: str | None = None
) -> tuple[PlannedChart, ...]:
    """Return the charts of the shown run that pass a filter, in their order: those that vary, or
    are pinned, wanted or revealed, then a row each for the others. Each metric of an evaluation, or
    of a single dump, is a row: there is one point of it. They are no rows if all others would be.
    """
    run = view.run
    if run is None:
        return ()
    wanted = view.monitor.config.charts
    charts = plan_charts(run, wanted, filter_.text, view.pins)
    if not charts and filter_.lenient:
        charts = plan_charts(run, wanted, "", view.pins)
    return _in_rows(view, run, charts, revealed)


def _in_rows(
    view: View, run: Run, charts: tuple[PlannedChart, ...], revealed: str | None
) -> tuple[PlannedChart, ...]:
    wanted = view.monitor.config.charts
    shown = {chart.key for chart in charts if revealed and chart.shows(revealed)}
    if is_of_one_step(run):
        return tuple(chart._replace(in_row=chart.key not in shown) for chart in charts)
    kept, in_rows = {_ALWAYS, *wanted, *view.pins, *shown}, keys_in_rows(view)

    def in_row(one: PlannedChart) -> bool:
        free = kept.isdisjoint((one.key, one.indicator))
        return free and in_rows.issuperset(one.keys)

    if all(map(in_row, charts)):
        return charts
    found = (one._replace(in_row=in_row(one)) for one in charts)
    return tuple(sorted(found, key=lambda chart: chart.in_row))


class ChartPage(NamedTuple):
    """A page of the listed charts: as many as fit, in columns; then those in a row each."""

    listed: tuple[PlannedChart, ...] = ()
    """The charts of all pages, those in a row each last."""
    first: int = 0
    """Index of the page's first chart in the list."""
    columns: int = 1
    across: int = 1
    """Columns of what is in a row each: as many as fit, however few charts stand above."""
    starts: tuple[int, ...] = (0,)
    """Index of the first chart of each page."""

    @property
    def charts(self) -> tuple[PlannedChart, ...]:
        """The charts of the page."""
        at = bisect_right(self.starts, self.first)
        return self.listed[self.first : (*self.starts, len(self.listed))[at]]

    def fitted(self, width: int, height: int, key: str | None) -> ChartPage:
        """Return the page for a size in cells: the one that shows a metric, if one is named, else
        the same as far as there is one.
        """
        varying = sum(not chart.in_row for chart in self.listed)
        most, rows = _grid(width, height)
        # Where one page holds all: the columns that leave least gaps, and no chart taller than
        # wide, as columns of cells are about half as wide as a row of them is tall.
        ways = []
        for columns in range(1 if varying <= _FEW else min(2, most), most + 1):
            used = max(1, -(-varying // columns))
            narrow = width * used < 2 * height * columns
            ways += [(columns * used - varying, narrow, used, columns)] * (used <= rows)
        columns = min(ways, default=(most,))[-1]
        across = max(columns, min(most, len(self.listed) - varying))
        starts = [*range(0, max(1, varying), columns * rows)]
        # Rows stand below the last charts, as far as these can spare the room, and then on pages of
        # their own.
        last = -(-(varying - starts[-1]) // columns)
        free = max(0, height - last * (1 if rows == height else _LEAST_HEIGHT)) * across
        starts += range(varying + free, len(self.listed), max(1, height) * across)
        at = _index(self.listed, key)
        page = bisect_right(starts, self.first if at is None else at) - 1
        return ChartPage(self.listed, starts[page], columns, across, tuple(starts))

    def tiles(self, width: int, height: int) -> list[Room]:
        """Return where the charts of the page stand in so many cells: in columns of one width, a
        column apart, and below them those in a row each.
        """
        count = max(1, len(self.charts))
        in_rows = sum(chart.in_row for chart in self.charts)
        lines = -(-in_rows // self.across)
        rows = -(-(count - in_rows) // self.columns)
        each, over = divmod(height - lines, max(1, rows))
        # one form for all, rather than a few charts that look unlike the others
        over *= each >= _PLOT_HEIGHT
        # the first have more
        levels = [at * each + min(at, over) for at in range(rows + 1)]
        below = [*range(levels[-1], levels[-1] + lines + 1)]
        return [
            *_placed(count - in_rows, self.columns, width, levels),
            *_placed(in_rows, self.across, width, below),
        ]

    def turned(self, way: int) -> ChartPage:
        """Return the next (1) or previous (-1) page, the same page if there is none."""
        page = bisect_right(self.starts, self.first) - 1 + way
        if 0 <= page < len(self.starts):
            return self._replace(first=self.starts[page])
        return self

    def slot(self, key: str | None) -> int | None:
        """Return the slot of the chart that shows a metric, None if the page has none."""
        return _index(self.charts, key)

    def caption(self, look: ChartLook, view: View, filter_: str) -> str:
        """Write how the charts are drawn, the filter, and which charts of how many these are."""
        words, count = [*look.words(view.run)], len(self.listed)
        if filter_ and any(chart.matches(filter_) for chart in self.listed):
            total = len(list_charts(view, ChartFilter()))
            words.append(f"filter “{filter_}”: {count} of {total}")
        elif filter_:
            words.append(f"no metric matches “{filter_}”")
        last = self.first + len(self.charts)
        if count > len(self.charts):
            words.append(f"{self.first + 1}–{last} of {count}")
            if hidden := sum(chart.in_row for chart in self.listed[last:]):
                words.append(f"{hidden} in rows at the end")
            words.append(f"{view.keys['chart.page_down']} {view.keys['chart.page_up']}")
        return " · ".join(words)


def _index(charts: Sequence[PlannedChart], key: str | None) -> int | None:
    """Return the index of the chart that shows a metric, None where none does."""
    return next((i for i, chart in enumerate(charts) if chart.shows(key)), None)


def empty_chart(view: View, filter_: str) -> ChartData:
    """Return the chart that says why there is none."""
    if filter_:
        way_on = f"{view.keys['back']} clears the filter"
        return ChartData("", label=f"no metric matches “{filter_}”", empty=way_on)
    name = "" if view.run is None else view.run.name
    return ChartData("", label=name, empty=nothing_yet(view))


def rows_of_evaluation(view: View, width: int) -> int:
    """Return the rows that the metrics of an evaluation or a single dump take, 0 for other runs."""
    if view.run is None or not is_of_one_step(view.run):
        return 0
    columns, _ = _grid(width, _LEAST_HEIGHT)
    return -(-len(list_charts(view, ChartFilter())) // columns)


def _grid(width: int, height: int) -> tuple[int, int]:
    """Return how many columns and rows of charts fit."""
    # columns of single lines
    if width < 2 * _LEAST_WIDTH - 4 or height < _LEAST_HEIGHT:
        return max(1, (width + 1) // (_GOOD_WIDTH + 1)), max(1, height)
    columns = max(width // _GOOD_WIDTH, min(2, (width + 1) // (_LEAST_WIDTH + 1)), 1)
    rows = height // _GOOD_HEIGHT
    if columns * rows < _ENOUGH:
        rows = height // _LEAST_HEIGHT
    return columns, max(1, rows)


def _placed(
    count: int, columns: int, width: int, tops: Sequence[int]
) -> Iterator[Room]:
    """Yield so many tiles from left to right and down; each row of them begins at its top, and ends
    where the next begins.
    """
    edges = [at * (width + 1) // columns for at in range(columns + 1)]
    for at in range(count):
        row, column = divmod(at, columns)
        left, right, top = edges[column], edges[column + 1] - 1, tops[row]
        yield Room(left, top, right - left, tops[row + 1] - top)


# -- what needs no chart ---------------------------------------------------------------------------


def keys_in_rows(view: View) -> frozenset[str]:
    """Return the metrics of the shown run for which a row is enough, unless a finding is about
    them: counters, and those that have had only one value, the same in all runs laid over each
    other.
    """
    run = view.run
    if run is None:
        return frozenset()
    judged = {finding.key for finding in view.verdict.findings}
    # While logs are being read, a metric of one point may have had only its first one read.
    same = run.constants if view.loading else run.constants | run.logged_once
    for other in view.selected:
        if other is not run:
            same = frozenset(key for key in same if not _differs(run, key, other))
    return frozenset(same.union(filter(counts, run.keys)) - judged)


def _differs(run: Run, key: str, other: Run) -> bool:
    """Return whether a metric of one value has another, or several, in another run."""
    own, theirs = run.series(key), counterpart(run, key, run.meanings.get(key), other)
    if own is None or theirs is None or not len(theirs):
        return False
    single = theirs.key in other.constants | other.logged_once
    return not single or theirs.values[0] != own.values[0]


# -- the data of a page ----------------------------------------------------------------------------


def page_data(
    page: ChartPage, room: tuple[int, int], view: View, look: ChartLook
) -> list[ChartData]:
    """Return the data of each chart of a page in a room of so many columns and rows; of those of
    one name the first has it, the others go by their keys.
    """
    data = lined_up([chart_data(plan, view, look) for plan in page.charts])
    first = {one.title: one.key for one in reversed(data)}
    data = [
        one._replace(label=one.label * (first[one.title] == one.key)) for one in data
    ]
    tiles = page.tiles(*room)
    if any(tile.height > 1 for tile in tiles):
        return data
    # names that differ in a row
    cells = name_cells(min([tile.width for tile in tiles], default=0))
    short = short_names(tuple(one.title for one in data), cells)
    return [one._replace(short=short[one.title]) for one in data]
