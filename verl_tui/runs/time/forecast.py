"""How long the steps of a run take, and those that it still has to make: what is due at them, when
they will be done.

All is learned from the run itself. A step with a validation or a checkpoint is of another kind than
a plain one: a progress bar takes the mean of recent steps (tqdm), and so is wrong where rare steps
are long ones.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.indicators import validation_keys
from verl_tui.means import gathered, median_along
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.settings import number
from verl_tui.runs.time.step_clocks import by_timers, clocks
from verl_tui.runs.time.step_timing import SpeedFigure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.runs.run import Run

_USUAL, _USUAL_RARE = 30, 3
"""Newest durations whose median is the usual one, of plain steps and of others: all steps of a run
grow when its responses do.
"""
_RECENT = 200
"""Newest steps of each kind that are compared."""
_LOOKED_BACK = 1000
"""Newest records in which these are looked for."""
_OCCASIONS = 20
"""Newest validations and checkpoints that a schedule is learned from."""
_LOOKED_AT = 100_000
"""Coming steps that are looked at one by one; further ones are like these."""
_DATED = ("reward", "policy_loss", "response_length", "entropy")
"""Indicators whose records date the steps, the first to try first."""
_VALIDATION, _CHECKPOINT = 1, 2
"""What a step may have besides training; the sum of these is its kind."""
_WORDS = (
    "a plain step",
    "a step with validation",
    "a step with checkpoint",
    "a step with validation and checkpoint",
)


# -- what was measured -----------------------------------------------------------------------------


class Pace(NamedTuple):
    """How long a step takes."""

    seconds: float
    """Seconds from one step to the next."""
    origin: str
    """The evidence for it, in words."""


def pace(run: Run) -> Pace | None:
    """Return the run's usual time from step to step, None where it is unknown."""
    return _measured(run)[0]


def steps_per_minute(run: Run) -> SpeedFigure | None:
    """Return how many steps a minute has at the run's usual pace, or how many minutes a step has
    where that is longer than one; None where unknown.
    """
    usual = pace(run)
    if not usual or not 0 < usual.seconds < math.inf:
        return None
    minutes = usual.seconds / 60.0
    if minutes > 1:
        return SpeedFigure("minutes a step", minutes, "min a step", usual.origin)
    return SpeedFigure("steps per minute", 1.0 / minutes, "steps/min", usual.origin)


@cached_by_revision
def _measured(run: Run) -> tuple[Pace | None, int, Any, Any]:
    """Return the pace, the steps from record to record, and steps with the seconds from the record
    before, by the best evidence.
    """
    import numpy as np

    for origin, reached, when, least in _evidence(run):
        steps, times = np.array(reached[-_LOOKED_BACK:]), np.array(when[-_LOOKED_BACK:])
        stride = max(1, int(median_along(np.diff(steps)))) if len(steps) > 1 else 1
        # Those that were reached together count as one.
        alone = np.isfinite(times) & (np.append(times[1:], np.nan) != times)
        steps, seconds = steps[alone], np.diff(times[alone])
        apart, later = np.diff(steps), seconds > 0
        if later.sum() >= least:
            usual = float(median_along((seconds[later] / apart[later])[-_USUAL:]))
            regular = later & (apart == stride)
            return Pace(usual, origin), stride, steps[1:][regular], seconds[regular]
    return None, 1, (), ()


def _evidence(run: Run) -> Iterator[tuple[str, Sequence[int], Sequence[float], int]]:
    """Yield what tells how long steps take: its name, steps, when they were reached, and the least
    number of them from one to the next.

    The times of records come first, which also cover what no timer does, then the step's timer,
    then the clocks, of which progress bars count whole seconds. The first step is not counted where
    there are others, because it warms up.
    """
    for indicator in _DATED:
        records = run.present(run.indicators.get(indicator))
        if records and len(records) >= 3:
            yield "times of the records", records.steps, records.times, 2
    timer = run.indicators.get("step_time")
    if timer and run.step is not None:
        timed = by_timers(run, run.step)
        warm = int(len(timed) > 2)
        yield timer, timed.steps[warm:], timed.times[warm:], 1
    for clock in clocks(run):
        yield clock.origin, clock.steps, clock.times, 2


@cached_by_revision
def _occasions(run: Run) -> tuple[list[int], list[int]]:
    """Return the steps with a validation, and those with a checkpoint."""

    def logged(*keys: str) -> list[int]:
        known = filter(None, map(run.series, keys))
        return [step for series in known for step in series.steps[-_LOOKED_BACK:]]

    tested = logged("timing_s/testing", *validation_keys(run.keys)[:1])
    return tested, [*logged("timing_s/save_checkpoint"), *run.checkpoints]


@cached_by_revision
def _kinds(run: Run) -> Mapping[int, Sequence[float]]:
    """Return the seconds that recent steps of each kind took, the newest last."""
    tested, saved = map(frozenset, _occasions(run))
    taken = gathered(
        (_VALIDATION * (step in tested) + _CHECKPOINT * (step in saved), float(seconds))
        for step, seconds in zip(*_measured(run)[2:], strict=True)
    )
    return {kind: taken[kind][-_RECENT:] for kind in sorted(taken)}


