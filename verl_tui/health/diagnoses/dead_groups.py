"""Most groups of samples have the same score throughout: they teach nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import Words, number
from verl_tui.health.conditions.stays import Range, Stays, Steadiness
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.health.watch import Watch

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.moment import Moment

_NAMES = (
    "samples/dead_groups",
    "frac_reward_zero_std",
    "train/frac_reward_zero_std",
    "rollout/zero_std/all",
    "train/zero_std_fraction",
)
"""Shares of dead groups, best first: those of the dumps, then the trainers' own (TRL and others)."""


class DeadGroups(Diagnosis):
    """The share of groups without any spread in their scores stays high."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._watches: dict[str, Watch] = {}

    def judge(self, moment: Moment) -> Finding | NotJudged | None:
        """Look at the share, and at whether they are all wrong or all right."""
        rule = self.rule
        key = next((moment.names[name] for name in _NAMES if name in moment.names), None)
        series = moment.series(key) if key else None
        if key is None or series is None:
            return NotJudged(rule.id, "neither samples in groups nor the trainer tell the share of dead groups")
        watch = self._watches.setdefault(
            key, Watch(lambda: Stays(Range(high=rule.threshold), Steadiness(rule.window, rule.share, rule.clear)))
        )
        stays, step = watch.look([series], moment.end)
        self.spans = stays.spans
        if stays.seen < stays.needs:
            return NotJudged(rule.id, f"needs {stays.needs} points, has {stays.seen}")
        report = stays.report(Words(rule.title, moment.span))
        if report is None:
            return None
        return Finding(
            rule.id,
            rule.severity,
            report.message + _why(moment),
            step=step,
            since_step=report.since,
            evidence=tuple(f"{key}: {words}" for words in report.evidence),
            advice=rule.advice or None,
            source=rule.source,
            key=key,
        )


def _why(moment: Moment) -> str:
    """Say whether groups are all wrong or all right, as far as that is known."""
    parts = []
    for name, words in (("samples/groups_all_wrong", "all wrong"), ("samples/groups_all_right", "all right")):
        series = moment.run.present(moment.names.get(name))
        point = series.last_finite if series is not None else None
        if point is not None:
            parts.append(f"{words} {number(point.value)}")
    if parts:
        return f" ({', '.join(parts)} at the newest step)"
    reward = moment.run.present(moment.indicators.get("reward"))
    point = reward.last_finite if reward is not None else None
    return f" (the reward is {number(point.value)})" if point is not None else ""
