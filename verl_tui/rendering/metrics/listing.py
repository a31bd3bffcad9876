"""The list of metrics: filtered, then grouped by key or sorted by value."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from verl_tui.metrics import describe, without_repeats
from verl_tui.rendering.charts.downsample import TREND_POINTS, turn
from verl_tui.rendering.metrics.groups import MetricGroup, grouped_keys, natural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.rendering.metrics.filter import MetricFilter

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
