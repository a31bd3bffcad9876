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

from verl_tui.means import mean
from verl_tui.metrics import modern
from verl_tui.patterns import NamePattern
from verl_tui.runs.cached import cached_by_keys, cached_by_revision
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

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


class _Framework(NamedTuple):
    """The timers of one framework, see `timers.toml`."""

    whole: str
    part: NamePattern
    no_parts: Mapping[str, Sequence[str]]


_FRAMEWORKS = {
    name: _Framework(
        row["whole"],
        NamePattern(row["part"]),
        {one: others.split() for one, others in row.get("no_parts", {}).items()},
    )
    for name, row in toml_table(__file__, "timers.toml").items()
}
_VERL = _FRAMEWORKS["verl"]
_NO_PART = NamePattern(
    r"(?:.*_)?(?:step|total_step_time|step_total|time_per_step)"
    r"|.*(?:_(?:max|min|mean|count|ratio)|_per_.*)|(?:n|num)_.*"
)


class StepTimers(NamedTuple):
    """The log's own keys of a run's timers."""

    whole: str | None
    """The key of the step's own time, None if the log has none."""
    parts: dict[str, str]
    """Name of a part -> its key."""


@cached_by_keys
def step_timers(run: Run) -> StepTimers:
    """Return the keys of the step's own time and of its parts."""
    present = {key: modern(key) for key in run.keys}
    for framework in _FRAMEWORKS.values():
        names = present if framework is _VERL else {key: key for key in run.keys}
        accepted = (framework.whole, f"train/{framework.whole}")
        whole = next((key for key, name in names.items() if name in accepted), None)
        if whole is not None:
            return StepTimers(whole, _parts(framework, names))
    return StepTimers(run.indicators.get("step_time"), _parts(_VERL, present))


def _parts(framework: _Framework, names: Mapping[str, str]) -> dict[str, str]:
    """Return name -> key of a framework's parts of the step."""
    matches = {key: framework.part.fullmatch(name) for key, name in names.items()}
    found = {match[1]: key for key, match in matches.items() if match}
    no_parts = {one for name in found for one in framework.no_parts.get(name, ())}
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
    parts = step_timers(run).parts
    found = (run.series(parts[name]) for name in _excluded_parts(run))
    return [series for series in found if series is not None]


@cached_by_revision
def _excluded_parts(run: Run) -> AbstractSet[str]:
    """Return the names of the occasional parts that the step's own time leaves out: those that make
    no step longer by at least half of what they take.
    """
    import numpy as np

    timers = step_timers(run)
    step = run.present(timers.whole)
    if step is None:
        return frozenset()
    since = step.steps[max(0, len(step) - LOOK_BACK)]
    own = valid_durations(step.since(since))
    rest = np.array([*own.values()])
    occasional: dict[str, NDArray[np.float64]] = {}
    for name, key in timers.parts.items():
        # There may be a hundred timers: those within the step need no series.
        seconds = valid_durations(run.since(key, since))
        taken = np.array([seconds.get(at, np.nan) for at in own])
        share = np.isfinite(taken).mean() if len(own) else 0.0
        if name in _OCCASIONAL_PARTS or share < _OCCASIONAL:
            occasional[name] = taken
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                rest = rest - np.nan_to_num(taken)
    return occasional.keys() - _included(occasional, rest)


def _included(
    occasional: Mapping[str, NDArray[np.float64]], rest: NDArray[np.float64]
) -> AbstractSet[str]:
    """Return the occasional parts that the step's own time includes.

    Args:
        occasional: Seconds of each part by its name, nan in steps without it.
        rest: Seconds of each step without the parts that every step has.
    """
    import numpy as np

    included = {name: np.nan_to_num(taken) for name, taken in occasional.items()}
    has = {name: np.isfinite(taken) for name, taken in occasional.items()}
    kinds = np.sum([*has.values()], axis=0) if has else rest
    plain = rest[kinds == 0][-_COMPARED:]
    usual = np.median(plain) if len(plain) else 0.0
    for name in sorted(has, key=lambda name: -has[name].sum()):
        # Steps with this part alone are the clearer case.
        alone = has[name] & (np.sum([has[one] for one in included], axis=0) == 1)
        compared = np.flatnonzero(alone if alone.any() else has[name])[-_COMPARED:]
        left = rest - sum(included.values()) + included[name]
        taken = included[name][compared]
        if len(taken) and np.median(left[compared]) - usual < np.median(taken) / 2:
            del included[name]
    return included.keys()


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
    step = run.present(step_timers(run).whole)
    timed = {name: run.present(key) for name, key in step_timers(run).parts.items()}
    parts = {name: series for name, series in timed.items() if series is not None}
    longest = step or max(parts.values(), key=len, default=None)
    if not longest:
        return None
    steps = _window(longest, parts.values())
    excluded = _excluded_parts(run)
    found = [
        StepPart(
            name,
            series.key,
            sum(seconds) / len(steps),
            0.0,
            mean(seconds),
            len(seconds),
            slowdown(series, steps[0]),
            name not in excluded,
        )
        for name, series in parts.items()
        if (seconds := [*_since(series, steps[0]).values()])
    ]
    return _summed(step, steps, sorted(found, key=lambda part: -part.seconds))


def _summed(
    step: Series | None, steps: Sequence[int], parts: Sequence[StepPart]
) -> Breakdown:
    """Return a breakdown of steps into parts, whose shares are still to come."""
    taken = sum(part.seconds for part in parts)
    own = [*_since(step, steps[0]).values()]
    usual = mean(own) if own else taken
    whole = usual + sum(part.seconds for part in parts if not part.inside)
    return Breakdown(
        tuple(steps),
        step.key if step is not None else "",
        usual,
        whole,
        tuple(part._replace(share=_share(part.seconds, whole)) for part in parts),
        whole - taken,
        slowdown(step, steps[0]),
    )


def _share(seconds: float, whole: float) -> float:
    return min(seconds / whole, _LARGEST_SHARE) if whole > 0 else 0.0


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
        _since(series, steps[0])
        for series in map(run.present, (found.key, *(part.key for part in found.parts)))
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
    newest = series.values[max(first, len(series) - WINDOW) :]
    now = list(filter(math.isfinite, newest))
    # The run's very first step compiles and warms up.
    earlier = series.values[max(1, first - LOOK_BACK) : first]
    past = list(filter(math.isfinite, earlier))
    usual = median(past) if len(past) >= _LEAST_PAST else 0.0
    if usual > 0 and len(now) >= 2:
        return median(now) / usual
    return None


def _window(timed: Series, parts: Iterable[Series]) -> list[int]:
    """Return the steps to average: as many as the rarest part needs to count with its due share."""
    count = WINDOW
    for part in parts:
        recent = part.steps[-_COMPARED:]
        if len(recent) > 1 and part.steps[-1] >= timed.steps[-1] - LOOK_BACK:
            apart = round((recent[-1] - recent[0]) / (len(recent) - 1))
            count = max(count, min(LOOK_BACK, apart))
    start = max(0, len(timed) - count)
    if not start and len(timed) > 2:
        start = 1  # the run's very first step compiles and warms up
    return list(timed.steps[start:])
