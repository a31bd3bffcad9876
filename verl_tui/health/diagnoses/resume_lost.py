"""A resume that went on without the weights, or without the optimiser's state: what the run had
gained is gone with it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import fmean, variance
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.combined import RestartMark
    from verl_tui.runs.run import Run

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
_SAME = 0.02
"""Difference between learning rates that are the same but for a step's shift: heuristic."""


class _Levels(NamedTuple):
    """The levels of a metric around a restart."""

    key: str
    start: Sequence[float]
    """The run's first values."""
    before: Sequence[float]
    after: Sequence[float]

    @property
    def anew(self) -> bool:
        """True if the restart is at the run's first step."""
        return self.start is self.after

    @property
    def moved(self) -> bool:
        """True if it had moved away from the start."""
        return _differ(self.start, self.before)

    @property
    def back(self) -> bool:
        """True if it is where it was at the start."""
        way = fmean(self.before) - fmean(self.start)
        still = fmean(self.after) - fmean(self.start)
        return abs(still) <= _BACK * abs(way) and _differ(self.before, self.after)

    @property
    def repeats(self) -> bool:
        """True if the values are those of the start once more, one by one, and were others before:
        a schedule has no noise.
        """
        usual = fmean(self.before)
        same = (
            math.isclose(now, then, rel_tol=_SAME)
            for now, then in zip(self.after, self.start, strict=False)
        )
        return all(same) and any(
            not math.isclose(then, usual, rel_tol=_SHARE) for then in self.start
        )

    @property
    def words(self) -> str:
        """The levels before and after."""
        before, after = number(fmean(self.before)), number(fmean(self.after))
        return f"{self.key} {before} → {after}"


class ResumeLost(Diagnosis):
    """All that had moved since the run's start is back there right behind a resume."""

    alive = True  # it is about the newest restart only
    sentences = True

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Compare the levels before and after the newest restart with those of the start."""
        run = context.run
        if not run.restarts:
            return NotJudged(self.rule.id, "the log shows no restart")
        finding = self._finding(context, run.restarts[-1])
        self.remember(finding, run.step)
        return finding

    def _finding(self, context: RuleContext, mark: RestartMark) -> Finding | None:
        run = context.run
        keys = [context.indicators.get(name) for name in _OF_WEIGHTS]
        weights = [one for one in _levels(run, keys, mark.step) if one.moved]
        rates = [context.first_key(self.rule.metric)]
        rate = [one for one in _levels(run, rates, mark.step) if one.repeats]
        found = _lost(run, weights, rate)
        if found is None:
            return None
        lost, shown = found
        levels = "; ".join(one.words for one in shown)
        return self.finding(
            f"the restart at step {mark.step} did not load {lost}: {levels}",
            (*map(_in_words, shown), f"step {mark.step}: {mark.reason}"),
            since=mark.step,
            step=run.step,
            key=shown[0].key,
        )


def _levels(run: Run, keys: Sequence[str | None], restart: int) -> Iterator[_Levels]:
    """Yield the levels of metrics around a restart, of those that have enough points.

    After a restart at the run's first step, what is left from before lies beyond the step reached.
    """
    for key in keys:
        if key is None or (series := run.series(key)) is None:
            continue
        steps, values = series.steps, series.values
        at = bisect_left(steps, restart)
        end = bisect_left(steps, (run.end or 0) + 1)
        after = finite(values[at : min(end, at + _MOST)])
        stop, least = (at, 0) if at else (len(values), end)
        start = finite(values[: min(at, _MOST)]) or after
        before = finite(values[max(stop - _MOST, least) : stop])
        if not 0 < at < 2 * _MOST and min(map(len, (start, before, after))) >= _LEAST:
            yield _Levels(key, start, before, after)


def _differ(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two levels differ beyond chance, and by enough to matter."""
    gap = abs(fmean(one) - fmean(other))
    error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
    size = max(abs(fmean(one)), abs(fmean(other)))
    return gap > _ERRORS * error and gap >= _SHARE * size


def _is_to_load(run: Run) -> bool:
    """Return whether settings say that a start goes on from a checkpoint."""
    stated = run.config.find(_LOADS)
    return stated is not None and str(stated[1]).strip().lower() not in _NOT


def _lost(
    run: Run, weights: Sequence[_Levels], rate: Sequence[_Levels]
) -> tuple[str, Sequence[_Levels]] | None:
    """Return what a restart did not load and the levels that show it, None if all is there."""
    if weights and all(one.back for one in weights):
        if weights[0].anew and not _is_to_load(run):
            return None  # started anew, maybe on purpose
        words = "the weights, as all that depends on them is back at its start"
        return words, [*weights, *rate]
    if rate and not rate[0].anew:
        return "the optimiser's state, as its schedule is back at its start", rate
    return None


def _in_words(levels: _Levels) -> str:
    start = number(fmean(levels.start))
    return f"{levels.words}, at the start {start} (means of up to {_MOST} points)"
