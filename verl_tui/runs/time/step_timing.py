"""Where the time of a step goes, by the timers that a trainer logs.

verl's timers are seconds on the driver (`verl/trainer/ppo/ray_trainer.py`, `v1/trainer_base.py`).
What its `timing_s/step` holds differs by version: validation is part of it up to v0.5 and not
since. So what the step's own time leaves out is found by the numbers: the steps in which such a
part happens are no longer than usual.
"""

from __future__ import annotations

from bisect import bisect_left
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from verl_tui.indicators import factor
from verl_tui.means import finite, mean, median_along
from verl_tui.metrics import describe, modern
from verl_tui.patterns import NamePattern, pattern
from verl_tui.runs.cached import cached_by_keys, cached_by_revision
from verl_tui.runs.settings import batch_size, gpu_count
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

    Numbers: TypeAlias = NDArray[np.float64]
    Steps: TypeAlias = Sequence[int] | NDArray[np.int64]

WINDOW = 20
"""Newest steps that are averaged; more where a part comes more rarely, so that each counts with its
due share.
"""
LOOK_BACK = 200
"""Most steps to look back; as many before the window make the usual time of a part."""
NO_DURATION = 1e9
"""Seconds, thirty years, from which a value is none that a timer took."""
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
    (row["whole"], NamePattern(row["part"]), row.get("no_parts", {}))
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
    of_verl = {key: modern(key) for key in run.keys}
    names = of_verl
    for whole, part, beside in _FRAMEWORKS:
        for key, name in names.items():
            if name in (whole, f"train/{whole}"):
                return key, _parts(names, part, beside)
        names = {key: key for key in run.keys}  # only verl has other names
    return run.indicators.get("step_time"), _parts(of_verl, *_FRAMEWORKS[0][1:])


def _parts(
    names: Mapping[str, str], part: NamePattern, beside: Mapping[str, str]
) -> Mapping[str, str]:
    """Return name -> key of the parts of the step."""
    found = {
        match[1]: key for key, name in names.items() if (match := part.fullmatch(name))
    }
    no_parts = {one for name in found for one in beside.get(name, "").split()}
    return {
        name: key
        for name, key in found.items()
        if name not in no_parts and not _NO_PART.fullmatch(name)
    }


def durations(series: Series | None, steps: Steps) -> Numbers:
    """Return the seconds that a timer has at some ascending steps, nan where it has none."""
    import numpy as np

    if not series:
        return np.full(len(steps), np.nan)
    timed = np.asarray(series.steps)
    at = np.minimum(np.searchsorted(timed, steps), len(timed) - 1)
    found = np.asarray(series.values)[at] * factor("step_time", series.key)
    known = (timed[at] == steps) & (found >= 0) & (found < NO_DURATION)
    return np.where(known, found, np.nan)


def occasional_parts(run: Run) -> list[str]:
    """Return the keys of the timers of validations and checkpoints."""
    parts = _step_timers(run)[1]
    return [key for name, key in parts.items() if name in _OCCASIONAL_PARTS]


def regular_parts(run: Run) -> list[str]:
    """Return the keys of the timers of all other parts of the step."""
    parts = _step_timers(run)[1]
    return [key for name, key in parts.items() if name not in _OCCASIONAL_PARTS]


def seconds_of(run: Run, keys: Iterable[str], steps: Steps) -> Numbers:
    """Return the seconds that timers have together at some ascending steps."""
    import numpy as np

    timers = [durations(run.series(key), steps) for key in keys]
    total: Numbers = np.nansum([np.zeros(len(steps)), *timers], axis=0)
    return total


@cached_by_revision
def excluded(run: Run) -> Sequence[str]:
    """Return the keys of the occasional parts that the step's own time leaves out."""
    import numpy as np

    whole, parts = _step_timers(run)
    step = run.present(whole)
    steps = np.array(step.steps[-LOOK_BACK:] if step else (0,))
    own = durations(step, steps)
    steps, own = steps[np.isfinite(own)], own[np.isfinite(own)]
    if not len(steps):
        return ()
    timed = {name: durations(run.series(key), steps) for name, key in parts.items()}
    return [parts[name] for name in timed if _is_beside(name, timed, own)]


