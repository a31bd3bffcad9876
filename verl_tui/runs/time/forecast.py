"""How long the steps of a run take, and those that it still has to make: what is due at them, when
they will be done.

All is learned from the run itself. A step with a validation or a checkpoint is of another kind than
a plain one: a progress bar takes the mean of recent steps (tqdm), and so is wrong where rare steps
are long ones.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict, deque
from itertools import pairwise, product
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import validation_keys
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.settings import number
from verl_tui.runs.time.step_clocks import clocks
from verl_tui.runs.time.step_timing import excluded_timers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_RECENT_GAPS = 30
"""Recent gaps between steps that make the pace."""
_RECENT = 200
"""Recent steps that the usual time of each kind is learned from."""
_OCCASIONS = 20
"""Recent validations and checkpoints that count, however long ago they were."""
_AROUND = 10
"""Number of plain steps that a step with more work is compared with."""
_LONGEST_STRIDE = 100
"""Steps from record to record at most where there is only one: a resumed run may begin anywhere."""
_HELD = 2
"""Equal distances that make a schedule, where one more differs: heuristic."""
_LOOKED_AT = 100_000
"""Coming steps that are looked at one by one; further ones are like these."""
_DATED = ("reward", "policy_loss", "response_length", "entropy")
"""Indicators whose records date the steps, the first to try first."""
_SETTINGS = ("trainer.test_freq", "trainer.save_freq")
"""Settings that hold the number of steps between two validations, or two checkpoints."""


# -- pace ------------------------------------------------------------------------------------------


class Pace(NamedTuple):
    """How long a step takes."""

    seconds: float
    """Seconds from one step to the next."""
    origin: str
    """The evidence for it, in words."""


@cached_by_revision
def pace(run: Run) -> Pace | None:
    """Return the run's usual time from step to step, None where it is unknown."""
    return (
        _clocked_pace(_dated_series(run))
        or _timer_pace(run)
        or _clocked_pace(clocks(run))
    )


def _dated_series(run: Run) -> Iterator[Series]:
    """Yield metrics of training with enough records to show the time from step to step."""
    for indicator in _DATED:
        series = run.present(run.indicators.get(indicator))
        if series is not None and len(series) >= 3:
            yield series


def _clocked_pace(dated: Iterable[Series | Clock]) -> Pace | None:
    """Return the pace by the first of these whose records have times of their own."""
    for one in dated:
        gaps = _gaps(one.steps[-_RECENT_GAPS:], one.times[-_RECENT_GAPS:])
        if len(gaps) >= 2:
            origin = one.origin if isinstance(one, Clock) else "times of the records"
            return Pace(median(gaps), origin)
    return None


def _gaps(steps: Sequence[int], times: Sequence[float]) -> list[float]:
    """Return the seconds of a step between records; those that came together count as one."""
    dated = [one for one in zip(steps, times, strict=True) if math.isfinite(one[1])]
    later = [time for _, time in dated[1:]]
    moments = [
        one
        for one, time in zip(dated, [*later, math.nan], strict=False)
        if one[1] != time
    ]
    return [
        (time - since) / (step - before)
        for (before, since), (step, time) in pairwise(moments)
        if time > since and step > before
    ]


def _timer_pace(run: Run) -> Pace | None:
    """Return the pace by the step's own timer."""
    series = run.present(run.indicators.get("step_time"))
    if series is None:
        return None
    taken = [value for value in series.tail(_RECENT_GAPS) if 0 < value < math.inf]
    if len(taken) == len(series) and len(taken) > 1:
        taken = taken[1:]  # the first step compiles and warms up
    return Pace(median(taken), series.key) if taken else None


# -- kinds of steps --------------------------------------------------------------------------------


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


class _StepDurations(NamedTuple):
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
def _occasions(run: Run) -> tuple[set[int], set[int]]:
    """Return the recent steps with a validation, and those with a checkpoint."""
    tested = ("timing_s/testing", *validation_keys(run.keys)[:1])
    keys = (tested, ("timing_s/save_checkpoint",))
    validations, saved = (
        {step for key in some for step in _newest_steps(run.series(key))}
        for some in keys
    )
    return validations, saved.union(run.checkpoints)


def _newest_steps(series: Series | None) -> Sequence[int]:
    return () if series is None else series.steps[-_RECENT:]


