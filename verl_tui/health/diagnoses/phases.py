"""Phases of the step: one that takes much longer than it used to, and a good part of the step; one
that takes nearly the whole step; one beside generating and training that takes more than half.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import (
    WORDS,
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
)
from verl_tui.health.finding import filled, number
from verl_tui.metrics import describe
from verl_tui.patterns import NamePattern
from verl_tui.runs.time.step_timing import breakdown, valid_durations

if TYPE_CHECKING:
    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags, Numbers
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
_NOW = 2
"""Newest blocks that must be slow."""
_GAP = 2
_PAST = 20
"""Blocks of the past that make the usual time, and how many before the newest are left out for the
growth itself.
"""
_LEAST_PAST = 4
_SLOWER = 1.5
"""Half as long again as usual: heuristic."""
_SHARE = 0.1
"""The added time must be a tenth of the step: heuristic, less is not worth a finding."""
_OVER = 1.25
"""Below a quarter more than usual it is over."""


class _Phase(NamedTuple):
    """The times of a phase at each block; more than the whole step is no part of it: a sum over
    workers, or another unit.
    """

    column: int
    levels: Numbers
    tokens: Numbers
    usual: Numbers
    """Seconds before."""
    each: Numbers
    """Seconds a token before, 0 where tokens are not known."""

    def added(self, step: Numbers) -> Numbers:
        """Return by how much it is slower than it was, 0 where it is not, by the step's times.

        Longer responses take longer: that is no fault of the phase.
        """
        now = rolling(self.levels, _NOW, np.minimum)
        each = rolling(_per_token(self.levels, self.tokens), _NOW, np.fmin)
        added = now - self.usual
        found = (self.usual > 0) & (now >= _SLOWER * self.usual)
        found &= (added >= _SHARE * step) & ~(self.levels > _WHOLE * step)
        return np.where(found & ~(each < _SLOWER * self.each), added, 0.0)

    def holds(self, at: int) -> Flags:
        """Return which blocks are slow compared with what was usual at one of them."""
        least = self.each[at] * np.where(self.tokens > 0, self.tokens, 0.0)
        found: Flags = self.levels >= _OVER * np.maximum(least, self.usual[at])
        return found


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


def _find(blocks: Blocks, of: InBlocks) -> Onsets:
    step, tokens = blocks.levels[:2]
    phases = [
        _Phase(i, one, tokens, _usual(one), _usual(_per_token(one, tokens)))
        for i, one in enumerate(blocks.levels[2:], 2)
    ]
    added = np.array([one.added(step) for one in phases])

    def at(place: int) -> Onset | None:
        slow = phases[int(added[:, place].argmax())]  # that which costs most
        lasts = slow.holds(place)
        if not lasts[place]:
            return None
        before = np.flatnonzero(~lasts[:place])
        begun = min(before[-1] + 1 if len(before) else 0, place)
        usual = float(slow.usual[place])
        told = partial(_told, blocks, of, slow.column, usual)
        return Onset(int(blocks.first[begun]), lasts, told)

    begins: Flags = np.logical_or.reduce(added > 0)
    return Onsets(begins, at)


def _told(
    blocks: Blocks, of: InBlocks, column: int, usual: float, at: int, since: int
) -> Told:
    key = of.keys[column]
    step, now = blocks.levels[[0, column], at].tolist()
    is_part = key != of.keys[0] and step > 0
    facts = {
        "usual": usual,
        "now": now,
        "times": now / usual,
        "share": f", {now / step:.0%} of the step" if is_part else "",
    }
    return Told(facts, since=since, key=key)


@lru_cache(256)
def _phases(keys: tuple[str, ...]) -> tuple[str, ...]:
    # Called at each judgement, while keys hardly ever change.
    return tuple(key for key in keys if _is_phase(key))[:_MOST]


def _is_phase(key: str) -> bool:
    """Return whether a key is the time of a part of the step, in seconds."""
    return (
        _PHASE.fullmatch(key) is not None
        and _NO_TIME.fullmatch(key) is None
        and describe(key).unit == "s"
    )


def _per_token(levels: Numbers, tokens: Numbers) -> Numbers:
    """Return the times for one token, nan where tokens are unknown."""
    return levels / np.where(tokens > 0, tokens, np.nan)


def _usual(levels: Numbers) -> Numbers:
    """Return the usual level at each block: the less of that of the last blocks before, and of the
    first, by which what creeps is measured; 0 where too few are known. The very first warms up.
    """
    whole = _PAST + _NOW + _GAP
    padded = np.append(np.full(whole + 1, np.nan), levels[1:])
    past = np.sort(sliding_window_view(padded, _PAST)[1 : len(levels) + 1], axis=1)
    known = (~np.isnan(past)).sum(axis=1)
    rows = np.arange(len(past))
    half = np.maximum(0, known - 1)
    middle = (past[rows, half // 2] + past[rows, (half + 1) // 2]) / 2
    middle[known < _LEAST_PAST] = np.nan
    middle[whole:] = np.fmin(middle[whole:], middle[whole : whole + 1])
    found: Numbers = np.nan_to_num(middle)
    return found


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
        return "the log has no times of a step's phases"
    if len(found.steps) < rule.window:
        return f"needs {rule.window} steps, has {len(found.steps)}"
    long = [part for part in found.parts if _is_long(run, rule, found, part)]
    if not long:
        return None
    part = long[-1]  # of phases within each other the innermost
    first, last = found.steps[0], found.steps[-1]
    is_rare = part.times < len(found.steps)
    each = f", {number(part.each)} s in each of {part.times} steps" if is_rare else ""
    return Told(
        {**part._asdict(), "whole": found.whole, "rare": each},
        [
            f"{one.key}: {number(one.seconds)} s, {one.share:.0%} "
            f"(mean of steps {first}–{last})"
            for one in found.parts[:3]
        ],
        step=last,
        key=part.key,
        advice=_advice(run, part.name),
    )


def _is_long(run: Run, rule: Rule, found: Breakdown, part: StepPart) -> bool:
    """Return whether a phase takes too much of the steps, also without its longest time: one slow
    step is no habit.
    """
    series = run.present(part.key)
    if series is None or found.whole < rule.floor or _overlaps(found, part):
        return False
    longest = max(valid_durations(series.since(found.steps[0])).values())
    count = len(found.steps)
    rest = count * found.whole - longest
    share = (count * part.seconds - longest) / rest if rest > 0 else 0.0
    is_work = _WORK.fullmatch(part.name) is not None
    return share >= (rule.high if is_work else rule.threshold)


def _advice(run: Run, name: str) -> str:
    """Return what to do about a long phase, with the setting in force."""
    cases = WORDS["one-phase"]["phase"]
    case = next(one for one in cases if re.search(one["match"], name))
    stated = run.config.find(case["settings"])
    shown = case["settings"][0] if stated is None else f"{stated[0]}: {stated[1]}"
    return filled(case["advice"], {"setting": shown})


def _overlaps(found: Breakdown, part: StepPart) -> bool:
    """Return whether a phase runs beside others (asynchronous generation), or is a sum over
    workers: then it may take all of the step.
    """
    beside = sum(
        one.seconds for one in found.parts if one.seconds < _WITHIN * part.seconds
    )
    return part.seconds + beside > _WHOLE * found.whole