def _is_beside(name: str, timed: Mapping[str, Numbers], own: Numbers) -> bool:
    """Return whether a part is an occasional one that makes no step longer by at least half of what
    it takes. One of every step is compared with what all others take.

    Args:
        name: Of the part.
        timed: Seconds of all parts at some steps, nan in steps without one.
        own: The steps' own time.
    """
    import numpy as np

    taken = timed[name]
    has = np.isfinite(taken)
    often = name not in _OCCASIONAL_PARTS and has.mean() >= _OCCASIONAL
    if often or not has.any():
        return False
    others = [one for other, one in timed.items() if other != name]
    without = np.nansum([0 * own, *others], axis=0) if has.all() else own[~has]
    longer = median_along(own[has]) - median_along(without)
    return bool(longer < median_along(taken[has]) / 2)


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

    @property
    def overlaps(self) -> bool:
        """True if the parts together take longer than the step: some run at the same time."""
        return self.rest < -_OVERLAP * self.whole


def breakdown(run: Run) -> Breakdown | None:
    """Return how the time of recent steps was spent, None where the log has no timers."""
    key, keys = _step_timers(run)
    step = run.present(key)
    timed = {name: one for name, part in keys.items() if (one := run.present(part))}
    if not step and not timed:
        return None
    steps = tuple(_window(step or max(timed.values(), key=len), timed.values()))
    return _divided(step, timed, steps, excluded(run))


def _divided(
    step: Series | None,
    timed: Mapping[str, Series],
    steps: tuple[int, ...],
    aside: Sequence[str],
) -> Breakdown:
    """Return steps divided into their parts.

    Args:
        step: The step's own time, None where the log has none.
        timed: The times of its parts by their names.
        steps: Those that are averaged.
        aside: Keys of the parts that the step's own time leaves out.
    """
    taken = {
        name: finite(durations(series, steps).tolist())
        for name, series in timed.items()
    }
    spent = {name: sum(seconds) / len(steps) for name, seconds in taken.items()}
    total = sum(spent.values())
    own = finite(durations(step, steps).tolist())
    usual = mean(own) if own else total
    beside = [name for name, series in timed.items() if series.key in aside]
    whole = usual + sum(map(spent.__getitem__, beside))
    parts = [
        StepPart(
            name,
            timed[name].key,
            spent[name],
            min(spent[name] / whole, _LARGEST_SHARE) if whole > 0 else 0.0,
            mean(taken[name]),
            len(taken[name]),
            name not in beside,
        )
        for name in sorted(
            filter(taken.get, taken), key=spent.__getitem__, reverse=True
        )
    ]
    key = step.key if step else ""
    return Breakdown(steps, key, usual, whole, tuple(parts), whole - total)


def newest_steps(
    run: Run, found: Breakdown, count: int
) -> list[tuple[int, list[float]]]:
    """Return the newest steps, each with the seconds of the breakdown's parts and of what they
    leave.
    """
    import numpy as np

    steps = found.steps[-count:]
    parts = [durations(run.present(part.key), steps) for part in found.parts]
    seconds = np.nan_to_num(np.reshape(parts, (-1, len(steps))))
    inside = seconds[[part.inside for part in found.parts]].sum(axis=0)
    own = durations(run.present(found.key), steps)
    left = np.where(np.isnan(own), 0.0, np.maximum(0.0, own - inside))
    return [*zip(steps, np.vstack([seconds, left]).T.tolist(), strict=True)]


def slowdown(run: Run, key: str, since: int) -> float | None:
    """Return by which factor a timer is longer from a step on than before; None if too little is
    known.
    """
    if not (series := run.present(key)):
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


# -- figures of speed ------------------------------------------------------------------------------

_TOKENS = (
    "perf/total_num_tokens",
    "train/global_tokens",
    "train/perf/total_num_tokens",
)
_MFU = pattern(r"perf/mfu|train/mfu$")
_GENERATION = ("gen", "wait_prev_gen", "generation", "wait_for_batch", "train_wait")
_NEWEST = 200
"""Generation times that the percentile is of."""
_LEAST = 5
"""Fewest values for a percentile (a heuristic)."""
_ASYNC = frozenset(
    {"training/off_policy/trajectory_staleness/mean", "fully_async/trainer/idle_ratio"}
)


_WAITING: Mapping[str, tuple[str, str]] = toml_table(__file__, "waiting.toml")
"""Metric -> label and unit, for metrics of waiting and of late samples."""


