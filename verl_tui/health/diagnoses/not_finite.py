"""Metrics that turned NaN or infinite, over the whole log."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.column import (
    KEPT_BREACHES,
    Breach,
    Flags,
    Found,
    Places,
)
from verl_tui.health.diagnosis import diagnosis
from verl_tui.patterns import NamePattern
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.health.rule_context import RuleContext

_NEEDED = ("reward", "policy_loss", "grad_norm")
"""Indicators that every training has: if one of these never had a number, it is broken, too."""
_PART = NamePattern(r"(?:train/)?rewards/.+|samples/.+")
_NEVER = 10
"""Points without a number after which one of these counts as broken from the start: heuristic, as
exports pad their first rows.
"""
_MOST_STEPS, _MOST_NAMED = 5, 8
"""Steps, and metrics, named one by one; when an update breaks, dozens break with it."""


class _Broken(NamedTuple):
    """A metric that is not finite at some points, though it has values."""

    key: str
    step: int
    newest: float
    """Its newest step and value."""
    steps: Sequence[int]
    """The broken ones."""
    recent: Sequence[int]
    """Those of them among the newest points."""
    since: int
    """The first of them with no longer pause than the window."""
    words: str
    """Where it is broken."""


@diagnosis("not-finite")
def not_finite(context: RuleContext) -> Found:
    """Find metrics that had a finite value and are, or were among the newest points, not finite.

    A part of the reward has no mean where no sample of the batch had it (TRL: a reward function
    returns None for what it does not apply to): beside a total that is always a number it is no
    fault.
    """
    run, window = context.run, context.rule.window
    read = [_find_broken(context, key, window) for key in run.non_finite]
    if read.count(None) == len(run.keys):
        return Found("no metric ever had a value")
    if not read:
        return Found(None)
    broken = _relevant(filter(None, read), run.indicators.get("reward"))
    recent = [one for one in broken if one.recent]
    now = _finding(context, recent) if recent else None
    return Found(now, _breaches(broken, window, lasts=bool(recent)))


def _relevant(read: Iterable[_Broken], reward: str | None) -> Sequence[_Broken]:
    """Return those that are broken; parts of the reward only if it is broken itself, or unknown."""
    broken = [one for one in read if one.steps]
    if reward in (None, *(one.key for one in broken)):
        return broken
    return [one for one in broken if not _PART.fullmatch(one.key)]


def _find_broken(context: RuleContext, key: str, window: int) -> _Broken | None:
    """Return where a metric is broken, None where it has never had a number."""
    series = context.known(key)
    if not series:
        return None
    needed = key in map(context.indicators.get, _NEEDED)
    places = _places(~np.isfinite(np.array(series.values)), needed=needed)
    if places is None:
        return None
    steps, last = series.steps, len(series) - 1
    broken = [steps[at] for at in places.tolist()]
    recent = broken[len(broken) - int((places > last - window).sum()) :]
    pauses = np.flatnonzero(np.diff(places) > window) + 1
    shown = ", ".join(map(str, recent[:_MOST_STEPS]))
    more = ", …" if len(recent) > _MOST_STEPS else ""
    unit = "step" if len(recent) == 1 else "steps"
    known = min(window, len(steps))
    words = f"at {len(recent)} of the last {known} points ({unit} {shown}{more})"
    since = broken[pauses.max(initial=0)] if broken else 0
    return _Broken(key, steps[-1], series.values[-1], broken, recent, since, words)


def _places(odd: Flags, *, needed: bool) -> Places | None:
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


def _finding(context: RuleContext, broken: Sequence[_Broken]) -> Finding:
    worst, *others = sorted(
        broken, key=lambda one: (math.isfinite(one.newest), one.since)
    )
    is_named = worst.since in worst.recent[:_MOST_STEPS]
    alike = f"; the same holds for {counted(len(others), 'other metric')}"
    facts = {
        "was": "was" if math.isfinite(worst.newest) else "is",
        "where": worst.words,
        "first": "" if is_named else f", first at step {worst.since}",
        "others": alike if others else "",
    }
    step = max(one.step for one in broken)
    evidence = _evidence([worst, *others])
    return context.rule.finding(
        facts, evidence, since=worst.since, step=step, key=worst.key
    )


def _evidence(broken: Sequence[_Broken]) -> Iterator[str]:
    for one in broken[:_MOST_NAMED]:
        yield f"{one.key}: {one.words}; newest {one.newest:.3g} at step {one.step}"
    rest = [one.key for one in broken[_MOST_NAMED:]]
    if rest:
        yield f"and {len(rest)} more: {', '.join(rest[:20])}"


def _breaches(
    broken: Sequence[_Broken], window: int, *, lasts: bool
) -> Sequence[Breach]:
    """Return the breaches of all metrics; those with no longer pause than the window are one."""
    breaches: list[Breach] = []
    for step, key in sorted((step, one.key) for one in broken for step in one.steps):
        if not breaches or step > (breaches[-1].cleared or 0) + window:
            breaches.append(Breach(step, step, f"numbers were not finite: {key}", step))
        breaches[-1] = breaches[-1]._replace(cleared=step)
    if lasts:
        breaches[-1] = breaches[-1]._replace(cleared=None)
    return breaches[-KEPT_BREACHES:]
