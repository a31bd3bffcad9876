"""A node's disk fills up, as Ray's raylets report from 95% on: once it is full no checkpoint and no
spilled object can be written.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.root_cause import line_shown
from verl_tui.health.rule_context import minutes
from verl_tui.patterns import pattern
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.troubles import Trouble

_LINE = pattern(
    r"(?P<folder>\S{1,300}) is over [\d.]{1,9}% full, "
    r"available space: (?P<free>\d{1,20}(?:\.\d{1,9})?)(?P<gb> GB)?; "
    r"capacity: (?P<all>\d{1,20}(?:\.\d{1,9})?)"
)
"""Ray's line (file_system_monitor.cc); its older versions count bytes."""
_GB = 2.0**30
_DAY = 86400
_AHEAD, _SOON = 86400.0, 3600.0
"""More than a day ahead is too far to predict, less than an hour is critical: heuristic."""


class _Disk(NamedTuple):
    """A disk that is almost full."""

    seconds: float
    """Until it is full at the rate since Ray's first line, infinite if it does not fill up."""
    free: float
    """GB."""
    before: float
    """GB that were free at Ray's first line."""
    words: str
    path: str
    """The log that says so."""
    trouble: Trouble


class DiskFilling(Diagnosis):
    """A disk will be full within a day, or has too little room for a checkpoint."""

    alive = True
    sentences = True

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Report the disk that will be full first."""
        disks = list(_disks(context, self.rule.window))
        nearest = min(disks, key=lambda disk: disk[:2], default=None)
        finding = None
        if (
            nearest is not None
            and context.state is not State.FINISHED
            and (nearest.seconds <= _AHEAD or nearest.free < self.rule.threshold)
        ):
            finding = self._finding(context, nearest)
        self.remember(finding, context.run.step)
        if nearest is None:
            return NotJudged(self.rule.id, "no raylet calls a disk almost full")
        return finding

    def _finding(self, context: RuleContext, disk: _Disk) -> Finding:
        first, last = disk.trouble.first, disk.trouble.last
        words = f"a disk is almost full: {disk.words}"
        if disk.seconds < inf:
            when = minutes(disk.seconds) if disk.seconds >= 1 else "a moment"
            words = (
                f"a disk fills up: {disk.words}, {number(disk.before)} GB when Ray first said so: "
                f"at this rate it is full in {when}"
            )
        going = context.state in (State.RUNNING, State.STALLED)
        soon = going and disk.seconds < _SOON
        return self.finding(
            words,
            [line_shown(disk.path, event) for event in dict.fromkeys((first, last))],
            since=disk.trouble.since,
            step=context.run.step,
            severity=Severity.CRITICAL if soon else self.rule.severity,
        )


def _disks(context: RuleContext, window: int) -> Iterator[_Disk]:
    """Yield the disks that were called almost full within the last steps."""
    for path, state in context.run.sources.items():
        for trouble in state.troubles:
            is_recent = (state.step or 0) - (trouble.step or 0) <= window
            found = _disk(context, path, trouble) if is_recent else None
            if found is not None:
                yield found


def _disk(context: RuleContext, path: str, trouble: Trouble) -> _Disk | None:
    first = _LINE.search(trouble.first.text)
    last = _LINE.search(trouble.last.text)
    if first is None or last is None:
        return None
    gb = 1.0 if last["gb"] else _GB
    free, before, every = (
        float(size) / gb for size in (last["free"], first["free"], last["all"])
    )
    node = f" {trouble.last.where}" if trouble.last.where else ""
    words = f"{last['folder']}{node} has {number(free)} of {number(every)} GB left"
    took = _took(context, trouble)
    seconds = free / (before - free) * took if took and before > free else inf
    return _Disk(seconds, free, before, words, path, trouble)


def _took(context: RuleContext, trouble: Trouble) -> float:
    """Return the seconds between the first and the last line, by steps where some lie between; 0
    where unknown.
    """
    first, last = trouble.first, trouble.last
    steps = (last.step or 0) - (first.step or 0)
    if steps > 0 and context.pace is not None:
        return steps * context.pace.seconds
    if first.clock is None or last.clock is None:
        return 0.0
    return float((last.clock - first.clock) % _DAY)
