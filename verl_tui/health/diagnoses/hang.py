"""No step for many times the usual gap of the step that is due, within the time in which that may
be a hang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.root_cause import line_shown, root_cause, waiting
from verl_tui.health.rule_context import minutes
from verl_tui.runs.time.forecast import expected_step
from verl_tui.runs.views.signs_of_life import (
    evidence,
    gpus_work,
    phase,
    unattended,
    writer,
)
from verl_tui.runs.views.signs_of_life import last_written as last_of_training
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
    from collections.abc import Sequence

    from verl_tui.health.root_cause import Waiting
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run

_FRESH_LOG = 120.0
"""A log that grew within two minutes is not silent."""
_START = 1800.0
"""Seconds that a start may stay silent: as long as PyTorch's processes wait for each other by
default (`default_pg_timeout`, torch/distributed/constants.py). Loading weights and compiling print
something all the time.
"""
_LONG_START = 7200.0
"""Seconds if the last message was about generating or validating, which print nothing until they
are done: heuristic.
"""
_WAITS = 600.0
"""Seconds for which a run may say that it waits: as long as NCCL does by default: heuristic."""
_WAITS_STEPS = 2
"""Nor as long as this many usual steps."""
_MANY = 20
"""Lines that make a wait long where they state no times: heuristic."""
_GENERATES = (
    "validation generation",
    "test_gen_batch",
    "***** Running",
    "all initialize finished",
)
"""Beginnings of the stages of generating and validating."""
_STOPPED = (
    "Let it go on: `kill -CONT` with its process number, or `fg` in its shell. "
    "Processes that wait for it may time out meanwhile."
)
_START_ADVICE = (
    "Look at the processes' stacks (py-spy dump) and at what the log says last: "
    "usual causes are a download, a lock, or a rank that never came."
)
_UNFINISHED = (
    "Look at what never ends (py-spy dump): a tool, a sandbox or an agent's loop without a "
    "timeout, a reward function, a request that the engine has lost. Give each of them a timeout."
)
_DAY = 86400.0
"""Times in a log lie so far before its file's only in a copy or an old log: no zone explains it."""
_ELSEWHERE = {
    State.FINISHED: "the run has finished",
    State.CRASHED: "the run has crashed",
    State.ENDED: "no end marker, and long silent or dated by its file only: "
    "an old log or a copy, not a hang",
    State.UNKNOWN: "no record states a time",
}


