"""What fills up: the host's memory, step by step, whose workers Ray kills at 95% of the node; or a
node's disk, as raylets report from 95% on: once it is full no checkpoint and no spilled object can
be written.
"""

from __future__ import annotations

import math
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.trend import trend
from verl_tui.health.diagnoses.diagnosis import Told, diagnosis
from verl_tui.health.finding import Severity, number
from verl_tui.health.limits import positive_setting
from verl_tui.health.root_cause import line_shown
from verl_tui.health.rule_context import minutes
from verl_tui.patterns import pattern
from verl_tui.runs.views.state import State
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.records import Event
    from verl_tui.runs.troubles import Trouble

_KILLED = pattern(
    r"killed due to memory pressure|running low on memory|was [\d.]+GB / [\d.]+GB \("
)
_OF = pattern(r"was ([\d.]+)GB / ([\d.]+)GB \(")
_GROWN, _GROWN_GB = 0.25, 20.0
"""Growth to report if the node's size is unknown, a quarter and 20 GB: heuristic."""
_SOON, _AHEAD = 3600.0, 86400.0
"""Below an hour it is critical; more than a day ahead is too far to predict: heuristic."""
_USED = ("perf/cpu_memory_used_gb", "actor/perf/cpu_memory_used_gb")
_SHARE = ("system/memory_percent", "system/memory")
"""W&B's figure of the host: percent in use."""
_TOTAL = ("perf/cpu_memory_total_gb", "actor/perf/cpu_memory_total_gb")
_TOTAL_STATED = ("cpu_memory_total_gb", "wandb.memory_total_gb")
_LOGGED = (*_USED, *_SHARE)
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


class MemoryGrowth(NamedTuple):
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


@diagnosis("host-memory", alive=True)  # what has ended fills no memory
def host_memory(context: RuleContext, rule: Rule) -> Told | str | None:
    """Find memory of the host that grows steadily, or for want of which Ray has killed workers."""
    run = context.run
    killed = [
        trouble.last
        for state in run.sources.values()
        for trouble in state.troubles
        if _KILLED.search(trouble.last.text)
    ]
    if killed:
        return _killed(context, killed)
    found = run.present(context.first_key(_LOGGED))
    if found is None:
        return "the log has no memory of the host"
    if len(found) < rule.window:
        return f"needs {rule.window} points, has {len(found)}"
    growth = memory_growth(context, rule.window)
    if growth is None or context.state is State.FINISHED:
        return None
    return _filling(context, growth)


def _filling(context: RuleContext, growth: MemoryGrowth) -> Told | None:
    left, seconds, case = 0.0, None, "unknown"
    if growth.full is not None:
        left = max(0.0, growth.full - growth.now) / growth.each
        seconds = left * context.pace.seconds if context.pace is not None else None
        case = "share" if growth.unit == "%" else ""
    if not _is_told(context, growth, left, seconds):
        return None
    is_near = context.goes_on and seconds is not None and seconds < _SOON
    return Told(
        {
            **growth._asdict(),
            "left": math.ceil(left),
            "time": f" (≈ {minutes(seconds)})" if seconds is not None else "",
            "hourly": _hourly(context, growth),
        },
        case=case,
        since=growth.since,
        step=growth.step,
        key=growth.key,
        severity=Severity.CRITICAL if is_near else None,
    )


def _killed(context: RuleContext, events: Sequence[Event]) -> Told:
    told = [*filter(None, (_OF.search(event.text) for event in reversed(events)))]
    used = f": {told[0][1]} of {told[0][2]} GB were in use" if told else ""
    steps = [event.step for event in events if event.step is not None]
    step = steps[-1] if steps else None
    return Told(
        {"used": used},
        [f"line {event.line}: {one_line(event.text, 160)}" for event in events[-3:]],
        case="killed",
        since=step,
        step=context.run.step if step is None else step,
    )


def _is_told(
    context: RuleContext, growth: MemoryGrowth, left: float, seconds: float | None
) -> bool:
    """Return whether the node is full before the run ends, and not too far ahead; where its size is
    unknown, whether much has grown.
    """
    if growth.full is None:
        return growth.now - growth.first >= max(_GROWN_GB, _GROWN * growth.first)
    total = context.run.total_steps
    if total is not None and growth.step + left > total:
        return False
    return seconds is None or seconds <= _AHEAD


def _hourly(context: RuleContext, growth: MemoryGrowth) -> str:
    if context.pace is None:
        return ""
    return f", {number(growth.each * 3600 / context.pace.seconds)}{growth.unit} an hour"


def memory_growth(context: RuleContext, window: int) -> MemoryGrowth | None:
    """Return the steady growth of the host's memory, None if there is none.

    Args:
        context: The run.
        window: Fewest points that show it.
    """
    series = context.run.present(context.first_key(_LOGGED))
    if series is None or len(series) < window:
        return None
    count = _climb(tuple(series.values[-_MOST:]), window)
    if not count:
        return None
    share = series.key in {context.names.get(name) for name in _SHARE}
    values, steps = series.values[-count:], series.steps[-count:]
    each = trend(values).change / max(1, steps[-1] - steps[0])
    full = 100 * _FULL if share else _full(context)
    unit = "%" if share else " GB"
    ends = (steps[0], steps[-1], values[0], values[-1])
    return MemoryGrowth(series.key, *ends, each, full, unit)


@lru_cache(256)
def _climb(values: tuple[float, ...], least: int) -> int:
    """Return the newest values that climb steadily, as many as there are; 0 where they do not."""
    # Called at each look, while values hardly ever change.
    if not all(map(math.isfinite, values)):
        return 0
    if values[-1] < max(values[:-least], default=-math.inf):
        return 0
    for count in (len(values), 2 * least, least):
        before, stretch = values[:-count], values[-count:]
        # Memory that was as high before was released again: a sawtooth, not a leak.
        rise = values[-1] - stretch[0]
        was_as_high = values[-1] - max(before, default=-math.inf) < rise / 2
        if _steady(stretch) and not was_as_high:
            return len(stretch)
    return 0


def _steady(values: Sequence[float]) -> bool:
    """Return whether values rise beyond doubt, and in every part of their course."""
    line = trend(values)
    if values[-1] <= values[0] or line.change <= 0 or line.t < _SURE:
        return False
    size, half = len(values) // _PARTS, len(values) // 2
    stops = range(len(values), len(values) - _PARTS * size, -size)
    each = [trend(values[stop - size : stop]).change for stop in stops]
    goes_on = trend(values[half:]).change >= _GOES_ON * trend(values[:half]).change
    return goes_on and min(each) >= _EACH * line.change / _PARTS


def _full(context: RuleContext) -> float | None:
    """Return how many GB of the node Ray lets be used, None where its size is not known."""
    for name in _TOTAL:
        series = context.run.present(context.names.get(name))
        point = series.last_finite if series is not None else None
        if point is not None and point.value > 0:
            return _FULL * point.value
    stated = positive_setting(context.run, _TOTAL_STATED)
    return None if stated is None else _FULL * stated[1]


_LINE = pattern(
    r"(?P<folder>\S{1,300}) is over [\d.]{1,9}% full, "
    r"available space: (?P<free>\d{1,20}(?:\.\d{1,9})?)(?P<gb> GB)?; "
    r"capacity: (?P<all>\d{1,20}(?:\.\d{1,9})?)"
)
"""Ray's line (file_system_monitor.cc); its older versions count bytes."""
_GB = 2.0**30
_DAY = 86400


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
