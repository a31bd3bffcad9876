"""Restarts, and weights behind them that are not what they should be."""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import fmean, variance
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import KEPT_BREACHES, Breach, Found
from verl_tui.health.diagnoses.diagnosis import diagnosis
from verl_tui.health.finding import LACKS, Finding, number
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run


@diagnosis("restart")
def restart(context: RuleContext, rule: Rule) -> Found | None:
    """Find where the run's sources started over: steps went back, or the file was rewritten."""
    marks = context.run.restarts
    if not marks:
        return None
    ends = [*(mark.step for mark in marks[1:]), None]
    breaches = [
        Breach(mark.step, mark.step, f"the run started over: {mark.reason}", end)
        for mark, end in zip(marks, ends, strict=True)
    ]
    # They go by step: those beyond the step that the run has reached anew are of segments before.
    reached = [one for one in marks if context.end is None or one.step <= context.end]
    newest = (reached or marks)[-1]
    often = f", {len(marks)} times so far" if len(marks) > 1 else ""
    facts = {"often": often, "reason": newest.reason}
    lines = [f"step {mark.step}: {mark.reason} ({mark.path})" for mark in marks[-5:]]
    now = rule.told(facts, lines, since=newest.step)
    return Found(now, breaches[-KEPT_BREACHES:])


_OF_WEIGHTS = ("reward", "reference_kl", "entropy")
"""Indicators that depend on the weights."""
_LOADS = (
    "load", "load_checkpoint", "load_path", "load_checkpoint_path", "resume", "resume_mode",
    "resume_from_checkpoint", "resume_from_path", "resume_path", "resume_step",
)  # fmt: skip
"""Settings by which a start is to go on from a checkpoint."""
_NOT = ("", "none", "null", "false", "no", "never", "disable", "0")
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


@diagnosis("resume-lost", alive=True)  # it is about the newest restart only
def resume_lost(context: RuleContext, rule: Rule) -> Finding | str | None:
    """Find that all that had moved since the run's start is back there right behind the newest
    restart.
    """
    run = context.run
    if not run.restarts:
        return f"{LACKS} no restart"
    mark = run.restarts[-1]
    moved = [one for one in _levels(run, mark.step) if _differ(one.start, one.before)]
    if not moved or not all(one.is_back for one in moved):
        return None
    if moved[0].start is moved[0].after and not _is_to_load(run):
        return None  # started anew, maybe on purpose
    return rule.told(
        {"levels": "; ".join(one.words for one in moved), "reason": mark.reason},
        since=mark.step,
        step=run.step,
        key=moved[0].key,
    )


def _is_to_load(run: Run) -> bool:
    _, stated = run.config.find(_LOADS) or ("", "")
    return str(stated).strip().lower() not in _NOT


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