class Hang(Diagnosis):
    """A run that should have made a step long ago; says whether the log is silent and GPUs are
    idle, too.
    """

    alive = True
    sentences = True

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Report how long a stalled run has made no step, compared with the usual duration of the
        next one.
        """
        judged = self._judge(context)
        self.remember(judged if isinstance(judged, Finding) else None, context.run.step)
        return judged

    def _judge(self, context: RuleContext) -> Finding | NotJudged | None:
        run = context.run
        quiet = _quiet(context)
        holder = writer(run)
        wait = waiting(run)
        if wait is not None and _is_long(context, wait):
            return self._waits(context, wait, quiet)
        if context.state is State.WAITING:
            return self._before_the_first(context)
        if (own := _silent_in_a_copy(context)) is not None:
            return self._stalled(context, own)
        if context.state is not State.STALLED:
            return self._not_stalled(context, quiet)
        if holder is not None and holder.stopped:
            return self._stopped(context, holder.words)
        return self._stalled(context, quiet)

    def _not_stalled(self, context: RuleContext, quiet: float) -> NotJudged | None:
        run = context.run
        reason = _elsewhere(context)
        running = context.state is State.RUNNING and not is_evaluation(run)
        if running and overdue(run, quiet):
            reason = f"no step for {minutes(quiet)}, but {doubt(run, context.now)}"
        return NotJudged(self.rule.id, reason) if reason else None

    def _waits(self, context: RuleContext, wait: Waiting, quiet: float) -> Finding:
        """Report what a run has been waiting for, by its own words."""
        run = context.run
        since = (
            "no first step yet"
            if run.step is None
            else f"no step since step {run.step}"
        )
        lasts = f"for {minutes(wait.seconds)}, " if wait.seconds else ""
        stalled = context.state is State.STALLED
        facts = (
            line_shown(wait.path, wait.event),
            f"{wait.times:,} such lines, none of a step among them",
            f"no step for {minutes(max(quiet, wait.seconds or 0))}"
            if stalled
            else None,
            phase(run),
        )
        return self.finding(
            f"{since}: {lasts}{wait.words}",
            facts,
            since=run.step,
            severity=self.rule.severity if stalled else Severity.WARNING,
            advice=wait.advice,
        )

    def _stalled(self, context: RuleContext, quiet: float) -> Finding:
        run = context.run
        stalled = context.state is State.STALLED
        compared, usual = _compared(run, quiet)
        why, advice, line = _seen(run) or (compared, self.rule.advice, "")
        signs = _signs(context) if stalled else ()
        compared = "" if why == compared else compared
        facts = (line, compared, *signs[:2], phase(run), usual, *signs[2:])
        ends = "" if stalled else "the log ends with "
        return self.finding(
            f"{ends}no step for {minutes(quiet)} since step {run.step}: {why}",
            facts,
            since=run.step,
            severity=self.rule.severity if stalled else Severity.WARNING,
            advice=advice,
        )

    def _stopped(self, context: RuleContext, holder: str) -> Finding:
        """Report a stopped process: it makes no steps, but nothing is wrong with it."""
        step = context.run.step
        return self.finding(
            f"no step is being made: {holder} is stopped",
            (
                "it stays stopped until it gets SIGCONT: somebody sent SIGSTOP or pressed Ctrl+Z",
            ),
            since=step,
            severity=Severity.WARNING,
            advice=_STOPPED,
        )

    def _before_the_first(self, context: RuleContext) -> Finding | NotJudged:
        """Report a start that has long printed nothing although its process is alive: it may be a
        hang.
        """
        run = context.run
        sign = evidence(context.run, context.now)
        quiet = _unchanged(context)
        allowed = _START
        why = "PyTorch's own wait at a start"
        if _generates(run):
            allowed = _LONG_START
            why = "it generates or validates (heuristic)"
        is_alive = sign is not None and _is_recent(sign.latest, context.now)
        if sign is None or not is_alive or quiet <= allowed or doubt(run, context.now):
            return NotJudged(self.rule.id, _waiting(context))
        facts = (
            f"alive: {sign.words}",
            phase(run),
            f"{minutes(allowed)} are allowed: {why}",
        )
        return self.finding(
            f"no first step yet, and no new output for {minutes(quiet)}",
            facts,
            severity=Severity.WARNING,
            advice=_START_ADVICE,
        )


def _seen(run: Run) -> tuple[str, str, str] | None:
    """Return what the log says of why no step comes, with advice and its line; None if it says
    nothing.
    """
    cause = root_cause(run)
    if cause is not None and cause.kind in ("cause", "symptom"):
        return cause.words, cause.advice, line_shown(cause.path, cause.event)
    still = [one.life.counters for one in run.sources.values() if one.life.stands()]
    if not still:
        return None
    return f"its counters stand still: {still[0]}", _UNFINISHED, ""


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


def _signs(context: RuleContext) -> Sequence[str]:
    """Say which of the three signs of a hang held, and what shows life."""
    log_silent, log_words = _log(context)
    gpus_idle, gpu_words = _gpus(context)
    signs = {
        "no step": True,
        "the log is silent": log_silent,
        "GPUs are idle": gpus_idle,
    }
    held = [words for words, holds in signs.items() if holds]
    sign = evidence(context.run, context.now)
    return (
        f"{len(held)} of 3 signs held: {', '.join(held)}",
        "" if sign is None else f"alive: {sign.words}",
        log_words,
        gpu_words,
    )


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
        state.life.stamp - state.life.since
        for state in run.sources.values()
        if state.step is not None
        and state.life.stamp is not None
        and state.life.since is not None
        and not (copies and (state.status.modified or 0.0) - state.life.stamp < _DAY)
    ]
    return max(spans, default=0.0)


def _is_long(context: RuleContext, wait: Waiting) -> bool:
    """Return whether a run that goes on has waited longer than it may."""
    if context.state in (State.FINISHED, State.CRASHED, State.UNKNOWN):
        return False
    if wait.seconds is None:
        return wait.times >= _MANY
    due = expected_step(context.run)
    usual = due.seconds if due is not None else 0.0
    return wait.seconds >= max(_WAITS, _WAITS_STEPS * usual)


def _generates(run: Run) -> bool:
    """Return whether the newest stage of a source is one of generating or validating."""
    stages = (one.stage.text for one in run.sources.values() if one.stage is not None)
    return any(text.startswith(_GENERATES) for text in stages)


def _is_recent(latest: float | None, now: float) -> bool:
    return latest is None or now - latest <= _FRESH_LOG


def _unchanged(context: RuleContext) -> float:
    """Return for how many seconds a run has written nothing new, not counting heartbeats whose
    counters stand still.
    """
    run = context.run
    at = last_of_training(context.run)
    if at is not None:
        return max(0.0, context.now - at - run.lost(context.now))
    unchanged = []
    for source in run.sources.values():
        life = source.life
        if life.stamp is not None and life.stood is not None:
            unchanged.append(life.stamp - life.stood)
    return max(unchanged, default=0.0)


def _elsewhere(context: RuleContext) -> str | None:
    """Return why a run in another state is not a hang."""
    if context.state is State.ENDED and unattended(context.run):
        return (
            "no process of this host writes the log: "
            "it ended without a message, or this is a copy of a run elsewhere"
        )
    return _ELSEWHERE.get(context.state)


def _waiting(context: RuleContext) -> str:
    """Return what is known of a run before its first step; engines may take long to start."""
    written = last_write(context.run)
    sign = evidence(context.run, context.now)
    facts = ["the run has made no step yet"]
    if written is not None:
        facts.append(f"last written {minutes(max(0.0, context.now - written))} ago")
    if sign is not None and sign.latest is None:
        facts.append(sign.words)
    facts.append(phase(context.run) or "")
    return "; ".join(filter(None, facts))


def _log(context: RuleContext) -> tuple[bool | None, str]:
    """Return whether the log is silent, None if unknown, and that in words."""
    written = last_write(context.run)
    if written is None:
        return None, "it is unknown whether the log is silent"
    age = max(0.0, context.now - written)
    if age > _FRESH_LOG:
        return True, f"the log is silent: last written {minutes(age)} ago"
    of_training = last_of_training(context.run)
    quiet = context.now - of_training if of_training is not None else 0.0
    if quiet > _FRESH_LOG:
        return True, (
            "the log is silent but for output that goes on without training: "
            f"else last written {minutes(quiet)} ago"
        )
    return False, f"the log is still growing: last written {minutes(age)} ago"


def _gpus(context: RuleContext) -> tuple[bool | None, str]:
    """Return whether this machine's GPUs are idle, also in words; used memory proves nothing."""
    work = gpus_work(context.run, context.now)
    reading = context.run.gpus
    if work is None or reading is None:
        return None, "GPU activity was not measured; used memory proves nothing"
    known = [gpu.utilization for gpu in reading.gpus if gpu.utilization is not None]
    busy = f"{min(known):.0f}–{max(known):.0f}%"
    return not work, (
        f"this machine's GPUs {'work' if work else 'are idle'}: {busy} "
        "(if the run is on this machine)"
    )
