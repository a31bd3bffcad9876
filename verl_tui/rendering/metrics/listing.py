"""The list of metrics, filtered, then grouped by the prefix of their keys or sorted by value; the
rows of a grid of them, and of their table: name, last, trend, minimum, maximum, sparkline.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.means import clamp, gathered, next_of
from verl_tui.metrics import describe, family_rank, without_repeats
from verl_tui.patterns import pattern
from verl_tui.rendering.charts.chart_data import ARROWS
from verl_tui.rendering.charts.downsample import trend_ends
from verl_tui.rendering.charts.page import keys_in_rows
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, single_metric
from verl_tui.rendering.charts.sparkline import sparkline
from verl_tui.rendering.session.preferences import UserState
from verl_tui.rendering.session.snapshot import View, nothing_yet
from verl_tui.rendering.text.hues import family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import Piece, Pieces, fit, middle, natural, printable
from verl_tui.rendering.text.search import Matches, Search, checked
from verl_tui.rendering.text.table import FittedTable, TextColumn
from verl_tui.words import figure

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

ORDERS = ("key", "last", "trend")


class MetricOrder(NamedTuple):
    """A sort key with its direction."""

    by: str = "key"
    """One of `ORDERS`."""
    reverse: bool = False
    """Unless reversed, keys start at a, numbers at the greatest."""

    def next(self) -> MetricOrder:
        """Return the order with the next sort key."""
        return MetricOrder(next_of(ORDERS, self.by))


def movement(series: Series | None) -> float | None:
    """Return the change in the last part of a series as a share of its larger end, -2 .. 2: 0 for
    noise and what is too little to be seen in a chart, None for too few values.
    """
    ends = trend_ends(series.values, series.bounds) if series is not None else None
    if ends is None:
        return None
    before, after = ends
    size = max(abs(before), abs(after))
    return after / size - before / size if size else 0.0


def _listed(
    run: Run, keys: Sequence[str], wanted: MetricFilter, order: MetricOrder
) -> tuple[MetricGroup, ...]:
    """Return the metrics that pass a filter: in groups if sorted by key, else in one without
    name.
    """
    found = [key for key in keys if wanted.holds(key, describe(key).label)]
    way = -1 if order.reverse else 1
    if order.by == "key":
        groups = grouped_keys(found)[::way]
        return tuple(MetricGroup(one.name, one.keys[::way]) for one in groups)

    def rank(key: str) -> float:
        if order.by == "last":
            value = next(iter(run.tail(key, 1)), None)
        else:
            value = movement(run.present(key))
        return -way * value if value is not None and isfinite(value) else inf

    found.sort(key=natural)
    found.sort(key=rank)
    return (MetricGroup("", tuple(found)),) if found else ()


def listed_words(
    shown: MetricList, page: tuple[int, int] | None, width: int
) -> tuple[list[Piece], list[Piece]]:
    """Return the run and filter for the left, order and page for the right.

    Args:
        shown: The listed metrics.
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
    name = shown.view.name_in(max(8, width // 3)) or "no run"
    listed, known, _ = shown.matches
    count = f"{listed} of {known}"
    if listed == known:
        count = f"{listed} metric{'s' * (listed != 1)}"
    left: list[Piece] = [(name, "strong"), (f"  {count}", "")]
    words = f"  filter: {printable(shown.filter.text)}"
    left += [(words, "accent")] * bool(shown.filter.clauses)
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


def shelf_words(shelf: Shelf, width: int) -> str:
    """Return the heading of a shelf: its group, and which of its metrics these are."""
    count = len(shelf.group.keys)
    stop = shelf.first + len(shelf.keys)
    places = str(stop)
    if len(shelf.keys) > 1:
        places = f"{shelf.first + 1}–{stop}"
    part = f"{places} of {count}" if len(shelf.keys) < count else str(count)
    name = middle(shelf.group.name, max(4, width - len(part) - 2))
    return f"{name}  {part}"


class MetricList:
    """Filter and order, the metrics of a run that are listed by them, and what draws them."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.look = ChartLook()
        self.user = UserState()
        self.filter = MetricFilter()
        self.problem = ""
        """The error in the filter typed last; the one before stays in force."""
        self.order = MetricOrder()
        self.groups: tuple[MetricGroup, ...] = ()
        self.every: Sequence[str] = ()
        """All metrics of the run."""
        self._found: tuple[MetricGroup, ...] = ()
        """Those that pass the filter."""
        self._made_from: object = None
        """State that these were made from."""

    @property
    def keys(self) -> list[str]:
        """The listed keys in order."""
        return [key for group in self.groups for key in group.keys]

    def type_filter(self, text: str) -> None:
        """Filter by an expression, or note what is wrong with it."""
        try:
            self.filter = parse_filter(text)
            self.problem = ""
        except ValueError as error:
            self.problem = str(error)

    def update(
        self, view: View, look: ChartLook, user: UserState, *, table: bool
    ) -> None:
        """List the metrics of a run if its keys, the filter or the order are new; new values alone
        change no order. Outside of a table those that are rows of text stand by themselves.
        """
        self.view, self.look, self.user = view, look, user
        run, asked = view.run, (self.filter, self.order)
        made_from = (run, run and len(run.keys), *asked)
        if made_from != self._made_from:
            self._made_from = made_from
            self.every = without_repeats(run.metrics) if run else ()
            self._found = _listed(run, self.every, *asked) if run else ()
        self.groups = self._found
        if not table:
            in_rows = keys_in_rows(view).difference(user.pins)
            self.groups = rows_apart(self.groups, in_rows)

    @property
    def matches(self) -> Matches:
        """How many of a run's metrics are listed."""
        return Matches(len(self.keys), len(self.every))

    def charts(self, run: Run | None) -> list[PlannedChart]:
        """Return a chart of each listed metric that a run has."""
        known = set(run.keys) if run is not None else ()
        return [single_metric(run, key) for key in self.keys if run and key in known]

    @property
    def if_empty(self) -> str:
        """The sentence to show if no metric is listed."""
        view = self.view
        if view.run is not None and view.run.keys:
            clears = f"{view.keys['metrics.back']} clears the filter"
            return f"no metric matches “{self.filter.text}”\n{clears}"
        return nothing_yet(view)


# -- the language of filters ----------------------------------------------------------------------

# All words must match, `|` joins alternatives and binds closer than the blank, `!` negates.
_TOKEN = pattern(
    r"""(?P<bar>\|)
    |(?P<not>!?)(?:/(?P<pattern>(?:\\.|[^\\])+?)/(?=[\s|]|$)|(?P<word>[^\s|]*[^\s|!][^\s|]*))
    |(?P<bang>!+)""",
    re.VERBOSE,
)
HELP = (
    "A filter is words side by side; all must be in a metric's key or label:",
    "actor kl                    both",
    "critic kl|loss              critic, and kl or loss",
    "!max   !/min$/              without it",
    "/^val.*acc/                 a regular expression",
    "Small letters find capitals, too.",
)
"""The language explained in a few lines."""


class Term(NamedTuple):
    """One word or expression."""

    search: Search
    negated: bool

    def holds(self, text: str) -> bool:
        """Return True if a text matches."""
        return self.search.search(text) is not self.negated


@dataclass(frozen=True, slots=True)
class MetricFilter:
    """A condition for metrics; without clauses it holds for all."""

    text: str = ""
    clauses: tuple[tuple[Term, ...], ...] = ()
    """All clauses must hold, of each clause one term."""

    def holds(self, key: str, label: str = "") -> bool:
        """Return True if a metric passes."""
        text = f"{key}\n{label}"
        return all(any(term.holds(text) for term in clause) for clause in self.clauses)


def parse_filter(text: str) -> MetricFilter:
    """Parse a filter; unfinished parts (a bar without its right side) are ignored.

    Raises:
        ValueError: An expression is invalid; the message says why.
    """
    clauses: list[list[Term]] = []
    joined = False
    for token in _TOKEN.finditer(checked(text)):
        word = token["word"] or "/"  # an expression without its end is being typed
        typed = token["pattern"] or word.removeprefix("/")
        if token["bar"]:
            joined = bool(clauses)
        elif typed:
            search = Search(typed.replace("\\/", "/"), literal=word[0] != "/")
            term = Term(search, bool(token["not"]))
            if joined:
                clauses[-1].append(term)
            else:
                clauses.append([term])
            joined = False
    return MetricFilter(" ".join(text.split()), tuple(map(tuple, clauses)))


# -- the table -------------------------------------------------------------------------------------

_LEAST_CHANGE = 0.005
"""Smaller changes round to nothing."""
_LEAST_NAME = 12


class ListedMetric(NamedTuple):
    """One metric of the table."""

    key: str
    series: Series | None
    """Its values, None while these are unknown."""
    pinned: bool = False
    end: int | None = None
    """Last step that reflects the current state of the run, None for all."""
    indicator: str | None = None
    """What it means, whatever its name, None where that is not known."""

    def written(self, value: float) -> str:
        """Return a value without its unit, which has no room."""
        return figure(value, describe(self.key).unit, compact)


def metric_table(
    width: int, longest: int, order: MetricOrder
) -> FittedTable[ListedMetric]:
    """Return the columns that fit, with an arrow at the one that the table is sorted by.

    Args:
        width: Cells of a row.
        longest: Cells of the longest name.
        order: The order of the table.
    """
    down = order.reverse is (order.by == "key")
    name = min(longest, max(_LEAST_NAME, width * 2 // 5))

    def title(word: str, by: str) -> str:
        return word + ("▼" if down else "▲") * (by == order.by)

    columns: list[TextColumn[ListedMetric]] = [
        TextColumn("", lambda one, _: [("★" * one.pinned, "pin")], 1, 8),
        TextColumn(
            title("metric", "key"), _name, name, 9, min(longest, width // 2), gap=1
        ),
        TextColumn(title("last", "last"), _last, 8, 10, right=True, gap=1),
        TextColumn(title("trend", "trend"), _trend, 7, 7, gap=1),
        TextColumn("min", lambda one, _: [_bound(one, 0)], 8, 5, right=True, gap=1),
        TextColumn("max", lambda one, _: [_bound(one, 1)], 8, 4, right=True, gap=1),
        TextColumn("all steps", _spark, 8, 6, most=width, gap=1),
    ]
    return FittedTable(columns, width)


def _name(one: ListedMetric, cells: int) -> Pieces:
    """Return the name with its prefix dimmed."""
    text = middle(one.key, cells)
    slash = text.find("/") + 1
    return [(text[:slash], "prefix"), (text[slash:], "name")]


def _last(one: ListedMetric, _: int) -> Pieces:
    if one.series is None or not one.series.values:
        return [("…", "dim")]
    last = one.series.until(one.end).tail(1)
    if not last:
        return [("-", "value")]
    return [(one.written(last[0]), "value" if isfinite(last[0]) else "odd")]


def _trend(one: ListedMetric, _: int) -> Pieces:
    change = movement(one.series and one.series.until(one.end))
    if change is None:
        return []
    arrow = ARROWS[(change > 0) - (change < 0)]
    shown = f"{arrow} {change:+.0%}" if abs(change) >= _LEAST_CHANGE else arrow
    return [(shown, "value")]


def _bound(one: ListedMetric, at: int) -> Piece:
    """Return the least (0) or the greatest (1) value."""
    series = one.series
    if series is None or not series.values:
        return "", "dim"
    bounds = series.bounds
    return one.written(bounds[at]) if bounds else "-", "dim"


def _spark(one: ListedMetric, cells: int) -> Pieces:
    if one.series is None:
        return []
    return sparkline(one.series, cells, family_role(one.key, one.indicator))


# -- groups by the prefix of keys, and the rows of a grid ------------------------------------------

OTHER = "other"
"""Group of the keys that share their prefix with no other."""
IN_ROWS = "constants and counters"
"""Group of the metrics that have had only one value, or only count."""
_GOOD_WIDTH, _GOOD_HEIGHT = 38, 8
"""Cells of a chart, and of a shelf with its heading, that are aimed at."""
_LEAST_WIDTH, LEAST_HEIGHT = 12, 3
"""Cells below which there is nothing to see."""
_MOST = 12
"""Columns and rows that can be asked for."""


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics whose keys begin alike."""

    name: str
    """The prefix without its slash, `other` without one; empty for a list without groups."""
    keys: tuple[str, ...]
    in_rows: bool = False
    """True if a row of text is enough for each of them."""

    def short(self, key: str) -> str:
        """Return a key without the group's prefix."""
        return key.removeprefix(f"{self.name}/")


@dataclass(frozen=True, slots=True)
class Shelf:
    """One row of a grid: neighbours of one group, side by side; of rows of text several below each
    other.
    """

    group: MetricGroup
    first: int
    """Position of the first key within the group."""
    keys: tuple[str, ...]
    columns: int

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The keys of each line."""
        starts = range(0, len(self.keys), self.columns)
        return [self.keys[at : at + self.columns] for at in starts]


def grouped_keys(keys: Iterable[str]) -> tuple[MetricGroup, ...]:
    """Group keys by prefix, in natural order; the groups family by family, as on the dashboard."""
    prefixes = {key: key[: key.find("/") + 1] for key in sorted(keys, key=natural)}
    counts = Counter(prefixes.values())
    groups = gathered(
        (prefix[:-1] if prefix and counts[prefix] > 1 else OTHER, key)
        for key, prefix in prefixes.items()
    )
    found = (MetricGroup(name, tuple(members)) for name, members in groups.items())
    return tuple(sorted(found, key=lambda group: min(map(family_rank, group.keys))))


def rows_apart(
    groups: Sequence[MetricGroup], in_rows: Container[str]
) -> tuple[MetricGroup, ...]:
    """Return groups with the metrics that are rows of text in a last one of their own; as they are
    where all of them would be.
    """
    found, rows = [], []
    for group in groups:
        rows += [key for key in group.keys if key in in_rows]
        if kept := tuple(key for key in group.keys if key not in in_rows):
            found.append(MetricGroup(group.name, kept))
    if not rows or not found:
        return tuple(groups)
    return (*found, MetricGroup(IN_ROWS, tuple(rows), in_rows=True))


def shelves(
    groups: Sequence[MetricGroup], columns: int, lines: int
) -> tuple[Shelf, ...]:
    """Return the rows of a grid; each group begins a new row.

    Args:
        groups: The groups.
        columns: Charts side by side.
        lines: Rows of text that there is room for in place of a chart.
    """
    columns = max(1, columns)
    found: list[Shelf] = []
    for group in groups:
        size = columns * max(1, lines) if group.in_rows else columns
        starts = range(0, len(group.keys), size)
        found += [
            Shelf(group, at, group.keys[at : at + size], columns) for at in starts
        ]
    return tuple(found)


def grid_shape(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Return columns and rows: those that are wanted as far as there is room, else as many as fit
    well.
    """
    tall = _GOOD_HEIGHT if height > 2 * _GOOD_HEIGHT else 5
    columns = columns or max(1, width // _GOOD_WIDTH)
    rows = rows or max(1, height // tall)
    most_columns = clamp(width // _LEAST_WIDTH, 1, _MOST)
    most_rows = clamp(height // LEAST_HEIGHT, 1, _MOST)
    return min(most_columns, columns), min(most_rows, rows)
