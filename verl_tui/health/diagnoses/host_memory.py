"""The host's memory fills up, step by step; at 95% of the node Ray kills workers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.conditions.condition import number
from verl_tui.health.conditions.trend import trend
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.limits import positive_setting
from verl_tui.health.rule_context import minutes
from verl_tui.patterns import pattern
from verl_tui.runs.views.state import State
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.records import Event

_USED = ("perf/cpu_memory_used_gb", "actor/perf/cpu_memory_used_gb")
_SHARE = ("system/memory_percent", "system/memory")
"""W&B's figure of the host: percent in use."""
_TOTAL = ("perf/cpu_memory_total_gb", "actor/perf/cpu_memory_total_gb")
_KILLED = pattern(
    r"killed due to memory pressure|running low on memory|was [\d.]+GB / [\d.]+GB \("
)
_OF = pattern(r"was ([\d.]+)GB / ([\d.]+)GB \(")
_FULL = 0.95
"""Share of the node at which Ray kills (Ray's RAY_memory_usage_threshold)."""
_MOST = 200
"""Newest points that show the slope."""
_PARTS = 4
_EACH = 1 / 3
"""Every quarter must have grown by a third of an even share: one jump, or a cache that fills up, is
no leak.
"""
_GOES_ON = 0.5
"""In its second half it must have grown half as much as in its first: what fills up levels off."""
_SURE = 8.0
_GROWN, _GROWN_GB = 0.25, 20.0
"""Growth to report if the node's size is unknown, a quarter and 20 GB: heuristic."""
_SOON, _AHEAD = 3600.0, 86400.0
"""Below an hour it is critical; more than a day ahead is too far to predict: heuristic."""


class _Growth(NamedTuple):
    """A steady growth."""

    key: str
    since: int
    step: int
    first: float
    now: float
    each: float
    """Growth a step."""
    full: float | None
    """The most that Ray allows to be used, None if the node's size is unknown."""
    unit: str


class HostMemory(Diagnosis):
    """Memory of the host grows steadily, or Ray has killed workers for want of it."""

    alive: ClassVar[bool] = True  # what has ended fills no memory
    sentences: ClassVar[bool] = True

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._judged: tuple[int, _Growth | NotJudged | None] = (-1, None)

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Judge the growth, and Ray's messages."""
        run = context.run
        if self._judged[0] != run.revision:
            self._judged = (run.revision, self._growth(context))
        killed = [event for event in run.events if _KILLED.search(event.text)]
        growth = self._judged[1]
        finding = None
        if killed:
            finding = self._killed(context, killed)
        elif isinstance(growth, _Growth) and context.state is not State.FINISHED:
            finding = self._filling(context, growth)
        self.remember(finding, run.step)
        if finding is None and isinstance(growth, NotJudged):
            return growth
        return finding

    def _growth(self, context: RuleContext) -> _Growth | NotJudged | None:
        names = context.names
        key = next((names[name] for name in (*_USED, *_SHARE) if name in names), None)
        series = context.run.present(key)
        if key is None or series is None:
            return NotJudged(self.rule.id, "the log has no memory of the host")
        window = self.rule.window
        if len(series) < window:
            reason = f"needs {window} points, has {len(series)}"
            return NotJudged(self.rule.id, reason)
        share = key in {names.get(name) for name in _SHARE}
        count = _climb(list(series.values[-_MOST:]), window)
        if not count:
            return None
        values = series.values[-count:]
        steps = series.steps[-count:]
        each = trend(values).change / max(1, steps[-1] - steps[0])
        full = 100 * _FULL if share else _full(context)
        return _Growth(
            key,
            steps[0],
            steps[-1],
            values[0],
            values[-1],
            each,
            full,
            "%" if share else " GB",
        )

    def _filling(self, context: RuleContext, growth: _Growth) -> Finding | None:
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
        return self._growth_finding(
            words, severity, growth.step, growth.since, (evidence,), growth.key
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
        return self._growth_finding(
            message,
            self.rule.severity,
            context.run.step if step is None else step,
            step,
            tuple(evidence),
            None,
        )

    def _growth_finding(
        self,
        words: str,
        severity: Severity,
        step: int | None,
        since: int | None,
        evidence: tuple[str, ...],
        key: str | None,
    ) -> Finding:
        rule = self.rule
        return Finding(
            rule.id,
            severity,
            words,
            step,
            since,
            evidence,
            rule.advice,
            rule.source,
            key,
        )


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


def _climb(values: Sequence[float], least: int) -> int:
    """Return the newest values that climb steadily, as many as there are; 0 where they do not."""
    if not all(map(math.isfinite, values)):
        return 0
    if values[-1] < max(values[:-least], default=-math.inf):
        return 0
    for count in (len(values), 2 * least, least):
        before = values[:-count]
        stretch = values[-count:]
        # Memory that was as high before was released again: a sawtooth, not a leak.
        was_as_high = False
        if before:
            rise = values[-1] - stretch[0]
            was_as_high = values[-1] - max(before) < rise / 2
        if _steady(stretch) and not was_as_high:
            return len(stretch)
    return 0


def _steady(values: Sequence[float]) -> bool:
    """Return whether values rise beyond doubt, and in every part of their course."""
    if values[-1] <= values[0]:
        return False
    line = trend(values)
    if line.change <= 0 or line.t < _SURE:
        return False
    size = len(values) // _PARTS
    least = _EACH * line.change / _PARTS
    for i in range(_PARTS):
        stop = len(values) - i * size
        if trend(values[stop - size : stop]).change < least:
            return False
    half = len(values) // 2
    return trend(values[half:]).change >= _GOES_ON * trend(values[:half]).change


def _full(context: RuleContext) -> float | None:
    """Return how many GB of the node Ray lets be used, None where its size is not known."""
    for name in _TOTAL:
        series = context.run.present(context.names.get(name))
        point = series.last_finite if series is not None else None
        if point is not None and point.value > 0:
            return _FULL * point.value
    stated = positive_setting(
        context.run, ("cpu_memory_total_gb", "wandb.memory_total_gb")
    )
    if stated is None:
        return None
    return _FULL * stated[1]
