"""What fills up: the host's memory, step by step, whose workers Ray kills at 95% of the node; or a
node's disk, as raylets report from 95% on: once it is full no checkpoint and no spilled object can
be written.
"""

from __future__ import annotations

import math
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.windows import trend
from verl_tui.health.diagnoses.diagnosis import Told, diagnosis
from verl_tui.health.finding import Severity, number
from verl_tui.health.limits import positive_setting
from verl_tui.health.root_cause import line_shown
from verl_tui.health.rule_context import minutes
from verl_tui.patterns import pattern
from verl_tui.runs.views.state import State
from verl_tui.text import one_line

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.records import Event
    from verl_tui.runs.source_state import Trouble

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
_FULL = 0.95
"""Share of the node at which Ray kills (Ray's RAY_memory_usage_threshold)."""
_MOST = 200
"""Newest points that show the slope."""
_SURE, _PARTS, _EACH, _GOES_ON = 8.0, 4, 1 / 3, 0.5
"""It must rise by eight standard errors, every quarter by a third of an even share, and the second
half by half of the first: one jump is no leak, and what fills up levels off.
"""


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
        return _killed(killed, run.step)
    found = run.present(context.first_key((*_USED, *_SHARE)))
    if found is None:
        return "the log has no memory of the host"
    if len(found) < rule.window:
        return f"needs {rule.window} points, has {len(found)}"
    growth = memory_growth(context, rule.window)
    if growth is None or context.state is State.FINISHED:
        return None
    return _filling(context, growth)


def _killed(events: Sequence[Event], step: int | None) -> Told:
    """Return that Ray has killed workers by some lines, at the last one's step or else now."""
    event = events[-1]
    used = _OF.search(event.text)
    return Told(
        {"used": f": {used[1]} of {used[2]} GB were in use" if used else ""},
        [f"line {one.line}: {one_line(one.text, 160)}" for one in events[-3:]],
        case="killed",
        since=event.step,
        step=step if event.step is None else event.step,
    )


def _filling(context: RuleContext, growth: MemoryGrowth) -> Told | None:
    """Return memory that is full before the run ends, and not too far ahead; where the node's size
    is unknown, that of which much is used by now.
    """
    total = context.run.total_steps
    each_step = 0.0 if context.pace is None else context.pace.seconds
    left, case = 0.0, "unknown"
    is_told = growth.now - growth.first >= max(_GROWN_GB, _GROWN * growth.first)
    if growth.full is not None:
        left = max(0.0, growth.full - growth.now) / growth.each
        case = "share" if growth.unit == "%" else ""
        is_told = total is None or growth.step + left <= total
    seconds = left * each_step
    if not is_told or seconds > _AHEAD:
        return None
    facts = {**growth._asdict(), "left": math.ceil(left), "time": "", "hourly": ""}
    if each_step:
        hourly = number(growth.each * 3600 / each_step)
        facts["time"] = f" (≈ {minutes(seconds)})"
        facts["hourly"] = f", {hourly}{growth.unit} an hour"
    return Told(
        facts,
        case=case,
        since=growth.since,
        step=growth.step,
        key=growth.key,
        severity=_near(context, seconds or inf),
    )


def _near(context: RuleContext, seconds: float) -> Severity | None:
    """Return how bad it is that something will be full so soon, None if as bad as usual."""
    return Severity.CRITICAL if context.goes_on and seconds < _SOON else None


def memory_growth(context: RuleContext, window: int) -> MemoryGrowth | None:
    """Return the steady growth of the host's memory over so many points at least, None if there is
    none.
    """
    key = context.first_key((*_USED, *_SHARE))
    series = context.run.present(key)
    count = _climb(tuple(series.values[-_MOST:]), window) if series is not None else 0
    if series is None or not count:
        return None
    values, steps = series.values[-count:], series.steps[-count:]
    each = trend(values).change / max(1, steps[-1] - steps[0])
    ends = (steps[0], steps[-1], values[0], values[-1])
    if key in map(context.names.get, _SHARE):
        return MemoryGrowth(series.key, *ends, each, 100 * _FULL, "%")
    logged = context.finite(context.first_key(_TOTAL), 1)
    stated = positive_setting(context.run, _TOTAL_STATED) or ("", 0.0)
    total = logged[0] if logged else stated[1]
    return MemoryGrowth(series.key, *ends, each, _FULL * total or None, " GB")


