"""How long the steps of a run take, and those that it still has to make: what is due at them, when
they will be done.

All is learned from the run itself. A step with a validation or a checkpoint is of another kind than
a plain one: a progress bar takes the mean of recent steps (tqdm), and so is wrong where rare steps
are long ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import validation_keys
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.settings import number
from verl_tui.runs.time.step_clocks import clocks
from verl_tui.runs.time.step_timing import excluded_timers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from verl_tui.runs.clock import Clock
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_USUAL = 30
"""Newest durations whose median is the usual one."""
_RECENT = 200
"""Newest steps of each kind that are compared."""
_LOOKED_BACK = 1000
"""Newest records in which these are looked for."""
_OCCASIONS = 20
"""Newest validations and checkpoints that a schedule is learned from."""
_USUAL_RARE = 3
"""The same of rare steps: all steps of a run grow when its responses do."""
_LONGEST_STRIDE = 100
"""Steps from record to record at most where there is only one: a resumed run may begin anywhere."""
_LOOKED_AT = 100_000
"""Coming steps that are looked at one by one; further ones are like these."""
_DATED = ("reward", "policy_loss", "response_length", "entropy")
"""Indicators whose records date the steps, the first to try first."""
_TESTING, _SAVING = "timing_s/testing", "timing_s/save_checkpoint"


class Pace(NamedTuple):
    """How long a step takes."""

    seconds: float
    """Seconds from one step to the next."""
    origin: str
    """The evidence for it, in words."""


class StepKind(NamedTuple):
    """The work of a step besides training."""

    validation: bool = False
    checkpoint: bool = False

    @property
    def words(self) -> str:
        """Name the kind."""
        extras = [name for name, has in self._asdict().items() if has]
        return f"a step with {' and '.join(extras)}" if extras else "a plain step"


_PLAIN = StepKind()
_KINDS = [StepKind(test, save) for test in (False, True) for save in (False, True)]


# -- what was measured -----------------------------------------------------------------------------


class _Measured(NamedTuple):
    """The seconds that steps took, as one kind of evidence has them."""

    pace: Pace | None = None
    stride: int = 1
    """Steps from one record to the next."""
    seconds: Mapping[int, float] = {}
    """From record to record, by step, ascending."""


def pace(run: Run) -> Pace | None:
    """Return the run's usual time from step to step, None where it is unknown."""
    return _measured(run).pace


@cached_by_revision
def _measured(run: Run) -> _Measured:
    """Return how long steps took: by the times of their records, which also cover what no timer
    does; else by the step's timer; else by the clocks, of which progress bars count whole seconds.
    """
    timed = _by_timer(run)
    records = [run.present(run.indicators.get(indicator)) for indicator in _DATED]
    dated: list[Series | Clock] = [one for one in records if one and len(one) >= 3]
    for one in dated if timed.pace else [*dated, *clocks(run)]:
        found = _by_times(one)
        if found is not None:
            if found.stride == timed.stride == 1:
                together = sorted({**timed.seconds, **found.seconds}.items())
                found = found._replace(seconds=dict(together))
            return found
    return timed


def _by_times(dated: Series | Clock) -> _Measured | None:
    """Return how long steps took by when they were reached, None where too little is known; those
    that were reached together count as one.
    """
    import numpy as np

    steps = np.array(dated.steps[-_LOOKED_BACK:])
    times = np.array(dated.times[-_LOOKED_BACK:])
    stride = _stride(steps)
    alone = np.isfinite(times) & (np.append(times[1:], np.nan) != times)
    steps, apart, seconds = steps[alone], np.diff(steps[alone]), np.diff(times[alone])
    later = seconds > 0
    if later.sum() < 2:
        return None
    usual = float(np.median((seconds[later] / apart[later])[-_USUAL:]))
    regular = later & (apart == stride)
    pairs = zip(steps[1:][regular].tolist(), seconds[regular].tolist(), strict=True)
    origin = getattr(dated, "origin", "times of the records")
    return _Measured(Pace(usual, origin), stride, dict(pairs))


