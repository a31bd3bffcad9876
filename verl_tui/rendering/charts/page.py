"""The page of charts on the dashboard, planned from a view, a filter and the room there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.finding import Verdict
from verl_tui.rendering.charts.chart_data import ChartData
from verl_tui.rendering.charts.plan import ChartLook, plan_charts
from verl_tui.rendering.charts.validation import score_beside
from verl_tui.rendering.session.source_status import nothing_yet

if TYPE_CHECKING:
    from verl_tui.rendering.charts.plan import PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

_LEAST_WIDTH, _LEAST_HEIGHT = 26, 6
"""Cells below which a chart says less than a line of text with a sparkline."""
_GOOD_WIDTH, _GOOD_HEIGHT = 38, 7
"""Cells from which on more room goes into more charts rather than larger ones."""
_ENOUGH = 8
"""Charts that show a run's health; only for fewer are they made smaller than is good."""


class ChartFilter(NamedTuple):
    """A text that the keys or labels of the charts contain."""

    text: str = ""
    lenient: bool = False
    """True if a text that no chart contains is meant for something else, and leaves all."""


class ChartList(NamedTuple):
    """Everything that the list of a run's charts depends on."""

    run: Run | None = None
    keys: int = 0
    filter: ChartFilter = ChartFilter()
    wanted: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    beside: str | None = None
    """The validation score that is drawn into the chart of the reward."""


class Tile(NamedTuple):
    """The place of a chart: the number of its column, and cells."""

    column: int
    x: int
    y: int
    width: int
    height: int


class PageContent(NamedTuple):
    """Everything but the room that a page of charts is drawn from: equal contents look equal."""

    listing: ChartList = ChartList()
    look: ChartLook = ChartLook()
    revision: int = 0
    cursor: int | None = None
    verdict: Verdict = Verdict()
    loading: bool = False
    selection: int = 0
    selected: tuple[tuple[str, int], ...] = ()
    """Names and revisions of the runs that are laid over the shown one."""

    @classmethod
    def of(cls, view: View, look: ChartLook, filter_: ChartFilter) -> PageContent:
        """Return the content of a view."""
        run, wanted = view.run, tuple(view.monitor.config.charts)
        keys, beside = (len(run.keys), score_beside(run)) if run is not None else (0, None)
        return cls(
            ChartList(run, keys, filter_, wanted, view.pins, beside),
            look,
            run.revision if run else 0,
            view.cursor,
            view.verdict,
            view.loading,
            view.selection.revision,
            tuple([(other.name, other.revision) for other in view.selected]),
        )


def list_charts(view: View, filter_: ChartFilter) -> tuple[PlannedChart, ...]:
    """Return the charts of the shown run that pass a filter, in their order."""
    if view.run is None:
        return ()
    wanted = view.monitor.config.charts
    charts = plan_charts(view.run, wanted, filter_.text, view.pins)
    if charts or not filter_.lenient:
        return charts
    return plan_charts(view.run, wanted, "", view.pins)


@dataclass(frozen=True, slots=True)
class ChartPage:
    """A page of the listed charts: as many as fit, in columns."""

    listed: tuple[PlannedChart, ...] = ()
    """The charts of all pages."""
    first: int = 0
    """Index of the page's first chart in the list."""
    columns: int = 1
    slots: int = 1
    """Charts on a full page."""

    @property
    def charts(self) -> tuple[PlannedChart, ...]:
        """The charts of the page; fewer than there are slots on the last one."""
        return self.listed[self.first : self.first + self.slots]

    @property
    def grid(self) -> tuple[int, int]:
        """Columns and slots."""
        return self.columns, self.slots

    def fitted(self, width: int, height: int, key: str | None) -> ChartPage:
        """Return the page for a size in cells: the one that shows a metric, if one is named, else
        the same as far as there is one.
        """
        columns, slots = _grid(width, height, len(self.listed))
        at = next((i for i, one in enumerate(self.listed) if one.shows(key)), None) if key else None
        first = self.first if at is None else at // slots * slots
        last_page = max(0, (len(self.listed) - 1) // slots * slots)
        return ChartPage(self.listed, max(0, min(first, last_page)), columns, slots)

    def tiles(self, width: int, height: int) -> list[Tile]:
        """Return where the charts of the page stand in so many cells: in columns of one width, a
        column apart.
        """
        columns, rows = self.columns, -(-self.slots // self.columns)
        edges = [at * (width + 1) // columns for at in range(columns + 1)]
        levels = [at * height // rows for at in range(rows + 1)]
        places = [divmod(slot, columns) for slot in range(max(1, len(self.charts)))]
        return [
            Tile(x, edges[x], levels[y], edges[x + 1] - 1 - edges[x], levels[y + 1] - levels[y])
            for y, x in places
        ]

    def turned(self, way: int) -> ChartPage:
        """Return the next (1) or previous (-1) page, the same where there is none."""
        first = self.first + way * self.slots
        return replace(self, first=first) if 0 <= first < len(self.listed) else self

    def slot(self, key: str | None) -> int | None:
        """Return the slot of the chart that shows a metric, None if the page has none."""
        if not key:
            return None
        return next((i for i, one in enumerate(self.charts) if one.shows(key)), None)

    def caption(self, look: ChartLook, view: View, filter_: str) -> str:
        """Write how the charts are drawn, the filter, and which charts of how many these are."""
        words = [*look.words(view.run)]
        if filter_:
            left = any(one.matches(filter_) for one in self.listed)
            total = len(list_charts(view, ChartFilter()))
            words.append(
                f"filter “{filter_}”: {len(self.listed)} of {total}"
                if left
                else f"no metric matches “{filter_}”"
            )
        shown = len(self.charts)
        if len(self.listed) > shown:
            last = self.first + shown
            keys = f"{view.keys['chart.page_down']} {view.keys['chart.page_up']}"
            words.append(f"{self.first + 1}–{last} of {len(self.listed)} · {keys}")
        return " · ".join(words)


def empty_chart(view: View, filter_: str) -> ChartData:
    """Return the chart that says why there is none."""
    if filter_:
        return ChartData("", label=f"no metric matches “{filter_}”", empty="")
    name = "charts" if view.run is None else view.run.name
    return ChartData("", label=name, empty=nothing_yet(view))


def _grid(width: int, height: int, count: int) -> tuple[int, int]:
    """Return how many columns of charts fit, and how many of `count` charts a page holds."""
    if width < 2 * _LEAST_WIDTH - 4 or height < _LEAST_HEIGHT:  # columns of single lines
        columns, rows = max(1, (width + 1) // (_GOOD_WIDTH + 1)), height
    else:
        columns = max(width // _GOOD_WIDTH, min(2, (width + 1) // (_LEAST_WIDTH + 1)), 1)
        rows = height // _GOOD_HEIGHT
        if columns * rows < _ENOUGH:
            rows = height // _LEAST_HEIGHT
    slots = max(1, min(columns * max(1, rows), count or 1))
    return min(columns, slots), slots
