"""How long a run's steps take, learned from the run itself: plain steps, and those with validation
or a checkpoint.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict, deque
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.indicators import validation_keys
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.clock import Clock
from verl_tui.runs.time.excluded_parts import excluded_timers
from verl_tui.runs.time.schedule import schedule_of
from verl_tui.runs.time.step_clocks import clocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series
    from verl_tui.runs.time.schedule import Schedule

_GAPS = 30
"""Recent gaps between steps that make the pace."""
_RECENT = 200
"""Recent steps that each kind's usual time is learned from."""
_OCCASIONS = 20
"""Recent validations and checkpoints that are looked at, however long ago they were."""
_AROUND = 10
"""Plain steps before a step with more to do that it is held against."""
_LONGEST_STRIDE = 100
"""Steps from record to record at most where there is only one: a resumed run may begin anywhere."""
_COUNTED = 10_000
"""Checkpoints ahead that are looked at one by one; of more the number that fall on
validations is estimated.
"""
_SETTINGS = ("trainer.test_freq", "trainer.save_freq")
"""Settings that hold every how many steps there is a validation, a checkpoint."""


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


class Usual(NamedTuple):
    """How long the steps of one kind usually take."""

    kind: Kind
    seconds: float
    times: int
    """Steps of this kind that tell it; 0 where it is put together from others."""


class Ahead(NamedTuple):
    """What a run still has before it."""

    seconds: float
    """Until the last step, from the newest record on."""
    steps: int
    kinds: tuple[tuple[Usual, float], ...]
    """Each kind with how many of the steps are of it; empty where kinds are not known."""


class Due(NamedTuple):
    """The next steps at which there is a validation, a checkpoint; None where that cannot be
    told.
    """

    validation: int | None
    checkpoint: int | None


@cached_by_revision
def pace(run: Run) -> Pace | None:
    """Return the run's usual time from step to step, None where nothing tells."""
    return _pace_of(_timed(run)) or _timer_pace(run) or _pace_of(clocks(run))


def _pace_of(timed: Iterable[Series | Clock]) -> Pace | None:
    """Return the pace by the first of these whose records have times of their own."""
    for one in timed:
        if (usual := _usual_gap(one)) is not None:
            return Pace(usual, one.origin if isinstance(one, Clock) else "times of the records")
    return None


def _timer_pace(run: Run) -> Pace | None:
    """Return the pace by the step's own timer."""
    series = run.present(run.indicators.get("step_time"))
    if series is None:
        return None
    taken = [value for value in series.tail(_GAPS) if math.isfinite(value) and value > 0]
    if len(taken) == len(series) and len(taken) > 1:
        taken = taken[1:]  # the first step compiles and warms up
    return Pace(median(taken), series.key) if taken else None


@cached_by_revision
def expected(run: Run) -> Expected | None:
    """Return how long the next step should take by its kind, None where nothing tells.

    Where the kind of the next step is unknown, the slowest kind that there was stands in.
    """
    taken = _taken(run).by_kind
    if not taken or run.step is None:
        return None
    due = [_falls(schedule, run.step + 1, run.total_steps) for schedule in _schedules(run)]
    kinds = [
        kind
        for kind in taken
        if all(state is None or state == has for state, has in zip(due, kind, strict=True))
    ]
    # A kind that was never seen: the slowest known stands in.
    kind = max(kinds or taken, key=lambda kind: median(taken[kind]))
    return Expected(kind, median(taken[kind]), max(taken[kind]))


def kinds(run: Run) -> tuple[Usual, ...]:
    """Return the kinds of steps that the run has had with their usual time, the plain one first."""
    taken = _taken(run)
    return tuple(_usual(kind, taken) for kind in sorted(taken.by_kind)) if taken.stride == 1 else ()


@cached_by_revision
def due(run: Run) -> Due:
    """Return when the next validation and the next checkpoint are due."""
    last = run.total_steps
    if run.step is None or (last is not None and run.step >= last):
        return Due(None, None)
    upcoming = [known.next_after(run.step) for known in _schedules(run)]
    return Due(*(at if at is None or last is None else min(at, last) for at in upcoming))


