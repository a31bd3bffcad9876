"""Most groups of samples have the same score throughout: they teach nothing."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import Judged, Wording, number
from verl_tui.health.conditions.stays import Range, Stays, Steadiness
from verl_tui.health.diagnoses.dead_cause import DeadCause, dead_cause, seen_by
from verl_tui.health.diagnoses.dead_share import SAMPLES, dead_share
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from verl_tui.health.conditions.condition import DescribedBreach
    from verl_tui.health.finding import Episode
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_GROUPS = "samples/groups"
_ENOUGH = 160
"""Groups that prove it, however few dumps they lie in: at a true share of 0.6, chance alone shows
0.7 of so many once in two hundred times.
"""
_LEAST = 5
"""Points at least: one batch has one kind of prompts."""


class DeadGroups(Diagnosis):
    """The share of groups without any spread in their scores stays high."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._causes: dict[int, DeadCause | None] = {}
        """Causes by the step at which the finding was raised: later points do not change the
        history.
        """
        self._seen: Hashable = None
        """All that the causes depend on besides the step."""

    @property
    def episodes(self) -> Sequence[Episode]:
        """All findings so far, oldest first, with their causes."""
        return [self._with_cause(one) for one in super().episodes]

    def _with_cause(self, episode: Episode) -> Episode:
        cause = self._causes.get(episode.raised_step or 0)
        if cause is None:
            return episode
        message = f"{episode.message}; {cause.words}"
        return episode._replace(severity=self._severity(cause), message=message)

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Look at the share, and at why it is so large."""
        rule = self.rule
        share = dead_share(context)
        if isinstance(share, str):
            return NotJudged(rule.id, share)
        key = share.key
        known = map(context.run.series, (key, *share.beside))
        series = [one for one in known if one is not None]
        window = self._window(context, key)
        points, step = share.column(series, context.end)
        steady = Steadiness(window, rule.share, rule.clear)
        stays = Judged(Stays(Range(high=rule.threshold), steady), points)
        self.breaches = stays.breaches
        if not stays.has_enough:
            return NotJudged(rule.id, f"needs {window} points, has {stays.seen}")
        self._note_causes(context)
        title = f"{rule.title} ({share.words})" if share.words else rule.title
        report = stays.report(Wording(title, context.duration))
        if report is None or step is None:
            return None
        return self._finding(context, key, report, step)

    def _note_causes(self, context: RuleContext) -> None:
        """Find the cause of each breach by what was known when it was raised."""
        seen = seen_by(context)
        if seen != self._seen:
            self._seen = seen
            self._causes = {}
        for breach in self.breaches.all:
            if breach.raised not in self._causes:
                self._causes[breach.raised] = dead_cause(context, breach.raised)

    def _finding(
        self, context: RuleContext, key: str, report: DescribedBreach, step: int
    ) -> Finding:
        rule = self.rule
        cause = dead_cause(context, step)
        message = report.message + _figures(context)
        advice = rule.advice
        if cause is not None:
            message += f"; {cause.words}"
            advice = cause.advice or advice
        return self.finding(
            message,
            [f"{key}: {words}" for words in report.evidence],
            since=report.since,
            step=step,
            key=key,
            severity=self._severity(cause),
            advice=advice or None,
        )

    def _severity(self, cause: DeadCause | None) -> Severity:
        if cause is not None and cause.calm:
            return Severity.INFO
        return self.rule.severity

    def _window(self, context: RuleContext, key: str) -> int:
        """Return the points that make the evidence: fewer where each is of many groups."""
        window = self.rule.window
        counts = context.run.series(_GROUPS)
        if key != context.names.get(SAMPLES) or counts is None or len(counts) < _LEAST:
            return window
        # The first ones only: the window must not change while a run goes on.
        usual = median(counts.values[:_LEAST])
        enough = math.ceil(_ENOUGH / max(1.0, usual))
        return min(window, max(_LEAST, enough))


def _newest(context: RuleContext, name: str) -> float | None:
    series = context.run.present(context.names.get(name))
    point = series.last_finite if series is not None else None
    return None if point is None else point.value


def _figures(context: RuleContext) -> str:
    """Return how many groups are all wrong or all right, in words, as far as it is known."""
    shares = {
        "all wrong": _newest(context, "samples/groups_all_wrong"),
        "all right": _newest(context, "samples/groups_all_right"),
    }
    parts = [
        f"{words} {number(share)}"
        for words, share in shares.items()
        if share is not None
    ]
    if parts:
        return f" ({', '.join(parts)} at the newest step)"
    reward = _newest(context, context.indicators.get("reward", ""))
    if reward is None:
        return ""
    return f" (the reward is {number(reward)})"