@lru_cache(256)
def _climb(values: tuple[float, ...], least: int) -> int:
    """Return the newest values that climb steadily, as many as there are; 0 where they do not, or
    as much had been used before and was released: a sawtooth is no leak.
    """
    for count in (len(values), 2 * least, least):
        before, known = values[:-count], values[-count:]
        if len(known) < least or not all(map(math.isfinite, known)):
            continue
        line, size, half = trend(known), len(known) // _PARTS, len(known) // 2
        rise = known[-1] - max(before, default=-inf)
        if line.change <= 0 or line.t < _SURE or rise < (known[-1] - known[0]) / 2:
            continue
        parts = np.array(known[-_PARTS * size :]).reshape(_PARTS, size)
        each = min(trend(part).change for part in parts)
        goes_on = trend(known[half:]).change >= _GOES_ON * trend(known[:half]).change
        if goes_on and each >= _EACH * line.change / _PARTS:
            return len(known)
    return 0


_LINE = pattern(
    r"(?P<folder>\S{1,300}) is over [\d.]{1,9}% full, "
    r"available space: (?P<free>\d{1,20}(?:\.\d{1,9})?)(?P<gb> GB)?; "
    r"capacity: (?P<all>\d{1,20}(?:\.\d{1,9})?)"
)
"""Ray's line (file_system_monitor.cc); its older versions count bytes."""
_GB = 2.0**30


@diagnosis("disk-filling", alive=True)
def disk_filling(context: RuleContext, rule: Rule) -> Told | str | None:
    """Find the disk that will be full first, within a day, or that has too little room for a
    checkpoint.
    """
    disks = [*_disks(context, rule.window)]
    if not disks:
        return "no raylet calls a disk almost full"
    seconds, free, told = min(disks, key=lambda disk: disk[:2])
    is_soon = seconds <= _AHEAD or free < rule.threshold
    if context.state is State.FINISHED or not is_soon:
        return None
    return told._replace(severity=_near(context, seconds))


def _disks(context: RuleContext, window: int) -> Iterator[tuple[float, float, Told]]:
    """Yield the disks that were called almost full within the last steps."""
    for path, state in context.run.sources.items():
        for trouble in state.troubles:
            lines = [_LINE.search(one.text) for one in (trouble.first, trouble.last)]
            is_recent = (state.step or 0) - (trouble.step or 0) <= window
            known = [*filter(None, lines)]
            if is_recent and known:
                yield _disk(context, path, trouble, known[0], known[-1])


def _disk(
    context: RuleContext,
    path: str,
    trouble: Trouble,
    first: re.Match[str],
    last: re.Match[str],
) -> tuple[float, float, Told]:
    """Return the seconds until a disk is full at the rate since Ray's first line, infinite if it
    does not fill up, the GB left, and both in words.
    """
    ends = trouble.first, trouble.last
    unit = 1.0 if last["gb"] else _GB
    sizes = (last["free"], first["free"], last["all"])
    free, before, every = (float(size) / unit for size in sizes)
    took = _took(context, *ends)
    seconds = free / (before - free) * took if took and before > free else inf
    where = last["folder"] + (f" {ends[1].where}" if ends[1].where else "")
    told = Told(
        {
            "before": before,
            "words": f"{where} has {number(free)} of {number(every)} GB left",
            "when": minutes(seconds) if 1 <= seconds < inf else "a moment",
        },
        [line_shown(path, event) for event in dict.fromkeys(ends)],
        case="fills-up" if seconds < inf else "",
        since=trouble.since,
        step=context.run.step,
    )
    return seconds, free, told


def _took(context: RuleContext, first: Event, last: Event) -> float:
    """Return the seconds between two lines, by steps where some lie between; 0 where unknown."""
    steps = (last.step or 0) - (first.step or 0)
    if steps > 0 and context.pace is not None:
        return steps * context.pace.seconds
    if first.clock is None or last.clock is None:
        return 0.0
    return float((last.clock - first.clock) % _AHEAD)
