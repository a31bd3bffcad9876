"""Which metrics are listed, and in what order."""

from __future__ import annotations

from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from verl_tui.metrics import describe, shown
from verl_tui.rendering.charts.downsample import TREND_POINTS, trend
from verl_tui.rendering.metrics.groups import MetricGroup, grouped, natural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.rendering.metrics.filter import MetricFilter

By = Literal["key", "last", "trend"]
ORDERS: tuple[By, ...] = get_args(By)


class MetricOrder(NamedTuple):
    """What metrics are sorted by."""

    by: By = "key"
    reverse: bool = False
    """Keys begin with a, numbers with the greatest, unless reversed."""

    def next(self) -> MetricOrder:
        """Return the next one."""
        return MetricOrder(ORDERS[(ORDERS.index(self.by) + 1) % len(ORDERS)])


class Movement(NamedTuple):
    """Where the newest values went."""

    turn: int | None
    """1 up, -1 down, 0 noise is all there is, None where there are too few."""
    change: float = 0.0
    """Difference of the newer to the older half, as a share of the greater of the two: -2 .. 2; 0
    if it is noise.
    """


def movement(values: Sequence[float]) -> Movement:
    """Return where the last part of a series went."""
    tail = values[-TREND_POINTS:]
    way = trend(tail)
    if not way:
        return Movement(way)
    halves = [value / 2 for value in tail if isfinite(value)]  # sums of huge numbers would overflow
    middle = len(halves) // 2
    before, after = median(halves[:middle]), median(halves[middle:])
    size = max(abs(before), abs(after))
    return Movement(way, after / size - before / size if size else 0.0)


def listing(
    keys: Iterable[str],
    wanted: MetricFilter,
    order: MetricOrder,
    tail: Callable[[str, int], Sequence[float]],
) -> tuple[MetricGroup, ...]:
    """Return the metrics that pass a filter: in groups if sorted by key, else as a nameless one.

    Args:
        keys: All there are.
        wanted: The filter.
        order: What they are sorted by.
        tail: Returns the last values of a metric, so many at most.
    """
    found = [key for key in shown(keys) if wanted.holds(key, describe(key).label)]
    if order.by == "key":
        groups = grouped(found)
        if order.reverse:
            groups = tuple(MetricGroup(one.name, one.keys[::-1]) for one in reversed(groups))
        return groups
    found.sort(key=natural)
    values = {key: _sort_value(order, key, tail) for key in found}
    numbers = [key for key in found if isfinite(values[key])]
    numbers.sort(key=values.__getitem__, reverse=not order.reverse)
    others = [key for key in found if not isfinite(values[key])]
    return (MetricGroup("", (*numbers, *others)),) if found else ()


def _sort_value(order: MetricOrder, key: str, tail: Callable[[str, int], Sequence[float]]) -> float:
    if order.by == "last":
        return next(iter(tail(key, 1)), float("nan"))
    return _strength(movement(tail(key, TREND_POINTS)))


def _strength(found: Movement) -> float:
    return float("nan") if found.turn is None else found.change
