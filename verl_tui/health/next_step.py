"""What to do next about a run, in the same words wherever it is said: what the first finding
advises, with the checkpoint to go back to; else what its state asks for.
"""

from __future__ import annotations

import math
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.indicators import INDICATORS
from verl_tui.patterns import pattern
from verl_tui.runs.views.checkpoints import Best, usable
from verl_tui.runs.views.state import State, unread_form
from verl_tui.words import lowered, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from enum import Enum

    from verl_tui.health.finding import Finding
    from verl_tui.runs.run import Run

ENDS = ("crash", "ended-early")
"""Findings about a moment, not about what lasts since then."""
_GO_BACK = pattern(r"\bgo back to (?:a|the) [^.;,]*|\bgo back to\b", re.IGNORECASE)
_RESUME = pattern(r"\bresume (?:it|the run)? ?from (?:the|its) newest checkpoint\b")
_PAUSE = pattern(r"[.;?] |, (?:or|and|the|where) |: this ")
"""Where a sentence of advice may end and still be one."""
_UNREAD = "have it write its metrics with their steps as JSONL or CSV, to TensorBoard or to W&B"
_NEXT: Mapping[Enum, str] = {
    State.WAITING: "wait for the first steps",
    State.STALLED: "look at the end of its log and at its processes: no step comes",
    State.CRASHED: "read the end of its log",
    State.UNKNOWN: "see whether its log can be read and grows, and this host's clock is right",
    State.ENDED: "if it should still run, look at the end of its log and at its process",
}
"""States -> what to do where no finding says so."""
NOTHING = "nothing to do"


def next_step(
    run: Run, finding: Finding | None, current: Enum, top: Best | None
) -> str:
    """Return what to do next.

    Args:
        run: The run.
        finding: Its first finding, if it has one.
        current: Its state.
        top: Its best step, if one is known.
    """
    if finding:
        if not finding.advice:
            return "look at what the finding names below"
        return lowered(finding.advice).rstrip(".") + _checkpoint_words(finding, run)
    near = top and top.nearest
    if current is State.FINISHED and top and near:
        label, value = metric_label(top.metric), number(top.value)
        words = f"keep the checkpoint of step {near.step}"
        if top.checkpoint:
            return f"{words}, where the {label} was best ({value})"
        return f"{words}, the nearest to the best {label} ({value} at step {top.step})"
    return _UNREAD if unread_form(run) else _NEXT.get(current, NOTHING)


def next_step_in_short(run: Run, finding: Finding) -> Sequence[str]:
    """Return what a finding advises, from its first clause to all of it, with the name of the
    checkpoint to go back to or to resume from.
    """
    advice = lowered(finding.advice or "").rstrip(".")
    before = _before(finding)
    saved = None if before is None else _newest(run, before)
    if before is not None and not saved and finding.id not in ENDS:
        none = " (none is known)"
        advice = _GO_BACK.sub(lambda found: found[0] + none, advice, 1)
    elif saved:
        resume = f"resume from {PurePath(saved[1]).name}"
        said = _RESUME if finding.id in ENDS else _GO_BACK
        known = said.search(advice)
        advice = said.sub(resume, advice, 1) if known else f"{advice}; {resume}"
    return in_short(advice)


def in_short(advice: str) -> Sequence[str]:
    """Return advice from its first clause to all of it."""
    ends = [found.start() for found in _PAUSE.finditer(advice)]
    return [advice[:end] for end in (*ends, len(advice)) if end]


def _checkpoint_words(finding: Finding, run: Run) -> str:
    """Name the checkpoint to go back to or to resume from, if that is the advice."""
    before = _before(finding)
    if before is None:
        return ""
    where = "" if before == math.inf else f" from before step {finding.begun}"
    saved = _newest(run, before)
    if saved:
        step, path = saved
        return f". The newest checkpoint{where} is of step {step}: {path}"
    return where and f". No checkpoint{where} is known"


def _before(finding: Finding) -> float | None:
    """Return the step before which a checkpoint is asked for, None where none is."""
    if finding.id in ENDS:
        return math.inf
    return finding.begun if _GO_BACK.search(finding.advice or "") else None


def _newest(run: Run, before: float) -> tuple[int, str] | None:
    """Return the newest usable checkpoint from before a step."""
    if run.saved_step is not None:
        before = min(before, run.saved_step + 1)
    return max((one for one in usable(run).items() if one[0] < before), default=None)


def metric_label(metric: str) -> str:
    """Return what an indicator, or a log's own key, is called."""
    return INDICATORS[metric].label if metric in INDICATORS else metric