class SpeedFigure(NamedTuple):
    """One number about speed or waiting."""

    label: str
    value: float
    unit: str
    """Unit of `metrics.describe`; `share` is 0..1, `x` a factor, empty a count."""
    key: str
    """The metrics or settings that it was computed from."""


def throughput(run: Run, timing: Breakdown | None) -> Iterator[SpeedFigure]:
    """Yield tokens and samples a second and the use of the hardware, as far as they are known."""
    speed = _averaged(run, run.indicators.get("throughput"), timing)
    tokens = next(filter(None, (_averaged(run, key, timing) for key in _TOKENS)), None)
    gpus, size = gpu_count(run.config), batch_size(run.config)
    batch = SpeedFigure("", size, "samples", "batch size") if size else None
    whole = _a_second(tokens, "throughput of all GPUs", timing)
    if not whole and speed and speed.unit == "tokens/s/GPU" and gpus:
        origin, rate = f"{speed.key} × {gpus} GPUs", speed.value * gpus
        whole = SpeedFigure("throughput of all GPUs", rate, "tokens/s", origin)
    samples = _a_second(batch, "samples per second", timing)
    yield from filter(None, (speed, whole, tokens, samples))
    for use in filter(None, (_averaged(run, key, timing) for key in _mfu(run))):
        times = 0.01 if use.unit == "percent" else 1.0
        yield use._replace(value=use.value * times, unit="share")


def _mfu(run: Run) -> list[str]:
    return [key for key in run.keys if _MFU.match(modern(key))]


def _a_second(
    of_a_step: SpeedFigure | None, label: str, timing: Breakdown | None
) -> SpeedFigure | None:
    """Return what a step has of something, divided by its time; None where either is unknown."""
    if not of_a_step or not timing or not timing.key or timing.step <= 0:
        return None
    value, unit = of_a_step.value / timing.step, f"{of_a_step.unit}/s"
    return SpeedFigure(label, value, unit, f"{of_a_step.key} / {timing.key}")


def _averaged(
    run: Run, key: str | None, timing: Breakdown | None, *, last: bool = False
) -> SpeedFigure | None:
    """Return the mean of a metric over the newest steps, or its last value where there is none of
    these, or where that is asked for; None without a number.
    """
    series = run.present(key)
    if not series:
        return None
    since = timing.steps[0] if timing else (run.step or 0) - WINDOW
    recent = finite(series.since(since).values())
    point = series.last_finite
    if not point:
        return None
    value = mean(recent) if recent and not last else point.value
    label, unit = describe(series.key).label, describe(series.key).unit
    if key in _TOKENS:
        label, unit = "tokens per step", "tokens"
    return SpeedFigure(label, value, unit, series.key)


def waiting(run: Run, timing: Breakdown | None) -> Iterator[SpeedFigure]:
    """Yield the share of the step in which the trainer generates or waits for samples, and an
    asynchronous trainer's figures of idle sides, late and dropped samples.
    """
    known = {modern(key): key for key in run.keys}
    timed = timing.parts if timing else ()
    parts = {part.name: part for part in timed if part.name in _GENERATION}
    if parts:
        name = min(parts, key=_GENERATION.index)
        waits = _ASYNC & known.keys() or name.startswith(("wait", "train_wait"))
        label = "time waiting for samples" if waits else "time spent generating"
        yield SpeedFigure(label, parts[name].share, "share", parts[name].key)
    for metric, (label, unit) in _WAITING.items():
        found = _averaged(run, known.get(metric), timing, last=not unit)
        if found:
            yield found._replace(label=label, unit=unit)


def generation_latency(run: Run) -> SpeedFigure | None:
    """Return the 95th percentile of the newest generation times in seconds, None where there are
    too few.

    verl logs one time for each step, which several sources may hold; the tutorials' loggers log one
    for each sample, several in a step: the percentile is of what is logged.
    """
    import numpy as np

    key = run.indicators.get("generation_time")
    if not key:
        return None
    logged = run.measured if run.dialect == "tutorial" else run.tail
    seconds = finite(logged(key, _NEWEST))
    if len(seconds) < _LEAST:
        return None
    note = f"{key}, of the last {len(seconds)}"
    at_worst = float(np.percentile(seconds, 95))
    return SpeedFigure("generation latency, p95", at_worst, "s", note)
