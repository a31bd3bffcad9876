"""What fills up or is wasted: the host's memory, step by step, whose workers Ray kills at 95% of
the node; a node's disk, as raylets report from 95% on: once it is full no checkpoint and no spilled
object can be written; and a phase that takes nearly the whole step, or, beside generating and
training, more than half.
"""

from __future__ import annotations

import math
import re
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.column import trend
from verl_tui.health.diagnosis import diagnosis
from verl_tui.health.finding import LACKS, WORDS, Finding, Severity, filled, number
from verl_tui.health.root_cause import line_shown
from verl_tui.health.rule_context import METRICS, RuleContext, minutes
from verl_tui.patterns import NamePattern, pattern
from verl_tui.runs.time.step_timing import Breakdown, StepPart, breakdown, durations
from verl_tui.runs.views.signs_of_life import all_trouble
from verl_tui.runs.views.state import State
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.records import Event
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import Trouble

_KILLED = pattern(
    r"killed due to memory pressure|running low on memory|was [\d.]+GB / [\d.]+GB \("
)
_OF = pattern(r"was ([\d.]+)GB / ([\d.]+)GB \(")
_GROWN, _GROWN_GB = 0.25, 20.0
"""Growth to report if the node's size is unknown, a quarter and 20 GB: heuristic."""
_SOON, _AHEAD = 3600.0, 86400.0
"""Below an hour it is critical; more than a day ahead is too far to predict: heuristic."""
_FULL = 0.95
"""Share of the node at which Ray kills (Ray's RAY_memory_usage_threshold)."""
_MOST = 200
"""Newest points that show the slope."""
_SURE, _PARTS, _EACH = 8.0, 4, 1 / 3
"""It must rise by eight standard errors, and every quarter by a third of an even share: one jump is
no leak, and what fills up levels off.
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
    full: float
    """The most that Ray allows to be used, 0 if the node's size is unknown."""
    unit: str


@diagnosis("host-memory", by_clock=True)  # what has ended fills no memory
def host_memory(context: RuleContext) -> Finding | str | None:
    """Find host memory that grows steadily, or that was so short that Ray has killed workers."""
    run, window = context.run, context.rule.window
    newest = [one.last for _, _, one in all_trouble(run)]
    killed = [event for event in newest if _KILLED.search(event.text)]
    if killed:
        return _killed(context, killed, run.step)
    found = run.present(context.first_key(METRICS["memory_used"]))
    if not found:
        return f"{LACKS} no memory of the host"
    if len(found) < window:
        return f"needs {window} points, has {len(found)}"
    growth = memory_growth(context, window)
    if not growth or context.state is State.FINISHED:
        return None
    return _filling(context, growth)


def _killed(
    context: RuleContext, events: Sequence[Event], newest: int | None
) -> Finding:
    """Return the finding that Ray has killed workers, as some lines say, at the last one's step or
    else now.
    """
    used, step = _OF.search(events[-1].text), events[-1].step
    facts = {"used": f": {used[1]} of {used[2]} GB were in use" if used else ""}
    lines = [f"line {one.line}: {one_line(one.text, 160)}" for one in events[-3:]]
    newest = newest if step is None else step
    return context.rule.finding(facts, lines, "killed", since=step, step=newest)


def _filling(context: RuleContext, growth: MemoryGrowth) -> Finding | None:
    """Return memory that will be full before the run ends, and not too far ahead; where the node's
    size is unknown, memory whose use has grown far beyond its first value.
    """
    total = context.run.total_steps
    left, case = 0.0, "unknown"
    is_due = growth.now - growth.first >= max(_GROWN_GB, _GROWN * growth.first)
    if growth.full:
        left, case = max(0.0, growth.full - growth.now) / growth.each, ""
        is_due = total is None or growth.step + left <= total
    seconds = left * context.step_seconds
    if not is_due or seconds > _AHEAD:
        return None
    time = f" (≈ {minutes(seconds)})" if context.step_seconds else ""
    facts = {**growth._asdict(), "left": math.ceil(left), "time": time}
    severity = _near(context, seconds or inf)
    key, since, step, *_ = growth
    return context.rule.finding(
        facts, case=case, since=since, step=step, key=key, severity=severity
    )


