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
    from collections.abc import Callable, Iterable, Sequence

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


class Movement(NamedTuple):
    """Direction and size of the newest change."""

    turn: int | None
    """1 up, -1 down, 0 if noise explains it, None for too few values."""
    change: float = 0.0
    """The change of the values as a share of the larger end: -2 .. 2; 0 for noise."""


def movement(values: Sequence[float]) -> Movement:
    """Return the movement in the last part of a series."""
    ends = turn(values)
    if ends is None:
        return Movement(None)
    before, after = ends
    size = max(abs(before), abs(after))
    change = after / size - before / size if size else 0.0
    return Movement((change > 0) - (change < 0), change)


def listing(
    keys: Iterable[str],
    wanted: MetricFilter,
    order: MetricOrder,
    tail: Callable[[str, int], Sequence[float]],
) -> tuple[MetricGroup, ...]:
    """Return the metrics that pass a filter: in groups if sorted by key, else in one without name.

    Args:
        keys: Keys of all metrics.
        wanted: The filter.
        order: The order of the list.
        tail: Returns at most so many of the last values of a metric.
    """
    found = [
        key for key in without_repeats(keys) if wanted.holds(key, describe(key).label)
    ]
    if order.by == "key":
        groups = grouped_keys(found)
        if order.reverse:
            groups = tuple(
                MetricGroup(group.name, group.keys[::-1]) for group in reversed(groups)
            )
        return groups
    if not found:
        return ()
    found.sort(key=natural)
    values = {key: _sort_value(order, key, tail) for key in found}
    sign = 1 if order.reverse else -1
    found.sort(key=lambda key: sign * values[key] if isfinite(values[key]) else inf)
    return (MetricGroup("", tuple(found)),)


def _sort_value(
    order: MetricOrder, key: str, tail: Callable[[str, int], Sequence[float]]
) -> float:
    if order.by == "last":
        return next(iter(tail(key, 1)), float("nan"))
    return _strength(movement(tail(key, TREND_POINTS)))


def _strength(found: Movement) -> float:
    if found.turn is None:
        return float("nan")
    return found.change


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
    return _listed(shown, filter_, width), right


def _listed(shown: ListedMetrics, filter_: str, width: int) -> list[Piece]:
    run = shown.view.run
    name = "no run"
    known = 0
    if run is not None:
        name = middle(one_line(run.name), max(8, width // 3))
        known = len(run.metrics)
    listed = len(shown.keys)
    count = f"{listed} metrics" if listed == known else f"{listed} of {known}"
    pieces: list[Piece] = [(name, "strong"), (f"  {count}", "")]
    if filter_:
        pieces.append((f"  filter: {printable(filter_)}", "accent"))
    return pieces


def metric_words(key: str, width: int) -> list[Piece]:
    """Describe a metric in one line."""
    metric = describe(key)
    name = middle(key, width - 2)
    label = metric.label if metric.label != key else ""
    words = " · ".join(filter(None, (label, metric.unit, metric.note)))
    room = width - 4 - cell_len(name)
    about = fit(printable(words), room)
    if room > 0:
        return [(name, "strong"), (f"  {about}", "dim")]
    return [(name, "strong")]


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
