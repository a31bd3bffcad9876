"""What moved first: the step at which each metric left its usual range around the beginning of a
finding, by one statistic for all of them.

It has left its range with the first of three points in a row that lie beyond the outer fences
(Tukey 1977: three interquartile ranges beyond the quartiles) of the thirty points before; before
the break also four in five of the points up to there. A trend at one pace never leaves them, and
nothing behind those points counts.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.reward import components
from verl_tui.indicators import INDICATORS
from verl_tui.means import finite
from verl_tui.metrics import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

PAST, FEWEST = 30, 10
"""Points that make the usual range, and the fewest of them."""
AROUND, BLUR = 30, 10
"""Logged points around the break in which moves are looked for, and by which a finding may seem to
begin too early: heuristic.
"""
_FENCES, _ROW, _STAYS = 3.0, 3, 0.8
_LEAST, _ROUNDING, _SHARE, _TIMES = 0.1, 1e-6, 0.1, 5.0
"""A range reaches at least the first share of its middle beyond the quartiles, and the second,
which is rounding, or of a share the third; where no range is known a change is this, and so many
times the first value: heuristic.
"""
_TRAINING = ("reward", "validation", "kl", "length", "optimisation", "engine")
"""Groups in which a break of the training shows; the policy's loss is noise around 0."""
_FROM_OUTSIDE = ("reward-jump",)
"""Findings that nothing in the policy explains."""


class Move(NamedTuple):
    """A metric left its usual range: the middle one of the values before, or the first value where
    none were usual, and of the first three beyond.
    """

    key: str
    step: int
    usual: float
    now: float


class Moves(NamedTuple):
    """What moved around a break, in the order of its steps. The break is where the judged metric
    left its range itself, else where the finding begins; with fewer than `FEWEST` points known
    before it, moves are changes since the first.
    """

    step: int
    first: int
    known: int
    moves: Sequence[Move]


def is_of_training(key: str | None) -> bool:
    """Return whether a break of the training shows in a metric."""
    return describe(key or "").group in _TRAINING


def moves(run: Run, found: Finding, after: Sequence[Finding]) -> Moves | None:
    """Return the moves around the beginning of a finding, None where it has none in a metric.

    Args:
        run: The run.
        found: What was found.
        after: The findings that follow from it.
    """
    own, since = run.present(found.key), found.since_step
    if not own or since is None:
        return None
    at = bisect_left(own.steps, since)
    itself = _departure(own, (at - AROUND, at + BLUR), at)
    step = itself.step if itself else since
    at = bisect_left(own.steps, step)
    others = [*filter(None, map(run.present, _keys(run, found, after)))]
    if at < FEWEST:
        moved = [_change(one, step) for one in (own, *others)]
    else:
        ends = own.steps[max(0, at - AROUND)], own.steps[min(at + AROUND, len(own) - 1)]
        moved = [itself, *(_near(one, ends, step) for one in others)]
    kept = sorted(filter(None, moved), key=attrgetter("step"))
    return Moves(step, own.steps[0], at, kept)


def _keys(run: Run, found: Finding, after: Sequence[Finding]) -> Iterator[str]:
    """Yield the other metrics that may have moved: those that the findings judged; of a training's
    break its indicators and the parts of its reward, too.
    """
    known = run.indicators
    keys = [one.key for one in after]
    if is_of_training(found.key) and found.id not in _FROM_OUTSIDE:
        keys += [key for id, key in known.items() if INDICATORS[id].group in _TRAINING]
        parts = components(run)
        keys += parts if len(parts) > 1 else ()
    yield from (key for key in dict.fromkeys(keys) if key and key != found.key)


def _near(series: Series, ends: tuple[int, int], step: int) -> Move | None:
    """Return where a metric leaves its usual range between two steps about a break; before it a
    move for the better is no sign of it.
    """
    places = [bisect_left(series.steps, one) for one in (ends[0], ends[1] + 1, step)]
    move = _departure(series, (places[0], places[1]), places[2])
    way = {"up": 1, "down": -1}.get(describe(series.key).direction, 0)
    if move and move.step < step and way * (move.now - move.usual) > 0:
        return None
    return move


def _departure(series: Series, places: tuple[int, int], until: int) -> Move | None:
    """Return where a metric leaves its usual range between two of its points, and stays beyond it
    up to a third one.
    """
    values = series.values
    least = _SHARE if describe(series.key).unit == "share" else _ROUNDING
    for at in range(max(FEWEST, places[0]), min(places[1], len(series) - _ROW + 1)):
        past = sorted(finite(values[max(0, at - PAST) : at]))
        if len(past) < FEWEST:
            continue
        low, usual, high = (past[len(past) * part // 4] for part in (1, 2, 3))
        reach = max(_FENCES * (high - low), _LEAST * abs(usual), least)
        ahead = values[at : max(at + _ROW, until + 1)]
        beyond = [not low - reach <= one <= high + reach for one in ahead]
        if all(beyond[:_ROW]) and sum(beyond) >= _STAYS * len(beyond):
            return Move(series.key, series.steps[at], usual, sorted(ahead[:_ROW])[1])
    return None


def _change(series: Series, step: int) -> Move | None:
    """Return how a metric has changed from its first point to a step, if much."""
    now, begun = series.at(step), series.values[0]
    if not now or not abs(now.value - begun) >= _SHARE:
        return None
    low, high = sorted((abs(begun), abs(now.value)))
    return Move(series.key, step, begun, now.value) if high >= _TIMES * low else None
