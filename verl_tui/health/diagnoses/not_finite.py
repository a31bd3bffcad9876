"""Metrics that turned NaN or infinite, over the whole log."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import KEPT_BREACHES, Breach
from verl_tui.health.diagnoses.diagnosis import FindingHistory, Told, diagnosis
from verl_tui.patterns import NamePattern
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.health.conditions.windows import Flags, Places
    from verl_tui.health.guide import Rule
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
    stretches: Sequence[tuple[int, int, bool]]
    """Broken points with no pause between them longer than the window, oldest first: the first and
    the last step, and whether it still counts.
    """
    recent: Sequence[int]
    """The broken steps among the newest points."""
    words: str
    """Where it is broken."""

    @property
    def since(self) -> int:
        """First step of the stretch that still counts."""
        return next(first for first, _, lasts in self.stretches if lasts)


@diagnosis("not-finite")
def not_finite(context: RuleContext, rule: Rule) -> FindingHistory:
    """Find metrics that had a finite value and are, or were among the newest points, not finite.

    A part of the reward has no mean where no sample of the batch had it (TRL: a reward function
    returns None for what it does not apply to): beside a total that is always a number it is no
    fault.
    """
    run = context.run
    read = [_read(context, key, rule.window) for key in run.odd]
    broken = [one for one in filter(None, read) if one.stretches]
    whole = run.indicators.get("reward")
    if whole is not None and all(one.key != whole for one in broken):
        broken = [one for one in broken if not _PART.fullmatch(one.key)]
    now = _told(broken)
    if read.count(None) == len(run.keys):
        now = "no metric ever had a value"
    return FindingHistory(now, _breaches(broken, rule.window))


def _read(context: RuleContext, key: str, window: int) -> _Broken | None:
    """Return where a metric is broken, None where it has never had a number. The newest point,
    which may still change, is a stretch of its own.
    """
    needed = key in map(context.indicators.get, _NEEDED)
    series = context.known(key)
    if series is None:
        return None
    steps, odd = series.steps, ~np.isfinite(np.array(series.values))
    places = _places(odd, needed=needed)
    if places is None:
        return None
    last = len(steps) - 1
    settled = places[places < last]
    pauses = np.flatnonzero(np.diff(settled) > window) + 1
    parts = [*np.split(settled, pauses), places[len(settled) :]]
    stretches = [
        (steps[one[0]], steps[one[-1]], bool(last - one[-1] < window))
        for one in parts
        if len(one)
    ]
    recent = [steps[at] for at in places.tolist() if at > last - window]
    shown = ", ".join(map(str, recent[:_MOST_STEPS]))
    more = ", …" if len(recent) > _MOST_STEPS else ""
    unit = "step" if len(recent) == 1 else "steps"
    known = min(window, len(steps))
    words = f"at {len(recent)} of the last {known} points ({unit} {shown}{more})"
    return _Broken(key, steps[-1], series.values[-1], stretches, recent, words)


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


def _told(seen: Sequence[_Broken]) -> Told | str | None:
    broken = [one for one in seen if one.recent]
    if not broken:
        return None
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
        step=max(one.step for one in broken),
        key=worst.key,
    )


def _evidence(broken: Sequence[_Broken]) -> Iterator[str]:
    for one in broken[:_MOST_NAMED]:
        yield f"{one.key}: {one.words}; newest {one.newest:.3g} at step {one.step}"
    rest = [one.key for one in broken[_MOST_NAMED:]]
    if rest:
        yield f"and {len(rest)} more: {', '.join(rest[:20])}"


def _breaches(seen: Iterable[_Broken], window: int) -> Sequence[Breach]:
    """Return the breaches of all metrics; those that overlap are one."""
    cases = sorted((*stretch, one.key) for one in seen for stretch in one.stretches)
    breaches: list[Breach] = []
    until = 0
    for first, last, lasts, key in cases:
        if not breaches or first > until + window:
            breaches.append(Breach(first, first, f"were not finite: {key}", last))
        until = max(until, last)
        is_open = lasts or breaches[-1].cleared is None
        breaches[-1] = breaches[-1]._replace(cleared=None if is_open else until)
    return breaches[-KEPT_BREACHES:]
