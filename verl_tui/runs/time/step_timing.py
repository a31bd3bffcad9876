"""Where the time of a step goes, by the timers that a trainer logs.

verl's timers are seconds on the driver (`verl/trainer/ppo/ray_trainer.py`, `v1/trainer_base.py`).
What its `timing_s/step` holds differs by version: validation is part of it up to v0.5 and not
since. So what the step's own time leaves out is found by the numbers: the steps in which such a
part happens are no longer than usual.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import finite, mean
from verl_tui.metrics import modern
from verl_tui.patterns import NamePattern
from verl_tui.runs.cached import cached_by_keys, cached_by_revision
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

WINDOW = 20
"""Newest steps that are averaged; more where a part comes more rarely, so that each counts with its
due share.
"""
LOOK_BACK = 200
"""Most steps to look back; as many before the window make the usual time of a part."""
_LEAST_PAST = 4
_COMPARED = 10
"""Newest occasions of a part that decide whether the step's own time includes it."""
_OVERLAP = 0.02
"""Share of the step by which its parts may exceed it before that is called an overlap: clocks are
read one by one.
"""
_LARGEST_SHARE = 100.0
"""A part a hundred times as long as its step only shows that the step's own time is wrong."""
_OCCASIONAL = 0.6
"""A part in fewer than this share of the steps has its own schedule: validation, checkpoints."""
_OCCASIONAL_PARTS = frozenset(
    ("testing", "validate", "validation", "eval", "save_checkpoint", "save_ckpt", "save")
)  # fmt: skip
"""Parts that may be left out even where every step has them."""
_FRAMEWORKS = [
    (
        row["whole"],
        NamePattern(row["part"]),
        {one: others.split() for one, others in row.get("no_parts", {}).items()},
    )
    for row in toml_table(__file__, "timers.toml").values()
]
"""The name of the whole step's timer, the form of those of its parts, and what is no part beside
another; verl's first.
"""
_NO_PART = NamePattern(
    r"(?:.*_)?(?:step|total_step_time|step_total|time_per_step)"
    r"|.*(?:_(?:max|min|mean|count|ratio)|_per_.*)|(?:n|num)_.*"
)


@cached_by_keys
def _step_timers(run: Run) -> tuple[str | None, Mapping[str, str]]:
    """Return the keys of the step's own time, and of its parts by their names."""
    names = {key: modern(key) for key in run.keys}
    for whole, part, beside in _FRAMEWORKS:
        for key, name in names.items():
            if name in (whole, f"train/{whole}"):
                return key, _parts(names, part, beside)
        names = {key: key for key in run.keys}  # only verl has other names
    _, part, beside = _FRAMEWORKS[0]
    present = {key: modern(key) for key in run.keys}
    return run.indicators.get("step_time"), _parts(present, part, beside)


def _parts(
    names: Mapping[str, str], part: NamePattern, beside: Mapping[str, Sequence[str]]
) -> Mapping[str, str]:
    """Return name -> key of the parts of the step."""
    found = {
        match[1]: key for key, name in names.items() if (match := part.fullmatch(name))
    }
    no_parts = {one for name in found for one in beside.get(name, ())}
    return {
        name: key
        for name, key in found.items()
        if name not in no_parts and not _NO_PART.fullmatch(name)
    }


def valid_durations(seconds: Mapping[int, float]) -> dict[int, float]:
    """Return the values that are durations, by step."""
    return {step: value for step, value in seconds.items() if 0 <= value < math.inf}


def excluded_timers(run: Run) -> list[Series]:
    """Return the timers of parts that the step's own time leaves out."""
    return list(filter(None, map(run.series, _excluded(run))))


@cached_by_revision
def _excluded(run: Run) -> Sequence[str]:
    """Return the keys of the occasional parts that the step's own time leaves out: those that make
    no step longer by at least half of what they take.
    """
    import numpy as np

    whole, parts = _step_timers(run)
    step = run.present(whole)
    if step is None:
        return ()
    since = step.steps[max(0, len(step) - LOOK_BACK)]
    own = valid_durations(step.since(since))
    rest = np.array([*own.values()])
    occasional: dict[str, NDArray[np.float64]] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for name, key in parts.items():
            seconds = valid_durations(run.series(key).since(since))
            taken = np.array([seconds.get(at, np.nan) for at in own])
            share = np.isfinite(taken).mean() if len(own) else 0.0
            if name in _OCCASIONAL_PARTS or share < _OCCASIONAL:
                occasional[key] = taken
            else:
                rest = rest - np.nan_to_num(taken)
    return list(_beside(occasional, rest))


def _beside(
    occasional: Mapping[str, NDArray[np.float64]], rest: NDArray[np.float64]
) -> Iterator[str]:
    """Yield the occasional parts that the step's own time leaves out.

    Args:
        occasional: Seconds of each part by its key, nan in steps without it.
        rest: Seconds of each step without the parts that every step has.
    """
    import numpy as np

    kinds = np.isfinite([*occasional.values()]).sum(axis=0)
    plain = rest[kinds == 0][-_COMPARED:] if occasional else rest
    usual = np.median(plain) if len(plain) else 0.0
    for key, seconds in occasional.items():
        # Steps with this part alone are the clearer case.
        has = np.isfinite(seconds)
        alone = has & (kinds == 1)
        compared = np.flatnonzero(alone if alone.any() else has)[-_COMPARED:]
        taken = seconds[compared]
        if len(taken) and np.median(rest[compared]) - usual < np.median(taken) / 2:
            yield key


