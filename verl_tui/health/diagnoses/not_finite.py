"""Metrics that turned NaN or infinite, over the whole log."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from verl_tui.health.conditions.condition import KEPT_BREACHES, Breach
from verl_tui.health.diagnoses.diagnosis import FindingHistory, Told, diagnosis
from verl_tui.patterns import NamePattern
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.health.conditions.windows import Flags, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

    _Points: TypeAlias = tuple[Sequence[int], Sequence[float]]

_NEEDED = ("reward", "policy_loss", "grad_norm")
"""Indicators that every training has: if one of these never had a number, it is broken, too."""
_PART = NamePattern(r"(?:train/)?rewards/.+|samples/.+")
_NEVER = 10
"""Points without a number after which one of these counts as broken from the start: heuristic, as
exports pad their first rows.
"""
_PACE = "train/learning_rate"
"""Hugging Face's TensorBoard files have it beside every loss, gradient norm and reward. In place of
NaN transformers 5 has None, which `TensorBoardCallback` leaves out.
"""
_KEPT_PACE = 20
"""Points in a row at which a metric came with it before a missing one counts: heuristic."""
_MOST_STEPS = 5
"""Steps named one by one."""
_MOST_NAMED = 8
"""Metrics named one by one; when an update breaks, dozens break with it."""


class _BrokenPoints(NamedTuple):
    """Where one metric is broken: not finite, though it has values."""

    key: str
    steps: Sequence[int]
    newest: float
    """Its newest value."""
    places: Places | None
    """None where it has never had a number, or has lacked one for too long."""
    window: int
    """Newest points that count."""

    @property
    def stretches(self) -> list[tuple[int, int, bool]]:
        """Broken points with no pause between them longer than the window, oldest first: the first
        and the last step, and whether it still counts. The newest point, which may still change, is
        its own.
        """
        count = len(self.steps) - 1
        if self.places is None:
            return []
        settled = self.places[self.places < count]
        pauses = np.flatnonzero(np.diff(settled) > self.window) + 1
        parts = [*np.split(settled, pauses), self.places[len(settled) :]]
        ends = [(one[0], one[-1]) for one in parts if len(one)]
        return [
            (self.steps[first], self.steps[last], bool(count - last < self.window))
            for first, last in ends
        ]

    @property
    def recent(self) -> list[int]:
        """The steps in the window at which it was not finite."""
        least = len(self.steps) - 1 - self.window
        places = () if self.places is None else self.places.tolist()
        return [self.steps[at] for at in places if at > least]

    @property
    def since(self) -> int:
        """First step of the stretch of broken points that still counts."""
        lasting = (first for first, _, lasts in self.stretches if lasts)
        return next(lasting, self.steps[-1])

    @property
    def words(self) -> str:
        """Where it is broken."""
        broken = self.recent
        steps = ", ".join(map(str, broken[:_MOST_STEPS]))
        more = ", …" if len(broken) > _MOST_STEPS else ""
        unit = "step" if len(broken) == 1 else "steps"
        known = min(self.window, len(self.steps))
        return f"at {len(broken)} of the last {known} points ({unit} {steps}{more})"


def _broken_places(odd: Flags, *, needed: bool) -> Places | None:
    """Return where a metric is broken, None where it has never had a number.

    Args:
        odd: Where its points are no numbers.
        needed: True if it must have values; any other metric that began without one has values only
            now and then.
    """
    settled = odd[:-1] if len(odd) > 1 else odd
    if needed and len(settled) >= _NEVER and settled[:_NEVER].all():
        return np.flatnonzero(odd)
    if settled.all():
        return None
    if odd[0] and not needed:
        return np.empty(0, np.int64)
    return np.flatnonzero(odd & np.logical_or.accumulate(~odd))


@diagnosis("not-finite")
def not_finite(context: RuleContext, rule: Rule) -> FindingHistory:
    """Find metrics that had a finite value and are, or were among the newest points, not finite."""
    keys = context.run.keys
    read = _read_all(context, rule.window)
    broken = [one for one in read if one.recent]
    now = _told(broken) if broken else None
    if not keys:
        now = "the log has no numbers yet"
    elif sum(one.places is None for one in read) == len(keys):
        now = "no metric ever had a value"
    return FindingHistory(now, _breaches(read, rule.window)[-KEPT_BREACHES:])


def _told(broken: list[_BrokenPoints]) -> Told | str | None:
    broken.sort(key=lambda one: (math.isfinite(one.newest), one.since))
    worst, *others = broken
    is_told = worst.since in worst.recent[:_MOST_STEPS]
    alike = f"; the same holds for {counted(len(others), 'other metric')}"
    return Told(
        {
            "was": "was" if math.isfinite(worst.newest) else "is",
            "where": worst.words,
            "first": "" if is_told else f", first at step {worst.since}",
            "others": alike if others else "",
        },
        _evidence(broken),
        since=worst.since,
        step=max(one.steps[-1] for one in broken),
        key=worst.key,
    )


def _read_all(context: RuleContext, window: int) -> list[_BrokenPoints]:
    """Read the metrics that may be broken, and those that were left out at some steps."""
    needed = _needed(context.run)
    found = {**_odd(context, window), **_left_out(context, needed)}
    return [
        _read(context, key, points, window, needed=key in needed)
        for key, points in found.items()
    ]


def _odd(context: RuleContext, window: int) -> Mapping[str, _Points]:
    """Return the metrics that may be broken.

    A part of the reward has no mean where no sample of the batch had it (TRL: a reward function
    returns None for what it does not apply to): beside a total that is always a number it is no
    fault.
    """
    run = context.run
    series = {key: run.series(key) for key in run.odd}
    odd = {key: (one.steps, one.values) for key, one in series.items() if one}
    reward = run.indicators.get("reward")
    total = odd.get(reward or "")
    if reward is None or (
        total is not None
        and _read(context, reward, total, window, needed=True).stretches
    ):
        return odd
    return {key: one for key, one in odd.items() if _PART.fullmatch(key) is None}


def _read(
    context: RuleContext, key: str, points: _Points, window: int, *, needed: bool
) -> _BrokenPoints:
    steps, values = points
    length = len(steps)
    if context.end is not None:
        length = bisect_right(steps, context.end)
    known = np.array(values[:length])
    places = _broken_places(~np.isfinite(known), needed=needed)
    newest = known[-1] if length else math.nan
    return _BrokenPoints(key, steps[:length], newest, places, window)


def _left_out(context: RuleContext, needed: set[str]) -> Mapping[str, _Points]:
    """Return metrics that Hugging Face's TensorBoard files lack at some steps, with nan there."""
    pace = context.run.series(_PACE) if _PACE in context.run.keys else None
    series = [*filter(None, map(context.run.series, needed))] if pace else []
    gaps = {one.key: _gaps(one, pace) for one in series if pace is not None}
    return {key: points for key, points in gaps.items() if points is not None}


