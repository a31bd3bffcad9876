"""Metrics that turned NaN or infinite, over the whole log."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import Breaches
from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.patterns import NamePattern

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_NEEDED = ("reward", "policy_loss", "grad_norm")
"""Indicators that every training has: if one of these never had a number, it is broken, too."""
_PART = NamePattern(r"(?:train/)?rewards/.+|samples/.+")
_NEVER = 10
"""Points without a number after which one of these counts as broken from the start: heuristic, as
exports pad their first rows.
"""
_PACE = "train/learning_rate"
"""Hugging Face's TensorBoard files have it beside every loss, gradient norm and reward. In place of
NaN transformers 5 has None, which `TensorBoardCallback` leaves out.
"""
_KEPT_PACE = 20
"""Points in a row at which a metric came with it before a missing one counts: heuristic."""
_MOST_STEPS = 5
"""Steps named one by one."""
_MOST_NAMED = 8
"""Metrics named one by one; when an update breaks, dozens break with it."""


class _BrokenStretch(NamedTuple):
    """Broken points with no pause between them longer than the window."""

    first: int
    last: int
    """Steps."""
    end: int
    """Index of the last one among the points."""


class _GappedSeries(NamedTuple):
    """A metric with nan where it was left out."""

    revision: Hashable
    steps: Sequence[int]
    values: Sequence[float]


@dataclass(slots=True)
class _BrokenPoints:
    """One metric, as far as it has been read."""

    key: str
    window: int
    revision: Hashable
    needed: bool = False
    """True if it must have values; any other metric without a finite value does not apply."""
    optional: bool = False
    """True if it began without a value: some metrics have values only now and then."""
    count: int = 0
    """Points that will not change any more."""
    finite: bool = False
    """True if it ever had a finite value, or has lacked one for too long."""
    stretches: list[_BrokenStretch] = field(default_factory=list)
    steps: deque[tuple[int, int]] = field(default_factory=deque)
    """The newest broken points: step and place."""
    last: tuple[int, float] = (0, 0.0)

    def read(self, series: Series | _GappedSeries, length: int) -> None:
        """Take in new points; the newest may still change and is kept separately."""
        if not self.count and length > 1:
            self.optional = not self.needed and not math.isfinite(series.values[0])
        self._read_settled(series, length - 1)
        self.count = max(0, length - 1)
        if length:
            self.last = (series.steps[length - 1], series.values[length - 1])
        if length == 1 and math.isfinite(self.last[1]):
            self.finite = True

    def _read_settled(self, series: Series | _GappedSeries, stop: int) -> None:
        for i in range(self.count, stop):
            if math.isfinite(series.values[i]):
                self.finite = True
            elif self.finite and not self.optional:
                self._add(series.steps[i], i)
            elif self.needed and i + 1 >= _NEVER:
                self._add_all(series.steps[: i + 1])

    def _add_all(self, steps: Sequence[int]) -> None:
        """Count all points so far as broken: there never was a value."""
        self.finite = True
        for at, step in enumerate(steps):
            self._add(step, at)

    def _add(self, step: int, i: int) -> None:
        if self.stretches and i - self.stretches[-1].end <= self.window:
            self.stretches[-1] = self.stretches[-1]._replace(last=step, end=i)
        else:
            self.stretches.append(_BrokenStretch(step, step, i))
        self.steps.append((step, i))
        while self.steps[0][1] <= i - self.window:
            self.steps.popleft()

    @property
    def ever(self) -> bool:
        """True if it ever broke; a value that was replaced later does not count."""
        return bool(self.stretches) or self.broken

    @property
    def broken(self) -> bool:
        """True if the newest value is not finite, and others were."""
        return self.finite and not self.optional and not math.isfinite(self.last[1])

    def recent(self) -> list[int]:
        """Return the steps in the window at which it was not finite."""
        steps = [step for step, i in self.steps if i > self.count - self.window]
        if self.broken:
            steps.append(self.last[0])
        return steps

    @property
    def since(self) -> int:
        """First step of the stretch of broken points that still counts."""
        if self.stretches and self.count - self.stretches[-1].end < self.window:
            return self.stretches[-1].first
        return self.last[0]

    def cases(self) -> Iterator[tuple[int, int, bool]]:
        """Yield for each breach its first and last step, and whether it still counts."""
        for stretch in self.stretches:
            yield stretch.first, stretch.last, self.count - stretch.end < self.window
        if self.broken:
            yield self.last[0], self.last[0], True


class NotFinite(Diagnosis):
    """A metric had a finite value and is, or was among the newest points, not finite."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._seen: dict[str, _BrokenPoints] = {}

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Find metrics that broke."""
        keys = context.run.keys
        read = self._read_all(context)
        self.breaches = _spans(read, self.rule.window) if read else Breaches(cooldown=0)
        if not keys:
            return NotJudged(self.rule.id, "the log has no numbers yet")
        if sum(not one.finite for one in read) == len(keys):
            return NotJudged(self.rule.id, "no metric ever had a value")
        broken = [one for one in read if one.recent()]
        if not broken:
            return None
        broken.sort(key=lambda one: (math.isfinite(one.last[1]), one.since))
        return self._finding(broken)

    def _read_all(self, context: RuleContext) -> list[_BrokenPoints]:
        """Read the metrics that may be broken, and those that were left out at some steps."""
        series: dict[str, Series | _GappedSeries | None] = {
            key: context.run.series(key) for key in self._odd(context)
        }
        series |= _left_out(context)
        read = (self._read(context, key, points) for key, points in series.items())
        return [one for one in read if one is not None]

    def _odd(self, context: RuleContext) -> Sequence[str]:
        """Return the keys that may be broken.

        A part of the reward has no mean where no sample of the batch had it (TRL: a reward function
        returns None for what it does not apply to): beside a total that is always a number it is no
        fault.
        """
        odd = context.run.odd
        reward = context.run.indicators.get("reward")
        if reward is None or not odd:
            return odd
        if reward in odd:
            total = self._read(context, reward, context.run.series(reward))
            if total is not None and total.ever:
                return odd
        return [key for key in odd if _PART.fullmatch(key) is None]

    def _read(
        self, context: RuleContext, key: str, series: Series | _GappedSeries | None
    ) -> _BrokenPoints | None:
        if series is None:
            return None
        length = len(series.steps)
        if context.end is not None:
            length = bisect_right(series.steps, context.end)
        seen = self._seen.get(key)
        if seen is None or seen.revision != series.revision or seen.count > length:
            seen = self._seen[key] = _BrokenPoints(
                key, self.rule.window, series.revision, key in _needed(context.run)
            )
        seen.read(series, length)
        return seen

    def _finding(self, broken: list[_BrokenPoints]) -> Finding:
        worst = broken[0]
        state = "was not finite" if math.isfinite(worst.last[1]) else "is not finite"
        message = f"{worst.key} {state} {_count(worst)}"
        if worst.since not in worst.recent()[:_MOST_STEPS]:
            message += f", first at step {worst.since}"
        if len(broken) > 1:
            others = len(broken) - 1
            metrics = "metric" if others == 1 else "metrics"
            message += f"; the same holds for {others} other {metrics}"
        return self.finding(
            message,
            _evidence(broken),
            since=worst.since,
            step=max(one.last[0] for one in broken),
            key=worst.key,
        )


def _left_out(context: RuleContext) -> Mapping[str, _GappedSeries]:
    """Return metrics that Hugging Face's TensorBoard files lack at some steps, with nan there."""
    pace = context.run.series(_PACE) if _PACE in context.run.keys else None
    if pace is None:
        return {}
    found = {}
    for key in _needed(context.run):
        series = context.run.series(key)
        points = _gaps(series, pace) if series is not None else None
        if points is not None:
            found[key] = points
    return found


