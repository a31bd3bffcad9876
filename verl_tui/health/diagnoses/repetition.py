"""Samples begin to repeat themselves: they leave their own past."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.spread import shift
from verl_tui.health.diagnoses.diagnosis import FindingHistory, Remark, Told, diagnosis
from verl_tui.health.finding import Severity
from verl_tui.health.inputs import column_of
from verl_tui.health.reward import (
    gaining_components,
    has_learnt,
    no_part_lost,
    right_or_wrong,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Judged
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_PAST, _LEAST, _RECENT = 30, 4, 2
"""Steps with samples that make the past, how many of them there must be, and how many must have
left it.
"""


_FIGURES = {
    "samples/repetition": ("repetition of samples", 0.2),
    "samples/ngram_entropy": ("n-gram entropy of samples", -0.15),
    "val_samples/repetition": ("repetition of samples in validation", 0.2),
    "val_samples/ngram_entropy": ("n-gram entropy of samples in validation", -0.15),
}
"""Figure -> its title, and the least change in its own unit (shares): heuristic."""


class _JudgedFigure(NamedTuple):
    key: str
    title: str
    shift: Judged
    step: int | None
    """Step of its newest point."""


_SCORED = ("samples/score", "samples/score_std")
_SCORES = 100
"""Newest steps with samples that show whether answers are right or wrong."""
_LEARNT = ", although more answers are right than before: the repetition may follow the answer"
_NO_PART_LOST = (
    ", although the reward has gained and no part of it has fallen: the repetition may be what the "
    "task asks for"
)


@diagnosis("repetition")
def repetition(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a repetition rate up, or n-gram entropy down, far beyond their usual spread; information
    where answers had become better, or where a reward of several parts had gained without losing
    any.
    """
    figures = list(_judged_figures(context))
    if not figures:
        return "the log has no samples"
    judged = [one for one in figures if one.shift.needs is None]
    if not judged:
        most = max(one.shift.seen for one in figures)
        return f"needs {_LEAST + _RECENT} steps with samples, has {most}"
    breached = [one for one in judged if one.shift.open is not None]
    # The first figure that has breaches counts: they go together.
    known = [one.shift.breaches for one in (*breached, *judged)]
    reward = context.indicators.get("reward")
    parts = gaining_components(context.run, reward)
    keys = (*map(context.names.get, _SCORED), *parts, reward)
    remark = partial(_remark, rule.severity)
    return FindingHistory(
        _told(context, breached, remark(context)) if breached else None,
        next(filter(None, known), ()),
        remark,
        context.revisions(keys),
    )


def _told(
    context: RuleContext, breached: Sequence[_JudgedFigure], remark: Remark
) -> Told:
    told = [one.shift.report(one.title, context.duration) for one in breached]
    first, held = breached[0], [one.shift.open for one in breached]
    return Told(
        {"told": told[0][0] + remark.words},
        [
            f"{one.key}: {sentence}"
            for one, (_, *evidence) in zip(breached, told, strict=True)
            for sentence in evidence
        ],
        since=min(breach.since for breach in held if breach is not None),
        step=first.step,
        key=first.key,
        severity=remark.severity,
    )


def _remark(severity: Severity, context: RuleContext) -> Remark:
    if _better(context):
        return Remark(Severity.INFO, _LEARNT)
    if no_part_lost(context):
        return Remark(Severity.INFO, _NO_PART_LOST)
    return Remark(severity, "")


def _judged_figures(context: RuleContext) -> Iterator[_JudgedFigure]:
    """Yield the figures that the log has, each as it is now."""
    for name, (title, way) in _FIGURES.items():
        key = context.names.get(name)
        series = context.run.series(key) if key else None
        if key is not None and series is not None:
            points, step = column_of([series], context.end)
            found = shift(points, _PAST, _LEAST, _RECENT, way)
            yield _JudgedFigure(key, title, found, step)


def _better(context: RuleContext) -> bool:
    """Return whether answers that are either right or wrong are more often right than they used to
    be.
    """
    score, spread = (context.known(context.names.get(name)) for name in _SCORED)
    if score is None or spread is None or len(score) != len(spread):
        return False
    if not right_or_wrong(score.tail(_SCORES), spread.tail(_SCORES)):
        return False
    return has_learnt(score.values)
