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
    from verl_tui.health.root_cause import RootCause
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.records import Event
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
            finding = self._finding(context, None)
        else:
            self.remember(None, run.step)
            if run.events:
                return None
            reason = "no source reports how the run started or ended"
            return NotJudged(self.rule.id, reason)
        self.remember(finding if state is State.CRASHED else None, finding.step)
        return finding

    def _finding(self, context: RuleContext, event: Event | None) -> Finding:
        """Report an end that the log tells of, or that a process left without a word, and what it
        follows from.
        """
        run = context.run
        phase = event.phase if event is not None else None
        step = event.step if event is not None else None
        cause = root_cause(run, phase)
        why, advice, lines = self._why(context, event, cause)
        if cause is not None and not interrupted(run):
            phase = cause.event.phase or phase
        severity, end = self._how_it_ended(context, event)
        step = run.step if step is None else step
        place = "before the first step" if step is None else f"at step {step}"
        if phase is not None:
            place += f" while {phase.words}"
            lines.append(f"it was {phase.words}, by its traceback: {phase.function}")
        return self.finding(
            f"{end} {place}: {why}",
            (*lines, "no step came after it"),
            since=step,
            severity=severity,
            advice=advice,
        )

    def _why(
        self, context: RuleContext, event: Event | None, cause: RootCause | None
    ) -> tuple[str, str, list[str]]:
        """Return why a run ended, what to do about it, and the lines that show it."""
        run = context.run
        last, own = _last_line(run, event, cause), _own_words(run, event)
        if interrupted(run):
            return own, _BY_USER, [last]
        if cause is None:
            return own, "" if event is not None else _SILENT_END, [last]
        why = self._memory_words(context, cause) or cause.words
        lines = [cause.line, last, cause.others, "" if event is not None else own]
        return why, cause.advice, lines

    def _how_it_ended(
        self, context: RuleContext, event: Event | None
    ) -> tuple[Severity, str]:
        """Return the severity of an end, and its words."""
        if event is not None and event.kind is EventKind.STOPPED:
            if interrupted(context.run):
                return Severity.INFO, "the run was interrupted by its user"
            return self.rule.severity, "the run was stopped from outside"
        if context.state is State.CRASHED:
            return self.rule.severity, "the run crashed"
        words = "the run ended" if event is None else "an error, and nothing since"
        return Severity.WARNING, words

    def _memory_words(self, context: RuleContext, cause: RootCause) -> str:
        """Return what the growth of the host's memory says of a worker that died without a word."""
        if cause.kind != "report":
            return ""
        growth = memory_growth(context, _GROWN_FOR)
        if growth is None or growth.now < _GROWN * growth.first:
            return ""
        return (
            f"a worker died, most likely because the host's memory ran out: it grew from "
            f"{number(growth.first)} to {number(growth.now)}{growth.unit} since step {growth.since}"
        )


def _tells(run: Run) -> bool:
    """Return whether it shows how a run ended that has no closing line."""
    cause = root_cause(run)
    return _is_gone(run) or (cause is not None and cause.is_certain)


def _is_gone(run: Run) -> bool:
    """Return whether the run's process is gone without a message; one that only began a file may
    have finished.
    """
    holder = writer(run)
    if holder is None or not holder.gone or run.outcome is not None:
        return False
    return not holder.by_name or run.total_steps is not None


def _own_words(run: Run, event: Event | None) -> str:
    """Return what the log says last, or that a process left without a word."""
    if event is not None:
        is_cut = event.text.endswith(_UNNAMED)
        return "its log ends within a traceback" if is_cut else one_line(event.text)
    holder = writer(run)
    if holder is None:
        return "nothing shows how it ended"
    return f"{holder.words} is gone; it was killed, or ended without a message"


def _last_line(run: Run, event: Event | None, cause: RootCause | None) -> str:
    """Return the line that tells of an end, empty if it is that of the cause."""
    if event is None or (cause is not None and cause.event.line == event.line):
        return ""
    paths = (path for path, state in run.sources.items() if state.ending is event)
    return line_shown(next(paths, ""), event)