def _gaps(series: Series, pace: Series) -> _Points | None:
    """Return a metric with nan where only `pace` has a point; None if it lacks none, or has its own
    steps.
    """
    start = bisect_left(pace.steps, series.steps[0])
    # The newest step may still be incomplete.
    stop = len(pace) - 1
    newest = pace.steps[-1]
    complete = stop - start + (series.steps[-1] >= newest)
    if stop - start < _KEPT_PACE or len(series) >= complete:
        return None
    steps = list(pace.steps[start:stop])
    known = dict(zip(series.steps, series.values, strict=True))
    if any(step not in known for step in steps[:_KEPT_PACE]):
        return None
    if newest in known:
        steps.append(newest)
    return steps, [known.get(step, math.nan) for step in steps]


def _needed(run: Run) -> set[str]:
    keys = map(run.indicators.get, _NEEDED)
    return {key for key in keys if key is not None}


def _evidence(broken: Sequence[_BrokenPoints]) -> Iterator[str]:
    for one in broken[:_MOST_NAMED]:
        newest = f"newest {one.newest:.3g} at step {one.steps[-1]}"
        yield f"{one.key}: {one.words}; {newest}"
    rest = [one.key for one in broken[_MOST_NAMED:]]
    if rest:
        yield f"and {len(rest)} more: {', '.join(rest[:20])}"


def _breaches(seen: Sequence[_BrokenPoints], window: int) -> Sequence[Breach]:
    """Return the breaches of all metrics; those that overlap are one."""
    cases = sorted((*stretch, one.key) for one in seen for stretch in one.stretches)
    breaches: list[Breach] = []
    until = 0
    for first, last, _, key in cases:
        if not breaches or first > until + window:
            breaches[-1:] = [one._replace(cleared=until) for one in breaches[-1:]]
            breaches.append(Breach(first, first, f"were not finite: {key}"))
        until = max(until, last)
    if cases and not any(lasts for _, _, lasts, _ in cases):
        breaches[-1] = breaches[-1]._replace(cleared=until)
    return breaches