@cached_by_revision
def _step_durations(run: Run) -> _StepDurations:
    """Return how long recent steps of each kind took."""
    occasions = _occasions(run)
    older = [step for steps in occasions for step in sorted(steps)[-_OCCASIONS:]]
    stride, durations = _durations(run, older)
    by_kind: dict[StepKind, list[float]] = defaultdict(list)
    excess: dict[StepKind, list[float]] = defaultdict(list)
    plain_before: deque[float] = deque(maxlen=_AROUND)
    for step, seconds in sorted(durations.items()):
        kind = StepKind(*(step in steps for steps in occasions))
        by_kind[kind].append(seconds)
        if kind == _PLAIN:
            plain_before.append(seconds)
        elif plain_before:
            excess[kind].append(max(0.0, seconds - median(plain_before)))
    return _StepDurations(by_kind, excess, stride)


def _durations(run: Run, older: Iterable[int]) -> tuple[int, dict[int, float]]:
    """Return the steps from record to record, and how long recent steps took: by timers, better by
    the clock.

    Args:
        run: The run.
        older: Steps before the recent ones that count, too.
    """
    timer = run.present(run.indicators.get("step_time"))
    stride, timed = 1, dict[int, float]()
    if timer is not None:
        stride = _stride(timer.steps[-_RECENT:])
        timed = _by_timer(run, timer, stride, older)
    # Progress bars count whole seconds: they are only used where nothing better is known.
    dated: list[Series | Clock] = [*_dated_series(run), *(() if timed else clocks(run))]
    for one in dated:
        steps = one.steps[-_RECENT:]
        distance = _stride(steps)
        clocked = _by_clock(steps, one.times[-_RECENT:], distance)
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


def _by_timer(
    run: Run, timer: Series, stride: int, older: Iterable[int]
) -> dict[int, float]:
    """Return the seconds from record to record by the step's own timer, with what that leaves out;
    the run's first is not counted, because it warms up.
    """
    recent = max(1 if len(timer) > 1 else 0, len(timer) - _RECENT)
    first = timer.steps[min(1, len(timer) - 1)]
    since = timer.steps[recent]
    asked = {step for step in older if first <= step < since}
    asked.update(timer.steps[recent:])
    taken = {
        step: stride * seconds for step, seconds in _at(timer, asked) if seconds > 0
    }
    for excluded in excluded_timers(run):
        for step, seconds in _at(excluded, taken):
            taken[step] += seconds
    return taken


def _at(series: Series, steps: Collection[int]) -> list[tuple[int, float]]:
    """Return the values at those of the steps that have a finite one."""
    known = series.steps
    found = ((step, bisect_left(known, step)) for step in steps)
    return [
        (step, series.values[at])
        for step, at in found
        if at < len(known) and known[at] == step and math.isfinite(series.values[at])
    ]


def _stride(steps: Sequence[int]) -> int:
    """Return the steps from record to record; a log that begins with step 10 is taken to log every
    tenth.
    """
    if len(steps) > 1:
        return max(1, int(median([b - a for a, b in pairwise(steps)])))
    return max(1, min(steps[0], _LONGEST_STRIDE)) if steps else 1


