"""The policy breaks: the reward falls off a cliff as a KL leaves its band or samples loop."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.collapse_signs import (
    BEFORE,
    Surroundings,
    first_sign,
    has_signs,
    signs_of,
)
from verl_tui.health.conditions.condition import Judged, number
from verl_tui.health.conditions.falls import Cliff, Vanish
from verl_tui.health.conditions.restarts import Scaled
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.health.inputs import column_of
from verl_tui.health.learnt import learning
from verl_tui.health.suspect_settings import drift_causes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.conditions.condition import Breach
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_LEVEL, _RECENT, _GAP = 40, 5, 15
"""Points that make the reward's level before, that must have fallen, and that the fall itself may
take: heuristic.
"""
_FEW_BEFORE, _FEW_RECENT, _FEW_GAP = 5, 2, 2
"""The same for logs of few points, each perhaps of a thousand steps: five before, found within
five.
"""
_FEW_SIGMAS = 5.0
"""Standard deviations that such a fall must exceed: ten points know them poorly."""
_AT_ONCE, _AT_FIRST = 0.75, 0.6
"""In a log whose points are far apart a single one is enough that has lost so much of the level. In
the first steps, which have no past but the first points, five that have lost so much.
"""
_JUMP, _JUMP_FLOOR = 100.0, 10.0
"""A KL to the reference that is at once so many times its highest, and beyond so many nats, has no
need of a falling reward: no healthy one, per token or of whole responses, leaps so far.
"""
_GENERAL = (
    "Stop the run and go back to the last good checkpoint. Then a higher KL coefficient "
    "(the guide's band is 0.01 to 0.1), a lower learning rate or a narrower clip."
)
_TUTORIAL = (
    "Stop the run and go back to the last good checkpoint. Then kl_coef 0.02 with the adaptive "
    "controller (target_kl 0.05), kl_coef kept within [0.01, 0.1]."
)
_OF_MANY = Surroundings(BEFORE, 30, few=False)
_OF_FEW = Surroundings(4 * _FEW_BEFORE, 2 * _FEW_BEFORE)
_OF_ONE = _OF_FEW._replace(out=1)


class _Fall(NamedTuple):
    """A fall of the reward that holds."""

    edge: int
    """Its first step."""
    level: float
    """The level before."""
    foot: float


class PolicyCollapse(Diagnosis):
    """A cliff in the reward, with a KL out of its band or samples that repeat themselves."""

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Look for a fall, then for a KL or samples that show it to be the policy's fault; else for
        a KL that needs no fall.
        """
        reward = context.run.indicator("reward")
        if reward is None or not has_signs(context):
            missing = "reward" if reward is None else "KL and no samples"
            return NotJudged(self.rule.id, f"the log has no {missing}")
        found: Finding | None = None
        collapses: list[Breach] = []
        points, step = column_of([reward], context.end)
        for around, condition in _watches(self.rule.threshold):
            watch = Judged(condition, points)
            known = _collapses(watch, context, reward, around)
            collapses += known.values()
            fall = _fall(watch, reward)
            if found is None and fall is not None and fall.edge in known:
                found = self._finding(context, reward, fall, step)
        jumps, jump = self._jump(context)
        self._note([*collapses, *jumps])
        return found or jump or self._early(watch)

    def _early(self, watch: Judged) -> NotJudged | None:
        if watch.has_enough:
            return None
        needed = watch.condition.needs
        return NotJudged(self.rule.id, f"needs {needed} points, has {watch.seen}")

    def _jump(self, context: RuleContext) -> tuple[list[Breach], Finding | None]:
        """Return where the KL to the reference jumped beyond all bounds, with the finding while it
        stays there and the reward does not gain.
        """
        kl = context.run.indicator("reference_kl")
        if kl is None:
            return [], None
        points, step = column_of([kl], context.end)
        jumps = Judged(Scaled(_JUMP, _FEW_BEFORE, _JUMP_FLOOR), points)
        breach = jumps.open
        what = [one._replace(what=f"reference KL {one.what}") for one in jumps.breaches]
        if breach is None or learning(context, kl.key):
            return what, None
        return what, self.finding(
            f"the policy has left the reference: reference KL {breach.what} at step "
            f"{breach.since} and has stayed there",
            (
                f"{kl.key}: a hundred times its highest and more, newest {number(kl.values[-1])}",
                *(cause.words for cause in drift_causes(context.run)),
            ),
            since=breach.since,
            step=step,
            key=kl.key,
            advice=_GENERAL,
        )

    def _note(self, collapses: list[Breach]) -> None:
        self.breaches.clear()
        until: float = -math.inf
        for breach in sorted(collapses, key=lambda one: (one.raised, one.since)):
            if breach.since > until:  # else several saw the same fall
                what = f"collapsed: {breach.what}"
                self._begin(breach._replace(what=what), goes_on=False)
                until = math.inf if breach.cleared is None else breach.cleared

    def _finding(
        self, context: RuleContext, reward: Series, fall: _Fall, step: int | None
    ) -> Finding:
        edge, level, foot = fall
        signs, shown = signs_of(context, reward, edge)
        causes = drift_causes(context.run)
        cliff = f"reward cliff at step {edge}"
        way = f"from {number(level)} to {number(foot)}"
        evidence = [f"{cliff}: {way} ({reward.key})", *shown]
        evidence += [cause.words for cause in causes]
        names = {cause.name for cause in causes}
        return self.finding(
            f"the policy collapsed: {cliff}, {way}; {signs}",
            evidence,
            since=edge,
            step=step,
            key=reward.key,
            advice=_TUTORIAL if names & {"kl_coef", "kl_controller"} else _GENERAL,
        )


def _watches(share: float) -> Sequence[tuple[Surroundings, Cliff | Vanish]]:
    """Return the watches for a fall: in many points, in few, in the first steps of all, which have
    no level before, and at the first of few points that are far apart.
    """
    level = 2 * _FEW_BEFORE
    many = Cliff(_LEVEL, _RECENT, _GAP, share)
    few = Cliff(level, _FEW_RECENT, _FEW_GAP, share, _FEW_SIGMAS, unlike_all=True)
    start = Vanish(share=1 - _AT_FIRST, back=0.5, recent=_RECENT, within=BEFORE)
    one = Cliff(level, 1, 0, _AT_ONCE, sigmas=1.0, unlike_all=True)
    return ((_OF_MANY, many), (_OF_FEW, few), (_OF_FEW, start), (_OF_ONE, one))


def _fall(watch: Judged, reward: Series) -> _Fall | None:
    """Return the fall that holds, None without one."""
    if watch.open is None or watch.spell is None:
        return None
    facts = watch.spell.facts
    foot = facts.get("foot", reward.values[-1])
    return _Fall(watch.open.since, facts["level"], foot)


def _collapses(
    watch: Judged, context: RuleContext, reward: Series, around: Surroundings
) -> dict[int, Breach]:
    """Return the falls with a sign that they are the policy's, by their first step; each is raised
    when both were known.
    """
    found = {}
    for breach in watch.breaches:
        sign = first_sign(context, reward, breach.since, around)
        if sign is not None:
            raised = max(breach.raised, sign)
            what = f"reward {breach.what}"
            found[breach.since] = breach._replace(raised=raised, what=what)
    return found
