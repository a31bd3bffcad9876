"""The run died: what its end follows from, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.memory_growth import memory_growth
from verl_tui.health.root_cause import line_shown, root_cause
from verl_tui.records import EventKind
from verl_tui.runs.views.signs_of_life import writer
from verl_tui.runs.views.state import State, interrupted
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.records import Event, Phase
    from verl_tui.runs.run import Run

_ENDS = (EventKind.FATAL, EventKind.TRACEBACK, EventKind.STOPPED)
_UNNAMED = "Traceback (most recent call last):"
"""Ends the first line of an exception whose name the log does not hold."""
_BY_USER = "Nothing is wrong: Ctrl+C ended it."
_SILENT_END = (
    "The log does not say why: ask dmesg, since the kernel kills what takes too much memory, and "
    "the scheduler (time limit, preemption). A terminal that closes ends its runs, too."
)


_GROWN_FOR, _GROWN = 20, 1.25
"""Points and growth of the host's memory that explain a worker's death: heuristic."""


class Crash(Diagnosis):
    """A traceback, a fatal message or a signal, and no step after it."""

    alive = True  # a traceback alone means something only after some silence
    sentences = True

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Report how the run crashed, or an error that may have ended it."""
        run = context.run
        state = context.state
        event = run.outcome
        if event is not None and event.kind in _ENDS and state is not State.FINISHED:
            finding = self._finding(context, event)
        elif state is State.CRASHED or (state is State.ENDED and _tells(run)):
            finding = self._without_a_word(context)
        else:
            self.remember(None, run.step)
            if run.events:
                return None
            reason = "no source reports how the run started or ended"
            return NotJudged(self.rule.id, reason)
        self.remember(finding if state is State.CRASHED else None, finding.step)
        return finding

    def _finding(self, context: RuleContext, event: Event) -> Finding:
        """Report an end that the log tells of."""
        run = context.run
        step = event.step if event.step is not None else run.step
        cause = root_cause(run, event.phase)
        severity, verb, usual = _severity_and_words(context, event)
        phase = event.phase
        words = _last_words(event)
        lines: list[str] = []
        if cause is not None and not interrupted(run):
            phase = cause.event.phase or phase
            words, usual = cause.words, usual or cause.advice
            lines = [line_shown(cause.path, cause.event), *cause.evidence]
            if cause.kind == "report":
                words = self._memory_words(context) or words
        if cause is None or cause.event.line != event.line:
            lines.insert(1, line_shown(_path(run, event), event))
        return self._said(
            severity,
            f"{verb} {_where(step)}{_while(phase)}: {words}",
            step,
            lines,
            phase,
            usual,
        )

    def _without_a_word(self, context: RuleContext) -> Finding:
        """Report a process that is gone and left only its workers' errors."""
        run = context.run
        holder = writer(run)
        if holder is None:
            gone = "nothing shows how it ended"
        else:
            gone = f"{holder.words} is gone; it was killed, or ended without a message"
        cause = root_cause(run)
        phase = cause.event.phase if cause is not None else None
        why, help, shown = gone, _SILENT_END, []
        if cause is not None:
            why, help = cause.words, cause.advice
            shown = [line_shown(cause.path, cause.event), *cause.evidence, gone]
        crashed = context.state is State.CRASHED
        ended = context.state.value.rstrip("?")
        words = f"the run {ended} {_where(run.step)}{_while(phase)}: {why}"
        severity = self.rule.severity if crashed else Severity.WARNING
        return self._said(severity, words, run.step, shown, phase, help)

    def _memory_words(self, context: RuleContext) -> str:
        """Return what the growth of the host's memory says of a worker that died without a word."""
        growth = memory_growth(context, _GROWN_FOR)
        if growth is None or growth.now < _GROWN * growth.first:
            return ""
        return (
            f"a worker died, most likely because the host's memory ran out: it grew from "
            f"{number(growth.first)} to {number(growth.now)}{growth.unit} since step {growth.since}"
        )

    def _said(
        self,
        severity: Severity,
        words: str,
        step: int | None,
        lines: Sequence[str],
        phase: Phase | None,
        advice: str,
    ) -> Finding:
        shown: Sequence[str] = ()
        if phase is not None:
            shown = (f"it was {phase.words}, by its traceback: {phase.function}",)
        return self.finding(
            words,
            (*lines, *shown, "no step came after it"),
            since=step,
            severity=severity,
            advice=advice,
        )


def _last_words(event: Event) -> str:
    if event.text.endswith(_UNNAMED):
        return "its log ends within a traceback"
    return one_line(event.text)


def _tells(run: Run) -> bool:
    """Return whether it shows how a run ended that has no closing line."""
    cause = root_cause(run)
    return _is_gone(run) or (cause is not None and cause.kind in ("cause", "symptom"))


def _is_gone(run: Run) -> bool:
    """Return whether the run's process is gone without a message; one that only began a file may
    have finished.
    """
    holder = writer(run)
    if holder is None or not holder.gone or run.outcome is not None:
        return False
    return not holder.by_name or run.total_steps is not None


def _path(run: Run, event: Event) -> str:
    return next(
        (path for path, state in run.sources.items() if state.ending is event), ""
    )


def _while(phase: Phase | None) -> str:
    return f" while {phase.words}" if phase is not None else ""


def _where(step: int | None) -> str:
    return "before the first step" if step is None else f"at step {step}"


def _severity_and_words(
    context: RuleContext, event: Event
) -> tuple[Severity, str, str]:
    """Return the severity of an end, its words, and advice if it needs no cause."""
    if event.kind is EventKind.STOPPED:
        if interrupted(context.run):
            return Severity.INFO, "the run was interrupted by its user", _BY_USER
        return Severity.CRITICAL, "the run was stopped from outside", ""
    if context.state is State.CRASHED:
        return Severity.CRITICAL, "the run crashed", ""
    return Severity.WARNING, "an error, and nothing since", ""