def _by_timer(run: Run) -> _Measured:
    """Return how long steps took by their own timer, with what that leaves out; the run's first is
    not counted where there are others, because it warms up.
    """
    timer = run.present(run.indicators.get("step_time"))
    if timer is None:
        return _Measured()
    since = timer.steps[max(len(timer) > 1, len(timer) - _LOOKED_BACK)]
    stride = _stride(timer.steps[-_LOOKED_BACK:])
    taken = {
        step: stride * seconds
        for step, seconds in timer.since(since).items()
        if 0 < seconds < math.inf
    }
    own = [*taken.values()][-_USUAL:]
    for excluded in excluded_timers(run):
        for step, seconds in excluded.since(since).items():
            if step in taken and math.isfinite(seconds):
                taken[step] += seconds
    usual = Pace(median(own) / stride, timer.key) if own else None
    return _Measured(usual, stride, taken)


def _stride(steps: Sequence[int] | NDArray[np.int64]) -> int:
    """Return the steps from record to record; a log that begins with step 10 is taken to log every
    tenth.
    """
    import numpy as np

    if len(steps) > 1:
        return max(1, int(np.median(np.diff(steps))))
    return max(1, min(int(steps[0]), _LONGEST_STRIDE)) if len(steps) else 1


@cached_by_revision
def _occasions(run: Run) -> tuple[set[int], set[int]]:
    """Return the steps with a validation, and those with a checkpoint."""
    tested = _steps_of(run, (_TESTING, *validation_keys(run.keys)[:1]))
    return tested, _steps_of(run, (_SAVING,)) | run.checkpoints.keys()


def _steps_of(run: Run, keys: Iterable[str]) -> set[int]:
    found = filter(None, map(run.series, keys))
    return {step for series in found for step in series.steps[-_LOOKED_BACK:]}


@cached_by_revision
def _kinds(run: Run) -> Mapping[StepKind, Sequence[float]]:
    """Return the seconds that recent steps of each kind took, the newest last."""
    tested, saved = _occasions(run)
    taken = defaultdict[StepKind, list[float]](list)
    for step, seconds in _measured(run).seconds.items():
        taken[StepKind(step in tested, step in saved)].append(seconds)
    return {kind: of[-_RECENT:] for kind, of in taken.items()}


# -- schedules -------------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """The schedule of something beside training, such as validations."""

    every: float
    """Steps from one time to the next, `inf` for never."""
    last: int = 0
    """A step at which it was due."""
    regular: bool = True
    """False where the distances differ, so that only their mean is known."""

    def chances(
        self, steps: NDArray[np.int64], last: int | None
    ) -> NDArray[np.float64]:
        """Return how likely it is due at each of some steps, 0..1; a run's last one has whatever
        verl's trainers do at all.
        """
        import numpy as np

        due = np.full(len(steps), 1.0 / self.every)
        if self.regular:
            due = ((steps - self.last) % self.every == 0).astype(float)
        due[steps == last] = 1.0
        return np.zeros(len(steps)) if math.isinf(self.every) else due

    def next_after(self, step: int) -> int | None:
        """Return the next step at which it is due, None where unknown."""
        if math.isinf(self.every) or not self.regular:
            return None
        return step + int(self.every - (step - self.last) % self.every)


def schedule_of(run: Run, occasions: Collection[int], setting: str) -> Schedule:
    """Return when something is due, by the run's settings or by when it happened so far.

    Args:
        run: The run.
        occasions: Steps at which it happened.
        setting: Name of the setting that holds the number of steps in between; 0 and less mean
            never.
    """
    stated = number(run.settings.get(setting))
    if stated is not None and math.isfinite(stated) and stated == int(stated):
        return Schedule(stated if stated > 0 else math.inf)
    # At step 0 the model is evaluated before training, and the last step has everything.
    past = [step for step in sorted(occasions) if 0 < step != run.total_steps]
    return _learned(past[-_OCCASIONS:], run.step or 0)


def _learned(recent: Sequence[int], reached: int) -> Schedule:
    """Return the schedule that recent occasions show."""
    apart = [after - before for before, after in pairwise(recent)]
    if apart:
        return Schedule(sum(apart) / len(apart), recent[-1], len({*apart}) == 1)
    if recent:
        return Schedule(max(reached, recent[0]), recent[0], regular=False)
    return Schedule(math.inf)


def _schedules(run: Run) -> tuple[Schedule, Schedule]:
    """Return the schedules of validations and of checkpoints."""
    tested, saved = _occasions(run)
    return (
        schedule_of(run, tested, "trainer.test_freq"),
        schedule_of(run, saved, "trainer.save_freq"),
    )


