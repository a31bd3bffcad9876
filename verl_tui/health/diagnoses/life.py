"""A run's life: no step for many times the usual gap of the step that is due, within the time in
which that may be a hang; restarts, and weights after them that are not what they should be.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import fmean, variance
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.health.conditions.column import KEPT_BREACHES, Breach, Found
from verl_tui.health.diagnosis import diagnosis
from verl_tui.health.finding import LACKS, WORDS, Finding, Severity, number
from verl_tui.health.root_cause import RootCause, root_cause, waiting
from verl_tui.health.rule_context import RuleContext, minutes
from verl_tui.means import finite
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
    from collections.abc import Iterator, Sequence

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


@diagnosis("hang", by_clock=True)
def hang(context: RuleContext) -> Finding | str | None:
    """Find a run that should have made a step long ago, compared with the usual duration of the
    next one; says whether the log is silent and GPUs are idle, too.
    """
    run = context.run
    wait = waiting(run)
    if wait and _is_long(context, wait):
        return _waits(context, wait)
    if context.state is State.WAITING:
        return _before_the_first(context)
    if own := _waited_at_end(context):
        return _stalled(context, own)
    if context.state is not State.STALLED:
        return _no_hang(context) or None
    holder = signs_of_life.writer(run)
    if not holder or not holder.stopped:
        return _stalled(context, _quiet(context))
    return context.rule.finding(
        {"process": holder.words},
        case="stopped",
        since=run.step,
        severity=Severity.WARNING,  # nothing is wrong with it
    )


def _waited_at_end(context: RuleContext) -> float:
    """Return how many seconds a log that ends without a word had waited, 0 if not for long."""
    run = context.run
    if context.state is not State.ENDED or run.outcome or root_cause(run):
        return 0.0
    own = _by_own_clock(run)
    return own if own > max(_WAITS, patience(run)) else 0.0


def _waits(context: RuleContext, wait: RootCause) -> Finding:
    """Return what a run has been waiting for, by its own words."""
    step, is_now = context.run.step, context.state is State.STALLED
    quiet = minutes(max(_quiet(context), wait.seconds or 0))
    return context.rule.finding(
        {
            "where": "first step yet" if step is None else f"step since step {step}",
            "lasts": f"for {minutes(wait.seconds)}, " if wait.seconds else "",
            "why": wait.words,
            "short": wait.headline,
        },
        (
            wait.line,
            f"{wait.times:,} such lines, none of a step among them",
            f"no step for {quiet}" if is_now else "",
            signs_of_life.phase(context.run),
        ),
        "waits",
        since=step,
        advice=wait.advice,
        severity=None if is_now else Severity.WARNING,
    )


def _stalled(context: RuleContext, quiet: float) -> Finding:
    run, is_now = context.run, context.state is State.STALLED
    compared, longest = _usual(run, quiet)
    case, why, advice, line = "", "", None, ""
    cause = root_cause(run)
    still = [
        one.life.counters for one in run.sources.values() if one.life.counters_stand()
    ]
    if cause and cause.is_certain:
        why, advice, line = cause.words, cause.advice, cause.line
    elif still:
        case, why = "unfinished", f"its counters stand still: {still[0]}"
    signs, head = (_signs(context), "") if is_now else ((), "the log ends with ")
    return context.rule.finding(
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
        severity=None if is_now else Severity.WARNING,
    )


def _usual(run: Run, quiet: float) -> tuple[str, str]:
    """Return how long no step has come compared with the usual gap, and what is due."""
    due = expected_step(run)
    if not due:
        return "the usual gap is not known", ""
    kind = due.words
    times = f"{quiet / due.seconds:,.0f} times the usual"
    longest = f"{kind} is due; the longest so far took {minutes(due.longest)}"
    return f"{times} {minutes(due.seconds)} of {kind}", longest


def _before_the_first(context: RuleContext) -> Finding | str:
    """Return a start that has long printed nothing although its process is alive: it may be a
    hang; else what is known of it, as engines may take long to start.
    """
    run, now = context.run, context.now
    sign, phase = signs_of_life.evidence(run, now), signs_of_life.phase(run)
    allowed = _allowed(run)
    is_fresh = sign and now - sign.latest <= _FRESH_LOG
    # Heartbeats whose counters stand still are nothing new.
    at = signs_of_life.last_written(run)
    lives = [source.life for source in run.sources.values()]
    quiet = max([life.until_newest(life.stood) for life in lives], default=0.0)
    if at is not None:
        began = getattr(signs_of_life.writer(run), "began", 0.0)
        quiet = max(0.0, now - max(at, began) - run.lost(now))
    if not sign or not is_fresh or quiet <= allowed["seconds"] or doubt(run, now):
        return "; ".join(filter(None, ["the run has made no step yet", phase]))
    words = f"{minutes(allowed['seconds'])} are allowed: {allowed['why']}"
    evidence = (f"alive: {sign.words}", phase, words)
    facts = {"quiet": minutes(quiet)}
    return context.rule.finding(facts, evidence, "begins", severity=Severity.WARNING)


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
    return _by_own_clock(context.run, _DAY) or waited(context.run, context.now) or 0.0


def _by_own_clock(run: Run, later: float = -math.inf) -> float:
    """Return the seconds between a log's last step and its newest line, by the times it states; 0
    where it states none, or where its file has not been written so many seconds later.
    """
    spans = [
        source.life.until_newest(source.life.since)
        for source in run.sources.values()
        if source.step is not None
        if (source.status.modified or 0.0) - source.life.stamp >= later
    ]
    return max(spans, default=0.0)


def _is_long(context: RuleContext, wait: RootCause) -> bool:
    """Return whether a run that goes on has waited longer than it may."""
    if context.state in (State.FINISHED, State.CRASHED, State.UNKNOWN):
        return False
    if wait.seconds is None:
        return wait.times >= _MANY
    due = expected_step(context.run)
    usual = due.seconds if due else 0.0
    return wait.seconds >= max(_WAITS, _WAITS_STEPS * usual)


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
        f"alive: {alive.words}" if alive else "",
        log,
        gpus,
    )


def _gpus(context: RuleContext) -> tuple[bool | None, str]:
    """Return whether this machine's GPUs work, None where that is unknown, and it in words."""
    work, reading = signs_of_life.gpus_work(context.run, context.now), context.run.gpus
    if work is None or not reading:
        return None, "GPU activity was not measured; used memory proves nothing"
    known = [one.utilization for one in reading.gpus if one.utilization is not None]
    words = f"{'work' if work else 'are idle'}: {min(known):.0f}–{max(known):.0f}%"
    return work, f"this machine's GPUs {words} (if the run is on this machine)"