@cached_by_revision
def ahead(run: Run) -> Ahead | None:
    """Return what the run has before it, each step counted with the usual time of its kind; None
    where nothing tells.

    A progress bar takes the mean of recent steps (tqdm), and so is wrong where rare steps are long
    ones.
    """
    total, step, usual_pace = run.total_steps, run.step, pace(run)
    if total is None or step is None or usual_pace is None:
        return None
    count = max(0, total - step)
    taken = _taken(run)
    if not taken.by_kind or taken.stride > 1:
        return Ahead(count * usual_pace.seconds, count, ())
    coming = tuple(
        (_usual(kind, taken), times)
        for kind, times in _count(_schedules(run), step, total)
        if times
    )
    return Ahead(sum(usual.seconds * times for usual, times in coming), count, coming)


# -- kinds of steps --------------------------------------------------------------------------------


def _usual(kind: Kind, taken: _Taken) -> Usual:
    """Return how long a kind of step takes now; one that was never seen is put together from what
    was.
    """
    seen, excess = taken.by_kind, taken.excess
    plain = median(seen.get(Kind(), min(seen.values(), key=median))[-_GAPS:])
    if kind == Kind() or kind in excess:
        return Usual(
            kind, plain + median(excess.get(kind, (0.0,))[-_GAPS:]), len(seen.get(kind, ()))
        )
    if kind in seen:
        return Usual(kind, median(seen[kind][-_GAPS:]), len(seen[kind]))
    single = (Kind(validation=kind.validation), Kind(checkpoint=kind.checkpoint))
    more = sum(median(excess[one][-_GAPS:]) for one in single if one in excess)
    return Usual(kind, plain + more, 0)


def _count(schedules: Sequence[Schedule], step: int, total: int) -> Iterator[tuple[Kind, float]]:
    """Yield how many steps of each kind lie between a step and the last one."""
    count = total - step
    if count <= 0:
        return
    validated, saved = (_hits(one, step, total) for one in schedules)
    both = _both(validated, saved, count)
    # The last step has everything that the run does at all.
    ends = [_falls(one, total, total) is True for one in schedules]
    usual = [isinstance(hits, range) and total in hits for hits in (validated, saved)]
    more = [end and not was for end, was in zip(ends, usual, strict=True)]
    sizes = [_size(validated) + more[0], _size(saved) + more[1]]
    both += all(ends) and not all(usual)
    yield Kind(), max(0.0, count - sizes[0] - sizes[1] + both)
    yield Kind(checkpoint=True), max(0.0, sizes[1] - both)
    yield Kind(validation=True), max(0.0, sizes[0] - both)
    yield Kind(validation=True, checkpoint=True), both


def _both(validated: range | float, saved: range | float, count: int) -> float:
    """Return how many of the steps have both, estimated where their schedules are not known."""
    if isinstance(validated, range) and isinstance(saved, range) and len(saved) <= _COUNTED:
        return float(sum(step in validated for step in saved))
    return _size(validated) * _size(saved) / count


def _hits(one: Schedule, step: int, total: int) -> range | float:
    """Return the steps up to the last at which something is due, or how many there should be."""
    if math.isinf(one.every):
        return 0.0
    following = one.next_after(step)
    if following is None:
        return (total - step) / one.every
    return range(following, total + 1, int(one.every))


def _size(hits: range | float) -> float:
    return float(len(hits)) if isinstance(hits, range) else hits


def _falls(one: Schedule, step: int, last: int | None) -> bool | None:
    """Return whether a step has a validation (a checkpoint), None where that cannot be told."""
    if step == last and not math.isinf(one.every):
        return True  # verl's trainers do on the last step whatever they do at all
    return one.falls_on(step)


def _schedules(run: Run) -> list[Schedule]:
    return [
        schedule_of(run, known, setting)
        for known, setting in zip(_occasions(run), _SETTINGS, strict=True)
    ]


def _occasions(run: Run) -> tuple[set[int], set[int]]:
    """Return the steps with a validation, and those with a checkpoint."""
    keys = ["timing_s/testing", *validation_keys(run.keys)[:1]]
    validated = {
        step
        for key in keys
        if (series := run.series(key)) is not None
        for step in series.steps[-_RECENT:]
    }
    series = run.series("timing_s/save_checkpoint")
    return validated, {*run.checkpoints, *(series.steps[-_RECENT:] if series is not None else ())}


# -- durations -------------------------------------------------------------------------------------


class _Taken(NamedTuple):
    """How long recent steps took."""

    by_kind: Mapping[Kind, Sequence[float]]
    """Seconds, the newest last."""
    excess: Mapping[Kind, Sequence[float]]
    """How much longer than the plain steps before it: a run whose responses grow has all its steps
    grow.
    """
    stride: int
    """Steps from one record to the next."""


