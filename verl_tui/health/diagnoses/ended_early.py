"""The run ended in order, without an error, before its last step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.health.root_cause import line_shown, root_cause
from verl_tui.records import EventKind
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from verl_tui.health.root_cause import RootCause
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run

_IN_ORDER = (EventKind.EXITED, EventKind.FINISHED)
_LAST = "Final validation metrics"
"""verl prints this at its last step only, whatever total was stated before."""
_KINDS = {"stop": True, "cause": False}
"""Kinds of root causes that decide: the run's own limit, an error, which is the crash's to tell."""


class EndedEarly(Diagnosis):
    """An orderly end short of the stated steps, or by a limit of the run's own."""

    alive = True  # what an end is depends on the process
    sentences = True

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Report how far the run got, and the line that says why it stopped."""
        run = context.run
        finding = None
        ended = context.state in (State.FINISHED, State.ENDED)
        if not ended and run.total_steps is None:
            return NotJudged(self.rule.id, "the log does not say how many steps to go")
        if ended:
            finding = self._finding(run)
        self.remember(finding, run.step)
        return finding

    def _finding(self, run: Run) -> Finding | None:
        cause = root_cause(run)
        if not _tells(run, cause):
            return None
        end = run.outcome
        why, advice, lines = "no line says why", self.rule.advice, []
        if cause is not None:
            why, advice = cause.words, cause.advice or advice
            lines = [cause.line]
        if end is not None:
            lines.append(line_shown("", end))
        return self.finding(
            f"the run ended{_where(run)}, in order, without an error: {why}",
            lines,
            since=run.step,
            advice=advice,
        )


def _is_short(run: Run) -> bool:
    """Return whether more steps were to come than the log leaves out between its records."""
    total = run.total_steps
    if total is None or (run.outcome is not None and _LAST in run.outcome.text):
        return False
    gaps = [
        (state.top - state.first) / max(1, state.rows - 1)
        for state in run.sources.values()
        if state.first is not None and state.top is not None
    ]
    return total - (run.step or 0) > max(1.0, *gaps, 0.0)


def _where(run: Run) -> str:
    total = run.total_steps
    if total is None:
        where = ""
    elif run.step:
        where = f" at step {run.step} of {total}"
    else:
        where = " before its first step"
    if run.step and not any(one.rows for one in run.sources.values()):
        where += ", from which it had resumed"
    return where


def _tells(run: Run, cause: RootCause | None) -> bool:
    end = run.outcome
    early = end is not None and end.kind in _IN_ORDER and _is_short(run)
    return _KINDS.get(cause.kind if cause is not None else "", early)
