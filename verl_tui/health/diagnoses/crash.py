"""The run died: the line that says so, and what usually helps."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.runs.views.signs_of_life import writer
from verl_tui.runs.views.state import State, interrupted
from verl_tui.runs.views.worker_errors import last_errors
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.records import Event, Phase
    from verl_tui.runs.run import Run

# In the order of trying: vLLM's advice before the general one for memory.
_ADVICE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (pattern(words, re.IGNORECASE), advice)
    for words, advice in (
        (
            r"No available memory for the cache blocks",
            "vLLM found no room for its cache: raise "
            "actor_rollout_ref.rollout.gpu_memory_utilization, or free memory "
            "before the engine starts (offload, a smaller model or tensor parallelism).",
        ),
        (
            r"EngineDeadError|EngineCore",
            "The inference engine died: the cause is above this line in its own log, often memory.",
        ),
        (
            r"CUDA out of memory|torch(?:\.cuda)?\.OutOfMemoryError",
            "GPU memory ran out: lower the micro-batch size or max_token_len_per_gpu, lower "
            "gpu_memory_utilization of "
            "the rollout, turn on offload or gradient checkpointing.",
        ),
        (
            r"ray\.exceptions\.OutOfMemoryError|node running low on memory",
            "The host's memory ran out: look at actor/perf/cpu_memory_used_gb; fewer data "
            "workers, less offload to "
            "the CPU, more memory for the node.",
        ),
        (
            r"Watchdog caught collective operation timeout|ProcessGroupNCCL|NCCL error",
            "A collective operation timed out: one rank hung or died before. Look for the first "
            "rank that fell silent; "
            "a longer nccl_timeout helps only if that rank was slow.",
        ),
        (
            r"illegal memory access|CUDA error|device-side assert",
            "A CUDA kernel failed: run again with CUDA_LAUNCH_BLOCKING=1; check the driver and "
            "the GPU (Xid in dmesg).",
        ),
        (
            r"Total available GPUs .{1,40} is less than",
            "Ray sees fewer GPUs than the settings ask for: compare n_gpus_per_node × nnodes "
            "with `ray status`.",
        ),
        (
            r"All samples are aborted",
            "The rollout engine aborted every response: look at its log for time-outs and memory.",
        ),
        (
            r"Tensor is not JSON serializable",
            "verl's file logger cannot write the tensors that trainer.balance_batch makes "
            "(v0.6.1): set that to False, "
            "or leave `file` out of trainer.logger.",
        ),
        (
            r"is not JSON serializable",
            "verl's file logger of v0.6.0–v0.7.0 cannot write NumPy numbers: update to v0.7.1 or "
            "later.",
        ),
        (
            r"\bBdbQuit\b",
            "A user quit the debugger: take the breakpoint out, or let it go on with `c`.",
        ),
        (
            r"DUE TO TIME LIMIT",
            "The job's time was up: ask for more, or resume from the newest checkpoint.",
        ),
        (
            r"PREEMPT|SIGTERM|SIGHUP|SIGUSR|death signal|got signal|CANCELLED|^Terminated",
            "A person or the scheduler ended it: look at the job's own log; resume from the newest "
            "checkpoint.",
        ),
        (
            r"^Killed|oom.kill|: Killed|SIGKILL",
            "It was killed from outside, usually because the host's memory ran out: see dmesg.",
        ),
    )
)
# Only where the headline itself is no more than such a report: else the cause is known, and stands
# there.
_ADVICE_ON_REPORTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        pattern(r"ActorDiedError|RayActorError|WorkerCrashedError|NodeDiedError"),
        "A Ray worker died: its own log (/tmp/ray/session_latest/logs/worker-*.err) and dmesg "
        "say why, often the "
        "host's memory.",
    ),
    (
        pattern(r"Error executing job with overrides|HYDRA_FULL_ERROR"),
        "Hydra ended the job: the cause is in the traceback below this line; "
        "HYDRA_FULL_ERROR=1 prints all of it.",
    ),
    (
        pattern(r"RayTaskError"),
        "A Ray task failed: the exception's own message is at the end of the traceback.",
    ),
)
_ENDS = (EventKind.FATAL, EventKind.TRACEBACK, EventKind.STOPPED)
_CONSEQUENCE = pattern(
    r"ChildFailedError|CalledProcessError|Sync replay buffer selected terminal groups"
    r"|Received an empty list as keys"
    r"|RayTaskError|Traceback \(most recent|^Error executing job|^Job 'raysubmit_"
    r"|Component failed with error"
    r"|ActorDiedError|RayActorError|WorkerCrashedError|SignalException"
)
"""Last words of a driver that only report that something else has failed."""
_UNNAMED = "Traceback (most recent call last):"
"""Ends the first line of an exception whose name the log does not hold."""
_BY_USER = "Nothing is wrong: Ctrl+C ended it."
_OTHERWISE = (
    "Read the log upwards from the error: the first one names the cause, later ones only follow "
    "from it."
)

_SILENT_END = (
    "The log does not say why: ask dmesg, since the kernel kills what takes too much memory, and "
    "the scheduler (time limit, preemption). A terminal that closes ends its runs, too."
)


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
        elif state is State.CRASHED or (state is State.ENDED and _is_gone(run)):
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
        run = context.run
        step = event.step if event.step is not None else run.step
        event = _better(run, event)
        same = [one for one in run.events if _is_like(one, event)]
        cause = _cause(run, event, same)
        usual = advice(cause.words, event.text, *(one.text for one in same))
        severity, verb, help = _severity_and_words(context, event, usual)
        return Finding(
            self.rule.id,
            severity,
            f"{verb} {_where(step)}{_while(cause.phase)}: {cause.words}",
            step=step,
            since_step=step,
            evidence=(
                *cause.lines,
                *_phase_shown(cause.phase),
                "no step came after it",
            ),
            advice=help,
            source=self.rule.source,
        )

    def _without_a_word(self, context: RuleContext) -> Finding:
        """Report a process that is gone and left only its workers' errors."""
        run = context.run
        worker = _most(run)
        phase = worker.phase if worker is not None else None
        holder = writer(run)
        if holder is None:
            gone = "nothing shows how it ended"
        else:
            gone = f"{holder.words} is gone; it was killed, or ended without a message"
        if worker is None:
            why = gone
            shown: Sequence[str] = ()
            help = _SILENT_END
        else:
            why = worker.words
            shown = (*worker.lines, *_phase_shown(phase), gone)
            help = advice(worker.words)
        crashed = context.state is State.CRASHED
        ended = context.state.value.rstrip("?")
        return Finding(
            self.rule.id,
            self.rule.severity if crashed else Severity.WARNING,
            f"the run {ended} {_where(run.step)}{_while(phase)}: {why}",
            step=run.step,
            since_step=run.step,
            evidence=(*shown, "no step came after it"),
            advice=help,
            source=self.rule.source,
        )


