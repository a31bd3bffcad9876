"""One phase takes nearly the whole step, or one beside generating and training more than half."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import WORDS, Told, diagnosis
from verl_tui.health.finding import filled, number
from verl_tui.patterns import NamePattern
from verl_tui.runs.time.step_timing import breakdown, valid_durations

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Breakdown, StepPart

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