def _chances(run: Run, steps: NDArray[np.int64]) -> dict[StepKind, NDArray[np.float64]]:
    """Return how likely each of some steps is of each kind."""
    test, save = (one.chances(steps, run.total_steps) for one in _schedules(run))
    return {
        kind: (test if kind.validation else 1 - test)
        * (save if kind.checkpoint else 1 - save)
        for kind in _KINDS
    }


# -- what is to come -------------------------------------------------------------------------------


class ExpectedStep(NamedTuple):
    """The expected duration of the next step."""

    kind: StepKind
    seconds: float
    """The usual time of its kind."""
    longest: float
    """The longest of its kind so far."""


class UsualTime(NamedTuple):
    """How long the steps of one kind usually take."""

    kind: StepKind
    seconds: float
    times: int
    """Steps of this kind that were measured; 0 where it is put together from other kinds."""


class RemainingSteps(NamedTuple):
    """The remaining steps of a run."""

    seconds: float
    """Until the last step, from the newest record on."""
    steps: int
    kinds: tuple[tuple[UsualTime, float], ...]
    """Each kind with how many of the steps are of it; empty where kinds are not known."""


class NextOccasions(NamedTuple):
    """The next steps at which there is a validation, a checkpoint; None where unknown."""

    validation: int | None
    checkpoint: int | None


@cached_by_revision
def expected_step(run: Run) -> ExpectedStep | None:
    """Return how long the next step should take by its kind, None where that is unknown.

    Where the kind of the next step is unknown or was never seen, the slowest one stands in.
    """
    import numpy as np

    taken = _kinds(run)
    if not taken or run.step is None:
        return None
    likely = _chances(run, np.array([run.step + 1]))
    usual = {kind: median(seconds) for kind, seconds in taken.items()}
    fitting = [kind for kind in taken if likely[kind][0] > 0]
    kind = max(fitting or taken, key=usual.__getitem__)
    return ExpectedStep(kind, usual[kind], max(taken[kind]))


def usual_times(run: Run) -> tuple[UsualTime, ...]:
    """Return the usual time of each kind of steps that the run has had, the plain one first."""
    if _measured(run).stride > 1:
        return ()
    return tuple(_usual_time(run, kind) for kind in sorted(_kinds(run)))


@cached_by_revision
def next_occasions(run: Run) -> NextOccasions:
    """Return when the next validation and the next checkpoint are due."""
    last = run.total_steps
    if run.step is None or (last is not None and run.step >= last):
        return NextOccasions(None, None)
    upcoming = [schedule.next_after(run.step) for schedule in _schedules(run)]
    if last is not None:
        upcoming = [None if at is None else min(at, last) for at in upcoming]
    return NextOccasions(*upcoming)


@cached_by_revision
def remaining_steps(run: Run) -> RemainingSteps | None:
    """Return the remaining steps of a run, None if their number or time is unknown; each counts
    with the usual time of its kind. Of very many the first are looked at one by one, which stand
    for all of them.
    """
    import numpy as np

    total, step, usual_pace = run.total_steps, run.step, pace(run)
    if total is None or step is None or usual_pace is None:
        return None
    count = max(0, total - step)
    if not _kinds(run) or _measured(run).stride > 1:
        return RemainingSteps(count * usual_pace.seconds, count, ())
    coming = step + 1 + np.arange(min(max(0, count - 1), _LOOKED_AT))
    share = (count - 1) / max(1, len(coming))
    counted = tuple(
        (_usual_time(run, kind), times)
        for kind, likely in _chances(run, np.append(coming, total)).items()
        if count and (times := share * float(likely[:-1].sum()) + float(likely[-1]))
    )
    seconds = sum(usual.seconds * times for usual, times in counted)
    return RemainingSteps(seconds, count, counted)


def _usual_time(run: Run, kind: StepKind) -> UsualTime:
    """Return how long a kind of step takes now; one that was never seen is put together from
    others.
    """
    taken = _kinds(run)
    usual = {
        one: median(seconds[-(_USUAL if one == _PLAIN else _USUAL_RARE) :])
        for one, seconds in taken.items()
    }
    if kind in usual:
        return UsualTime(kind, usual[kind], len(taken[kind]))
    plain = usual.get(_PLAIN, min(usual.values()))
    parts = (kind._replace(checkpoint=False), kind._replace(validation=False))
    more = sum(usual.get(part, plain) - plain for part in parts)
    return UsualTime(kind, plain + max(0.0, more), 0)