def _is_like(one: Event, event: Event) -> bool:
    """Return whether another line of the driver belongs to the same end."""
    other = one.kind is event.kind and one.text != event.text and not one.actor
    return other and not one.text.endswith(_UNNAMED)


def _is_gone(run: Run) -> bool:
    """Return whether the run's process is gone without a message; one that only began a file may
    have finished.
    """
    holder = writer(run)
    if holder is None or not holder.gone or run.outcome is not None:
        return False
    return not holder.by_name or run.total_steps is not None


class Blamed(NamedTuple):
    """An error that the run's end follows from."""

    words: str
    lines: tuple[str, ...]
    phase: Phase | None
    """The activity that was interrupted, None if unknown."""


def _cause(run: Run, event: Event, same: Sequence[Event]) -> Blamed:
    """Return the workers' error that an end follows from, else the driver's last words.

    Args:
        run: The run.
        event: The driver's last words.
        same: Other lines of it about the same end.
    """
    ends = (path for path, state in run.sources.items() if state.ending is event)
    path = next(ends, "")
    worker = blamed(run, event)
    if worker is None:
        lines = tuple(_line(path, one) for one in (event, *same[-3:]))
        unnamed = event.text.endswith(_UNNAMED)
        words = "its log ends within a traceback" if unnamed else one_line(event.text)
        return Blamed(words, lines, event.phase)
    lines = (*worker.lines, _line(path, event))
    return Blamed(worker.words, lines, event.phase or worker.phase)


def _better(run: Run, event: Event) -> Event:
    """Return the exception that a log ends with, if the event only says that the run failed."""
    if not event.bare:
        return event
    for state in run.sources.values():
        other = state.ending
        if other and not other.bare and other.kind is EventKind.TRACEBACK:
            return other
    return event


def blamed(run: Run, event: Event) -> Blamed | None:
    """Return the workers' error that the driver's last words follow from; None where these name the
    cause.
    """
    if interrupted(run) or not (event.bare or _CONSEQUENCE.search(event.text)):
        return None
    return _most(run)


def _most(run: Run) -> Blamed | None:
    """Return the workers' most frequent error since the last step, of equals the first."""
    path, worst = next(iter(last_errors(run)), ("", None))
    if worst is None:
        return None
    first = worst.first
    actor = first.actor
    if actor.startswith("rank"):
        name, _, message = first.text.partition(":")
        headline = f"{name} on {actor}: {message.strip()}".rstrip(": ")
    elif worst.count > 1:
        headline = f"{first.text} ({actor}, {worst.count:,} times)"
    else:
        headline = f"{first.text} ({actor})"
    return Blamed(one_line(headline), (_line(path, first),), first.phase)


def _line(path: str, event: Event) -> str:
    name = one_line(PurePath(path).name, 60)
    if name:
        return f"{name}:{event.line}: {one_line(event.text, 160)}"
    return f"line {event.line}: {one_line(event.text)}"


def _while(phase: Phase | None) -> str:
    return f" while {phase.words}" if phase is not None else ""


def _phase_shown(phase: Phase | None) -> tuple[str, ...]:
    """Return the function that shows what the run was doing."""
    if phase is None:
        return ()
    return (f"it was {phase.words}, by its traceback: {phase.function}",)


def _where(step: int | None) -> str:
    return "before the first step" if step is None else f"at step {step}"


def _severity_and_words(
    context: RuleContext, event: Event, help: str
) -> tuple[Severity, str, str]:
    """Return the severity of an end, its words, and advice."""
    if event.kind is EventKind.STOPPED:
        if interrupted(context.run):
            return Severity.INFO, "the run was interrupted by its user", _BY_USER
        return Severity.CRITICAL, "the run was stopped from outside", help
    if context.state is State.CRASHED:
        return Severity.CRITICAL, "the run crashed", help
    return Severity.WARNING, "an error, and nothing since", help


def advice(headline: str, *others: str) -> str:
    """Return what usually helps against an error.

    Args:
        headline: The line that is shown as the cause.
        others: Further lines about the same end.
    """
    text = " ".join((headline, *others))
    known = (words for form, words in _ADVICE if form.search(text))
    report = (words for form, words in _ADVICE_ON_REPORTS if form.search(headline))
    return next(known, None) or next(report, _OTHERWISE)
