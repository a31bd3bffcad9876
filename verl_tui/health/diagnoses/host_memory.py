"""The host's memory fills up, step by step; at 95% of the node Ray kills workers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.memory_growth import MemoryGrowth, memory_growth, memory_series
from verl_tui.health.rule_context import minutes
from verl_tui.patterns import pattern
from verl_tui.runs.views.state import State
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.records import Event

_KILLED = pattern(
    r"killed due to memory pressure|running low on memory|was [\d.]+GB / [\d.]+GB \("
)
_OF = pattern(r"was ([\d.]+)GB / ([\d.]+)GB \(")
_GROWN, _GROWN_GB = 0.25, 20.0
"""Growth to report if the node's size is unknown, a quarter and 20 GB: heuristic."""
_SOON, _AHEAD = 3600.0, 86400.0
"""Below an hour it is critical; more than a day ahead is too far to predict: heuristic."""


class HostMemory(Diagnosis):
    """Memory of the host grows steadily, or Ray has killed workers for want of it."""

    alive: ClassVar[bool] = True  # what has ended fills no memory
    sentences: ClassVar[bool] = True

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._judged: tuple[int, MemoryGrowth | NotJudged | None] = (-1, None)

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Judge the growth, and Ray's messages."""
        run = context.run
        if self._judged[0] != run.revision:
            self._judged = (run.revision, self._growth(context))
        killed = [
            trouble.last
            for state in run.sources.values()
            for trouble in state.troubles
            if _KILLED.search(trouble.last.text)
        ]
        growth = self._judged[1]
        finding = None
        if killed:
            finding = self._killed(context, killed)
        elif isinstance(growth, MemoryGrowth) and context.state is not State.FINISHED:
            finding = self._filling(context, growth)
        self.remember(finding, run.step)
        if finding is None and isinstance(growth, NotJudged):
            return growth
        return finding

    def _growth(self, context: RuleContext) -> MemoryGrowth | NotJudged | None:
        found = memory_series(context)
        window = self.rule.window
        if found is None:
            return NotJudged(self.rule.id, "the log has no memory of the host")
        if len(found[1]) < window:
            reason = f"needs {window} points, has {len(found[1])}"
            return NotJudged(self.rule.id, reason)
        return memory_growth(context, window)

    def _filling(self, context: RuleContext, growth: MemoryGrowth) -> Finding | None:
        unit = growth.unit
        rise = (
            f"the host's memory grows steadily, from {number(growth.first)}{unit} "
            f"at step {growth.since} to {number(growth.now)}{unit}"
        )
        severity = self.rule.severity
        if growth.full is None:
            if growth.now - growth.first < max(_GROWN_GB, _GROWN * growth.first):
                return None
            words = (
                f"{rise}; the node's memory is unknown, and so is when it will be full"
            )
        else:
            left = max(0.0, growth.full - growth.now) / growth.each
            seconds = left * context.pace.seconds if context.pace is not None else None
            if _too_far(context, growth.step + left, seconds):
                return None
            words = f"{rise}: {_when_full(left, seconds, growth.full, unit)}"
            if _is_near(context, seconds):
                severity = Severity.CRITICAL
        evidence = (
            f"{growth.key}: {number(growth.each)}{unit} a step "
            f"over steps {growth.since}–{growth.step}"
        )
        if context.pace:
            evidence += (
                f", {number(growth.each * 3600 / context.pace.seconds)}{unit} an hour"
            )
        return self.finding(
            words,
            (evidence,),
            since=growth.since,
            step=growth.step,
            key=growth.key,
            severity=severity,
        )

    def _killed(self, context: RuleContext, events: Sequence[Event]) -> Finding:
        message = "Ray killed workers because the host's memory was full"
        for event in reversed(events):
            found = _OF.search(event.text)
            if found:
                message += f": {found[1]} of {found[2]} GB were in use"
                break
        steps = [event.step for event in events if event.step is not None]
        step = steps[-1] if steps else None
        evidence = [
            f"line {event.line}: {one_line(event.text, 160)}" for event in events[-3:]
        ]
        newest = context.run.step if step is None else step
        return self.finding(message, evidence, since=step, step=newest)


def _too_far(context: RuleContext, step: float, seconds: float | None) -> bool:
    """Return whether the run ends before the node is full, or that is too far ahead."""
    total = context.run.total_steps
    if total is not None and step > total:
        return True
    return seconds is not None and seconds > _AHEAD


def _is_near(context: RuleContext, seconds: float | None) -> bool:
    going = context.state in (State.RUNNING, State.STALLED)
    return going and seconds is not None and seconds < _SOON


def _when_full(steps: float, seconds: float | None, full: float, unit: str) -> str:
    when = f" (≈ {minutes(seconds)})" if seconds is not None else ""
    amount = "" if unit == "%" else f"{number(full)}{unit}, "
    return (
        f"in {math.ceil(steps):,} steps{when} it reaches {amount}95% of the node, "
        "where Ray kills workers"
    )
