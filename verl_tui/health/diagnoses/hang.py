"""No step for many times the usual gap of the step that is due, within the time in which that may
be a hang.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from verl_tui.health.diagnoses.diagnosis import diagnosis
from verl_tui.health.finding import WORDS, Finding, Severity
from verl_tui.health.root_cause import RootCause, root_cause, waiting
from verl_tui.health.rule_context import RuleContext, minutes
from verl_tui.runs.time.forecast import expected_step
from verl_tui.runs.views import signs_of_life
from verl_tui.runs.views.state import (
    State,
    doubt,
    is_evaluation,
    overdue,
    patience,
    waited,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.runs.run import Run

_FRESH_LOG = 120.0
"""A log that grew within two minutes is not silent."""
_WAITS = 600.0
"""Seconds for which a run may say that it waits: as long as NCCL does by default: heuristic."""
_WAITS_STEPS = 2
"""Nor as long as this many usual steps."""
_MANY = 20
"""Lines that make a wait long where they state no times: heuristic."""
_DAY = 86400.0
"""Times in a log lie so far before its file's only in a copy or an old log: no zone explains it."""
_ELSEWHERE: dict[str, str] = WORDS["hang"]["elsewhere"]
_STARTS: list[dict[str, Any]] = WORDS["hang"]["start"]


@diagnosis("hang", alive=True)
def hang(context: RuleContext, rule: Rule) -> Finding | str | None:
    """Find a run that should have made a step long ago, compared with the usual duration of the
    next one; says whether the log is silent and GPUs are idle, too.
    """
    run = context.run
    severity = None if context.state is State.STALLED else Severity.WARNING
    wait = waiting(run)
    if wait is not None and _is_long(context, wait):
        return _waits(context, rule, wait, severity)
    if context.state is State.WAITING:
        return _before_the_first(context, rule)
    if own := _cut(context):
        return _stalled(context, rule, own, severity)
    if context.state is not State.STALLED:
        return _no_hang(context) or None
    holder = signs_of_life.writer(run)
    if holder is None or not holder.stopped:
        return _stalled(context, rule, _quiet(context), severity)
    severity = Severity.WARNING  # nothing is wrong with it
    facts = {"process": holder.words}
    return rule.told(facts, (), "stopped", since=run.step, severity=severity)


def _cut(context: RuleContext) -> float:
    """Return for how many seconds a log had waited that ends without a word, 0 where it did not
    wait long.
    """
    run = context.run
    if context.state is not State.ENDED or run.outcome or root_cause(run) is not None:
        return 0.0
    own = _by_own_clock(run)
    return own if own > max(_WAITS, patience(run)) else 0.0


def _waits(
    context: RuleContext, rule: Rule, wait: RootCause, severity: Severity | None
) -> Finding:
    """Return what a run has been waiting for, by its own words."""
    step = context.run.step
    quiet = minutes(max(_quiet(context), wait.seconds or 0))
    return rule.told(
        {
            "where": "first step yet" if step is None else f"step since step {step}",
            "lasts": f"for {minutes(wait.seconds)}, " if wait.seconds else "",
            "why": wait.words,
            "short": wait.headline,
        },
        (
            wait.line,
            f"{wait.times:,} such lines, none of a step among them",
            f"no step for {quiet}" if context.state is State.STALLED else "",
            signs_of_life.phase(context.run),
        ),
        "waits",
        since=step,
        advice=wait.advice,
        severity=severity,
    )


def _stalled(
    context: RuleContext, rule: Rule, quiet: float, severity: Severity | None
) -> Finding:
    run = context.run
    compared, longest = _usual(run, quiet)
    case, why, advice, line = "", "", None, ""
    cause = root_cause(run)
    still = [one.life.counters for one in run.sources.values() if one.life.stands()]
    if cause is not None and cause.is_certain:
        why, advice, line = cause.words, cause.advice, cause.line
    elif still:
        case, why = "unfinished", f"its counters stand still: {still[0]}"
    signs, head = _signs(context), ""
    if context.state is not State.STALLED:
        signs, head = (), "the log ends with "
    return rule.told(
        {"head": head, "quiet": minutes(quiet), "why": why or compared},
        (
            line,
            compared if why else "",
            *signs,
            signs_of_life.phase(run),
            longest,
        ),
        case,
        since=run.step,
        advice=advice,
        severity=severity,
    )


def _usual(run: Run, quiet: float) -> tuple[str, str]:
    """Return how long no step has come compared with the usual gap, and what is due."""
    due = expected_step(run)
    if due is None:
        return "the usual gap is not known", ""
    kind = due.words
    times = f"{quiet / due.seconds:,.0f} times the usual"
    longest = f"{kind} is due; the longest so far took {minutes(due.longest)}"
    return f"{times} {minutes(due.seconds)} of {kind}", longest


