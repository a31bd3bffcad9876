"""The checkpoints of a run by their steps, also those whose name states a value: `best_2.920`."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.signs_of_life import writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

SUFFIXES = frozenset({".pt", ".pth", ".ckpt", ".bin", ".safetensors"})
"""Suffixes of checkpoints that are files."""
_VALUE = pattern(r"(?:^|[_=-])(-?\d+\.(\d+))$")
_BROKEN_OFF = (EventKind.FATAL, EventKind.STOPPED, EventKind.TRACEBACK)
_LOOKED_AT = ("reward", "validation")
"""Indicators whose best trainers save, in the order of trying."""


class CalledBest(NamedTuple):
    """A checkpoint that the trainer itself called the best it had."""

    path: str
    step: int | None
    """By its name, else by the value in its name; None if neither shows it."""
    value: float | None
    """The value in its name."""
    key: str | None
    """The metric that had this value at the step, None where the name states the step."""


@cached_by_revision
def called_best(run: Run) -> tuple[CalledBest, ...]:
    """Return the checkpoints that the trainer called best, in the order of steps; those without one
    come last.
    """
    steps = {path: step for step, path in run.checkpoints.items()}
    found = [_called_best(run, path, steps.get(path)) for path in run.called_best]
    return tuple(sorted(found, key=lambda one: (one.step is None, one.step, one.path)))


@cached_by_revision
def checkpoints(run: Run) -> Mapping[int, str]:
    """Return the checkpoints by their steps, those too whose step is known by a value only."""
    matched = {
        best.step: best.path for best in called_best(run) if best.step is not None
    }
    return {**matched, **run.checkpoints}


@cached_by_revision
def usable(run: Run) -> Mapping[int, str]:
    """Return the checkpoints without the one during which the run died: its remains cannot be
    loaded.
    """
    return {
        step: path for step, path in checkpoints(run).items() if not _torn(run, step)
    }


def _torn(run: Run, step: int) -> bool:
    """Return whether a run has ended while it wrote a checkpoint.

    verl's tracker file names the newest that is complete. Without it, verl's console tells: a
    step's own line follows its checkpoint.
    """
    if not _broke_off(run):
        return False
    if run.saved_step is not None:
        return step > run.saved_step
    begun = any(
        event.kind is EventKind.CHECKPOINT and event.step == step and event.line
        for event in run.events
    )
    return begun and run.step is not None and step > run.step


def _broke_off(run: Run) -> bool:
    """Return whether a run failed or was stopped, or its process is gone."""
    if run.outcome is not None and run.outcome.kind in _BROKEN_OFF:
        return True
    holder = writer(run)
    return holder is not None and holder.gone


def _called_best(run: Run, path: str, step: int | None) -> CalledBest:
    name = PurePath(path)
    found = _VALUE.search(name.stem if name.suffix in SUFFIXES else name.name)
    if found is None:
        return CalledBest(path, step, None, None)
    value = float(found[1])
    digits = len(found[2])
    if step is not None:
        return CalledBest(path, step, value, None)
    for series in _candidates(run, name.name):
        at = _step_of(series, value, digits)
        if at is not None:
            return CalledBest(path, at, value, series.key)
    return CalledBest(path, None, value, None)


def _candidates(run: Run, name: str) -> Iterator[Series]:
    """Yield the metrics that a directory's value may be of: one that it names, the reward, the
    validation.
    """
    keys = [key for key in run.keys if key.replace("/", "_") in name]
    keys += [run.indicators[name] for name in _LOOKED_AT if name in run.indicators]
    for key in dict.fromkeys(keys):
        series = run.series(key)
        if series is not None:
            yield series


def _step_of(series: Series, value: float, digits: int) -> int | None:
    """Return the step at which a metric had a value as it is rounded in a name, and was better than
    ever before.

    A trainer saves when it beats its best, upwards or downwards; other steps with the same value do
    not count.
    """
    slack = 0.5 * 10.0**-digits * (1 + 1e-6)
    highest = -math.inf
    lowest = math.inf
    for step, found in zip(series.steps, series.values, strict=True):
        if (found > highest or found < lowest) and abs(found - value) <= slack:
            return step
        if math.isfinite(found):
            highest = max(highest, found)
            lowest = min(lowest, found)
    return None