def _gaps(series: Series, pace: Series) -> _GappedSeries | None:
    """Return a metric with nan where only `pace` has a point; None if it lacks none, or has its own
    steps.
    """
    start = bisect_left(pace.steps, series.steps[0]) if len(series) else len(pace)
    # The newest step may still be incomplete.
    stop = len(pace) - 1
    if stop - start < _KEPT_PACE:
        return None
    newest = pace.steps[-1]
    complete = stop - start + 1 if series.steps[-1] >= newest else stop - start
    if len(series) >= complete:
        return None
    steps = list(pace.steps[start:stop])
    known = dict(zip(series.steps, series.values, strict=True))
    if any(step not in known for step in steps[:_KEPT_PACE]):
        return None
    if newest in known:
        steps.append(newest)
    values = [known.get(step, math.nan) for step in steps]
    return _GappedSeries((series.revision, pace.revision), steps, values)


def _needed(run: Run) -> set[str]:
    keys = map(run.indicators.get, _NEEDED)
    return {key for key in keys if key is not None}


def _evidence(broken: Sequence[_BrokenPoints]) -> Iterator[str]:
    for one in broken[:_MOST_NAMED]:
        step, value = one.last
        yield f"{one.key}: {_count(one)}; newest {value:.3g} at step {step}"
    rest = [one.key for one in broken[_MOST_NAMED:]]
    if rest:
        yield f"and {len(rest)} more: {', '.join(rest[:20])}"


def _count(one: _BrokenPoints) -> str:
    broken = one.recent()
    window = min(one.window, one.count + 1)
    steps = ", ".join(map(str, broken[:_MOST_STEPS]))
    if len(broken) > _MOST_STEPS:
        steps += ", …"
    unit = "step" if len(broken) == 1 else "steps"
    return f"at {len(broken)} of the last {window} points ({unit} {steps})"


def _spans(seen: Sequence[_BrokenPoints], window: int) -> Breaches:
    """Return the breaches of all metrics; those that overlap are one."""
    cases = sorted((*case, one.key) for one in seen for case in one.cases())
    breaches = Breaches(cooldown=0)
    until = 0
    for at, (first, last, _, key) in enumerate(cases):
        if breaches.open is not None and first > until + window:
            breaches.end(until, 2 * at)
        if breaches.open is None:
            breaches.begin(first, first, f"were not finite: {key}", 2 * at + 1)
        until = max(until, last)
    if cases and not any(lasts for _, _, lasts, _ in cases):
        breaches.end(until, 2 * len(cases))
    return breaches
