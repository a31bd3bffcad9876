"""Most groups of samples have the same score throughout: they teach nothing."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import Judged, number
from verl_tui.health.conditions.stays import Range, Stays
from verl_tui.health.diagnoses.dead_cause import dead_cause, seen_by
from verl_tui.health.diagnoses.dead_share import SAMPLES, dead_share
from verl_tui.health.diagnoses.diagnosis import Diagnosis, Remark
from verl_tui.health.finding import Finding, NotJudged, Severity

if TYPE_CHECKING:
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
        high = Range(high=rule.threshold)
        stays = Judged(Stays(high, window, rule.share, rule.clear), points)
        self.breaches = stays.breaches
        if not stays.has_enough:
            return NotJudged(rule.id, f"needs {window} points, has {stays.seen}")
        self.note_remarks(context, seen_by(context), self._remark)
        if stays.open is None or step is None:
            return None
        message, *evidence = stays.report(rule.title + share.words, context.duration)
        now = context.at(step)
        cause = dead_cause(now)
        severity, words = self._remark(now)
        return self.finding(
            message + _figures(context) + words,
            [f"{key}: {sentence}" for sentence in evidence],
            since=stays.open.since,
            step=step,
            key=key,
            severity=severity,
            advice=(cause.advice if cause is not None else "") or None,
        )

    def _remark(self, context: RuleContext) -> Remark:
        """Return the cause by what is known, and how bad it is."""
        cause = dead_cause(context)
        if cause is None:
            return Remark(self.rule.severity, "")
        severity = Severity.INFO if cause.calm else self.rule.severity
        return Remark(severity, f"; {cause.words}")

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