@cached_by_revision
def _taken(run: Run) -> _Taken:
    """Return how long recent steps of each kind took."""
    validated, saved = _occasions(run)
    far = [*sorted(validated)[-_OCCASIONS:], *sorted(saved)[-_OCCASIONS:]]
    stride, durations = _durations(run, far)
    by_kind: dict[Kind, list[float]] = defaultdict(list)
    excess: dict[Kind, list[float]] = defaultdict(list)
    around: deque[float] = deque(maxlen=_AROUND)
    for step, seconds in sorted(durations.items()):
        kind = Kind(step in validated, step in saved)
        by_kind[kind].append(seconds)
        if kind == Kind():
            around.append(seconds)
        elif around:
            excess[kind].append(max(0.0, seconds - median(around)))
    return _Taken(by_kind, excess, stride)


def _timed(run: Run) -> Iterator[Series]:
    for indicator in ("reward", "policy_loss", "response_length", "entropy"):
        series = run.present(run.indicators.get(indicator))
        if series is not None and len(series) >= 3:
            yield series


def _gaps(steps: Sequence[int], times: Sequence[float]) -> list[tuple[int, float]]:
    """Return steps and seconds from one moment to the next; records that came at one moment were
    kept back together.
    """
    moments: list[tuple[int, float]] = []
    for step, time in zip(steps, times, strict=True):
        if moments and time == moments[-1][1]:
            moments.pop()
        if math.isfinite(time):
            moments.append((step, time))
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(moments) if b[1] > a[1] and b[0] > a[0]]


def _usual_gap(timed: Series | Clock) -> float | None:
    gaps = [seconds / steps for steps, seconds in _gaps(timed.steps[-_GAPS:], timed.times[-_GAPS:])]
    return median(gaps) if len(gaps) >= 2 else None


def _durations(run: Run, far: Iterable[int]) -> tuple[int, dict[int, float]]:
    """Return the steps from record to record, and how long recent steps took: by timers, better by
    the clock.
    """
    every, durations = _by_timer(run, far)
    # Progress bars count whole seconds, and only where nothing better is known are they worth a
    # look.
    sources: list[Series | Clock] = [*_timed(run), *(() if durations else clocks(run))]
    for timed in sources:
        steps, times = timed.steps[-_RECENT:], timed.times[-_RECENT:]
        stride = _stride(steps)
        clocked = _by_clock(steps, times, stride)
        if len(clocked) >= 2:
            return stride, {**(durations if stride == 1 else {}), **clocked}
    return every, durations


def _by_clock(steps: Sequence[int], times: Sequence[float], stride: int) -> dict[int, float]:
    """Return the seconds from record to record, of records that came alone."""
    return {
        steps[i]: times[i] - times[i - 1]
        for i in range(1, len(steps))
        if times[i] > times[i - 1]
        and steps[i] - steps[i - 1] == stride
        and (i + 1 == len(steps) or times[i + 1] != times[i])
    }


def _by_timer(run: Run, far: Iterable[int]) -> tuple[int, dict[int, float]]:
    """Return the steps from record to record, and how long these took by what the log says of
    single steps.

    Of recent records and some far ones; the run's first is left out, because it warms up.
    """
    series = run.present(run.indicators.get("step_time"))
    if series is None:
        return 1, {}
    stride = _stride(series.steps[-_RECENT:])
    extras = excluded_timers(run)
    first = max(1 if len(series) > 1 else 0, len(series) - _RECENT)
    others = {
        at
        for step in far
        if (at := bisect_left(series.steps, step)) < first and at and series.steps[at] == step
    }
    return stride, {
        series.steps[i]: stride * series.values[i]
        + sum(_exactly(extra, series.steps[i]) for extra in extras)
        for i in [*sorted(others), *range(first, len(series))]
        if math.isfinite(series.values[i]) and series.values[i] > 0
    }


def _stride(steps: Sequence[int]) -> int:
    """Return the steps from record to record; a log that begins with step 10 is taken to tell of
    every tenth.
    """
    if len(steps) > 1:
        return max(1, int(median(b - a for a, b in pairwise(steps))))
    return max(1, min(steps[0], _LONGEST_STRIDE)) if steps else 1


def _exactly(series: Series, step: int) -> float:
    point = series.at(step)
    return (
        point.value
        if point is not None and point.step == step and math.isfinite(point.value)
        else 0.0
    )
