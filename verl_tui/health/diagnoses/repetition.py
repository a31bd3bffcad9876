"""Samples begin to repeat themselves: they leave their own past."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from verl_tui.health.conditions.rises import shift
from verl_tui.health.diagnoses.diagnosis import FindingHistory, Told, diagnosis
from verl_tui.health.finding import Severity
from verl_tui.health.inputs import column_of
from verl_tui.health.reward import has_learnt, right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_SCORED = ("samples/score", "samples/score_std")
_SCORES = 100
"""Newest steps with samples that show whether answers are right or wrong."""
_LEARNT = ", although more answers are right than before: the repetition may follow the answer"


@diagnosis("repetition")
def repetition(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a repetition rate up, or n-gram entropy down, far beyond their usual spread; information
    where answers had become better.
    """
    judged = []
    for name, (title, way) in _FIGURES.items():
        series = context.known(context.names.get(name))
        if series is not None:
            points, step = column_of([series], context.end)
            judged.append(
                (series.key, title, step, shift(points, _PAST, _LEAST, _RECENT, way))
            )
    if not judged:
        return "the log has no samples"
    most = max(one.seen for *_, one in judged)
    if most < _LEAST + _RECENT:
        return f"needs {_LEAST + _RECENT} steps with samples, has {most}"
    remark = partial(_remark, rule.severity)
    # The first figure that has breaches counts: they go together.
    held = [one for one in judged if one[-1].open is not None]
    known = [one.breaches for *_, one in (*held, *judged)]
    now = _told(context, held, *remark(context)) if held else None
    return FindingHistory(now, next(filter(None, known), ()), remark)


def _told(
    context: RuleContext,
    held: Sequence[tuple[str, str, int | None, Judged]],
    severity: Severity,
    words: str,
) -> Told:
    told = [(key, *one.report(title, context.duration)) for key, title, _, one in held]
    return Told(
        {"told": told[0][1] + words},
        [f"{key}: {sentence}" for key, _, *evidence in told for sentence in evidence],
        since=min(one.open.since for *_, one in held if one.open is not None),
        step=held[0][2],
        key=held[0][0],
        severity=severity,
    )


def _remark(severity: Severity, context: RuleContext) -> tuple[Severity, str]:
    score, spread = (context.finite(context.names.get(name)) for name in _SCORED)
    is_right = right_or_wrong(score[-_SCORES:], spread[-_SCORES:])
    if len(score) == len(spread) and is_right and has_learnt(score):
        return Severity.INFO, _LEARNT
    return severity, ""
