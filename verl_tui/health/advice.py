"""Advice that a run's own log refutes is not given."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.dead_groups import may_be_constant
from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from verl_tui.health.finding import Finding
    from verl_tui.health.rule_context import RuleContext

_GO_BACK = pattern(r"\bgo back to (?:a|the) [^.;,]*", re.IGNORECASE)
_SCORER = pattern(
    r"Score by hand [^.]{0,200}\bthe scorer is constant\b[^.]{0,200}\. Otherwise (\w)"
)


def fitting(finding: Finding, context: RuleContext) -> Finding:
    """Return a finding without the advice to go back to before the first step, or to look for a
    constant scorer while scores differ.
    """
    advice = finding.advice or ""
    if _GO_BACK.search(advice) and _from_the_start(finding, context):
        advice = _GO_BACK.sub(_anew, advice)
    if _SCORER.search(advice) and not may_be_constant(context, finding.step or 0):
        advice = _SCORER.sub(lambda found: found[1].upper(), advice)
    return replace(finding, advice=advice or None)


def _anew(found: re.Match[str]) -> str:
    return ("S" if found[0][0] == "G" else "s") + "tart anew"


def _from_the_start(finding: Finding, context: RuleContext) -> bool:
    """Return whether it began with the run's first steps: no checkpoint is from before."""
    series = context.known(finding.key or context.indicators.get("reward"))
    since = finding.since_step
    if (
        series is None
        or since is None
        or any(at < since for at in context.run.checkpoints)
    ):
        return False
    first, second = (*series.steps[:2], series.steps[0] + 1)[:2]
    return since <= first <= max(1, second - first)
