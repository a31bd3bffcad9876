"""Conditions that begin anew where a run was restarted: a changed scale, and circuit breakers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import Spell, Terms, condition
from verl_tui.health.conditions.windows import first, rolling
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.conditions.condition import Column
    from verl_tui.health.conditions.windows import Numbers

_IN_A_ROW = 3
"""Points in a row that must all be that high: learning climbs there step by step."""
_BACK = 5
"""Points in a row within the old range after which it is over."""


@condition
def scaled(
    column: Column,
    factor: float,
    least: int,
    floor: float,
    restarts: tuple[int, ...] = (),
) -> Iterator[Terms | Spell]:
    """From one point to the next, all values lie far above all earlier ones; over when they are
    back, or at a restart.

    Args:
        column: The metric.
        factor: How many times the size of all values before, or their range, a value must lie above
            them.
        least: Fewest points of the past that it needs.
        floor: Values up to here are never found, e.g. 1 for shares.
        restarts: First steps of the run's later segments, where a new scale is no surprise.
    """
    yield Terms(least + _IN_A_ROW, _BACK)
    for start, stop in segments(column, restarts):
        over = stop if stop < len(column) else None
        for one in _jumps(column.values[start:stop], factor, least, floor):
            end = over if one.cleared is None else start + one.cleared
            facts = {**one.facts, "step": int(column.steps[start + one.first])}
            yield Spell(start + one.first, start + one.raised, end, facts)


def _jumps(values: Numbers, factor: float, least: int, floor: float) -> Iterator[Spell]:
    """Yield the jumps beyond the past, each with its range and how many points it had."""
    lowest = rolling(values, _IN_A_ROW, np.minimum)
    ahead = np.append(lowest[_IN_A_ROW - 1 :], np.full(_IN_A_ROW, np.nan))
    highest = rolling(values, _BACK, np.maximum)
    low, high, count, at = np.inf, -np.inf, 0, 0
    while at < len(values):
        lows = np.minimum.accumulate(np.append(low, values[at:]))
        highs = np.maximum.accumulate(np.append(high, values[at:]))
        size = np.maximum(np.maximum(abs(highs), abs(lows)), highs - lows)
        limits = np.maximum(floor, highs + factor * size)[:-1]
        beyond = ahead[at : len(values)] > limits
        beyond[: max(0, least - count)] = False
        if not beyond.any():
            return
        k = int(beyond.argmax())
        low, high, count, at = lows[k], highs[k], count + k, at + k
        last = at + _IN_A_ROW - 1
        end = first(highest, np.less_equal, limits[k], last + _BACK)
        facts = {"low": low, "high": high, "count": f"{count:,}"}
        shown = {"value": float(values[at]), "third": float(values[last])}
        yield Spell(at, last, end, {**facts, **shown})
        if end is None:
            return
        at = end + 1


def segments(column: Column, restarts: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first place of each segment, and the one behind its last."""
    starts = np.searchsorted(column.steps, sorted(restarts)).tolist()
    yield from pairwise(sorted({0, *starts, len(column)}))


@condition
def streak(
    column: Column,
    threshold: float,
    count: int,
    restarts: tuple[int, ...],
    *,
    drops: bool = False,
) -> Iterator[Terms | Spell]:
    """A number of records in a row in breach; once tripped it stays so until the run is restarted.

    Records that lack the metric never come here, so they neither count nor interrupt.

    Args:
        column: The metric.
        threshold: What a record must exceed.
        count: Breaches in a row that trip.
        restarts: First steps of the run's later segments: there it begins anew.
        drops: Whether a record counts when `(last − r) > threshold × last`. Where `last` is not
            positive, it does not count and so ends the row: a share of nothing means nothing.
    """
    pieces = [*segments(column, restarts)]
    newest = max([stop - start for start, stop in pieces[-1:]], default=0)
    yield Terms(count + drops, seen=newest)
    where = f"above {number(threshold)}"
    if drops:
        where = f"more than {threshold:.0%} below the one before"
    for start, stop in pieces:
        values = column.values[start:stop]
        breached = values > threshold
        if drops:
            last = np.append(0.0, values[:-1])
            breached = (last > 0) & (last - values > threshold * last)
        tripped = rolling(breached, count) == count
        if tripped.any():
            at = start + int(tripped.argmax())
            steps, shown = (one[at - count + 1 : at + 1].tolist() for one in column)
            facts = {
                "where": where,
                "count": count,
                "start": steps[0],
                "stop": steps[-1],
                "tripped": ", ".join(
                    f"{number(value)} at step {step}"
                    for step, value in zip(steps, shown, strict=True)
                ),
            }
            end = stop if stop < len(column) else None
            yield Spell(at - count + 1, at, end, facts)
