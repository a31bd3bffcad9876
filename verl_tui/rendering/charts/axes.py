"""Maps values and steps to positions on a plot, and which steps are in sight; both axes change as
seldom as possible, so that pictures stay still.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import NamedTuple

_FAR = 1e300
"""Larger values, whose differences would overflow, lie at the edge."""
_NEAR = 1e-290
"""Differences below this count as none, and logarithms of less are not told apart."""
SINGLE = 2.0**-23
"""Differences up to this share of a value count as none: event files round to 24 bits, other logs
of the same run do not.
"""
_MANY_STEPS = 100
_ROUNDING = 1e-9
"""Rounding error of a division, as a share of a tick."""
_KEEP = 0.35
"""A scale is kept until the data fill less than this share of it."""
FEW_STEPS = 8
"""Steps from which an axis keeps room for more; fewer fill it, each with a tick of its own."""
_ENOUGH_TICKS = 6
"""With so many ticks wanted, any scale has at least two round values."""
_NARROW = 5
"""A logarithmic axis over less than this factor has the ends and ticks of a linear one."""
_DECADES = 100
"""From this factor on the ticks of a logarithmic axis are powers of ten."""
_AROUND = 0.7
"""Share of the height that an axis of a single value takes: its middle lies a dot lower."""
_HOUR = 3600
_DAY = 86400
_SECONDS = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12, 24)),
)


class Scale(NamedTuple):
    """The y axis, from `lo` to `hi`, linear or logarithmic; `lo` < `hi`, above 0 if logarithmic."""

    lo: float
    hi: float
    log: bool = False
    only: float | None = None
    """The value in its middle, where there is no other."""

    @property
    def extent(self) -> float:
        """Length of the axis, in decades if logarithmic."""
        return self._project(self.hi) - self._project(self.lo)

    def fraction(self, value: float) -> float:
        """Return where a value lies between the ends, 0 .. 1; what is outside is cut off there."""
        above = self._project(value) - self._project(self.lo)
        return min(1.0, max(0.0, above / self.extent))

    def beyond(self, value: float) -> int:
        """Return whether a value lies above (1) or below (-1) what the axis shows, or on it (0)."""
        slack = self.extent * 1e-6
        at = self._project(value)
        above = at > self._project(self.hi) + slack
        return above - (at < self._project(self.lo) - slack)

    def dots(self, values: Sequence[float | None], count: int) -> list[int | None]:
        """Return the row of each value among `count` rows, from the top; None stays None, and what
        is outside is cut off there.
        """
        lo, hi = max(-_FAR, self.lo), min(self.hi, _FAR)
        place = log10 if self.log else float
        low, bottom = place(lo), count - 0.5
        factor = (count - 1) / (place(hi) - low)
        if self.only is not None:  # where a sign in its cell lies
            factor *= _AROUND
            bottom = min(bottom, count // 8 * 4 + 1.5 + (count - 1) * _AROUND / 2)
        return [
            v
            if v is None
            else int(bottom - (place(min(hi, max(lo, v))) - low) * factor)
            for v in values
        ]

    def dot(self, value: float, count: int) -> int:
        """Return the row of one value among `count` rows, from the top."""
        return self.dots([value], count)[0] or 0

    def ticks(self, count: int) -> list[float]:
        """Return about `count` round values within the scale, two at least if it has them,
        ascending.
        """
        if self.only is not None:
            return [self.only]
        if self.log and self.hi / _NARROW >= self.lo:
            return self._log_ticks(count)
        step = _round_up((self.hi - self.lo) / max(1, count - 1))
        first = ceil(self.lo / step - 1e-6)
        last = floor(self.hi / step + 1e-6)
        if last - first < 1 and count < _ENOUGH_TICKS:
            return self.ticks(count + 1)
        return [n * step for n in range(first, last + 1)]

    def _log_ticks(self, count: int) -> list[float]:
        """Return powers of ten; where they are few 1, 2 and 5 times these, or else the ends."""
        low, top = self.lo * (1 - _ROUNDING), self.hi * (1 + _ROUNDING)
        fine = [v for v in _nice(self.lo, self.hi) if low <= v <= top]
        powers = [v for v in fine if f"{v:e}".startswith("1.0")]
        if top > low * _DECADES:
            return powers[:: max(1, ceil((len(powers) - 1) / max(1, count - 1)))]
        ways = (v for v in (fine, powers) if 2 <= len(v) <= 2 * max(2, count))
        return next(ways, [self.lo, self.hi])

    def _project(self, value: float) -> float:
        if self.log:
            return log10(max(value, _NEAR))
        return max(-_FAR, min(value, _FAR))


def fit_scale(
    lo: float, hi: float, *, log: bool = False, previous: Scale | None = None
) -> Scale:
    """Return a scale with round ends that shows `lo` .. `hi`: the previous one while it serves.

    A logarithmic scale of nothing above zero is linear. Both ends must be finite.
    """
    lo, hi = max(-_FAR, min(lo, _FAR)), max(-_FAR, min(hi, _FAR))
    log = log and lo > 0
    if log:
        lo, hi = max(lo, _NEAR), max(hi, _NEAR)
    scale = (_round_log if log else _round_linear)(lo, hi)
    if previous is None:
        return scale
    alike = (previous.log, previous.only) == (scale.log, scale.only)
    fits = alike and previous.lo <= lo and hi <= previous.hi
    return previous if fits and scale.extent >= previous.extent * _KEEP else scale


def _round_linear(lo: float, hi: float) -> Scale:
    size = max(abs(lo), abs(hi))
    if hi - lo <= max(size * SINGLE, _NEAR):
        pad = size / 10 if size > _NEAR else 1.0
        return Scale(lo - pad, hi + pad, only=lo)
    step = _round_up((hi - lo) / 8)
    low, high = floor(lo / step + _ROUNDING) * step, ceil(hi / step - _ROUNDING) * step
    return Scale(min(lo, low), max(hi, high))


def _round_log(lo: float, hi: float) -> Scale:
    """Return the scale that ends at 1, 2 or 5 times a power of ten, so that the data fill it."""
    if hi / _NARROW < lo:
        linear = _round_linear(lo, hi)
        if linear.only is not None:
            return linear
        if linear.lo > 0:
            return Scale(linear.lo, linear.hi, log=True)
    nice = _nice(lo, hi)
    low = max((v for v in nice if v <= lo * (1 + _ROUNDING)), default=lo)
    high = min((v for v in nice if v >= hi * (1 - _ROUNDING)), default=hi)
    return Scale(min(lo, low), max(hi, high, low * 2), log=True)


def _nice(lo: float, hi: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from below one value to above another."""
    first, last = floor(log10(lo) - _ROUNDING), ceil(log10(hi) + _ROUNDING)
    return [
        factor * 10.0**exponent
        for exponent in range(first, last + 1)
        for factor in (1, 2, 5)
    ]


