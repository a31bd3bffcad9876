"""Most groups of samples have the same score throughout: they teach nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import Words, number
from verl_tui.health.conditions.stays import Range, Stays, Steadiness
from verl_tui.health.diagnoses.dead_share import SAMPLES, dead_share
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.finding import Episode
    from verl_tui.health.guide import Rule
    from verl_tui.health.moment import Moment

_GROUPS = "samples/groups"
_ENOUGH = 160
"""Groups that prove it, however few dumps they lie in: at a true share of 0.6, chance alone shows 0.7 of so many once
in two hundred times."""
_LEAST = 5
"""Points at least: one batch has one kind of prompts."""
_MOSTLY = 0.5
_LATELY = 20
_TOP = 0.95
"""A mean reward from here on, on a scale that ends at 1, is that of a solved task: heuristic."""


class DeadGroups(Diagnosis):
    """The share of groups without any spread in their scores stays high."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._watches: dict[tuple[str, tuple[float, ...], int], Watch] = {}
        self._severity = rule.severity

    @property
    def episodes(self) -> Iterator[Episode]:
        """All that was found so far, oldest first."""
        return (replace(one, severity=self._severity) for one in super().episodes)

    def judge(self, moment: Moment) -> Finding | NotJudged | None:
        """Look at the share, and at whether they are all wrong or all right."""
        rule = self.rule
        share = dead_share(moment)
        if isinstance(share, str):
            return NotJudged(rule.id, share)
        key, series = share.key, moment.series(share.key)
        assert series is not None
        window = self._window(moment, key)
        basis = (key, share.figures, window)
        watch = self._watches.setdefault(basis, Watch(lambda: self._stays(window), share.stream()))
        stays, step = watch.look([series], moment.end)
        self.spans = stays.spans
        if stays.seen < stays.needs:
            return NotJudged(rule.id, f"needs {stays.needs} points, has {stays.seen}")
        title = f"{rule.title} ({share.words})" if share.words else rule.title
        solved = _solved(moment)
        self._severity = Severity.INFO if solved else rule.severity
        report = stays.report(Words(title, moment.span))
        if report is None:
            return None
        return Finding(
            rule.id,
            self._severity,
            report.message + _why(moment, solved=solved),
            step=step,
            since_step=report.since,
            evidence=tuple(f"{key}: {words}" for words in report.evidence),
            advice=rule.advice or None,
            source=rule.source,
            key=key,
        )

    def _stays(self, window: int) -> Stays:
        rule = self.rule
        return Stays(Range(high=rule.threshold), Steadiness(window, rule.share, rule.clear))

    def _window(self, moment: Moment, key: str) -> int:
        """Return the points that make the evidence: fewer where each is of many groups."""
        counts = moment.run.series(_GROUPS) if key == moment.names.get(SAMPLES) else None
        if counts is None or len(counts) < _LEAST:
            return self.rule.window
        # The first ones only: the window must not change while a run goes on.
        usual = median(counts.values[:_LEAST])
        return min(self.rule.window, max(_LEAST, math.ceil(_ENOUGH / max(1.0, usual))))


def _solved(moment: Moment) -> bool:
    """Return whether most groups are dead because the task is solved: all right, and nothing is left to learn."""
    right = _newest(moment, "samples/groups_all_right")
    if right is not None and right > _MOSTLY:
        return True
    # TRL and others do not say which, and the top may lie below 1; a mean next to it does.
    reward = moment.run.present(moment.indicators.get("reward"))
    newest = [value for value in reward.tail(_LATELY) if math.isfinite(value)] if reward is not None else []
    return reward is not None and bool(newest) and fmean(newest) >= _TOP and reward.highest <= 1


def _newest(moment: Moment, name: str) -> float | None:
    series = moment.run.present(moment.names.get(name))
    point = series.last_finite if series is not None else None
    return None if point is None else point.value


def _why(moment: Moment, *, solved: bool) -> str:
    """Say whether groups are all wrong or all right, as far as that is known."""
    end = "; the task is solved: nothing is left to learn from these prompts" if solved else ""
    parts = [
        f"{words} {number(value)}"
        for name, words in (("samples/groups_all_wrong", "all wrong"), ("samples/groups_all_right", "all right"))
        if (value := _newest(moment, name)) is not None
    ]
    if parts:
        return f" ({', '.join(parts)} at the newest step){end}"
    reward = _newest(moment, moment.indicators.get("reward", ""))
    return f" (the reward is {number(reward)}){end}" if reward is not None else end
