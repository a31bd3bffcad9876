"""One phase takes nearly the whole step, or one beside generating and training more than half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.patterns import NamePattern
from verl_tui.runs.time.step_timing import breakdown, valid_durations

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_ADVICE = (
    (
        NamePattern(r".*(?:save|saving|checkpoint|ckpt).*"),
        ("save_freq", "save_steps", "save_interval", "save_period"),
        "Save less often ({setting}), asynchronously, or to faster storage; keep the optimiser's "
        "state out of checkpoints that are only evaluated.",
    ),
    (
        NamePattern(r".*(?:test|eval|valid).*"),
        ("test_freq", "eval_steps", "eval_interval", "val_period"),
        "Validate less often ({setting}), on fewer prompts or with fewer answers to each.",
    ),
    (
        NamePattern(r".*(?:reward|score|scoring|adv|verif|env|tool).*"),
        ("reward_manager", "reward_model.reward_manager"),
        "Look at the reward function with py-spy dump: calls one after the other, time-outs of a "
        "sandbox or judge, sympy without a limit. Score in parallel ({setting}), with a short "
        "time-out.",
    ),
    (
        NamePattern(r".*"),
        ("gpu_memory_utilization",),
        "Look at what that phase does with py-spy dump. Generation: the longest responses, the "
        "engine's memory ({setting}), preemption, tools that hang; weights: network or disk.",
    ),
)
"""Names of phases, settings of which the first that the run has is named, and what to do."""


class OnePhase(Diagnosis):
    """A step that is nearly all one phase: a slow reward function, a checkpoint in each step."""

    sentences = True

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Report the longest phase of the newest steps, where it is too long for its kind."""
        run = context.run
        found = breakdown(run)
        if found is None or not found.whole > 0:
            return NotJudged(self.rule.id, "the log has no times of a step's phases")
        if len(found.steps) < self.rule.window:
            reason = f"needs {self.rule.window} steps, has {len(found.steps)}"
            return NotJudged(self.rule.id, reason)
        long = [part for part in found.parts if self._is_long(run, found, part)]
        finding = self._finding(run, found, long) if long else None
        self.remember(finding, run.step)
        return finding

    def _is_long(self, run: Run, found: Breakdown, part: StepPart) -> bool:
        """Return whether a phase takes too much of the steps, also without its longest time: one
        slow step is no habit.
        """
        series = run.present(part.key)
        if series is None or found.whole < self.rule.floor or _overlaps(found, part):
            return False
        longest = max(valid_durations(series.since(found.steps[0])).values())
        count = len(found.steps)
        rest = count * found.whole - longest
        share = (count * part.seconds - longest) / rest if rest > 0 else 0.0
        is_work = _WORK.fullmatch(part.name) is not None
        return share >= (self.rule.high if is_work else self.rule.threshold)

    def _finding(self, run: Run, found: Breakdown, long: Sequence[StepPart]) -> Finding:
        part = long[-1]  # of phases within each other the innermost
        steps = f"steps {found.steps[0]}–{found.steps[-1]}"
        each = ""
        if part.times < len(found.steps):
            each = f", {number(part.each)} s in each of {part.times} steps"
        return self.finding(
            f"{part.name} takes {part.share:.0%} of the step: {number(part.seconds)} of "
            f"{number(found.whole)} s{each}",
            [
                f"{one.key}: {number(one.seconds)} s, {one.share:.0%} (mean of {steps})"
                for one in found.parts[:3]
            ],
            step=found.steps[-1],
            key=part.key,
            advice=_advice(run, part.name),
        )


def _overlaps(found: Breakdown, part: StepPart) -> bool:
    """Return whether a phase runs beside others (asynchronous generation), or is a sum over
    workers: then it may take all of the step.
    """
    beside = sum(
        one.seconds for one in found.parts if one.seconds < _WITHIN * part.seconds
    )
    return part.seconds + beside > _WHOLE * found.whole


def _advice(run: Run, name: str) -> str:
    """Return what to do about a long phase, with the setting in force."""
    settings, words = next(
        (settings, words) for form, settings, words in _ADVICE if form.fullmatch(name)
    )
    stated = run.config.find(settings)
    shown = settings[0] if stated is None else f"{stated[0]}: {stated[1]}"
    return words.replace("{setting}", shown)
