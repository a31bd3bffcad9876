"""A node's disk fills up, as Ray's raylets report from 95% on: once it is full no checkpoint and no
spilled object can be written.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.diagnoses.diagnosis import Told, diagnosis
from verl_tui.health.finding import Severity, number
from verl_tui.health.root_cause import line_shown
from verl_tui.health.rule_context import minutes
from verl_tui.patterns import pattern
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.health.guide import Rule
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


@diagnosis("disk-filling", alive=True)
def disk_filling(context: RuleContext, rule: Rule) -> Told | str | None:
    """Find the disk that will be full first, within a day, or that has too little room for a
    checkpoint.
    """
    disks = list(_disks(context, rule.window))
    disk = min(disks, key=lambda disk: disk[:2], default=None)
    if disk is None:
        return "no raylet calls a disk almost full"
    is_soon = disk.seconds <= _AHEAD or disk.free < rule.threshold
    if context.state is State.FINISHED or not is_soon:
        return None
    when = minutes(disk.seconds) if 1 <= disk.seconds < inf else "a moment"
    events = dict.fromkeys((disk.trouble.first, disk.trouble.last))
    is_near = context.goes_on and disk.seconds < _SOON
    return Told(
        {**disk._asdict(), "when": when},
        [line_shown(disk.path, event) for event in events],
        case="fills-up" if disk.seconds < inf else "",
        since=disk.trouble.since,
        step=context.run.step,
        severity=Severity.CRITICAL if is_near else None,
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
