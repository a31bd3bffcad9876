"""A condition on one input, and its verdict on the newest point, which may still change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from verl_tui.health.conditions.condition import Condition
from verl_tui.health.streams import SingleStream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.health.streams import Stream
    from verl_tui.runs.series import Series

_AnyCondition = TypeVar("_AnyCondition", bound=Condition)


class ConditionFeed(Generic[_AnyCondition]):
    """Feeds a condition with new points, and starts it over where earlier ones have changed."""

    def __init__(
        self, make: Callable[[], _AnyCondition], stream: Stream | None = None
    ) -> None:
        """Prepare a feed.

        Args:
            make: Returns a fresh condition.
            stream: What the condition is fed with; the metric's own values by default.
        """
        self._make = make
        self._stream = stream or SingleStream()
        self._condition = make()
        self.turn = 0
        """Grows when it starts over."""

    def update(
        self, series: Sequence[Series], end: int | None
    ) -> tuple[_AnyCondition, int | None]:
        """Feed new points; return the condition at the newest point, and that point's step.

        Args:
            series: The one or two metrics, always the same ones.
            end: Step the run has reached, see `Stream.advance`.
        """
        fresh = self._stream.advance(series, end)
        if fresh.over:
            self._condition = self._make()
            self.turn += 1
        if len(fresh.steps):
            self._condition.feed(fresh.steps, fresh.values)
        if fresh.newest is None:
            return self._condition, series[0].steps[-1] if len(series[0]) else None
        peek = self._condition.clone()
        peek.feed(fresh.newest[:1], fresh.newest[1:])
        return peek, fresh.newest[0]
