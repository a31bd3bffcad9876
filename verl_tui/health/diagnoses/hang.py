"""No step for many times the usual gap of the step that is due, within the time in which that may
be a hang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.health.diagnoses.diagnosis import WORDS, Told, diagnosis
from verl_tui.health.finding import Severity
from verl_tui.health.root_cause import root_cause, waiting
from verl_tui.health.rule_context import minutes
from verl_tui.runs.time.forecast import expected_step
from verl_tui.runs.views import signs_of_life
from verl_tui.runs.views.state import (
    State,
    doubt,
    is_evaluation,
    last_write,
    overdue,
    patience,
    waited,
)

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.root_cause import RootCause
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState
    from verl_tui.runs.views.signs_of_life import Evidence

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
def hang(context: RuleContext, _: Rule) -> Told | str | None:
    """Find a run that should have made a step long ago, compared with the usual duration of the
    next one; says whether the log is silent and GPUs are idle, too.
    """
    found = _found(context)
    if isinstance(found, Told) and context.state is not State.STALLED:
        return found._replace(severity=Severity.WARNING)
    return found


def _found(context: RuleContext) -> Told | str | None:
    run = context.run
    wait = waiting(run)
    if wait is not None and _is_long(context, wait):
        return _waits(context, wait)
    if context.state is State.WAITING:
        return _before_the_first(context)
    own = _silent_in_a_copy(context)
    if own is not None:
        return _stalled(context, own)
    if context.state is not State.STALLED:
        return _no_hang(context) or None
    holder = signs_of_life.writer(run)
    if holder is None or not holder.stopped:
        return _stalled(context, _quiet(context))
    return Told(
        {"process": holder.words},
        case="stopped",
        since=run.step,
        severity=Severity.WARNING,  # nothing is wrong with it
    )


def _waits(context: RuleContext, wait: RootCause) -> Told:
    """Return what a run has been waiting for, by its own words."""
    step = context.run.step
    quiet = minutes(max(_quiet(context), wait.seconds or 0))
    return Told(
        {
            "where": "first step yet" if step is None else f"step since step {step}",
            "lasts": f"for {minutes(wait.seconds)}, " if wait.seconds else "",
            "why": wait.words,
        },
        (
            wait.line,
            f"{wait.times:,} such lines, none of a step among them",
            f"no step for {quiet}" if context.state is State.STALLED else "",
            signs_of_life.phase(context.run),
        ),
        case="waits",
        since=step,
        advice=wait.advice,
    )


def _stalled(context: RuleContext, quiet: float) -> Told:
    run = context.run
    compared, due = _compared(run, quiet)
    case, why, advice, line = _seen(run)
    head, signs = "the log ends with ", list[str]()
    if context.state is State.STALLED:
        head, signs = "", _signs(context)
    return Told(
        {"head": head, "quiet": minutes(quiet), "why": why or compared},
        (
            *(line, compared if why else "", *signs[:2]),
            *(signs_of_life.phase(run), due, *signs[2:]),
        ),
        case=case,
        since=run.step,
        advice=advice,
    )


def _before_the_first(context: RuleContext) -> Told | str:
    """Return a start that has long printed nothing although its process is alive: it may be a
    hang.
    """
    run = context.run
    sign = signs_of_life.evidence(run, context.now)
    quiet = _unchanged(context)
    start = _start(run)
    is_short = quiet <= start["seconds"] or doubt(run, context.now)
    if sign is None or not _is_alive(context, sign) or is_short:
        return _waiting(context, sign)
    return Told(
        {"quiet": minutes(quiet)},
        (
            f"alive: {sign.words}",
            signs_of_life.phase(run),
            f"{minutes(start['seconds'])} are allowed: {start['why']}",
        ),
        case="begins",
    )


def _seen(run: Run) -> tuple[str, str, str | None, str]:
    """Return which case it is by what the log says of why no step comes, what it says, advice
    that is not the case's, and its line.
    """
    cause = root_cause(run)
    if cause is not None and cause.is_certain:
        return "", cause.words, cause.advice, cause.line
    still = [one.life.counters for one in run.sources.values() if one.life.stands()]
    if not still:
        return "", "", None, ""
    return "unfinished", f"its counters stand still: {still[0]}", None, ""


def _compared(run: Run, quiet: float) -> tuple[str, str]:
    """Return how a silence compares with the usual step, and what is due."""
    due = expected_step(run)
    if due is None:
        return "the usual gap is not known", ""
    times = f"{quiet / due.seconds:,.0f} times the usual"
    longest = minutes(due.longest)
    return (
        f"{times} {minutes(due.seconds)} of {due.kind.words}",
        f"{due.kind.words} is due; the longest so far took {longest}",
    )


def _signs(context: RuleContext) -> list[str]:
    """Say which of the three signs of a hang held, and what shows life."""
    log, log_words = _log(context)
    gpus, gpu_words = _gpus(context)
    held = [*filter(None, ("no step", log, gpus))]
    alive = signs_of_life.evidence(context.run, context.now)
    return [
        f"{len(held)} of 3 signs held: {', '.join(held)}",
        f"alive: {alive.words}" if alive is not None else "",
        log_words,
        gpu_words,
    ]


def _silent_in_a_copy(context: RuleContext) -> float | None:
    """Return the seconds for which a log that ends without a word was silent by its own clock, None
    if it is no hang.
    """
    run = context.run
    own = _by_own_clock(run, copies=False)
    if context.state is not State.ENDED or run.outcome is not None:
        return None
    is_long = own > max(_WAITS, patience(run))
    return own if is_long and root_cause(run) is None else None


def _quiet(context: RuleContext) -> float:
    """Return for how many seconds no step has come: by the log's own clock where its file's time
    has nothing to do with it.
    """
    own = _by_own_clock(context.run, copies=True)
    return own or waited(context.run, context.now) or 0.0


def _by_own_clock(run: Run, *, copies: bool) -> float:
    """Return the seconds between a log's last step and its newest line, by the times it states; 0
    where it states none.

    Args:
        run: The run.
        copies: Only of logs whose file has been written long after.
    """
    spans = [
        source.life.until_newest(source.life.since)
        for source in run.sources.values()
        if source.step is not None and not (copies and _is_dated(source))
    ]
    return max(spans, default=0.0)


def _is_dated(source: SourceState) -> bool:
    """Return whether the times in a log may be those of its file, in some zone."""
    return (source.status.modified or 0.0) - (source.life.stamp or 0.0) < _DAY


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
    run = context.run
    if context.state is State.ENDED and signs_of_life.unattended(run):
        return _ELSEWHERE["unattended"]
    quiet = _quiet(context)
    running = context.state is State.RUNNING and not is_evaluation(run)
    if running and overdue(run, quiet):
        return f"no step for {minutes(quiet)}, but {doubt(run, context.now)}"
    return _ELSEWHERE.get(context.state.value, "")


def _start(run: Run) -> dict[str, Any]:
    """Return how long a start may be silent, by the last stages of its logs."""
    stages = [one.stage.text for one in run.sources.values() if one.stage] or [""]
    return next(
        start
        for start in _STARTS
        if any(text.startswith(tuple(start["stages"])) for text in stages)
    )


def _is_alive(context: RuleContext, sign: Evidence) -> bool:
    return sign.latest is None or context.now - sign.latest <= _FRESH_LOG


def _waiting(context: RuleContext, sign: Evidence | None) -> str:
    """Return what is known of a run before its first step; engines may take long to start."""
    written = last_write(context.run)
    age = minutes(max(0.0, context.now - written)) if written is not None else ""
    facts = (
        "the run has made no step yet",
        f"last written {age} ago" if age else "",
        sign.words if sign is not None and sign.latest is None else "",
        signs_of_life.phase(context.run),
    )
    return "; ".join(filter(None, facts))


def _log(context: RuleContext) -> tuple[str, str]:
    """Return that the log is silent, empty where it is not or may not be, and more about it."""
    written = last_write(context.run)
    if written is None:
        return "", "it is unknown whether the log is silent"
    age = max(0.0, context.now - written)
    of_training = signs_of_life.last_written(context.run)
    quiet = context.now - of_training if of_training is not None else 0.0
    if max(age, quiet) <= _FRESH_LOG:
        return "", f"the log is still growing: last written {minutes(age)} ago"
    silent = "the log is silent"
    if age > _FRESH_LOG:
        return silent, f"{silent}: last written {minutes(age)} ago"
    but = "but for output that goes on without training: else last written"
    return silent, f"{silent} {but} {minutes(quiet)} ago"


def _gpus(context: RuleContext) -> tuple[str, str]:
    """Return that this machine's GPUs are idle, empty where they are not or may not be, and more
    about them; used memory proves nothing.
    """
    work = signs_of_life.gpus_work(context.run, context.now)
    reading = context.run.gpus
    if work is None or reading is None:
        return "", "GPU activity was not measured; used memory proves nothing"
    known = [gpu.utilization for gpu in reading.gpus if gpu.utilization is not None]
    busy = f"{min(known):.0f}–{max(known):.0f}%"
    words = f"this machine's GPUs {'work' if work else 'are idle'}: {busy}"
    return "" if work else "GPUs are idle", f"{words} (if the run is on this machine)"
