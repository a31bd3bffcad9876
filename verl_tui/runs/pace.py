"""How long a run's steps take, learned from the run itself: plain steps, and those with validation or a checkpoint."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_GAPS = 30
"""Recent gaps between steps that make the pace."""
_RECENT = 200
"""Recent steps that each kind's usual time is learned from."""
_OCCASIONS = 20
"""Recent validations or checkpoints that their rhythm is learned from."""


class Pace(NamedTuple):
    """How long a step takes."""

    seconds: float
    """Seconds from one step to the next."""
    origin: str
    """How that is known."""


class Kind(NamedTuple):
    """What a step has to do beside training."""

    validation: bool = False
    checkpoint: bool = False

    @property
    def words(self) -> str:
        """Name the kind."""
        extras = [word for has, word in zip(self, ("validation", "checkpoint"), strict=True) if has]
        return f"a step with {' and '.join(extras)}" if extras else "a plain step"


class Expected(NamedTuple):
    """How long the step that comes next should take."""

    kind: Kind
    seconds: float
    """Usual for its kind."""
    longest: float
    """The longest of its kind so far."""


def pace(run: Run) -> Pace | None:
    """Return the run's usual time from step to step, None where nothing tells."""
    for timed in _timed(run):
        steps, times = timed.steps[-_GAPS:], timed.times[-_GAPS:]
        gaps = [
            (times[i] - times[i - 1]) / (steps[i] - steps[i - 1])
            for i in range(1, len(steps))
            if times[i] > times[i - 1]
        ]
        if len(gaps) >= 2:
            return Pace(median(gaps), "times of the records")
    series = run.indicator("step_time")
    if series is not None:
        taken = [value for value in series.tail(_GAPS) if math.isfinite(value) and value > 0]
        # The first step compiles and warms up.
        taken = taken[1:] if len(taken) == len(series) and len(taken) > 1 else taken
        if taken:
            return Pace(median(taken), series.key)
    return None


def expected(run: Run) -> Expected | None:
    """Return how long the next step should take by its kind, None where nothing tells.

    Where it cannot be told what the next step will have to do, it is reckoned with the slowest kind there was.
    """
    occasions = {"validation": _validations(run), "checkpoint": _checkpoints(run)}
    taken: dict[Kind, list[float]] = defaultdict(list)
    for step, seconds in _durations(run):
        taken[Kind(step in occasions["validation"], step in occasions["checkpoint"])].append(seconds)
    if not taken or run.step is None:
        return None
    due = {name: _due(run, steps, name) for name, steps in occasions.items()}
    kinds = [
        kind
        for kind in taken
        if all(state is None or state == has for state, has in zip(due.values(), kind, strict=True))
    ]
    # A kind that was never seen: the slowest known stands in.
    kind = max(kinds or taken, key=lambda kind: median(taken[kind]))
    return Expected(kind, median(taken[kind]), max(taken[kind]))


def _timed(run: Run) -> Iterator[Series]:
    for indicator in ("reward", "policy_loss", "response_length", "entropy"):
        series = run.indicator(indicator)
        if series is not None and len(series) >= 3:
            yield series


def _durations(run: Run) -> Sequence[tuple[int, float]]:
    """Return recent steps with the seconds that each took, the run's first left out: it compiles and warms up."""
    for timed in _timed(run):
        steps, times = timed.steps[-_RECENT:], timed.times[-_RECENT:]
        gaps = [(steps[i], times[i] - times[i - 1]) for i in range(1, len(steps)) if times[i] > times[i - 1]]
        if len(gaps) >= 2:
            return gaps
    series = run.indicator("step_time")
    if series is None:
        return ()
    # Since v0.6 verl leaves validation out of timing_s/step; where it is in, adding it only makes for more patience.
    extras = [known for name in ("timing_s/testing", "timing_s/save_checkpoint") if (known := run.series(name))]
    start = max(1 if len(series) > 1 else 0, len(series) - _RECENT)
    return [
        (series.steps[i], series.values[i] + sum(_exactly(extra, series.steps[i]) for extra in extras))
        for i in range(start, len(series))
        if math.isfinite(series.values[i]) and series.values[i] > 0
    ]


def _exactly(series: Series, step: int) -> float:
    point = series.at(step)
    return point.value if point is not None and point.step == step and math.isfinite(point.value) else 0.0


def _validations(run: Run) -> set[int]:
    keys = ["timing_s/testing", *validation_keys(run.keys)[:1]]
    return {step for key in keys if (series := run.series(key)) is not None for step in series.steps[-_RECENT:]}


def _checkpoints(run: Run) -> set[int]:
    series = run.series("timing_s/save_checkpoint")
    return {*run.checkpoints, *(series.steps[-_RECENT:] if series is not None else ())}


_RHYTHM = {"validation": "trainer.test_freq", "checkpoint": "trainer.save_freq"}


def _due(run: Run, steps: set[int], name: str) -> bool | None:
    """Return whether the next step will have a validation (a checkpoint), None where that cannot be told."""
    upcoming = (run.step or 0) + 1
    frequency = run.settings.get(_RHYTHM[name])
    if not isinstance(frequency, int) or isinstance(frequency, bool):
        if not steps:
            return False
        recent = sorted(steps)[-_OCCASIONS:]
        distances = {after - before for before, after in pairwise(recent) if before > 0}
        if len(distances) != 1:
            return None
        frequency = distances.pop()
    if frequency <= 0:
        return False
    return upcoming % frequency == 0 or upcoming == run.total_steps
