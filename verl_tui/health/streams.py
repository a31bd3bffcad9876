"""Input of rules: one or more metrics as one stream of finite numbers, new points only."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from verl_tui.runs.series import Series


_SCORES, _FEWEST = 20, 5
"""Most and fewest rewards that make its level at the start and now."""
_LATELY = 100
"""Points within which a rising KL must have bought a reward: heuristic."""
_NEAR = 0.1
"""A KL up to here is near the reference (the verl tutorials' guide)."""
_FAR = 1.0
"""Below a nat nothing is said before there are points enough to know whether the reward rises."""
_SURELY, _GAIN = 3.0, 0.1
"""A reward has surely risen if it gained three standard errors and a tenth of its size:
heuristic.
"""
_SOLVED = 0.95
"""On a scale from 0 to 1 there is nothing left to gain: heuristic."""


class NewPoints(NamedTuple):
    """New points of a stream."""

    over: bool
    """True if earlier points changed, so that judging starts over with these."""
    steps: Sequence[int]
    values: Sequence[float]
    """Points that will not change any more unless the stream starts over."""
    newest: tuple[int, float] | None
    """The last point, which may still be replaced; None where it is not finite."""


class Stream:
    """A rule's input. Remembers how far it has been read."""

    def __init__(
        self,
        kind: str,
        *,
        scale: float = 1.0,
        limit: float = math.inf,
        work_out: Callable[[float], float] | None = None,
    ) -> None:
        """Prepare a stream.

        Args:
            kind: `value`, `absolute`; of two metrics `ratio` (first by second, where the second is
                positive), `difference`, `product` (its size), `widest` (the larger absolute value)
                or `at limit` (the first where the second has reached `limit`, else 0), `or no
                spread` (1 where the second is at most `limit`, else the first), `unbought` (the
                first, a KL, where the second, the reward, has not risen for it, else 0) or
                `unbought lately` (the same within the last points); of any number `mean of all`.
            scale: Factor of all values.
            limit: See `at limit`.
            work_out: Makes the judged number of a `value`; the values themselves by default.
        """
        self._kind, self._limit = kind, limit
        self._make = self._maker()
        self._absolute = kind == "absolute"
        self._work_out = work_out
        self._together = kind == "mean of all"
        self._scale = scale
        self._cursors = [0, 0]
        """How far each metric has been read."""
        self._revisions: tuple[int, ...] = ()

    def advance(self, series: Sequence[Series], end: int | None) -> NewPoints:
        """Return what is new.

        Args:
            series: The one or two metrics, always the same ones.
            end: Step the run has reached; points of an abandoned segment beyond it are left out.
                None = no end.
        """
        lengths = [len(one) if end is None else bisect_right(one.steps, end) for one in series]
        revisions = tuple(one.revision for one in series)
        # A cursor beyond the end: the run was set back behind what was already read.
        over = revisions != self._revisions or any(
            cursor > max(0, n - 1) for cursor, n in zip(self._cursors, lengths, strict=False)
        )
        if over:
            self._cursors = [0, 0]
            self._revisions = revisions
            self._make = self._maker()
        if self._together:
            return self._averaged(series, lengths, over=over)
        if self._make is None:
            return self._single(series[0], lengths[0], over=over)
        return self._joined(series[0], series[1], lengths, over=over)

    def _maker(self) -> Callable[[float, float], float] | None:
        return _MAKERS[self._kind](self._limit) if self._kind in _MAKERS else None

    def _single(self, series: Series, length: int, *, over: bool) -> NewPoints:
        if not length:
            return NewPoints(over, (), (), None)
        start, last = self._cursors[0], length - 1
        steps: Sequence[int] = series.steps[start:last]
        values: Sequence[float] = series.values[start:last]
        self._cursors[0] = last
        if not math.isfinite(sum(values)):
            steps, values = _finite(zip(steps, values, strict=True))
        newest = self._shape(series.values[last])
        if self._absolute or self._scale != 1.0 or self._work_out is not None:
            values = [self._shape(value) for value in values]
        return NewPoints(
            over, steps, values, (series.steps[last], newest) if math.isfinite(newest) else None
        )

    def _shape(self, value: float) -> float:
        if self._work_out is not None:
            value = self._work_out(value)
        return (abs(value) if self._absolute else value) * self._scale

    def _averaged(
        self, series: Sequence[Series], lengths: Sequence[int], *, over: bool
    ) -> NewPoints:
        """Return the mean of what there is at each step of the first metric."""
        if not lengths[0]:
            return NewPoints(over, (), (), None)
        first, start, last = series[0], self._cursors[0], lengths[0] - 1
        self._cursors[0] = last
        points = [(step, self._mean_at(series, step)) for step in first.steps[start : last + 1]]
        newest = points.pop()
        return NewPoints(over, *_finite(points), newest if math.isfinite(newest[1]) else None)

    def _mean_at(self, series: Sequence[Series], step: int) -> float:
        found = [
            point.value
            for one in series
            if (point := one.at(step)) is not None and point.step == step
        ]
        known = [value for value in found if math.isfinite(value)]
        return self._scale * sum(known) / len(known) if known else math.nan

    def _joined(
        self, first: Series, second: Series, lengths: Sequence[int], *, over: bool
    ) -> NewPoints:
        """Return the points of two metrics at the settled steps that both have."""
        if not all(lengths):
            return NewPoints(over, (), (), None)
        make = self._make or _difference(0.0)
        i, j = self._cursors
        settled = min(first.steps[lengths[0] - 1], second.steps[lengths[1] - 1])
        # Metrics that are logged together have the same steps: then there is nothing to merge.
        ends = bisect_left(first.steps, settled, i), bisect_left(second.steps, settled, j)
        if (same := first.steps[i : ends[0]]) == second.steps[j : ends[1]]:
            made = map(make, first.values[i : ends[0]], second.values[j : ends[1]])
            points = [(step, value * self._scale) for step, value in zip(same, made, strict=True)]
            self._cursors = [*ends]
        else:
            points = self._merged(first, second, settled, make)
        return NewPoints(over, *_finite(points), self._at(settled, first, second))

    def _merged(
        self, first: Series, second: Series, settled: int, make: Callable[[float, float], float]
    ) -> list[tuple[int, float]]:
        """Walk through two metrics of different steps up to a step; return what both have."""
        i, j = self._cursors
        points: list[tuple[int, float]] = []
        while (step := first.steps[i]) < settled and (other := second.steps[j]) < settled:
            if step == other:
                points.append((step, make(first.values[i], second.values[j]) * self._scale))
            i, j = i + (step <= other), j + (other <= step)
        self._cursors = [i, j]
        return points

    def _at(self, step: int, first: Series, second: Series) -> tuple[int, float] | None:
        one, other = first.at(step), second.at(step)
        if self._make is None or one is None or other is None or not one.step == other.step == step:
            return None
        # A point that may still change must leave no trace.
        make = self._make.peek if isinstance(self._make, _Unbought) else self._make
        value = make(one.value, other.value) * self._scale
        return (step, value) if math.isfinite(value) else None


def _finite(points: Iterable[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """Return steps and values of the points that are finite."""
    known = [point for point in points if math.isfinite(point[1])]
    return [step for step, _ in known], [value for _, value in known]


def _ratio(_limit: float) -> Callable[[float, float], float]:
    return lambda first, second: first / second if second > 0 else math.nan


def _difference(_limit: float) -> Callable[[float, float], float]:
    return lambda first, second: first - second


def _product(_limit: float) -> Callable[[float, float], float]:
    return lambda first, second: abs(first * second)


def _widest(_limit: float) -> Callable[[float, float], float]:
    return lambda first, second: (
        max(abs(first), abs(second)) if math.isfinite(first + second) else math.nan
    )


def _or_no_spread(limit: float) -> Callable[[float, float], float]:
    return lambda first, second: 1.0 if 0 <= second <= limit else first


def _at_limit(limit: float) -> Callable[[float, float], float]:
    return lambda first, second: first if second >= limit else 0.0


class _RewardLevel(NamedTuple):
    """Rewards in a row."""

    mean: float
    variance: float

    def surely_below(self, other: _RewardLevel, size: int) -> bool:
        """Return whether it lies three standard errors of so many points, and a tenth of its size,
        below another.
        """
        error = math.sqrt((self.variance + other.variance) / size)
        return other.mean - self.mean > max(_GAIN * abs(other.mean), _SURELY * error)


class _Unbought:
    """A KL to the reference, as far as no reward was bought with it."""

    def __init__(self, *, lately: bool = False) -> None:
        """Begin.

        Args:
            lately: Whether the reward must have risen within the last `_LATELY` points instead of
                since the beginning.
        """
        self._before: deque[float] = deque(maxlen=_LATELY + _SCORES if lately else None)
        """What the newest rewards are held against begins here."""
        self._lately = lately
        self._newest: deque[float] = deque(maxlen=_SCORES)
        self._first: _RewardLevel | None = None
        """What the first rewards were, once there are enough of them."""
        self._best: _RewardLevel | None = None
        """The best that the newest rewards ever were since then."""
        self._low, self._high = math.inf, -math.inf
        self._seen = 0

    def __call__(self, kl: float, reward: float) -> float:
        """Take in a point; return the KL, 0 where the reward has risen for it."""
        if math.isfinite(reward):
            if self._lately or len(self._before) < _SCORES:
                self._before.append(reward)
            self._newest.append(reward)
            self._low, self._high = min(self._low, reward), max(self._high, reward)
        self._seen += 1
        if self._seen >= 2 * _SCORES and not self._lately:
            self._note_best()
        early = kl <= _FAR and self._seen < 2 * _SCORES
        return 0.0 if kl > _NEAR and (early or self._bought(sure=kl > _FAR)) else kl

    def peek(self, kl: float, reward: float) -> float:
        """Return what a point would give, without taking it in."""
        twin = copy(self)
        twin._before, twin._newest = self._before.copy(), self._newest.copy()
        return twin(kl, reward)

    def _note_best(self) -> None:
        if self._best is None or sum(self._newest) > self._best.mean * len(self._newest):
            self._best = _level(self._newest)

    def _bought(self, *, sure: bool) -> bool:
        """Return whether the reward has risen; if not `sure`, whether it may have."""
        size = _SCORES if self._seen >= 2 * _SCORES else self._seen // 2
        if min(size, len(self._before), len(self._newest)) < _FEWEST:
            return False
        last = _level(self._newest if size == _SCORES else list(self._newest)[-size:])
        if self._low >= 0 and self._high <= 1 and last.mean >= _SOLVED:
            return True
        first = self._opening(size)
        if sure:
            return first.surely_below(last, size) or self._has_bought(first, last)
        error = math.sqrt((first.variance + last.variance) / size)
        return last.mean - first.mean + error > _GAIN * max(map(abs, self._newest))

    def _opening(self, size: int) -> _RewardLevel:
        if self._lately or size < _SCORES:
            return _level(list(islice(self._before, size)))
        if self._first is None:
            self._first = _level(self._before)
        return self._first

    def _has_bought(self, first: _RewardLevel, last: _RewardLevel) -> bool:
        """Return whether the reward had surely risen and has not surely fallen since."""
        best = self._best
        if best is None or last.mean <= first.mean:
            return False
        return first.surely_below(best, _SCORES) and not last.surely_below(best, _SCORES)


def _level(values: Collection[float]) -> _RewardLevel:
    count = len(values)
    mean = sum(values) / count
    return _RewardLevel(
        mean, sum([(value - mean) * (value - mean) for value in values]) / (count - 1)
    )


_MAKERS: Mapping[str, Callable[[float], Callable[[float, float], float]]] = {
    "ratio": _ratio,
    "difference": _difference,
    "product": _product,
    "widest": _widest,
    "at limit": _at_limit,
    "or no spread": _or_no_spread,
    "unbought": lambda _: _Unbought(),
    "unbought lately": lambda _: _Unbought(lately=True),
}
