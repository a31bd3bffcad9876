"""Time that is lost: a phase that takes much longer than it used to, or nearly the whole step, or,
beside generating and training, more than half; and a device that idles while the others work.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.windows import lately, medians, pasts
from verl_tui.health.diagnoses.diagnosis import (
    WORDS,
    InBlocks,
    Shown,
    Told,
    diagnosis,
)
from verl_tui.health.exemptions import unused_device
from verl_tui.health.finding import filled, number
from verl_tui.metrics import describe
from verl_tui.patterns import NamePattern
from verl_tui.runs.time.step_timing import breakdown, durations
from verl_tui.runs.views.devices import utilization_keys

if TYPE_CHECKING:
    from verl_tui.health.conditions.windows import Blocks, Flags, Numbers
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Breakdown, StepPart

_PHASE = NamePattern(
    r"timing_s/(?!step$|testing$|save_checkpoint$|start_profile$|stop_profile$|dump_|.*/slowest/"
    r"|.*(?:/|_)(?:max|min)$).+"
)
"""Phases of every step. Validation and checkpoints have their own pace and are left out, as are
single responses.
"""
_NO_TIME = NamePattern(
    r"(?:.*(?:/|_))?(?:lengths?|tokens?|counts?|turns|ratio|share|num|num_.+|size|bytes)(?:/mean)?"
)
"""verl and its agent loops put figures under `timing_s/` that are no seconds:
`…/slowest/prompt_length`.
"""
_MOST = 20
_NOW, _GAP = 2, 2
"""Newest blocks that must be slow, and how many before these are left out for the growth itself."""
_PAST, _LEAST_PAST = 20, 4
"""Blocks of the past that make the usual time."""
_SLOWER, _OVER = 1.5, 1.25
"""Half as long again as usual is slow, below a quarter more it is over: heuristic."""
_SHARE = 0.1
"""The added time must be a tenth of the step: heuristic, less is not worth a finding."""


@diagnosis("slow-phase")
def slow_phase(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find a part of the step's time that grows against its own past, and not only with the tokens
    it works on.
    """
    step = context.indicators.get("step_time")
    if step is None:
        return "the log has no time of a step"
    tokens = context.names.get("perf/total_num_tokens") or context.indicators.get(
        "response_length"
    )
    keys = (step, tokens, *(_phases(context.run.keys) or [step]))
    return InBlocks(keys, _find, needs=_NOW + _GAP + _LEAST_PAST + 1, patience=3)


def _find(blocks: Blocks, of: InBlocks) -> Shown:
    step, tokens, *phases = blocks.levels
    figures = np.array([_added(one, step, tokens) for one in phases])
    was, each, added = figures.transpose(1, 0, 2)
    slowest = added.argmax(axis=0)  # that which costs most
    begins: Flags = (added > 0).any(axis=0)
    known = np.where(tokens > 0, tokens, 0.0)

    def lasts(at: int) -> Flags:
        i = slowest[at]
        least = np.fmax(was[i, at], each[i, at] * known)
        found: Flags = phases[i] >= _OVER * least
        return found

    def since(at: int) -> int:
        before = np.flatnonzero(~lasts(at)[:at])
        return int(blocks.first[before[-1] + 1 if len(before) else 0])

    def told(at: int, since: int) -> Told:
        i = slowest[np.flatnonzero(begins[: at + 1])[-1]]
        begun = int(np.argmax(begins & (blocks.last >= since)))
        key, now, whole = of.keys[2 + i], float(phases[i][at]), float(step[at])
        is_part = key != of.keys[0] and whole > 0
        facts = {
            "usual": float(was[i, begun]),
            "now": now,
            "times": now / float(was[i, begun]),
            "share": f", {now / whole:.0%} of the step" if is_part else "",
        }
        return Told(facts, since=since, key=key)

    return Shown(begins, lasts, since, told)


