"""Samples begin to repeat themselves: they leave their own past."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import Condition, Spans, Words
from verl_tui.health.conditions.shift import Shift
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.health.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.health.guide import Rule
    from verl_tui.health.moment import Moment

_PAST, _LEAST, _RECENT = 30, 4, 2
"""Steps with samples that make the past, how many of them there must be, and how many must have left it."""


class _Figure(NamedTuple):
    name: str
    title: str
    way: float
    """How far it must go, in its own unit (shares): heuristic."""


_FIGURES = tuple(
    _Figure(prefix + name, f"{title}{where}", way)
    for prefix, where in (("samples/", ""), ("val_samples/", " in validation"))
    for name, title, way in (
        ("repetition", "repetition of samples", 0.2),
        ("ngram_entropy", "n-gram entropy of samples", -0.15),
    )
)


class Repetition(Diagnosis):
    """Repetition rate up, or n-gram entropy down, far beyond their usual spread."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._watches: dict[str, Watch] = {}

    def judge(self, moment: Moment) -> Finding | NotJudged | None:
        """Look at the figures that the samples give."""
        looked: list[tuple[str, str, Condition, int | None]] = []
        for figure in _FIGURES:
            key = moment.names.get(figure.name)
            series = moment.series(key) if key else None
            if key is None or series is None:
                continue
            watch = self._watches.setdefault(key, Watch(_make(figure.way)))
            looked.append((key, figure.title, *watch.look([series], moment.end)))
        if not looked:
            return NotJudged(self.rule.id, "the log has no samples")
        known = [one for one in looked if one[2].seen >= one[2].needs]
        if not known:
            most = max(one[2].seen for one in looked)
            return NotJudged(self.rule.id, f"needs {_LEAST + _RECENT} steps with samples, has {most}")
        # The figures of one kind tell the same story: the first that left its past tells it.
        told = [one for one in known if one[2].spans.open is not None]
        self.spans = next((one[2].spans for one in (*told, *known) if one[2].spans.all), Spans(0))
        return self._finding(moment, told) if told else None

    def _finding(self, moment: Moment, told: list[tuple[str, str, Condition, int | None]]) -> Finding | None:
        reports = [(key, step, condition.report(Words(title, moment.span))) for key, title, condition, step in told]
        key, step, first = reports[0]
        if first is None:
            return None
        return Finding(
            self.rule.id,
            self.rule.severity,
            first.message,
            step=step,
            since_step=min(report.since for _, _, report in reports if report is not None),
            evidence=tuple(f"{at}: {words}" for at, _, report in reports if report for words in report.evidence),
            advice=self.rule.advice,
            source=self.rule.source,
            key=key,
        )


def _make(way: float) -> Callable[[], Shift]:
    return lambda: Shift(window=_PAST, least=_LEAST, recent=_RECENT, way=way)
