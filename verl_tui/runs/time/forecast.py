"""The steps that a run still has to make: which kinds of them, how long they take, what is next."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.time.pace import RECENT_GAPS, pace
from verl_tui.runs.time.schedule import schedule_of
from verl_tui.runs.time.step_durations import PLAIN, StepKind, occasions, step_durations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.time.schedule import Schedule
    from verl_tui.runs.time.step_durations import StepDurations

_COUNTED = 10_000
"""Coming checkpoints that are compared one by one; of more the number that fall on validations is
estimated.
"""
_SETTINGS = ("trainer.test_freq", "trainer.save_freq")
"""Settings that hold the number of steps between two validations, or two checkpoints."""


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
    taken = step_durations(run).by_kind
    if not taken or run.step is None:
        return None
    due = [
        _is_due(schedule, run.step + 1, run.total_steps) for schedule in _schedules(run)
    ]
    usual = {kind: median(seconds) for kind, seconds in taken.items()}
    kind = max(
        [kind for kind in taken if _agrees(kind, due)] or taken, key=usual.__getitem__
    )
    return ExpectedStep(kind, usual[kind], max(taken[kind]))


def _agrees(kind: StepKind, due: Sequence[bool | None]) -> bool:
    """Return whether a step may be of a kind, given what is due at it (None: unknown)."""
    return all(
        state is None or state == has for state, has in zip(due, kind, strict=True)
    )


def usual_times(run: Run) -> tuple[UsualTime, ...]:
    """Return the usual time of each kind of steps that the run has had, the plain one first."""
    taken = step_durations(run)
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
    """Return the remaining steps of a run, None if their number or time is unknown.

    Each counts with the usual time of its kind: a progress bar takes the mean of recent steps
    (tqdm), and so is wrong where rare steps are long ones.
    """
    total = run.total_steps
    step = run.step
    usual_pace = pace(run)
    if total is None or step is None or usual_pace is None:
        return None
    count = max(0, total - step)
    taken = step_durations(run)
    if not taken.by_kind or taken.stride > 1:
        return RemainingSteps(count * usual_pace.seconds, count, ())
    kinds = tuple(
        (_usual_time(kind, taken), times)
        for kind, times in _count(_schedules(run), step, total)
        if times
    )
    return RemainingSteps(
        sum(usual.seconds * times for usual, times in kinds), count, kinds
    )


def _usual_time(kind: StepKind, taken: StepDurations) -> UsualTime:
    """Return how long a kind of step takes now; one that was never seen is put together from
    others.
    """
    seen = taken.by_kind
    excess = taken.excess
    quickest = min(seen.values(), key=median)
    plain = _recent(seen.get(PLAIN, quickest))
    if kind == PLAIN or kind in excess:
        more = _recent(excess.get(kind, (0.0,)))
        return UsualTime(kind, plain + more, len(seen.get(kind, ())))
    if kind in seen:
        return UsualTime(kind, _recent(seen[kind]), len(seen[kind]))
    single = (
        StepKind(validation=kind.validation),
        StepKind(checkpoint=kind.checkpoint),
    )
    more = sum(_recent(excess[part]) for part in single if part in excess)
    return UsualTime(kind, plain + more, 0)


def _recent(seconds: Sequence[float]) -> float:
    """Return the median of the newest durations."""
    return median(seconds[-RECENT_GAPS:])


def _count(
    schedules: Sequence[Schedule], step: int, total: int
) -> Iterator[tuple[StepKind, float]]:
    """Yield how many steps of each kind lie between a step and the last one."""
    count = total - step
    if count <= 0:
        return
    validated, saved = (_hits(schedule, step, total) for schedule in schedules)
    both = _both(validated, saved, count)
    # The last step has every kind of work that the run does at all.
    ends = [_is_due(schedule, total, total) is True for schedule in schedules]
    usual = [isinstance(hits, range) and total in hits for hits in (validated, saved)]
    more = [end and not was for end, was in zip(ends, usual, strict=True)]
    sizes = [_size(validated) + more[0], _size(saved) + more[1]]
    both += all(ends) and not all(usual)
    yield PLAIN, max(0.0, count - sizes[0] - sizes[1] + both)
    yield StepKind(checkpoint=True), max(0.0, sizes[1] - both)
    yield StepKind(validation=True), max(0.0, sizes[0] - both)
    yield StepKind(validation=True, checkpoint=True), both


def _both(validated: range | float, saved: range | float, count: int) -> float:
    """Return how many of the steps have both, estimated where their schedules are not known."""
    if (
        isinstance(validated, range)
        and isinstance(saved, range)
        and _size(saved) <= _COUNTED
    ):
        return float(sum(step in validated for step in saved))
    return _size(validated) * _size(saved) / count


def _hits(schedule: Schedule, step: int, total: int) -> range | float:
    """Return the steps up to the last at which something is due, or how many there should be."""
    if math.isinf(schedule.every):
        return 0.0
    following = schedule.next_after(step)
    if following is None:
        return (total - step) / schedule.every
    return range(following, total + 1, int(schedule.every))


def _size(hits: range | float) -> float:
    if not isinstance(hits, range):
        return hits
    # A total may be of any size, which `len` is not.
    return float(max(0, -((hits.start - hits.stop) // hits.step)))


def _is_due(schedule: Schedule, step: int, last: int | None) -> bool | None:
    """Return whether a step has a validation (a checkpoint), None where that is unknown."""
    if step == last and not math.isinf(schedule.every):
        return True  # verl's trainers do on the last step whatever they do at all
    return schedule.falls_on(step)


def _schedules(run: Run) -> list[Schedule]:
    """Return the schedules of validations and of checkpoints."""
    return [
        schedule_of(run, steps, setting)
        for steps, setting in zip(occasions(run), _SETTINGS, strict=True)
    ]
