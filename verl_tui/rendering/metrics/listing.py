"""The list of metrics: filtered, then grouped by key or sorted by value."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from rich.cells import cell_len

from verl_tui.metrics import describe, without_repeats
from verl_tui.rendering.charts.downsample import TREND_POINTS, turn
from verl_tui.rendering.charts.plan import PlannedChart, single_metric
from verl_tui.rendering.filter_words import Matches
from verl_tui.rendering.metrics.filter import MetricFilter, parse_filter
from verl_tui.rendering.metrics.groups import MetricGroup, grouped_keys, natural
from verl_tui.rendering.session.source_status import nothing_yet
from verl_tui.rendering.text.printable import middle, printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.plan import ChartLook
    from verl_tui.rendering.metrics.groups import Shelf
    from verl_tui.rendering.session.preferences import UserState
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.run import Run


SortKey = Literal["key", "last", "trend"]
ORDERS: tuple[SortKey, ...] = get_args(SortKey)


class MetricOrder(NamedTuple):
    """A sort key with its direction."""

    by: SortKey = "key"
    reverse: bool = False
    """Unless reversed, keys start at a, numbers at the greatest."""

    def next(self) -> MetricOrder:
        """Return the order with the next sort key."""
        return MetricOrder(ORDERS[(ORDERS.index(self.by) + 1) % len(ORDERS)])


def movement(values: Sequence[float]) -> float | None:
    """Return the change in the last part of a series as a share of its larger end, -2 .. 2: 0 for
    noise, None for too few values.
    """
    ends = turn(values)
    if ends is None:
        return None
    before, after = ends
    size = max(abs(before), abs(after))
    return after / size - before / size if size else 0.0


def _listed(
    run: Run, wanted: MetricFilter, order: MetricOrder
) -> tuple[MetricGroup, ...]:
    """Return the metrics that pass a filter: in groups if sorted by key, else in one without
    name.
    """
    keys = without_repeats(run.metrics)
    found = [key for key in keys if wanted.holds(key, describe(key).label)]
    way = -1 if order.reverse else 1
    if order.by == "key":
        groups = grouped_keys(found)[::way]
        return tuple(MetricGroup(one.name, one.keys[::way]) for one in groups)

    def rank(key: str) -> float:
        if order.by == "last":
            value = next(iter(run.tail(key, 1)), None)
        else:
            value = movement(run.tail(key, TREND_POINTS))
        return -way * value if value is not None and isfinite(value) else inf

    found.sort(key=natural)
    found.sort(key=rank)
    return (MetricGroup("", tuple(found)),) if found else ()


def listed_words(
    shown: ListedMetrics, filter_: str, page: tuple[int, int] | None, width: int
) -> tuple[list[Piece], list[Piece]]:
    """Return the run and filter for the left, order and page for the right.

    Args:
        shown: The listed metrics.
        filter_: Text of the filter, empty without one.
        page: Number of the page and of all pages, None where no charts are shown.
        width: Cells of the line.
    """
    right: list[Piece] = []
    if shown.order != MetricOrder():
        reversed_ = " reversed" if shown.order.reverse else ""
        right.append((f" by {shown.order.by}{reversed_}", "accent"))
    if page is not None:
        right += [(f" {word}", "accent") for word in shown.look.words(shown.view.run)]
        if shown.keys:
            right.append((f" page {page[0]}/{page[1]}", "dim"))
    run = shown.view.run
    name = middle(one_line(run.name if run else "no run"), max(8, width // 3))
    listed, known = len(shown.keys), len(run.metrics) if run else 0
    count = f"{listed} metrics" if listed == known else f"{listed} of {known}"
    left: list[Piece] = [(name, "strong"), (f"  {count}", "")]
    left += [(f"  filter: {printable(filter_)}", "accent")] * bool(filter_)
    return left, right


def metric_words(key: str, width: int) -> list[Piece]:
    """Describe a metric in one line."""
    metric = describe(key)
    name = middle(key, width - 2)
    label = metric.label if metric.label != key else ""
    words = " · ".join(filter(None, (label, metric.unit, metric.note)))
    room = width - 4 - cell_len(name)
    about = (f"  {fit(printable(words), room)}", "dim")
    return [(name, "strong"), *[about] * (room > 0)]


def shelf_words(shelf: Shelf | None, width: int) -> Pieces:
    """Return the heading of a shelf: its group, and which of its metrics these are."""
    if shelf is None:
        return []
    count = len(shelf.group.keys)
    stop = shelf.first + len(shelf.keys)
    places = str(stop)
    if len(shelf.keys) > 1:
        places = f"{shelf.first + 1}–{stop}"
    part = f"{places} of {count}" if len(shelf.keys) < count else str(count)
    name = middle(shelf.group.name, max(4, width - len(part) - 2))
    return [(name, "dim" if shelf.first else "accent"), (f"  {part}", "dim")]


class MetricList:
    """Filter and order, and the metrics of a run that are listed by them."""

    def __init__(self) -> None:
        self.filter = MetricFilter()
        self.problem = ""
        """The error in the filter typed last; the one before stays in force."""
        self.order = MetricOrder()
        self.groups: tuple[MetricGroup, ...] = ()
        self._made_from: object = None
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
        count = len(run.keys) if run is not None else 0
        made_from = (run, count, self.filter, self.order)
        if made_from != self._made_from:
            self._made_from = made_from
            self.groups = () if run is None else _listed(run, self.filter, self.order)

    def matches(self, run: Run | None) -> Matches:
        """Return how many of a run's metrics are listed."""
        return Matches(len(self.keys), len(run.keys) if run is not None else 0)

    def charts(self, run: Run | None) -> list[PlannedChart]:
        """Return a chart of each listed metric that a run has."""
        known = set(run.keys) if run is not None else ()
        return [single_metric(run, key) for key in self.keys if run and key in known]

    def if_empty(self, view: View) -> str:
        """Return the sentence to show if no metric is listed."""
        if view.run is not None and view.run.keys:
            clears = f"{view.keys['metrics.back']} clears the filter"
            return f"no metric matches “{self.filter.text}”\n{clears}"
        return nothing_yet(view)


@dataclass(frozen=True, slots=True)
class ListedMetrics:
    """The listed metrics with everything that draws them."""

    view: View
    groups: tuple[MetricGroup, ...]
    order: MetricOrder
    look: ChartLook
    user: UserState
    otherwise: str = ""
    """Sentence shown if no metric is listed."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The listed keys in order."""
        return tuple(key for group in self.groups for key in group.keys)