def _near(context: RuleContext, seconds: float) -> Severity | None:
    """Return how bad it is that something will be full so soon, None if as bad as usual."""
    goes_on = context.state in (State.RUNNING, State.STALLED)
    return Severity.CRITICAL if goes_on and seconds < _SOON else None


def memory_growth(context: RuleContext, window: int) -> MemoryGrowth | None:
    """Return the steady growth of the host's memory over so many points at least, None if there is
    none.
    """
    key = context.first_key(METRICS["memory_used"])
    series = context.run.present(key)
    if not series:
        return None
    for count in (_MOST, window):
        values, steps = series.values[-count:], series.steps[-count:]
        line = trend(values)
        before = max(series.values[-_MOST:-count], default=-inf)
        # What had been used before and was released is a sawtooth, and no leak.
        is_new = len(values) >= window and values[-1] - before > line.change / 2
        if is_new and line.t >= _SURE and _is_steady(np.array(values), line.change):
            each = line.change / max(1, steps[-1] - steps[0])
            ends = (steps[0], steps[-1], values[0], values[-1], each)
            if key in map(context.names.get, METRICS["memory_percent"]):
                return MemoryGrowth(series.key, *ends, 100 * _FULL, "%")
            logged = context.finite(context.first_key(METRICS["memory_total"]), 1)
            _, stated = context.run.config.positive("host_memory")
            total = logged[0] if logged else stated
            return MemoryGrowth(series.key, *ends, _FULL * total, " GB")
    return None


def _is_steady(values: np.ndarray, change: float) -> bool:
    """Return whether each quarter of some values rises by its share of a change."""
    size = len(values) // _PARTS
    parts = values[-_PARTS * size :].reshape(_PARTS, size)
    each = min(trend(part).change for part in parts)
    return change > 0 and bool(each >= _EACH * change / _PARTS)


_LINE = pattern(
    r"(?P<folder>\S{1,300}) is over [\d.]{1,9}% full, "
    r"available space: (?P<free>\d{1,20}(?:\.\d{1,9})?)(?P<gb> GB)?; "
    r"capacity: (?P<all>\d{1,20}(?:\.\d{1,9})?)"
)
"""Ray's line (file_system_monitor.cc); its older versions count bytes."""
_GB = 2.0**30


class _Disk(NamedTuple):
    """A disk that was called almost full."""

    seconds: float
    """Until it is full at the rate since Ray's first line, infinite if it does not fill up."""
    free: float
    before: float
    """GB left now and then."""
    words: str
    path: str
    trouble: Trouble


@diagnosis("disk-filling", by_clock=True)
def disk_filling(context: RuleContext) -> Finding | str | None:
    """Find the disk that will be full first, within a day, or that has too little room for a
    checkpoint.
    """
    disks = [*_disks(context)]
    if not disks:
        return "no raylet calls a disk almost full"
    seconds, free, before, words, path, trouble = min(disks, key=lambda one: one[:2])
    is_soon = seconds <= _AHEAD or free < context.rule.threshold
    if context.state is State.FINISHED or not is_soon:
        return None
    when = minutes(seconds) if 1 <= seconds < inf else "a moment"
    ends = dict.fromkeys((trouble.first, trouble.last))
    return context.rule.finding(
        {"before": before, "words": words, "when": when},
        [line_shown(path, event) for event in ends],
        "fills-up" if seconds < inf else "",
        since=trouble.since,
        step=context.run.step,
        severity=_near(context, seconds),
    )


def _disks(context: RuleContext) -> Iterator[_Disk]:
    """Yield the disks that were called almost full within the last steps."""
    for path, state, trouble in all_trouble(context.run):
        last = _LINE.search(trouble.last.text)
        is_recent = (state.step or 0) - (trouble.step or 0) <= context.rule.window
        if is_recent and last:
            yield _disk(context, path, trouble, last)