@diagnosis("restart")
def restart(context: RuleContext) -> Found | None:
    """Find where the run's sources started over: steps went back, or the file was rewritten."""
    marks = context.run.restarts
    if not marks:
        return None
    ends = [*(mark.step for mark in marks[1:]), None]
    breaches = [
        Breach(mark.step, mark.step, f"the run started over: {mark.reason}", end)
        for mark, end in zip(marks, ends, strict=True)
    ]
    # By step: those beyond the step that the run has reached since belong to earlier segments.
    reached = [one for one in marks if context.end is None or one.step <= context.end]
    newest = (reached or marks)[-1]
    often = f", {len(marks)} times so far" if len(marks) > 1 else ""
    facts = {"often": often, "reason": newest.reason}
    lines = [f"step {mark.step}: {mark.reason} ({mark.path})" for mark in marks[-5:]]
    now = context.rule.finding(facts, lines, since=newest.step)
    return Found(now, breaches[-KEPT_BREACHES:])


_OF_WEIGHTS = ("reward", "reference_kl", "entropy")
"""Indicators that depend on the weights."""
_NOT_RESUMED = ("", "none", "null", "false", "no", "never", "disable", "0")
_LEAST, _MOST = 3, 10
"""Points that make a level."""
_ERRORS, _SHARE, _BACK = 5.0, 0.1, 0.4
"""A level has moved by five standard errors and a tenth of it; it is back where it is nearer to the
start than 40% of the way: heuristic.
"""


class _Levels(NamedTuple):
    """The values of a metric around a restart."""

    key: str
    start: Sequence[float]
    """The run's first values; those after the restart where it is at the run's first step."""
    before: Sequence[float]
    after: Sequence[float]

    @property
    def is_back(self) -> bool:
        """Whether it is where it was at the start."""
        start, before, after = map(fmean, self[1:])
        is_near = abs(after - start) <= _BACK * abs(before - start)
        return is_near and _differ(self.before, self.after)

    @property
    def words(self) -> str:
        """The levels before and after."""
        start, before, after = (number(fmean(one)) for one in self[1:])
        return f"{self.key} {before} → {after}, at the start {start}"


@diagnosis("resume-lost", by_clock=True)  # it is about the newest restart only
def resume_lost(context: RuleContext) -> Finding | str | None:
    """Find that all that had moved since the run's start is back there right after the newest
    restart.
    """
    run = context.run
    if not run.restarts:
        return f"{LACKS} no restart"
    mark = run.restarts[-1]
    moved = [one for one in _levels(run, mark.step) if _differ(one.start, one.before)]
    if not moved or not all(one.is_back for one in moved):
        return None
    _, stated = run.config.named("resume")
    if moved[0].start is moved[0].after and str(stated).strip().lower() in _NOT_RESUMED:
        return None  # started anew, maybe on purpose
    return context.rule.finding(
        {"levels": "; ".join(one.words for one in moved), "reason": mark.reason},
        since=mark.step,
        step=run.step,
        key=moved[0].key,
    )


def _levels(run: Run, restart: int) -> Iterator[_Levels]:
    """Yield the levels of metrics around a restart, of those that have enough points.

    After a restart at the run's first step, what is left from before lies beyond the step reached.
    """
    for series in filter(None, map(run.indicator, _OF_WEIGHTS)):
        steps, values = series.steps, series.values
        at = bisect_left(steps, restart)
        end = bisect_left(steps, (run.end or 0) + 1)
        after = finite(values[at : min(end, at + _MOST)])
        stop, least = (at, 0) if at else (len(values), end)
        start = finite(values[: min(at, _MOST)]) or after
        before = finite(values[max(stop - _MOST, least) : stop])
        if not 0 < at < 2 * _MOST and min(map(len, (start, before, after))) >= _LEAST:
            yield _Levels(series.key, start, before, after)


def _differ(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two levels differ beyond chance, and by enough to matter."""
    gap = abs(fmean(one) - fmean(other))
    error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
    size = max(abs(fmean(one)), abs(fmean(other)))
    return gap > _ERRORS * error and gap >= _SHARE * size