class StepPart(NamedTuple):
    """One part of the step."""

    name: str
    key: str
    seconds: float
    """A step, as a mean over all steps of the window."""
    share: float
    """Share of the whole step, 0..1; more if it runs beside a shorter step."""
    each: float
    """Seconds where it happens."""
    times: int
    """Steps of the window in which it happens."""
    trend: float | None
    """How many times as long as in the run's own past; None where there is too little of one."""
    inside: bool
    """True if the step's own time includes it."""


class Breakdown(NamedTuple):
    """The time of recent steps, by its parts."""

    steps: tuple[int, ...]
    """Those that were averaged."""
    key: str
    """Metric that holds the step's own time, empty where none does."""
    step: float
    """The step's own time in seconds."""
    whole: float
    """Together with what the step's own time leaves out."""
    parts: tuple[StepPart, ...]
    """The longest first."""
    rest: float
    """Seconds that no part accounts for; below 0 where parts run side by side."""
    trend: float | None
    """How many times as long the step is as in the run's own past."""

    @property
    def overlaps(self) -> bool:
        """True if the parts together take longer than the step: some run at the same time."""
        return self.rest < -_OVERLAP * self.whole


def breakdown(run: Run) -> Breakdown | None:
    """Return how the time of recent steps was spent, None where the log has no timers."""
    key, keys = _step_timers(run)
    step = run.present(key)
    present = {name: run.present(part) for name, part in keys.items()}
    timed = {name: series for name, series in present.items() if series}
    if not step and not timed:
        return None
    steps = _window(step or max(timed.values(), key=len), timed.values())
    parts = [_part(run, name, series, steps) for name, series in timed.items()]
    return _summed(step, steps, sorted(parts, key=lambda part: -part.seconds))


def _summed(
    step: Series | None, steps: Sequence[int], found: Sequence[StepPart]
) -> Breakdown:
    """Return a breakdown of steps into parts, whose shares are still to come."""
    total = sum(part.seconds for part in found)
    own = [*_since(step, steps[0]).values()]
    usual = mean(own) if own else total
    whole = usual + sum(part.seconds * (not part.inside) for part in found)
    return Breakdown(
        tuple(steps),
        step.key if step is not None else "",
        usual,
        whole,
        tuple(_shared(part, whole) for part in found if part.times),
        whole - total,
        slowdown(step, steps[0]),
    )


def _part(run: Run, name: str, series: Series, steps: Sequence[int]) -> StepPart:
    """Return a part of the step, without its share."""
    seconds = [*_since(series, steps[0]).values()]
    return StepPart(
        name,
        series.key,
        sum(seconds) / len(steps),
        0.0,
        mean(seconds) if seconds else 0.0,
        len(seconds),
        slowdown(series, steps[0]),
        series.key not in _excluded(run),
    )


def _shared(part: StepPart, whole: float) -> StepPart:
    """Return a part with its share of the whole step."""
    share = part.seconds / whole if whole > 0 else 0.0
    return part._replace(share=min(share, _LARGEST_SHARE))


def _since(series: Series | None, step: int) -> dict[int, float]:
    """Return the durations of a timer from a step on."""
    return valid_durations(series.since(step)) if series is not None else {}


def newest_steps(
    run: Run, found: Breakdown, count: int
) -> list[tuple[int, list[float]]]:
    """Return the newest steps, each with the seconds of the breakdown's parts and of what they
    leave.
    """
    steps = found.steps[-count:]
    own, *parts = (
        _since(run.present(key), steps[0])
        for key in (found.key, *(part.key for part in found.parts))
    )
    rows = []
    for at in steps:
        seconds = [taken.get(at, 0.0) for taken in parts]
        pairs = zip(seconds, found.parts, strict=True)
        inside = sum(spent for spent, part in pairs if part.inside)
        rows.append((at, [*seconds, max(0.0, own.get(at, inside) - inside)]))
    return rows


def slowdown(series: Series | None, since: int) -> float | None:
    """Return by which factor a timer is longer from a step on than before; None if too little is
    known.
    """
    if series is None:
        return None
    first = bisect_left(series.steps, since)
    now = finite(series.values[max(first, len(series) - WINDOW) :])
    # The run's very first step compiles and warms up.
    past = finite(series.values[max(1, first - LOOK_BACK) : first])
    if len(past) < _LEAST_PAST or len(now) < 2 or not median(past) > 0:
        return None
    return median(now) / median(past)


def _window(timed: Series, parts: Iterable[Series]) -> Sequence[int]:
    """Return the steps to average: as many as the rarest part needs to count with its due share."""
    count = WINDOW
    for part in parts:
        recent = part.steps[-_COMPARED:]
        if len(recent) > 1 and part.steps[-1] >= timed.steps[-1] - LOOK_BACK:
            apart = round((recent[-1] - recent[0]) / (len(recent) - 1))
            count = max(count, min(LOOK_BACK, apart))
    start = max(0, len(timed) - count)
    # the run's very first step compiles and warms up
    return timed.steps[start or int(len(timed) > 2) :]