def _before_the_first(context: RuleContext, rule: Rule) -> Finding | str:
    """Return a start that has long printed nothing although its process is alive: it may be a
    hang; else what is known of it, as engines may take long to start.
    """
    run, now = context.run, context.now
    sign, phase = signs_of_life.evidence(run, now), signs_of_life.phase(run)
    allowed = _allowed(run)
    is_fresh = sign is not None and now - (sign.latest or now) <= _FRESH_LOG
    quiet = _unchanged(context)
    if sign is None or not is_fresh or quiet <= allowed["seconds"] or doubt(run, now):
        return "; ".join(filter(None, ["the run has made no step yet", phase]))
    words = f"{minutes(allowed['seconds'])} are allowed: {allowed['why']}"
    evidence = (f"alive: {sign.words}", phase, words)
    facts = {"quiet": minutes(quiet)}
    return rule.told(facts, evidence, "begins", severity=Severity.WARNING)


def _allowed(run: Run) -> dict[str, Any]:
    """Return how long a start may be silent, by the last stages of its logs."""
    stages = [one.stage.text for one in run.sources.values() if one.stage] or [""]
    return next(
        start
        for start in _STARTS
        if any(text.startswith(tuple(start["stages"])) for text in stages)
    )


def _quiet(context: RuleContext) -> float:
    """Return for how many seconds no step has come: by the log's own clock where its file's time
    has nothing to do with it.
    """
    own = _by_own_clock(context.run, _DAY)
    return own or waited(context.run, context.now) or 0.0


def _by_own_clock(run: Run, later: float = -math.inf) -> float:
    """Return the seconds between a log's last step and its newest line, by the times it states; 0
    where it states none, or where its file has not been written so many seconds later.
    """
    spans = [
        source.life.until_newest(source.life.since)
        for source in run.sources.values()
        if source.step is not None
        if (source.status.modified or 0.0) - (source.life.stamp or 0.0) >= later
    ]
    return max(spans, default=0.0)


def _is_long(context: RuleContext, wait: RootCause) -> bool:
    """Return whether a run that goes on has waited longer than it may."""
    if context.state in (State.FINISHED, State.CRASHED, State.UNKNOWN):
        return False
    if wait.seconds is None:
        return wait.times >= _MANY
    due = expected_step(context.run)
    usual = due.seconds if due is not None else 0.0
    return wait.seconds >= max(_WAITS, _WAITS_STEPS * usual)


def _unchanged(context: RuleContext) -> float:
    """Return for how many seconds a run has written nothing new, not counting heartbeats whose
    counters stand still.
    """
    run = context.run
    at = signs_of_life.last_written(run)
    if at is not None:
        return max(0.0, context.now - at - run.lost(context.now))
    lives = [source.life for source in run.sources.values()]
    return max([life.until_newest(life.stood) for life in lives], default=0.0)


def _no_hang(context: RuleContext) -> str:
    """Return why a run in another state is not a hang, empty for one that runs as it should."""
    run, state = context.run, context.state
    if state is State.ENDED and signs_of_life.unattended(run):
        return _ELSEWHERE["unattended"]
    quiet = _quiet(context)
    if state is State.RUNNING and not is_evaluation(run) and overdue(run, quiet):
        return f"no step for {minutes(quiet)}, but {doubt(run, context.now)}"
    return _ELSEWHERE.get(state.value, "")


def _signs(context: RuleContext) -> Sequence[str]:
    """Return which of the three signs of a hang held, what shows life, and what is known of the log
    and of this machine's GPUs; used memory proves nothing.
    """
    run, now = context.run, context.now
    written, trained = run.modified, signs_of_life.last_written(run)
    held, log = ["no step"], "it is unknown whether the log is silent"
    if written is not None:
        quiet = max(0.0, now - min(written, trained or written))
        log = f"the log is still growing: last written {minutes(quiet)} ago"
        if quiet > _FRESH_LOG:
            held.append("the log is silent")
            but = (
                " but for output without training"
                if now - written <= _FRESH_LOG
                else ""
            )
            log = f"the log is silent{but}: last written {minutes(quiet)} ago"
    work, gpus = _gpus(context)
    held += ["GPUs are idle"] if work is False else []
    alive = signs_of_life.evidence(run, now)
    return (
        f"{len(held)} of 3 signs held: {', '.join(held)}",
        f"alive: {alive.words}" if alive is not None else "",
        log,
        gpus,
    )


def _gpus(context: RuleContext) -> tuple[bool | None, str]:
    """Return whether this machine's GPUs work, None where that is unknown, and it in words."""
    work, reading = signs_of_life.gpus_work(context.run, context.now), context.run.gpus
    if work is None or reading is None:
        return None, "GPU activity was not measured; used memory proves nothing"
    known = [one.utilization for one in reading.gpus if one.utilization is not None]
    words = f"{'work' if work else 'are idle'}: {min(known):.0f}–{max(known):.0f}%"
    return work, f"this machine's GPUs {words} (if the run is on this machine)"