def _disk(
    context: RuleContext, path: str, trouble: Trouble, last: re.Match[str]
) -> _Disk:
    first = _LINE.search(trouble.first.text) or last
    unit = 1.0 if last["gb"] else _GB
    sizes = last["free"], first["free"], last["all"]
    free, before, every = (float(size) / unit for size in sizes)
    took = _took(context, trouble.first, trouble.last)
    fills = took and before > free
    seconds = free / (before - free) * took if fills else inf
    node = f" {trouble.last.where}" if trouble.last.where else ""
    words = f"{last['folder']}{node} has {number(free)} of {number(every)} GB left"
    return _Disk(seconds, free, before, words, path, trouble)


def _took(context: RuleContext, first: Event, last: Event) -> float:
    """Return the seconds between two lines, by steps where some lie between; 0 where unknown."""
    steps = (last.step or 0) - (first.step or 0)
    if steps > 0 and context.step_seconds:
        return steps * context.step_seconds
    if first.clock is None or last.clock is None:
        return 0.0
    return float((last.clock - first.clock) % _AHEAD)


_WORK = NamePattern(
    r".*(?:gen|rollout|wait|train|update|forward|backward|experience|explor|infer|sampl).*"
)
"""Phases that may well take most of a step: generating and training, or waiting for either."""
_WHOLE, _WITHIN = 1.05, 0.9
"""Share of a step that a phase and the others do not exceed; those that take as much of the phase
lie within it.
"""


@diagnosis("one-phase")
def one_phase(context: RuleContext) -> Finding | str | None:
    """Find the longest phase of the newest steps where it is too long for its kind: a slow reward
    function, a checkpoint in each step.
    """
    run, rule = context.run, context.rule
    found = breakdown(run)
    if not found or not found.whole > 0:
        return "no times of a step's phases are known"
    count = len(found.steps)
    if count < rule.window:
        return f"needs {rule.window} steps, has {count}"
    long = [part for part in found.parts if _is_long(context, found, part)]
    if not long or found.whole < rule.floor:
        return None
    part = long[-1]  # of phases within each other the innermost
    is_rare = part.times < count
    each = f", {number(part.each)} s in each of {part.times} steps" if is_rare else ""
    steps = f"{found.steps[0]}–{found.steps[-1]}"
    return rule.finding(
        {**part._asdict(), "whole": found.whole, "rare": each},
        [
            f"{one.key}: {number(one.seconds)} s, {one.share:.0%} (mean of steps {steps})"
            for one in found.parts[:3]
        ],
        step=found.steps[-1],
        key=part.key,
        advice=_advice(run, part.name),
    )


def _advice(run: Run, name: str) -> str:
    """Return what to do about a long phase, with the setting in force."""
    cases = WORDS["one-phase"]["phase"]
    case = next(one for one in cases if re.search(one["match"], name))
    stated = run.config.find(case["settings"]) or case["settings"][:1]
    return filled(case["advice"], {"setting": ": ".join(map(str, stated))})


def _is_long(context: RuleContext, found: Breakdown, part: StepPart) -> bool:
    """Return whether a phase takes too much of the steps, also without its longest time: one slow
    step is no habit. One that runs beside others (asynchronous generation), or is a sum over
    workers, may take all of the step.
    """
    within = [
        one.seconds for one in found.parts if one.seconds < _WITHIN * part.seconds
    ]
    series, rule = context.run.present(part.key), context.rule
    if not series or part.seconds + sum(within) > _WHOLE * found.whole:
        return False
    longest = float(np.nanmax(durations(series, found.steps)))
    count = len(found.steps)
    rest = count * found.whole - longest
    share = (count * part.seconds - longest) / rest if rest > 0 else 0.0
    return share >= (rule.high if _WORK.fullmatch(part.name) else rule.threshold)
