"""Exemptions by the settings of a run, and by how it controls its KL."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from verl_tui.health.limits import adaptive
from verl_tui.means import finite
from verl_tui.patterns import pattern

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


_SEQUENCES = pattern(r"gspo|seq(?:uence)?(?:_|-|$)", re.IGNORECASE)


def clips_sequences(context: RuleContext, key: str) -> str | None:
    """Exempt the clip fraction of GSPO: it clips about a hundred times as much by design (arXiv
    2507.18071).
    """
    for names in (
        ["policy_loss.loss_mode", "loss_mode"],
        ["importance_sampling_level"],
    ):
        stated = context.run.config.find(names)
        if (
            stated is not None
            and isinstance(stated[1], str)
            and _SEQUENCES.match(stated[1])
        ):
            clips = f"{stated[0]} is {stated[1]}: it clips whole sequences"
            return f"{clips}, so that {key} is large by design"
    return None


def no_sequence_weights(context: RuleContext, _key: str) -> str | None:
    """Exempt rules on importance weights per sequence if weights are per token."""
    stated = context.run.config.find(["rollout_correction.rollout_is", "rollout_is"])
    if stated is None:
        return "it is unknown whether importance weights are per sequence: no settings were found"
    if stated[1] == "sequence":
        return None
    return f"only for importance weights per sequence; {stated[0]} is {stated[1]}"