# -- schedules -------------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """The schedule of something beside training, such as validations."""

    every: int = 0
    """Steps from one time to the next, 0 for never."""
    last: int = 0
    """A step at which it was due."""
    regular: bool = True
    """False where the distances differ, so that only their mean is known."""

    def due(self, steps: Any, last: int | None) -> Any:
        """Return whether it is due at each of some steps; at a run's last one verl's trainers do
        all that they ever do.
        """
        if not self.every:
            return steps < 0
        return ((steps - self.last) % self.every == 0) | (steps == last)

    def next_after(self, step: int) -> int | None:
        """Return the next step at which it is due, None where unknown."""
        if not self.every or not self.regular:
            return None
        return step + self.every - (step - self.last) % self.every


def schedule_of(run: Run, occasions: Iterable[int], setting: str) -> Schedule:
    """Return when something is due, by the run's settings or by when it happened so far.

    Args:
        run: The run.
        occasions: Steps at which it happened.
        setting: Name of the setting that holds the number of steps in between; 0 and less mean
            never.
    """
    stated = number(run.settings.get(setting))
    if stated is not None and math.isfinite(stated) and stated == int(stated):
        return Schedule(max(0, int(stated)))
    # At step 0 the model is evaluated before training, and the last step has everything.
    past = [step for step in sorted({*occasions}) if 0 < step != run.total_steps]
    if not past:
        return Schedule()
    recent = past[-_OCCASIONS:]
    apart = [after - before for before, after in pairwise(recent)]
    every = round(sum(apart) / len(apart)) if apart else max(run.step or 0, recent[0])
    return Schedule(every, recent[-1], len({*apart}) == 1)


def _schedules(run: Run) -> tuple[Schedule, Schedule]:
    """Return the schedules of validations and of checkpoints."""
    tested, saved = _occasions(run)
    return (
        schedule_of(run, tested, "trainer.test_freq"),
        schedule_of(run, saved, "trainer.save_freq"),
    )


def _kinds_due(run: Run, steps: Any) -> Any:
    """Return the kind of each of some steps."""
    test, save = (one.due(steps, run.total_steps) for one in _schedules(run))
    return _VALIDATION * test + _CHECKPOINT * save


# -- what is to come -------------------------------------------------------------------------------


class UsualTime(NamedTuple):
    """How long the steps of one kind usually take."""

    kind: int
    seconds: float
    times: int = 0
    """Steps of this kind that were measured; 0 where it is put together from other kinds."""
    longest: float = 0.0
    """The longest of these."""

    @property
    def words(self) -> str:
        """Name the kind."""
        return _WORDS[self.kind]


@cached_by_revision
def expected_step(run: Run) -> UsualTime | None:
    """Return how long the next step should take by its kind, None where that is unknown.

    Where the kind of the next step is unknown or was never seen, the slowest one stands in.
    """
    import numpy as np

    taken = _kinds(run)
    if not taken or run.step is None:
        return None
    test, save = _schedules(run)
    unknown = _VALIDATION * (not test.regular) | _CHECKPOINT * (not save.regular)
    due = int(_kinds_due(run, np.array([run.step + 1]))[0]) | unknown
    fitting = [kind for kind in taken if kind | unknown == due] or taken
    known = [_usual_time(run, kind) for kind in fitting]
    return max(known, key=lambda one: one.seconds)


def usual_times(run: Run) -> tuple[UsualTime, ...]:
    """Return the usual time of each kind of steps that the run has had, the plain one first."""
    if _measured(run)[1] > 1:
        return ()
    return tuple(_usual_time(run, kind) for kind in _kinds(run))


@cached_by_revision
def next_occasions(run: Run) -> Mapping[str, int]:
    """Return the next steps at which there is a validation, a checkpoint, as far as known."""
    last = run.total_steps
    if run.step is None or (last is not None and run.step >= last):
        return {}
    upcoming = (schedule.next_after(run.step) for schedule in _schedules(run))
    return {
        name: at if last is None else min(at, last)
        for name, at in zip(("validation", "checkpoint"), upcoming, strict=True)
        if at is not None
    }


@cached_by_revision
def remaining_seconds(run: Run) -> float | None:
    """Return the seconds from the newest record to the last step of a run, None if the number of
    steps or their time is unknown; each counts with the usual time of its kind. Of very many the
    first are looked at one by one, which stand for all of them.
    """
    import numpy as np

    total, step = run.total_steps, run.step
    if total is None or step is None or not (usual_pace := pace(run)):
        return None
    count = max(0, total - step)
    if not usual_times(run) or not count:
        return count * usual_pace.seconds
    coming = step + 1 + np.arange(min(count - 1, _LOOKED_AT))
    times = np.bincount(_kinds_due(run, coming), minlength=len(_WORDS)).astype(float)
    times *= (count - 1) / max(1, len(coming))
    times[_kinds_due(run, np.array([total]))] += 1
    kinds: list[int] = np.flatnonzero(times).tolist()
    return sum(_usual_time(run, kind).seconds * float(times[kind]) for kind in kinds)


def _usual_time(run: Run, kind: int) -> UsualTime:
    """Return how long a kind of step takes now; one that was never seen is put together from
    others.
    """
    taken = _kinds(run)
    usual = {
        one: median(seconds[-(_USUAL_RARE if one else _USUAL) :])
        for one, seconds in taken.items()
    }
    if kind in usual:
        return UsualTime(kind, usual[kind], len(taken[kind]), max(taken[kind]))
    plain = usual.get(0, min(usual.values()))
    parts = (kind & _VALIDATION, kind & _CHECKPOINT)
    more = sum(usual.get(part, plain) - plain for part in parts)
    return UsualTime(kind, plain + max(0.0, more))
