"""Exemptions by how a run controls its KL: an adaptive controller, and its target."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from verl_tui.health.limits import adaptive, stated_target
from verl_tui.indicators import HOME_MADE
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.rule_context import RuleContext

_POINTS = 100
"""Newest points in which evidence is searched for."""
_ENOUGH = 5
"""Fewest points that give evidence: heuristic."""


def stair_steps(context: RuleContext, key: str) -> str | None:
    """Exempt a KL that falls in stair steps, as the adaptive controller makes it."""
    series = context.known(key)
    is_adaptive = adaptive(context.run)
    if series is None or is_adaptive is False:
        return None
    # A controller that the settings name also explains a level long after the last stair.
    newest = 10 * _POINTS if is_adaptive else 2 * _POINTS
    if not stairs(series.tail(newest)):
        return None
    how = "as the adaptive controller makes it"
    if is_adaptive:
        how = "the controller is the adaptive one"
    return f"{key} falls in stair steps, {how}: normal"


def stairs(values: Sequence[float]) -> bool:
    """Return whether values fall in stair steps: few falls make up most of the way, and between
    them little moves.
    """
    known = finite(values)
    if len(known) < 2 * _ENOUGH:
        return False
    changes = [after - before for before, after in pairwise(known)]
    least = _least_stair(changes, max(known) - known[-1])
    if least is None:
        return False
    usual = sorted(map(abs, changes))[len(changes) // 2]
    treads = _treads(known, 0.1 * least)
    level = all(max(tread) - min(tread) <= 0.5 * least for tread in treads)
    return usual <= 0.1 * least and level and len(treads) <= 0.2 * len(known)


def _least_stair(changes: Sequence[float], way: float) -> float | None:
    """Return the smallest of the few falls that make up most of the way, None if they are many."""
    falls = sorted((-change for change in changes if change < 0), reverse=True)
    count = 0
    fallen = 0.0
    while count < len(falls) and fallen < 0.7 * way:
        fallen += falls[count]
        count += 1
    if way <= 0 or count < 2 or count > 0.2 * (len(changes) + 1):
        return None
    return falls[count - 1]


def _treads(values: Sequence[float], fall: float) -> list[list[float]]:
    """Cut values where they fall at least so far."""
    treads = [[values[0]]]
    for before, after in pairwise(values):
        if before - after >= fall:
            treads.append([])
        treads[-1].append(after)
    return treads


def no_target(context: RuleContext, key: str) -> str | None:
    """Exempt verl's and others' KL to the reference without a target in force: it always rises
    slowly.
    """
    if context.run.dialect == "tutorial" or stated_target(context.run) is not None:
        return None
    return f"{key} always rises slowly, and no adaptive controller with a target_kl is known"


def has_target(context: RuleContext, _key: str) -> str | None:
    """Exempt the comparison with a run's own past where a target says more."""
    if stated_target(context.run) is None:
        return None
    return "judged against target_kl"


def of_own_making(_context: RuleContext, key: str) -> str | None:
    """Exempt a home-made log's KL from limits per token: it may be that of whole responses."""
    if key not in HOME_MADE:
        return None
    return f"whether {key} is per token or per response is unknown"
