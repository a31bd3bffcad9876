"""The span of steps that all charts show once the user has zoomed in: moved, stretched, kept at the
newest step.

A span is one of steps on every x axis, as the cursor is; `whole` is the first and the last step
that the run has.
"""

from __future__ import annotations

from typing import NamedTuple

_GRAIN = 4
"""A span that follows the newest step jumps by one such part of its length, so that pictures stand
still in between.
"""

_NEAR = 8
"""A span that ends within one such part of its length from the newest step ends there."""


class ZoomSpan(NamedTuple):
    """A stretch of steps."""

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

    def at_end(self, whole: tuple[int, int]) -> bool:
        """Return whether the newest step is shown."""
        return self.shown(whole)[1] >= whole[1]


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
    length = max(
        least, round((span.length if span is not None else last - first) * factor)
    )
    if length >= whole[1] - whole[0]:
        return None
    if at is not None and first <= at <= last:
        begin = at - round((at - first) / max(1, last - first) * length)
        # readers of the newest steps want to go on seeing them
        near = whole[1] - length // _NEAR
        return _placed(
            whole[1] if last >= whole[1] and begin + length > near else begin,
            length,
            whole,
        )
    return _placed(
        last - length if last >= whole[1] else (first + last - length) // 2,
        length,
        whole,
    )


def panned(span: ZoomSpan | None, whole: tuple[int, int], way: int) -> ZoomSpan | None:
    """Return the span moved by half its length, to the right if `way` is positive; it stays within
    the run.
    """
    if span is None:
        return None
    first = whole[1] - span.length if span.at_end(whole) else span.first
    return _placed(first + way * max(1, span.length // 2), span.length, whole)


def holding(
    span: ZoomSpan | None, whole: tuple[int, int], step: int
) -> ZoomSpan | None:
    """Return the span, moved so that a step is in its middle if that was out of sight."""
    if span is None:
        return None
    first, last = span.shown(whole)
    if first <= step <= last:
        return span
    return _placed(step - span.length // 2, span.length, whole)


def _placed(first: int, length: int, whole: tuple[int, int]) -> ZoomSpan:
    first = max(whole[0], min(first, whole[1] - length))
    return ZoomSpan(first, length, follows=first + length >= whole[1])
