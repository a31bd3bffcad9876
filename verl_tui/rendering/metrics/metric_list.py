"""The list of metrics that the user filters and sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.plan import PlannedChart, single_metric
from verl_tui.rendering.filter_words import Matches
from verl_tui.rendering.metrics.filter import MetricFilter, parse_filter
from verl_tui.rendering.metrics.listing import MetricOrder, listing
from verl_tui.rendering.session.source_status import nothing_yet

if TYPE_CHECKING:
    from verl_tui.rendering.metrics.groups import MetricGroup
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


class MetricList:
    """Filter and order, and the metrics of a run that are listed by them."""

    def __init__(self) -> None:
        self.filter = MetricFilter()
        self.problem = ""
        """The error in the filter typed last; the one before stays in force."""
        self.order = MetricOrder()
        self.groups: tuple[MetricGroup, ...] = ()
        self._listed: object = None
        """State that the groups were made from."""

    @property
    def keys(self) -> list[str]:
        """The listed keys in order."""
        return [key for group in self.groups for key in group.keys]

    @property
    def state(self) -> tuple[object, ...]:
        """Equal as long as filter and order are."""
        return self.filter, self.problem, self.order

    def type_filter(self, text: str) -> None:
        """Filter by an expression, or note what is wrong with it."""
        try:
            self.filter = parse_filter(text)
            self.problem = ""
        except ValueError as error:
            self.problem = str(error)

    def update(self, run: Run | None) -> None:
        """List the metrics of a run if its keys, the filter or the order are new; new values alone
        change no order.
        """
        made_from = (
            run,
            len(run.keys) if run is not None else 0,
            self.filter,
            self.order,
        )
        if made_from == self._listed:
            return
        self._listed = made_from
        self.groups = ()
        if run is not None:
            self.groups = listing(run.metrics, self.filter, self.order, run.tail)

    def matches(self, run: Run | None) -> Matches:
        """Return how many of a run's metrics are listed."""
        return Matches(len(self.keys), len(run.keys) if run is not None else 0)

    def charts(self, run: Run | None) -> list[PlannedChart]:
        """Return a chart of each listed metric that a run has."""
        if run is None:
            return []
        known = set(run.keys)
        return [single_metric(run, key) for key in self.keys if key in known]

    def if_empty(self, view: View) -> str:
        """Return the sentence to show if no metric is listed."""
        if view.run is not None and view.run.keys:
            clears = f"{view.keys['metrics.back']} clears the filter"
            return f"no metric matches “{self.filter.text}”\n{clears}"
        return nothing_yet(view)
