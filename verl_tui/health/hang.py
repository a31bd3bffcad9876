"""No step for many times the usual gap: within the window in which that may still be a hang."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.health.finding import Finding, NotJudged
from verl_tui.health.moment import minutes
from verl_tui.runs.state import State, last_write, silence

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.moment import Moment

_RECENT = 200
"""Points whose gaps and durations are looked at for how long a step has ever taken."""
_FRESH_LOG = 120.0
"""A log that grew within two minutes is not silent: verl's trainer counts its samples every 60 s while it waits."""
_ELSEWHERE = {
    State.WAITING: "the run has made no step yet",
    State.FINISHED: "the run has finished",
    State.CRASHED: "the run has crashed",
    State.ENDED: "no end marker and long silent: an old log, not a hang",
    State.UNKNOWN: "no record tells when it was written",
}


def judge(rule: Rule, moment: Moment) -> Finding | NotJudged | None:
    """Tell for how long a stalled run has made no step, beside its usual gap."""
    run = moment.run
    if moment.state is not State.STALLED:
        reason = _ELSEWHERE.get(moment.state)
        return NotJudged(rule.id, reason) if reason else None
    quiet = silence(run, moment.now) or 0.0
    longest = _longest(moment)
    if longest is not None and quiet < rule.factor * longest:
        return NotJudged(rule.id, f"no step for {minutes(quiet)}, but a step has taken {minutes(longest)} before")
    usual = moment.pace
    if usual is None:
        beside = "the usual gap is not known"
    else:
        beside = f"{quiet / usual.seconds:.0f} times the usual gap of {minutes(usual.seconds)}"
    return Finding(
        rule.id,
        rule.severity,
        f"no step for {minutes(quiet)} since step {run.step}: {beside}",
        step=run.step,
        since_step=run.step,
        evidence=_evidence(moment, longest),
        advice=rule.advice,
        source=rule.source,
    )


def _evidence(moment: Moment, longest: float | None) -> tuple[str, ...]:
    evidence = []
    written = last_write(moment.run)
    if written is None:
        evidence.append("whether the log is silent is not known")
    else:
        age = max(0.0, moment.now - written)
        silent = "silent" if age > _FRESH_LOG else "still growing"
        evidence.append(f"the log is {silent}: last written {minutes(age)} ago")
    if moment.pace is not None:
        evidence.append(f"the usual gap is taken from {moment.pace.origin}")
    if longest is not None:
        evidence.append(f"the longest step so far took {minutes(longest)}, with validation and checkpoint")
    return (*evidence, "GPU activity was not looked at; held memory proves nothing")


def _longest(moment: Moment) -> float | None:
    """Return the longest that a step has taken of late, validation and checkpoints with it."""
    key = moment.indicators.get("step_time")
    series = moment.series(key) if key else None
    known = [value for value in series.tail(_RECENT) if math.isfinite(value)] if series is not None else []
    longest = max(known, default=0.0)
    for name in ("timing_s/testing", "timing_s/save_checkpoint"):
        extra = moment.series(moment.names[name]) if name in moment.names else None
        if extra is not None:
            # v0.6 and later leave validation out of timing_s/step; where it is in, this is the more patient.
            longest += max((value for value in extra.tail(_RECENT) if math.isfinite(value)), default=0.0)
    return longest or None
