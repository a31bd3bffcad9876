"""The input of a rule: one or more metrics as one stream of finite numbers, new points only."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.kl_without_gain import KlWithoutGain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from verl_tui.runs.series import Series

    Combine = Callable[[float, float], float]


class NewPoints(NamedTuple):
    """New points of a stream."""

    over: bool
    """True if earlier points changed, so that judging starts over with these."""
    steps: Sequence[int]
    values: Sequence[float]
    """Points that will not change any more unless the stream starts over."""
    newest: tuple[int, float] | None
    """The last point, which may still be replaced; None where it is not finite."""


class Stream(ABC):
    """The input of a rule; remembers how far its metrics have been read."""

    inputs: ClassVar[int] = 1
    """Metrics that must have points."""

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale
        """Factor of all values."""
        self._cursors = [0] * self.inputs
        """Number of points read of each metric."""
        self._revisions: tuple[int, ...] = ()

    def advance(self, series: Sequence[Series], end: int | None) -> NewPoints:
        """Return the points that are new.

        Args:
            series: The metrics, always the same ones.
            end: Step the run has reached; points of an abandoned segment beyond it are left out.
                None = no end.
        """
        lengths = [
            len(one) if end is None else bisect_right(one.steps, end) for one in series
        ]
        revisions = tuple([one.revision for one in series])
        over = revisions != self._revisions or self._is_cut_back(lengths)
        if over:
            self._revisions = revisions
            self._start_over()
        if not all(lengths[: self.inputs]):
            return NewPoints(over, (), (), None)
        return NewPoints(over, *self._read(series, lengths))

    def _is_cut_back(self, lengths: Sequence[int]) -> bool:
        """Return whether the run was set back behind points that were already read."""
        for cursor, length in zip(self._cursors, lengths, strict=False):
            if cursor > max(0, length - 1):
                return True
        return False

    def _start_over(self) -> None:
        self._cursors = [0] * self.inputs

    @abstractmethod
    def _read(
        self, series: Sequence[Series], lengths: Sequence[int]
    ) -> tuple[Sequence[int], Sequence[float], tuple[int, float] | None]:
        """Return steps and values of the new points that are settled, and the newest point."""


class SingleStream(Stream):
    """The values of one metric, or a number derived from each."""

    def __init__(
        self, scale: float = 1.0, derive: Callable[[float], float] | None = None
    ) -> None:
        """Prepare a stream.

        Args:
            scale: Factor of all values.
            derive: Derives the judged number from a value; by default the value is judged.
        """
        super().__init__(scale)
        self._derive = derive

    def _read(
        self, series: Sequence[Series], lengths: Sequence[int]
    ) -> tuple[Sequence[int], Sequence[float], tuple[int, float] | None]:
        metric = series[0]
        start = self._cursors[0]
        last = lengths[0] - 1
        steps: Sequence[int] = metric.steps[start:last]
        values: Sequence[float] = metric.values[start:last]
        newest = metric.values[last]
        self._cursors[0] = last
        if not math.isfinite(sum(values)):
            steps, values = _finite(zip(steps, values, strict=True))
        if self._derive is not None:
            values = list(map(self._derive, values))
            newest = self._derive(newest)
        if self._scale != 1.0:
            values = [value * self._scale for value in values]
            newest *= self._scale
        return steps, values, _point(metric.steps[last], newest)


class MeanStream(Stream):
    """The mean of several metrics at each step of the first one, over those that have the step."""

    def _read(
        self, series: Sequence[Series], lengths: Sequence[int]
    ) -> tuple[Sequence[int], Sequence[float], tuple[int, float] | None]:
        start = self._cursors[0]
        stop = lengths[0]
        self._cursors[0] = stop - 1
        steps = series[0].steps[start:stop]
        points = [(step, self._mean_at(series, step)) for step in steps]
        newest = points.pop()
        return *_finite(points), _point(*newest)

    def _mean_at(self, series: Sequence[Series], step: int) -> float:
        known = []
        for metric in series:
            point = metric.at(step)
            if point and point.step == step and math.isfinite(point.value):
                known.append(point.value)
        if not known:
            return math.nan
        return self._scale * sum(known) / len(known)


class CombinedStream(Stream):
    """One number made of two metrics, at the steps that both have."""

    inputs: ClassVar[int] = 2

    def __init__(self, make_combine: Callable[[], Combine], scale: float = 1.0) -> None:
        """Prepare a stream.

        Args:
            make_combine: Returns a fresh function that makes one number of two values.
            scale: Factor of all numbers.
        """
        super().__init__(scale)
        self._make_combine = make_combine
        self._combine = make_combine()

    def _start_over(self) -> None:
        super()._start_over()
        self._combine = self._make_combine()

    def _read(
        self, series: Sequence[Series], lengths: Sequence[int]
    ) -> tuple[Sequence[int], Sequence[float], tuple[int, float] | None]:
        first, second = series
        i, j = self._cursors
        settled = min(first.steps[lengths[0] - 1], second.steps[lengths[1] - 1])
        end = bisect_left(first.steps, settled, i)
        other_end = bisect_left(second.steps, settled, j)
        steps = first.steps[i:end]
        if steps == second.steps[j:other_end]:
            # Metrics that are logged together have the same steps: there is nothing to merge.
            numbers = map(
                self._combine, first.values[i:end], second.values[j:other_end]
            )
            points = [
                (step, value * self._scale)
                for step, value in zip(steps, numbers, strict=True)
            ]
            self._cursors = [end, other_end]
        else:
            points = self._merged(first, second, settled)
        return *_finite(points), self._newest(settled, first, second)

    def _merged(
        self, first: Series, second: Series, settled: int
    ) -> list[tuple[int, float]]:
        """Walk through two metrics of different steps up to a step; return their common points."""
        i, j = self._cursors
        points: list[tuple[int, float]] = []
        while first.steps[i] < settled and second.steps[j] < settled:
            step = first.steps[i]
            other = second.steps[j]
            if step < other:
                i += 1
            elif other < step:
                j += 1
            else:
                value = self._combine(first.values[i], second.values[j])
                points.append((step, value * self._scale))
                i += 1
                j += 1
        self._cursors = [i, j]
        return points

    def _newest(
        self, step: int, first: Series, second: Series
    ) -> tuple[int, float] | None:
        one = first.at(step)
        other = second.at(step)
        if one is None or other is None or not one.step == other.step == step:
            return None
        # A point that may still change must leave no trace.
        combine = self._combine
        peek = combine.peek if isinstance(combine, KlWithoutGain) else combine
        return _point(step, peek(one.value, other.value) * self._scale)


def _point(step: int, value: float) -> tuple[int, float] | None:
    """Return a point, None where it is not finite."""
    if not math.isfinite(value):
        return None
    return (step, value)


def _finite(points: Iterable[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """Return steps and values of the points that are finite."""
    known = [point for point in points if math.isfinite(point[1])]
    return [step for step, _ in known], [value for _, value in known]


def _ratio(first: float, second: float) -> float:
    """Return the first by the second where that is positive."""
    return first / second if second > 0 else math.nan


def _difference(first: float, second: float) -> float:
    return first - second


def _product(first: float, second: float) -> float:
    """Return the size of the product."""
    return abs(first * second)


def _widest(first: float, second: float) -> float:
    """Return the larger absolute value."""
    if not math.isfinite(first + second):
        return math.nan
    return max(abs(first), abs(second))


def _at_limit(first: float, second: float, limit: float) -> float:
    """Return the first where the second has reached a limit, else 0."""
    return first if second >= limit else 0.0


def without_spread(first: float, second: float, limit: float) -> float:
    """Return 1 where the second, a spread, is at most `limit`, else the first."""
    return 1.0 if 0 <= second <= limit else first


_COMBINATIONS: Mapping[str, Combine] = {
    "ratio": _ratio,
    "difference": _difference,
    "product": _product,
    "widest": _widest,
}
"""Name in the guide -> how one number is made of two."""


def stream(kind: str, scale: float = 1.0, limit: float = math.inf) -> Stream:
    """Return a fresh stream of a kind.

    Args:
        kind: `value`, `absolute` or `mean of all`; of two metrics a name in `_COMBINATIONS`,
            `at limit`, or `unbought` and `unbought lately`, see `KlWithoutGain`.
        scale: Factor of all values.
        limit: The limit of `at limit`.
    """
    if kind in _COMBINATIONS:
        return CombinedStream(lambda: _COMBINATIONS[kind], scale)
    if kind == "mean of all":
        return MeanStream(scale)
    if kind == "at limit":
        return CombinedStream(lambda: partial(_at_limit, limit=limit), scale)
    if kind == "unbought":
        return CombinedStream(KlWithoutGain, scale)
    if kind == "unbought lately":
        return CombinedStream(partial(KlWithoutGain, lately=True), scale)
    return SingleStream(scale, abs if kind == "absolute" else None)
