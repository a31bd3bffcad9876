"""No step for many times the usual gap of the step that is due, within the time in which that may be a hang."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.health.moment import minutes
from verl_tui.runs.life import evidence, phase
from verl_tui.runs.life import written as last_of_training
from verl_tui.runs.pace import expected
from verl_tui.runs.state import State, last_write, patience, silence

if TYPE_CHECKING:
    from verl_tui.health.moment import Moment

_FRESH_LOG = 120.0
"""A log that grew within two minutes is not silent."""
_FRESH_GPUS = 30.0
_IDLE = 5.0
"""Percent of utilisation up to which a GPU does nothing: heuristic."""
_DOUBT = 2.0
"""How many times as long it takes where GPUs still work: something is going on."""
_ELSEWHERE = {
    State.FINISHED: "the run has finished",
    State.CRASHED: "the run has crashed",
    State.ENDED: "no end marker and long silent, or only a file's time to go by: an old log or a copy, not a hang",
    State.UNKNOWN: "no record tells when it was written",
}


class Hang(Diagnosis):
    """A run that should have made a step long ago; says whether the log is silent and GPUs are idle, too."""

    alive = True
    sentences = True

    def judge(self, moment: Moment) -> Finding | NotJudged | None:
        """Tell for how long a stalled run has made no step, beside the usual gap of the step that is due."""
        judged = self._judge(moment)
        self.remember(judged if isinstance(judged, Finding) else None, moment.run.step)
        return judged

    def _judge(self, moment: Moment) -> Finding | NotJudged | None:
        if moment.state is not State.STALLED:
            reason = _waiting(moment) if moment.state is State.WAITING else _ELSEWHERE.get(moment.state)
            return NotJudged(self.rule.id, reason) if reason else None
        run, quiet = moment.run, silence(moment.run, moment.now) or 0.0
        log_silent, log_words = _log(moment)
        gpus_idle, gpu_words = _gpus(moment)
        if gpus_idle is False and quiet < _DOUBT * patience(run):
            return NotJudged(self.rule.id, f"no step for {minutes(quiet)}, but GPUs still work")
        due = expected(run)
        if due is None:
            beside, usual = "the usual gap is not known", []
        else:
            beside = f"{quiet / due.seconds:,.0f} times the usual {minutes(due.seconds)} of {due.kind.words}"
            usual = [f"{due.kind.words} is due; the longest so far took {minutes(due.longest)}"]
        sign, at = evidence(run, moment.now), phase(run)
        lived = "" if sign is None else f"alive: {sign.words}"
        held = ["no step", *(["the log is silent"] if log_silent else []), *(["GPUs are idle"] if gpus_idle else [])]
        said = f"{len(held)} of 3 signs held: {', '.join(held)}"
        return Finding(
            self.rule.id,
            self.rule.severity,
            f"no step for {minutes(quiet)} since step {run.step}: {beside}",
            step=run.step,
            since_step=run.step,
            evidence=tuple(filter(None, (said, lived, at, *usual, log_words, gpu_words))),
            advice=self.rule.advice,
            source=self.rule.source,
        )


def _waiting(moment: Moment) -> str:
    """Say what is known of a run before its first step: engines may take long to start, so that it is no hang."""
    written, sign = last_write(moment.run), evidence(moment.run, moment.now)
    quiet = None if written is None else f"last written {minutes(max(0.0, moment.now - written))} ago"
    lives = sign.words if sign is not None and sign.latest is None else None
    return "; ".join(filter(None, ("the run has made no step yet", quiet, lives, phase(moment.run))))


def _log(moment: Moment) -> tuple[bool | None, str]:
    """Return whether the log is silent, None where that is not known, and how that is said."""
    written = last_write(moment.run)
    if written is None:
        return None, "whether the log is silent is not known"
    age, of_training = max(0.0, moment.now - written), last_of_training(moment.run)
    if age <= _FRESH_LOG and of_training is not None and moment.now - of_training > _FRESH_LOG:
        ago = minutes(moment.now - of_training)
        return True, f"the log is silent but for what goes on without training: else last written {ago} ago"
    silent = age > _FRESH_LOG
    return silent, f"the log is {'silent' if silent else 'still growing'}: last written {minutes(age)} ago"


def _gpus(moment: Moment) -> tuple[bool | None, str]:
    """Return whether this machine's GPUs are idle; held memory proves nothing and is not looked at."""
    reading = moment.gpus
    known = [gpu.utilization for gpu in reading.gpus if gpu.utilization is not None] if reading else []
    if reading is None or not known or moment.now - reading.time > _FRESH_GPUS:
        return None, "GPU activity was not looked at; held memory proves nothing"
    idle = max(known) <= _IDLE
    return idle, (
        f"this machine's GPUs {'are idle' if idle else 'work'}: {min(known):.0f}–{max(known):.0f} % "
        "(if the run is on this machine)"
    )
