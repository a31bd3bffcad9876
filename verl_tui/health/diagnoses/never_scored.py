"""A part of the reward has never scored, while the others make the total look well."""

from __future__ import annotations

import re
from statistics import fmean
from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX
from verl_tui.health.components import components, weights
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.learnt import gains
from verl_tui.means import finite
from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_TOP = 0.95
"""The total is at its top at so much of its highest so far: heuristic."""
_ROUNDING = 1e-9
_A_SCORE = pattern(
    r"acc|correct|reward|score|right|format|answer|pass|solve|success", re.I
)
"""Names of figures of samples that are scores: others, as of tools, may well be 0."""


class NeverScored(Diagnosis):
    """A part at its floor at all points, under a total that is at its top or rises."""

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Look at all parts from their first points on."""
        rule = self.rule
        reward = context.known(context.indicators.get("reward"))
        parts = components(context.run.keys, reward.key if reward is not None else None)
        if reward is None or len(parts) < 2:
            return NotJudged(rule.id, "the log has no components of the reward")
        if len(reward) < rule.window:
            return NotJudged(rule.id, f"needs {rule.window} points, has {len(reward)}")
        silent = silent_parts(context, parts, rule.window)
        finding = self._finding(reward, silent) if silent else None
        self.remember(finding, reward.steps[-1])
        return finding

    def _finding(self, reward: Series, silent: Sequence[Series]) -> Finding | None:
        rule = self.rule
        level = fmean(finite(reward.tail(rule.window)) or [0.0])
        severity = rule.severity
        how = f"is at its top ({number(level)})"
        if not level >= _TOP * reward.highest > 0:
            if not gains(reward.values):
                return None
            severity = Severity.INFO  # what still rises may come to score
            how = f"rises ({number(level)} now)"
        names = ", ".join(one.key for one in silent)
        verb = "have" if len(silent) > 1 else "has"
        points = max(map(len, silent))
        return self.finding(
            f"{names} {verb} never scored in {points} points, while the reward {how}",
            [
                f"{one.key}: {number(one.highest)} at all of {len(one)} points"
                for one in silent
            ],
            since=min(one.steps[0] for one in silent),
            step=reward.steps[-1],
            key=silent[0].key,
            severity=severity,
        )


def silent_parts(
    context: RuleContext, parts: Sequence[str], least: int
) -> Sequence[Series]:
    """Return the parts of a reward that count in it, have so many points at least, and have never
    scored.
    """
    known = weights(context.run, parts)
    counted = [key for key in parts if known.get(key, 1.0) > 0 and _is_score(key)]
    return [
        one
        for one in map(context.known, counted)
        if one is not None and len(one) >= least and _is_at_its_floor(one)
    ]


def _is_score(key: str) -> bool:
    return not key.startswith(PREFIX) or _A_SCORE.search(key) is not None


def _is_at_its_floor(part: Series) -> bool:
    floor = part.highest
    return floor <= 0 and part.first_beyond(floor - _ROUNDING, down=True) is None
