"""How long recent steps took, by kind: plain ones, and those with validation or a checkpoint."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict, deque
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import validation_keys
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.time.excluded_parts import excluded_timers
from verl_tui.runs.time.pace import dated_series
from verl_tui.runs.time.step_clocks import clocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.runs.clock import Clock
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_RECENT = 200
"""Recent steps that the usual time of each kind is learned from."""
_OCCASIONS = 20
"""Recent validations and checkpoints that count, however long ago they were."""
_AROUND = 10
"""Number of plain steps that a step with more work is compared with."""
_LONGEST_STRIDE = 100
"""Steps from record to record at most where there is only one: a resumed run may begin anywhere."""


class StepKind(NamedTuple):
    """The work of a step besides training."""

    validation: bool = False
    checkpoint: bool = False

    @property
    def words(self) -> str:
        """Name the kind."""
        extras = [
            word
            for has, word in zip(self, ("validation", "checkpoint"), strict=True)
            if has
        ]
        return f"a step with {' and '.join(extras)}" if extras else "a plain step"


PLAIN = StepKind()


class Occasions(NamedTuple):
    """The steps at which something besides training happened."""

    validations: set[int]
    checkpoints: set[int]

    def kind(self, step: int) -> StepKind:
        """Return the kind of a step."""
        return StepKind(step in self.validations, step in self.checkpoints)

    def newest(self) -> list[int]:
        """Return the newest steps with a validation, and those with a checkpoint."""
        return [
            *sorted(self.validations)[-_OCCASIONS:],
            *sorted(self.checkpoints)[-_OCCASIONS:],
        ]


class StepDurations(NamedTuple):
    """The seconds that recent steps took."""

    by_kind: Mapping[StepKind, Sequence[float]]
    """The newest last."""
    excess: Mapping[StepKind, Sequence[float]]
    """Seconds more than the plain steps before it, since all steps of a run grow when its responses
    do.
    """
    stride: int
    """Steps from one record to the next."""


@cached_by_revision
def occasions(run: Run) -> Occasions:
    """Return the recent steps with a validation, and those with a checkpoint."""
    validations: set[int] = set()
    for key in ("timing_s/testing", *validation_keys(run.keys)[:1]):
        validations.update(_newest_steps(run, key))
    saved = _newest_steps(run, "timing_s/save_checkpoint")
    return Occasions(validations, {*run.checkpoints, *saved})


def _newest_steps(run: Run, key: str) -> Sequence[int]:
    series = run.series(key)
    if series is None:
        return ()
    return series.steps[-_RECENT:]


@cached_by_revision
def step_durations(run: Run) -> StepDurations:
    """Return how long recent steps of each kind took."""
    special = occasions(run)
    stride, durations = _durations(run, special.newest())
    by_kind: dict[StepKind, list[float]] = defaultdict(list)
    excess: dict[StepKind, list[float]] = defaultdict(list)
    plain_before: deque[float] = deque(maxlen=_AROUND)
    for step, seconds in sorted(durations.items()):
        kind = special.kind(step)
        by_kind[kind].append(seconds)
        if kind == PLAIN:
            plain_before.append(seconds)
        elif plain_before:
            excess[kind].append(max(0.0, seconds - median(plain_before)))
    return StepDurations(by_kind, excess, stride)


def _durations(run: Run, older: Iterable[int]) -> tuple[int, dict[int, float]]:
    """Return the steps from record to record, and how long recent steps took: by timers, better by
    the clock.
    """
    stride, timed = _by_timer(run, older)
    # Progress bars count whole seconds: they are only used where nothing better is known.
    dated: list[Series | Clock] = list(dated_series(run))
    if not timed:
        dated += clocks(run)
    for one in dated:
        steps = one.steps[-_RECENT:]
        times = one.times[-_RECENT:]
        distance = _stride(steps)
        clocked = _by_clock(steps, times, distance)
        if len(clocked) >= 2:
            return distance, {**(timed if distance == 1 else {}), **clocked}
    return stride, timed


def _by_clock(
    steps: Sequence[int], times: Sequence[float], stride: int
) -> dict[int, float]:
    """Return the seconds from record to record, of records that came alone."""
    return {
        steps[i]: times[i] - times[i - 1]
        for i in range(1, len(steps))
        if times[i] > times[i - 1]
        and steps[i] - steps[i - 1] == stride
        and (i + 1 == len(steps) or times[i + 1] != times[i])
    }


def _by_timer(run: Run, older: Iterable[int]) -> tuple[int, dict[int, float]]:
    """Return the steps from record to record, and how long these took by their own timers.

    Of recent records and some older ones; the run's first is left out, because it warms up.
    """
    series = run.present(run.indicators.get("step_time"))
    if series is None:
        return 1, {}
    stride = _stride(series.steps[-_RECENT:])
    durations = {}
    for i in _timed_records(series, older):
        if math.isfinite(series.values[i]) and series.values[i] > 0:
            durations[series.steps[i]] = stride * series.values[i]
    for excluded in excluded_timers(run):
        _add(durations, excluded)
    return stride, durations


def _timed_records(series: Series, older: Iterable[int]) -> list[int]:
    """Return the indices of recent records, and before them of those at some older steps."""
    first = max(1 if len(series) > 1 else 0, len(series) - _RECENT)
    earlier = set()
    for step in older:
        at = bisect_left(series.steps, step)
        if 0 < at < first and series.steps[at] == step:
            earlier.add(at)
    return [*sorted(earlier), *range(first, len(series))]


def _add(durations: dict[int, float], excluded: Series) -> None:
    """Add the seconds of a part that the step's own time leaves out."""
    steps = excluded.steps
    values = excluded.values
    for step in durations:
        at = bisect_left(steps, step)
        if at < len(steps) and steps[at] == step and math.isfinite(values[at]):
            durations[step] += values[at]


def _stride(steps: Sequence[int]) -> int:
    """Return the steps from record to record; a log that begins with step 10 is taken to log every
    tenth.
    """
    if len(steps) > 1:
        return max(1, int(median([b - a for a, b in pairwise(steps)])))
    if not steps:
        return 1
    return max(1, min(steps[0], _LONGEST_STRIDE))
