"""How a run ended: it died, or stopped in order before its last step; and errors that workers
report again and again while it goes on: the driver may die of them later.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.resources import memory_growth
from verl_tui.health.diagnosis import diagnosis
from verl_tui.health.finding import Finding, Severity, number
from verl_tui.health.root_cause import RootCause, line_shown, root_cause
from verl_tui.records import Event, EventKind, Phase, Writer
from verl_tui.runs.views.signs_of_life import worker_errors, writer
from verl_tui.runs.views.state import State, interrupted
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run

_ENDS = (EventKind.FATAL, EventKind.TRACEBACK, EventKind.STOPPED)
_UNNAMED = "Traceback (most recent call last):"
"""Ends the first line of an exception whose name the log does not hold."""
_GROWN_FOR, _GROWN = 20, 1.25
"""Points and growth of the host's memory that explain a worker's death: heuristic."""


# A traceback alone means something only after silence.
@diagnosis("crash", by_clock=True)
def crash(context: RuleContext) -> Finding | str | None:
    """Find how the run crashed, or an error that may have ended it: a traceback, a fatal message or
    a signal, and no step after it; or that its process is gone without a message.
    """
    run, state = context.run, context.state
    event = run.outcome
    if event and event.kind in _ENDS and state is not State.FINISHED:
        is_cut = event.text.endswith(_UNNAMED)
        why = "its log ends within a traceback" if is_cut else one_line(event.text)
        return _crashed(context, event, why)
    holder = writer(run)
    why = "nothing shows how it ended"
    if holder:
        why = f"killed, or ended without a message: {holder.words} is gone"
    if state is State.CRASHED or (state is State.ENDED and _is_known(run, holder)):
        return _crashed(context, None, why)
    return None if run.events else "no source reports how the run started or ended"


def _is_known(run: Run, holder: Writer | None) -> bool:
    """Return whether anything shows how a run without a closing line ended: by its cause, or a
    process that is gone without a message; one that only began a file may have finished.
    """
    cause = root_cause(run)
    if cause and cause.is_certain:
        return True
    if not holder or not holder.gone or run.outcome:
        return False
    return not holder.by_name or run.total_steps is not None


def _crashed(context: RuleContext, event: Event | None, why: str) -> Finding:
    """Return an end that the log tells of, or that a process left without a word, and what it
    follows from.
    """
    run = context.run
    phase, step = (event.phase, event.step) if event else (None, None)
    step = run.step if step is None else step
    cause = root_cause(run, phase)
    case, severity = _case(context, event)
    advice = None if not event or case == "interrupted" else ""
    lines, short = [_last_line(run, event, cause)], why
    if cause and case != "interrupted":
        lines = [cause.line, *lines, cause.others, "" if event else why]
        why, short = _memory_words(context, cause) or cause.words, cause.title
        phase, advice = cause.event.phase or phase, cause.advice
    place, during, doing = _place(step, phase)
    return context.rule.finding(
        {"place": place + during, "why": why, "short": short, "doing": during},
        [*lines, doing, "no step came after it"],
        case,
        since=step,
        severity=severity,
        advice=advice,
        certain=context.state is State.CRASHED,
    )


def _place(step: int | None, phase: Phase | None) -> tuple[str, str, str]:
    """Return where a run ended, what it was doing, and what shows that."""
    place = "before the first step" if step is None else f"at step {step}"
    if not phase:
        return place, "", ""
    doing = f"it was {phase.words}, by its traceback: {phase.function}"
    return place, f" while {phase.words}", doing


def _last_line(run: Run, event: Event | None, cause: RootCause | None) -> str:
    """Return the line that tells of an end, empty if it is that of the cause."""
    if not event or (cause and cause.event.line == event.line):
        return ""
    paths = (path for path, state in run.sources.items() if state.ending is event)
    return line_shown(next(paths, ""), event)


def _case(context: RuleContext, event: Event | None) -> tuple[str, Severity | None]:
    """Return which end it is, and its severity if it is not the guide's."""
    if event and event.kind is EventKind.STOPPED:
        by_user = interrupted(context.run)
        return ("interrupted", Severity.INFO) if by_user else ("stopped", None)
    if context.state is State.CRASHED:
        return "", None
    return "uncertain" if event else "silent", Severity.WARNING


def _memory_words(context: RuleContext, cause: RootCause) -> str:
    """Return what the growth of the host's memory says of a worker that died without a word."""
    growth = memory_growth(context, _GROWN_FOR) if cause.kind == "report" else None
    if not growth or growth.now < _GROWN * growth.first:
        return ""
    return (
        f"a worker died, most likely because the host's memory ran out: it grew from "
        f"{number(growth.first)} to {number(growth.now)}{growth.unit} since step {growth.since}"
    )


_IN_ORDER = (EventKind.EXITED, EventKind.FINISHED)
_LAST = "Final validation metrics"
"""verl prints this at its last step only, whatever total was stated before."""
_KINDS = {"stop": True, "cause": False}
"""Kinds of root causes that decide: the run's own limit, an error, which is the crash's to tell."""


@diagnosis("ended-early", by_clock=True)  # what an end is depends on the process
def ended_early(context: RuleContext) -> Finding | str | None:
    """Find an orderly end short of the stated steps, or by a limit of the run's own, and the line
    that says why it stopped.
    """
    run = context.run
    if context.state not in (State.FINISHED, State.ENDED):
        is_known = run.total_steps is not None
        return None if is_known else "the log does not say how many steps to go"
    cause, end = root_cause(run), run.outcome
    early = end is not None and end.kind in _IN_ORDER and _is_short(run)
    if not (_KINDS.get(cause.kind, early) if cause else early):
        return None
    facts = {"where": _where(run), "why": "no line says why"}
    line = line_shown("", end) if end else ""
    if not cause:
        return context.rule.finding(facts, [line], since=run.step)
    facts["why"] = cause.words
    return context.rule.finding(
        facts, [cause.line, line], since=run.step, advice=cause.advice or None
    )


def _where(run: Run) -> str:
    total = run.total_steps
    where = "" if total is None else " before its first step"
    if run.step and total is not None:
        where = f" at step {run.step} of {total}"
    if run.step and not any(one.rows for one in run.sources.values()):
        where += ", from which it had resumed"
    return where


def _is_short(run: Run) -> bool:
    """Return whether more steps were to come than the log leaves out between its records."""
    total = run.total_steps
    if total is None or (run.outcome and _LAST in run.outcome.text):
        return False
    gaps = [
        (state.top - state.first) / max(1, state.rows - 1)
        for state in run.sources.values()
        if state.first is not None and state.top is not None
    ]
    return total - (run.step or 0) > max(1.0, *gaps, 0.0)


@diagnosis("worker-errors")
def repeated_errors(context: RuleContext) -> Finding | None:
    """Find the workers' most frequent error, the last of them lately, and its count."""
    run = context.run
    if context.state in (State.CRASHED, State.FINISHED):
        return None
    rule = context.rule
    lately = (run.step or 0) - rule.window
    for path, error in worker_errors(run):
        if (error.step or 0) >= lately and error.count >= rule.count:
            first = error.first
            name = one_line(PurePath(path).name, 60)
            lines = f"{name}:{first.line} to {error.last.line}"
            said = f"{lines}: {one_line(first.text, 160)}"
            facts: dict[str, object] = {
                "actor": one_line(first.actor),
                "text": one_line(first.text, 200),
                "count": error.count,
            }
            return rule.finding(facts, [said], since=error.since, step=error.step)
    return None
