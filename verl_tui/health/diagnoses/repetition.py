"""Samples begin to repeat themselves: they leave their own past."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import Breaches, Judged, Wording
from verl_tui.health.conditions.shift import Shift
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.inputs import column_of
from verl_tui.health.learnt import has_learnt, right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from verl_tui.health.finding import Episode
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_PAST, _LEAST, _RECENT = 30, 4, 2
"""Steps with samples that make the past, how many of them there must be, and how many must have
left it.
"""


class _SampleFigure(NamedTuple):
    name: str
    title: str
    way: float
    """Least change, in its own unit (shares): heuristic."""


_FIGURES = (
    _SampleFigure("samples/repetition", "repetition of samples", 0.2),
    _SampleFigure("samples/ngram_entropy", "n-gram entropy of samples", -0.15),
    _SampleFigure("val_samples/repetition", "repetition of samples in validation", 0.2),
    _SampleFigure(
        "val_samples/ngram_entropy", "n-gram entropy of samples in validation", -0.15
    ),
)


class _JudgedFigure(NamedTuple):
    key: str
    title: str
    shift: Judged
    step: int | None
    """Step of its newest point."""

    def wording(self, context: RuleContext) -> Wording:
        return Wording(self.title, context.duration)


_SCORED = ("samples/score", "samples/score_std")
_SCORES = 100
"""Newest steps with samples that show whether answers are right or wrong."""
_LEARNT = (
    "although more answers are right than before: the repetition may follow the answer"
)


class Repetition(Diagnosis):
    """Repetition rate up, or n-gram entropy down, far beyond their usual spread."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._calm: dict[int, bool] = {}
        """True if answers had become better, by the step at which it was raised: later ones change
        no history.
        """
        self._seen: Hashable = None
        """All that it depends on besides the step."""

    @property
    def episodes(self) -> Sequence[Episode]:
        """All findings so far, oldest first; information where answers had become better."""
        return [self._calmed(episode) for episode in super().episodes]

    def _calmed(self, episode: Episode) -> Episode:
        if not self._calm.get(episode.raised_step or 0, False):
            return episode
        message = f"{episode.message}, {_LEARNT}"
        return episode._replace(severity=Severity.INFO, message=message)

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Judge repetition and n-gram entropy of the samples."""
        figures = list(self._update(context))
        if not figures:
            return NotJudged(self.rule.id, "the log has no samples")
        judged = [one for one in figures if one.shift.has_enough]
        if not judged:
            needed = _LEAST + _RECENT
            most = max(one.shift.seen for one in figures)
            reason = f"needs {needed} steps with samples, has {most}"
            return NotJudged(self.rule.id, reason)
        breached = [one for one in judged if one.shift.breaches.open is not None]
        self.breaches = _first_breaches((*breached, *judged))
        self._note_learning(context)
        if not breached:
            return None
        return self._finding(context, breached)

    def _update(self, context: RuleContext) -> Iterator[_JudgedFigure]:
        """Yield the figures that the log has, each as it is now."""
        for figure in _FIGURES:
            key = context.names.get(figure.name)
            series = context.run.series(key) if key else None
            if key is not None and series is not None:
                points, step = column_of([series], context.end)
                shift = Judged(Shift(_PAST, _LEAST, _RECENT, figure.way), points)
                yield _JudgedFigure(key, figure.title, shift, step)

    def _note_learning(self, context: RuleContext) -> None:
        """Note for each breach whether answers had become better by then."""
        seen = _seen_by(context)
        if seen != self._seen:
            self._seen = seen
            self._calm = {}
        for breach in self.breaches.all:
            if breach.raised not in self._calm:
                self._calm[breach.raised] = _better(context.at(breach.raised))

    def _finding(self, context: RuleContext, breached: list[_JudgedFigure]) -> Finding:
        reports = []
        evidence = []
        for one in breached:
            report = one.shift.report(one.wording(context))
            if report is not None:
                reports.append(report)
                evidence += [f"{one.key}: {words}" for words in report.evidence]
        severity = self.rule.severity
        message = reports[0].message
        if _better(context):
            severity = Severity.INFO
            message += f", {_LEARNT}"
        return self.finding(
            message,
            evidence,
            since=min(report.since for report in reports),
            step=breached[0].step,
            key=breached[0].key,
            severity=severity,
        )


def _first_breaches(figures: Iterable[_JudgedFigure]) -> Breaches:
    """Return the breaches of the first figure that has any: the figures go together."""
    known = (one.shift.breaches for one in figures)
    return next((breaches for breaches in known if breaches.all), Breaches(cooldown=0))


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


def _seen_by(context: RuleContext) -> Hashable:
    revisions = []
    for name in _SCORED:
        key = context.names.get(name)
        series = context.run.series(key) if key is not None else None
        if series is not None:
            revisions.append(series.revision)
    return context.end, tuple(revisions)
