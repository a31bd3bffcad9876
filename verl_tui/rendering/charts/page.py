"""The page of charts on the dashboard, planned from a view, a filter and the room there is."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.metrics import counts
from verl_tui.rendering.charts.chart_data import ChartData, lined_up
from verl_tui.rendering.charts.downsample import smoothed_by_noise
from verl_tui.rendering.charts.plan import (
    ChartLook,
    PlannedChart,
    lookalikes,
    plan_charts,
    reward_parts,
)
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.tiles import PLOT_HEIGHT, PageOfTiles, pages_of
from verl_tui.rendering.charts.title_row import name_cells
from verl_tui.rendering.session.snapshot import View, nothing_yet
from verl_tui.rendering.text.piece import short_names
from verl_tui.runs.views.state import is_of_one_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.runs.run import Run

_ALWAYS = "reward"
"""The indicator that is a chart even when it is constant: a reward that does not move is news."""
MACHINE = "machine"
"""Heading of the charts that tell nothing of the training."""


def page_content(view: View, look: ChartLook, *listed: object) -> object:
    """Return everything but the room that a page of charts is drawn from: equal contents look
    equal; `listed` says which charts there are.
    """
    run = view.run
    if run is None or not run.keys:
        return run, listed, nothing_yet(view)
    selected = [(other.name, other.revision) for other in view.selected]
    changed = view.selection.revision, view.notebook.revision
    state = (view.cursor, view.verdict, view.loading, view.pins, changed)
    return run, run.revision, look, listed, state, selected


def list_charts(
    view: View, filter_: str = "", revealed: str | None = None, *, lenient: bool = False
) -> tuple[PlannedChart, ...]:
    """Return the charts of the shown run that pass a filter, in their order: those that vary, or
    are pinned, wanted or revealed, then a row each for the others; machines' behind the training's.
    The first is large if it tells of learning, without a filter or pins; what it shows is not shown
    again beside it.

    Args:
        view: The state to show.
        filter_: A text in their keys or labels.
        revealed: The metric that was gone to.
        lenient: Whether a text that no chart contains is meant for something else, so that all
            charts stay.
    """
    run = view.run
    if run is None:
        return ()
    wanted = view.monitor.config.charts
    charts = plan_charts(run, wanted, filter_, view.pins)
    if not charts and lenient:
        charts = plan_charts(run, wanted, "", view.pins)
    found = sorted(_in_rows(view, charts, revealed), key=_section)
    plain = found and not (filter_ or view.pins)
    return tuple(_with_large(found, view, run, revealed) if plain else found)


def _with_large(
    charts: Sequence[PlannedChart], view: View, run: Run, revealed: str | None
) -> Sequence[PlannedChart]:
    """Return charts with the first one large if it tells of learning."""
    large = charts[0]._replace(large=True)
    learns = large.indicator == _ALWAYS or large.key == run.loss_alone
    if large.in_row or not learns:
        return charts
    again = _also_shown_in(large, view, run, charts)
    parts = {key: f"part {name}" for key, name in reward_parts(run).items()}
    rest = (
        one._replace(repeats=True, label=parts.get(one.key, one.label))
        if one.key in again and not one.shows(revealed)
        else one
        for one in charts[1:]
    )
    return [large, *sorted(rest, key=_section)]


def _section(chart: PlannedChart) -> tuple[bool, bool]:
    """Return where a chart stands: in the section of machines, in a row."""
    return chart.machine, chart.in_row or chart.repeats


def _also_shown_in(
    large: PlannedChart, view: View, run: Run, charts: Iterable[PlannedChart]
) -> set[str]:
    """Return the metrics of other charts that a large one shows, too: the parts of the reward, and
    what looks like its curves, unless it was asked for, or a finding is about it.
    """
    if len(view.selected) > 1:  # then it has no parts
        return set()
    own = (large.key, large.score)
    keys = {one.key for one in charts}.difference(own)
    again = {*reward_parts(run)}
    for curve in filter(None, map(run.series, own)):
        again |= lookalikes(curve, run, keys)
    asked = (*view.monitor.config.charts, *(one.key for one in view.verdict.findings))
    return again.difference(asked)


def _in_rows(
    view: View, charts: Sequence[PlannedChart], revealed: str | None
) -> Sequence[PlannedChart]:
    """Return the charts with those marked that are in a row each: all of an evaluation and of a
    single step, of which there is one point; else none if all would be.
    """
    if of_one_point(view):
        return [one._replace(in_row=not one.shows(revealed)) for one in charts]
    kept, few = {_ALWAYS, *view.monitor.config.charts, *view.pins}, keys_in_rows(view)
    found = [
        one._replace(in_row=True)
        if few.issuperset(one.keys)
        and kept.isdisjoint((one.key, one.indicator))
        and not one.shows(revealed)
        else one
        for one in charts
    ]
    return charts if all(one.in_row for one in found) else found


def of_one_point(view: View) -> bool:
    """Return whether there is one point of each metric: of an evaluation, or of a single step."""
    run = view.run
    if run is None or not run.keys:
        return False
    single = not view.loading and run.logged_once.issuperset(run.keys)
    return single or is_of_one_step(run)


class ChartPage(NamedTuple):
    """A page of the listed charts: as many as fit, the first one maybe large; then those in a row
    each.
    """

    listed: tuple[PlannedChart, ...] = ()
    """The charts of all pages: those of the training, then those of the machines."""
    first: int = 0
    """Index in the list of a chart of the page."""
    pages: tuple[PageOfTiles, ...] = (PageOfTiles(()),)
    """Where the charts of all pages stand."""

    @property
    def at(self) -> int:
        """Index of the page."""
        return bisect_right(self.pages, self.first, key=attrgetter("first")) - 1

    @property
    def page(self) -> PageOfTiles:
        """Where its charts stand."""
        return self.pages[self.at]

    @property
    def charts(self) -> tuple[PlannedChart, ...]:
        """The charts of the page."""
        page = self.page
        return self.listed[page.first : page.first + len(page.tiles)]

    def fitted(self, width: int, height: int, key: str | None) -> ChartPage:
        """Return the page for a size in cells: the one that shows a metric, if one is named, else
        the same as far as there is one.
        """
        counts = Counter(map(_section, self.listed))
        training = counts[False, False], counts[False, True]
        machines = counts[True, False], counts[True, True]
        large = bool(self.listed) and self.listed[0].large
        pages = pages_of(training, machines, width, height, large=large)
        at = _index(self.listed, key)
        found = ChartPage(self.listed, self.first if at is None else at, pages)
        return found._replace(first=found.page.first)

    def next_page(self, way: int) -> ChartPage:
        """Return the next (1) or previous (-1) page, the same page if there is none."""
        at = self.at + way
        there = 0 <= at < len(self.pages)
        return self._replace(first=self.pages[at].first) if there else self

    def slot(self, key: str | None) -> int | None:
        """Return the slot of the chart that shows a metric, None if the page has none."""
        return _index(self.charts, key)

    def caption(
        self, look: ChartLook, view: View, filter_: str, data: Sequence[ChartData]
    ) -> str:
        """Write how the charts are drawn, the filter, and which charts of how many these are."""
        words, count = [*look.words(view.run)], len(self.listed)
        words += ["smoothed (auto)"] * any(one.smoothed_around for one in data)
        if filter_ and any(chart.matches(filter_) for chart in self.listed):
            total = len(list_charts(view))
            words.append(f"filter “{filter_}”: {count} of {total}")
        elif filter_:
            words.append(f"no metric matches “{filter_}”")
        if count > len(self.charts):
            words += self._position_words(view)
        return " · ".join(words)

    def _position_words(self, view: View) -> Iterator[str]:
        """Yield which charts of each section the page has, how many constant ones come later, and
        the key that turns it.
        """
        first, stop = self.page.first, self.page.first + len(self.charts)
        machines = sum(one.machine for one in self.listed)
        begin, end = 0, len(self.listed) - machines
        for name, count in (("charts", end), (MACHINE, machines)):
            one, last = max(first, begin) - begin + 1, min(stop, end) - begin
            place = f"{one}–{last} of " if one <= last else ""
            yield from [f"{name} {place}{count}"] * bool(count)
            begin, end = end, end + machines
        key = "page_down" if self.next_page(1) is not self else "page_up"
        yield view.keys[f"chart.{key}"]


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


# -- what needs no chart ---------------------------------------------------------------------------


def keys_in_rows(view: View) -> frozenset[str]:
    """Return the metrics of the shown run for which a row is enough, unless a finding is about
    them: counters, and those that have had only one value.
    """
    run = view.run
    if run is None:
        return frozenset()
    judged = {finding.key for finding in view.verdict.findings}
    # While logs are being read, a metric of one point may have had only its first one read.
    same = run.constants if view.loading else run.constants | run.logged_once
    return frozenset(same.union(filter(counts, run.keys)) - judged)


# -- the data of a page ----------------------------------------------------------------------------


def page_data(page: ChartPage, view: View, look: ChartLook) -> list[ChartData]:
    """Return the data of each chart of a page; of those of one name the first has it, the others go
    by their keys.
    """
    data = lined_up([chart_data(plan, view, look) for plan in page.charts])
    first = {one.title: one.key for one in reversed(data)}
    rows: dict[str, int] = {}
    plots: dict[str, ChartData] = {}
    for i, (one, tile) in enumerate(zip(data, page.page.tiles, strict=True)):
        data[i] = one._replace(label=one.label * (first[one.title] == one.key))
        if tile.height == 1:
            rows[data[i].title] = tile.width
        elif one.shown is not None and tile.height >= PLOT_HEIGHT:
            plots[one.key] = smoothed_by_noise(one, one.shown, tile.width)
    smooth = sum(one.by_noise * one.smoothing > 0 for one in plots.values())
    most = 2 * smooth > len(plots)
    # names that differ in a row
    short = short_names((*rows,), name_cells(min(rows.values(), default=0)))
    return [
        one._replace(
            short=short.get(one.title, ""), smoothed_around=most and one.key in plots
        )
        for one in data
    ]