def _round_up(step: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is at least `step`."""
    power = 10.0 ** floor(log10(step))
    least = step * (1 - _ROUNDING)
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


class Window(NamedTuple):
    """The x axis: which steps fall on which of `columns` dot columns.

    A bucket of `per` neighbouring steps shares one; `of` buckets lie `apart` columns apart.
    """

    start: int
    per: int
    buckets: int
    """How many columns a point can fall on."""
    columns: int
    apart: int
    of: int

    @property
    def end(self) -> int:
        """The last step with a column."""
        return self.start + self.buckets * self.per - 1

    def column(self, step: int) -> int:
        """Return the dot column of a step; outside the window it is negative or too large."""
        return (step - self.start) // self.per * self.apart // self.of

    def step(self, column: int) -> int:
        """Return the first step of a dot column."""
        return self.start + (-(-(column + 1) * self.of // self.apart) - 1) * self.per

    def ticks(self, cells: int, *, time: bool = False, zero: int = 0) -> list[int]:
        """Return steps in the window that are at least `cells` cells apart and round, seen from
        `zero`, ascending.
        """
        least = max(1, -(-cells * 2 * self.per * self.of // self.apart))
        if time:
            stride = next((s for s in _SECONDS if s >= least), -(-least // _DAY) * _DAY)
        else:
            stride = max(1, round(_round_up(float(least))))
        first = -((zero - self.start) // stride) * stride + zero
        return list(range(first, self.end + 1, stride))


def fit_window(first: int, last: int, columns: int) -> Window:
    """Return the window that shows everything so far, and has room for some more before it has to
    grow: at most a fifth of it is to come, of a hundred steps and more an eighth.

    How many steps it shows depends on no width, so that charts side by side show the same. A new
    point then changes the last column only, until the window grows.
    """
    steps = max(last - first + 1, 2)
    parts = 8 if steps > _MANY_STEPS else 4
    unit = 1 << (steps // (2 * parts)).bit_length()
    return _window(first, -(-steps // unit) * unit, columns, 0)


def fill_window(first: int, last: int, columns: int) -> Window:
    """Return the window that shows `first` .. `last` from the first to the last of `columns` dot
    columns.

    With every step more or less it looks different.
    """
    return _window(first, last - first + 1, columns, 1)


def _window(first: int, steps: int, columns: int, ends: int) -> Window:
    """Return the window of so many steps, whose last bucket ends at the end of the last column, or
    begins there (`ends` 1).
    """
    columns = max(2, columns)
    per = -(-steps // columns)
    buckets = -(-steps // per)
    ends = min(ends, buckets - 1)
    return Window(first, per, buckets, columns, columns - ends, buckets - ends)


# -- the steps in sight ----------------------------------------------------------------------------

_GRAIN = 4
"""A span that follows the newest step jumps by one such part of its length, so that pictures stand
still in between.
"""
_AT_END = 8
"""A span that ends within one such part of its length from the newest step ends there."""


class ZoomSpan(NamedTuple):
    """The steps that all charts show once the user has zoomed in: moved, stretched, kept at the
    newest step.

    It is one of steps on every x axis, as the cursor is; `whole` is the first and the last step
    that the run has.
    """

    first: int
    length: int
    """Steps from the first to the last."""
    follows: bool = False
    """True if it ends at the newest step, wherever that is; `first` then says where it began."""

    def shown(self, whole: tuple[int, int]) -> tuple[int, int]:
        """Return the first and last step to show; of a run that has none of these, the newest
        ones.
        """
        begin, end = whole
        if self.follows or not begin < self.first + self.length or not self.first < end:
            grain = max(1, self.length // _GRAIN)
            return max(begin, (end - self.length) // grain * grain), end
        return max(begin, self.first), min(end, self.first + self.length)

    def words(self, whole: tuple[int, int]) -> str:
        """Say which steps are shown."""
        first, last = self.shown(whole)
        return f"from step {first}" if last >= whole[1] else f"steps {first}–{last}"


def zoomed(
    span: ZoomSpan | None,
    whole: tuple[int, int],
    factor: float,
    *,
    at: int | None = None,
    least: int = 1,
) -> ZoomSpan | None:
    """Return a span of `factor` times the length; None where that is everything.

    Args:
        span: What is shown now, None for everything.
        whole: First and last step there are.
        factor: Below 1 zooms in, above 1 zooms out.
        at: Step that stays where it is; where it is not in sight the newest one, if that is shown,
            else the middle.
        least: Length that is worth a chart.
    """
    first, last = span.shown(whole) if span is not None else whole
    length = span.length if span is not None else last - first
    length = max(least, round(length * factor))
    if length >= whole[1] - whole[0]:
        return None
    newest = last >= whole[1]
    begin = last - length if newest else (first + last - length) // 2
    if at is not None and first <= at <= last:
        begin = at - round((at - first) / max(1, last - first) * length)
        # readers of the newest steps want to go on seeing them
        if newest and begin + length > whole[1] - length // _AT_END:
            begin = whole[1]
    return _span(begin, length, whole)


def panned(span: ZoomSpan | None, whole: tuple[int, int], way: int) -> ZoomSpan | None:
    """Return the span moved by half its length, to the right if `way` is positive; it stays within
    the run.
    """
    if span is None:
        return None
    at_end = span.shown(whole)[1] >= whole[1]
    first = whole[1] - span.length if at_end else span.first
    return _span(first + way * max(1, span.length // 2), span.length, whole)


def holding(
    span: ZoomSpan | None, whole: tuple[int, int], step: int
) -> ZoomSpan | None:
    """Return the span, moved so that a step is in its middle if that was out of sight."""
    if span is None:
        return None
    first, last = span.shown(whole)
    if first <= step <= last:
        return span
    return _span(step - span.length // 2, span.length, whole)


def _span(first: int, length: int, whole: tuple[int, int]) -> ZoomSpan:
    first = max(whole[0], min(first, whole[1] - length))
    return ZoomSpan(first, length, follows=first + length >= whole[1])