# -- schedules -------------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """The schedule of something beside training, such as validations."""

    every: float
    """Steps from one time to the next, `inf` for never."""
    last: int
    """A step at which it was due."""
    regular: bool
    """False where the distances differ, so that only their mean is known."""

    @property
    def never(self) -> bool:
        """True if it is never due."""
        return math.isinf(self.every)

    def is_due(self, step: int, last: int | None) -> bool | None:
        """Return whether it is due at a step, None where unknown.

        Args:
            step: The step.
            last: The run's last one: there verl's trainers do whatever they do at all.
        """
        if self.never or step == last:
            return not self.never
        return (step - self.last) % self.every == 0 if self.regular else None

    def chances(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how likely it is due at each of some steps, 0..1."""
        import numpy as np

        if self.never or not self.regular:
            return np.full(len(steps), 1.0 / self.every)
        return np.where((steps - self.last) % self.every == 0, 1.0, 0.0)

    def next_after(self, step: int) -> int | None:
        """Return the next step at which it is due, None where unknown."""
        if self.never or not self.regular:
            return None
        return step + int(self.every - (step - self.last) % self.every)


_NEVER = Schedule(math.inf, 0, regular=True)


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
        return Schedule(stated, 0, regular=True) if stated > 0 else _NEVER
    return _learned(run, occasions)


def _learned(run: Run, occasions: Collection[int]) -> Schedule:
    """Return the schedule that recent occasions show."""
    # At step 0 the model is evaluated before training.
    recent = sorted(step for step in occasions if step > 0)[-_OCCASIONS:]
    if recent and (recent[-1] == run.total_steps or _is_last(recent, run.step)):
        recent.pop()  # the last step has everything
    if not recent:
        return _NEVER
    distances = [after - before for before, after in pairwise(recent)]
    if not distances:
        return Schedule(float(max(run.step or 0, *recent)), recent[0], regular=False)
    usual = sum(distances) / len(distances)
    return Schedule(usual, recent[-1], regular=len(set(distances)) == 1)


def _is_last(recent: Sequence[int], newest: int | None) -> bool:
    """Return whether the newest step looks like a run's last: it alone breaks a schedule that held
    at least three times.
    """
    distances = [after - before for before, after in pairwise(recent)]
    regular = len(distances) > _HELD and len(set(distances[:-1])) == 1
    return regular and recent[-1] == newest and distances[-1] < distances[0]


def _schedules(run: Run) -> list[Schedule]:
    """Return the schedules of validations and of checkpoints."""
    pairs = zip(_occasions(run), _SETTINGS, strict=True)
    return [schedule_of(run, steps, setting) for steps, setting in pairs]


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
    taken = _step_durations(run).by_kind
    if not taken or run.step is None:
        return None
    due = [one.is_due(run.step + 1, run.total_steps) for one in _schedules(run)]
    fitting = [
        kind
        for kind in taken
        if all(is_due in (None, has) for is_due, has in zip(due, kind, strict=True))
    ]
    usual = {kind: median(seconds) for kind, seconds in taken.items()}
    kind = max(fitting or taken, key=usual.__getitem__)
    return ExpectedStep(kind, usual[kind], max(taken[kind]))


def usual_times(run: Run) -> tuple[UsualTime, ...]:
    """Return the usual time of each kind of steps that the run has had, the plain one first."""
    taken = _step_durations(run)
    if taken.stride > 1:
        return ()
    return tuple(_usual_time(kind, taken) for kind in sorted(taken.by_kind))


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
    with the usual time of its kind.
    """
    total = run.total_steps
    step = run.step
    usual_pace = pace(run)
    if total is None or step is None or usual_pace is None:
        return None
    count = max(0, total - step)
    taken = _step_durations(run)
    if not taken.by_kind or taken.stride > 1:
        return RemainingSteps(count * usual_pace.seconds, count, ())
    kinds = tuple(
        (_usual_time(kind, taken), times)
        for kind, times in _count(_schedules(run), step, total)
        if times
    )
    seconds = sum(usual.seconds * times for usual, times in kinds)
    return RemainingSteps(seconds, count, kinds)


def _usual_time(kind: StepKind, taken: _StepDurations) -> UsualTime:
    """Return how long a kind of step takes now; one that was never seen is put together from
    others.
    """
    seen = taken.by_kind
    times = len(seen.get(kind, ()))
    if times and kind != _PLAIN and kind not in taken.excess:
        return UsualTime(kind, _recent(seen[kind]), times)
    parts = [kind]
    if kind not in taken.excess:
        parts = [kind._replace(checkpoint=False), kind._replace(validation=False)]
    more = sum(_recent(taken.excess[part]) for part in parts if part in taken.excess)
    plain = seen.get(_PLAIN) or min(seen.values(), key=median)
    return UsualTime(kind, _recent(plain) + more, times)


def _recent(seconds: Sequence[float]) -> float:
    """Return the median of the newest durations."""
    return median(seconds[-_RECENT_GAPS:])


def _count(
    schedules: Sequence[Schedule], step: int, total: int
) -> Iterator[tuple[StepKind, float]]:
    """Yield how many steps of each kind lie between a step and the last one.

    The last step has every kind of work that the run does at all; those before it are looked at one
    by one, of very many the first, which stand for all of them.
    """
    import numpy as np

    if step >= total:
        return
    before = total - 1 - step
    coming = step + 1 + np.arange(min(before, _LOOKED_AT))
    share = before / max(1, len(coming))
    for validates, saves in product((False, True), repeat=2):
        fits = np.ones(len(coming))
        last = 1.0
        for schedule, has in zip(schedules, (validates, saves), strict=True):
            due = schedule.chances(coming)
            fits *= due if has else 1.0 - due
            last *= schedule.never is not has
        yield StepKind(validates, saves), share * float(fits.sum()) + last