def _added(
    levels: Numbers, step: Numbers, tokens: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the usual seconds of a phase, those of one token, and by how much it is slower than
    that, 0 where it is not, as longer responses take longer; more than the whole step is no part of
    it: a sum over workers, or another unit.
    """
    with np.errstate(all="ignore"):
        each = levels / np.where(tokens > 0, tokens, np.nan)
        was, was_each = _usual(levels), _usual(each)
        now = lately(levels, _NOW)
        added = now - was
        found = (was > 0) & (now >= _SLOWER * was) & (added >= _SHARE * step)
        found &= ~(levels > _WHOLE * step) & ~(lately(each, _NOW) < _SLOWER * was_each)
        found &= levels >= _OVER * np.fmax(was, was_each * np.nan_to_num(tokens))
    return was, was_each, np.where(found, added, 0.0)


def _usual(levels: Numbers) -> Numbers:
    """Return the usual level at each block: the less of that of the last blocks before, and of the
    first, by which what creeps is measured; nan where too few are known. The very first warms up.
    """
    levels = np.append(np.nan, levels[1:])
    found = medians(pasts(levels, np.arange(len(levels)), _PAST, _NOW + _GAP))
    known = np.cumsum(~np.isnan(levels))
    found[np.append(np.zeros(_NOW + _GAP), known)[: len(found)] < _LEAST_PAST] = np.nan
    whole = _PAST + _NOW + _GAP
    found[whole:] = np.fmin(found[whole:], found[whole : whole + 1])
    return found


@lru_cache(256)
def _phases(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys of times of a part of the step, in seconds."""
    # Called at each judgement, while keys hardly ever change.
    found = [
        key
        for key in keys
        if _PHASE.fullmatch(key)
        and not _NO_TIME.fullmatch(key)
        and describe(key).unit == "s"
    ]
    return tuple(found[:_MOST])


_WORK = NamePattern(
    r".*(?:gen|rollout|wait|train|update|forward|backward|experience|explor|infer|sampl).*"
)
"""Phases that may well take most of a step: generating and training, or waiting for either."""
_WHOLE, _WITHIN = 1.05, 0.9
"""Share of a step that a phase and the others do not exceed; those that take as much of the phase
lie within it.
"""


@diagnosis("one-phase")
def one_phase(context: RuleContext, rule: Rule) -> Told | str | None:
    """Find the longest phase of the newest steps where it is too long for its kind: a slow reward
    function, a checkpoint in each step.
    """
    run = context.run
    found = breakdown(run)
    if found is None or not found.whole > 0:
        return "no times of a step's phases are known"
    count = len(found.steps)
    if count < rule.window:
        return f"needs {rule.window} steps, has {count}"
    long = [part for part in found.parts if _is_long(run, rule, found, part)]
    if not long or found.whole < rule.floor:
        return None
    part = long[-1]  # of phases within each other the innermost
    is_rare = part.times < count
    each = f", {number(part.each)} s in each of {part.times} steps" if is_rare else ""
    return Told(
        {**part._asdict(), "whole": found.whole, "rare": each},
        [
            f"{one.key}: {number(one.seconds)} s, {one.share:.0%} "
            f"(mean of steps {found.steps[0]}–{found.steps[-1]})"
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
    stated = run.config.find(case["settings"])
    shown = case["settings"][0] if stated is None else f"{stated[0]}: {stated[1]}"
    return filled(case["advice"], {"setting": shown})


def _is_long(run: Run, rule: Rule, found: Breakdown, part: StepPart) -> bool:
    """Return whether a phase takes too much of the steps, also without its longest time: one slow
    step is no habit. One that runs beside others (asynchronous generation), or is a sum over
    workers, may take all of the step.
    """
    within = [
        one.seconds for one in found.parts if one.seconds < _WITHIN * part.seconds
    ]
    series = run.present(part.key)
    if series is None or part.seconds + sum(within) > _WHOLE * found.whole:
        return False
    longest = float(np.nanmax(durations(series, found.steps)))
    count = len(found.steps)
    rest = count * found.whole - longest
    share = (count * part.seconds - longest) / rest if rest > 0 else 0.0
    return share >= (rule.high if _WORK.fullmatch(part.name) else rule.threshold)


_WORKING = 60.0
"""Percent from which on a device works: the second tutorial's bound."""
_APART = 0.6
"""An idle device does at most so much of what the others do: heuristic, they never work quite
alike.
"""
_MOST_DEVICES = 64


@diagnosis("gpu-uneven")
def uneven_gpus(context: RuleContext, rule: Rule) -> InBlocks | str:
    """Find a device below 50% for ten points while the mean of the others is that of work."""
    devices = utilization_keys(context.run)
    used = [key for key in devices if unused_device(context, key) is None][
        :_MOST_DEVICES
    ]
    if len(used) < 2:
        return "the log shows fewer than two devices that the run uses"
    highest = max(one.highest for one in filter(None, map(context.run.series, used)))
    of = 100.0 if highest <= 1.0 else 1.0, rule.threshold
    # Two blocks in a row must show it: devices dip in turn.
    return InBlocks(tuple(used), _find_idle, of, 5, 2, lasts=False, patience=2)


def _find_idle(blocks: Blocks, of: InBlocks) -> Shown:
    scale, least = of.of
    percent = scale * blocks.levels
    works = percent >= least
    count = works.sum(axis=0)
    usual = np.where(works, percent, 0.0).sum(axis=0) / np.maximum(1, count)
    # of the others; who works does not idle
    is_used = 2 * count >= np.isfinite(percent).sum(axis=0) - 1
    most = np.where(is_used & (usual >= _WORKING), _APART * usual, 0.0)
    idle = percent < np.minimum(least, most)
    idle[:, 1:] &= idle[:, :-1].copy()
    begins = idle.any(axis=0)

    def told(at: int, since: int) -> Told:
        levels, is_idle = percent[:, at], idle[:, at]
        names = [*compress(of.keys, is_idle)]
        return Told(
            {
                "names": ", ".join(map(_device, names)),
                "work": ("works", "work")[len(names) > 1],
                "shares": ", ".join(f"{number(one)}%" for one in levels[is_idle]),
                "count": len(levels),
                "others": float(np.nanmean(levels[~is_idle])),
            },
            [
                f"{key}: {number(level)}% up to step {blocks.last[at]}"
                for key, level in zip(of.keys, levels, strict=True)
            ],
            since=since,
            key=names[0],
        )

    return Shown(begins, begins, lambda at: int(blocks.first[at - 1]), told)


def _device(key: str | None) -> str:
    """Return a device's name: `GPU 3`, with its host where the key names one."""
    _, _, rest = (key or "").partition("gpu.")
    _, _, node = rest.partition("/l:")
    return f"GPU {rest.split('.')[0]}" + (f" of {node}" if node else "")
