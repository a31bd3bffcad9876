"""Where the time of a step goes, from the timers that a trainer logs, and what it yields.

verl's timers are seconds on the driver (`verl/trainer/ppo/ray_trainer.py`, `v1/trainer_base.py`).
What `timing_s/step` includes differs by version: validation is part of it up to v0.5 and not since.
So the numbers themselves are asked.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.metrics import describe, modern
from verl_tui.runs.stated_sizes import batch_size, gpu_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

WINDOW = 20
"""Newest steps that are averaged; more where a part comes more rarely, so that each counts with its
due share.
"""
_LONGEST = 200
"""Steps that are looked back at most."""
_PAST = 200
"""Steps before the window that make the usual time of a part."""
_LEAST_PAST = 4
_TIGHT = 0.02
"""Share of the step by which its parts may exceed it before that is called an overlap: clocks are
read one by one.
"""
_OCCASIONAL = 0.6
"""A part of fewer than these of the steps has its own rhythm: validation, checkpoints."""
_OCCASIONAL_PARTS = frozenset(
    {"testing", "validate", "validation", "eval", "save_checkpoint", "save_ckpt", "save"}
)
"""Parts that may lie outside the step's own time even where every step has them."""
_COMPARED = 10
"""Newest occasions that tell whether the step's own time includes a part."""


_LARGEST_SHARE = 100.0
"""A part a hundred times as long as its step says only that the step's own time is wrong."""


class Part(NamedTuple):
    """One part of the step."""

    name: str
    key: str
    seconds: float
    """A step, as a mean over all steps of the window."""
    share: float
    """Of the whole, 0..1; more where it runs beside a step that is shorter."""
    each: float
    """Seconds where it happens."""
    times: int
    """Steps of the window in which it happens."""
    trend: float | None
    """How many times as long as in the run's own past; None where there is too little of one."""
    inside: bool
    """Whether the step's own time includes it."""


class Breakdown(NamedTuple):
    """Where the time of recent steps went."""

    steps: tuple[int, ...]
    """Those that were averaged."""
    key: str
    """Metric that holds the step's own time, empty where none does."""
    step: float
    """The step's own time in seconds."""
    whole: float
    """Together with what the step's own time leaves out."""
    parts: tuple[Part, ...]
    """The longest first."""
    rest: float
    """What no part accounts for; below 0 where parts run side by side."""
    trend: float | None
    """How many times as long the step is as in the run's own past."""

    @property
    def overlaps(self) -> bool:
        """Whether the parts together take longer than the step, so that some run at the same
        time.
        """
        return self.rest < -_TIGHT * self.whole

    def share_of(self, *names: str) -> float | None:
        """Return the share of the first of these parts that there is."""
        return next(
            (part.share for name in names for part in self.parts if part.name == name), None
        )


class Figure(NamedTuple):
    """One number about speed or waiting."""

    label: str
    value: float
    unit: str
    """As in `metrics.describe`; `share` is 0..1, `x` a factor, empty a count."""
    key: str
    """What it was read or reckoned from."""


# -- timers ----------------------------------------------------------------------------------------


class _Family(NamedTuple):
    """Timers of one framework."""

    whole: str
    """The name of the whole step's."""
    part: re.Pattern[str]
    """A timer; its first group is the name of a part."""
    outside: Callable[[set[str]], set[str]]
    """Of all names there are, those that are no parts: nested in others, or running beside the
    step.
    """
    modern: bool = False
    """Whether keys are to be read by verl's present names."""


def _verl(names: set[str]) -> set[str]:
    """Return verl's timers that lie within others or run beside the step.

    Rollout workers measure some of `gen` themselves (v0.3 to v0.8). One step off, a batch is
    generated while the step before it trains; `gen` or `wait_prev_gen` is the wait for it
    (`experimental/one_step_off_policy`).
    """
    if not names & {"gen", "wait_prev_gen"}:
        return set()
    nested = {"generate_sequences", "reshard", "generation_timing", "generate_async"}
    return nested | ({"gen"} if "wait_prev_gen" in names else set())


def _slime(names: set[str]) -> set[str]:
    """Return slime's timers but those that make up `step_time`, the sum of `train_wait_time` and
    `train_time`.
    """
    within = {"actor_train", "log_probs", "ref_log_probs", "data_preprocess"}
    parts = {"train_wait", "train", *within} - ({"train"} if names & within else set())
    return names - parts


def _none(_names: set[str]) -> set[str]:
    return set()


_FAMILIES = (
    _Family("timing_s/step", re.compile(r"(?:timing_s/)+([^/]+)"), _verl, modern=True),
    _Family("timing/train/total_step_time", re.compile(r"(?:train/)?timing/train/([^/]+)"), _none),
    _Family("timing/step_total", re.compile(r"(?:train/)?timing/([^/]+)"), _none),
    _Family("perf/step_time", re.compile(r"perf/(\w+)_time"), _slime),
    _Family("time/step", re.compile(r"time/([^/]+)"), _none),
)
_NO_PART = re.compile(
    r"(?:.*_)?(?:step|total_step_time|step_total|time_per_step)|.*(?:_(?:max|min|mean)|_per_.*)"
)


def _timers(run: Run) -> tuple[str | None, dict[str, str]]:
    """Return the key of the step's own time, and name -> key of its parts."""
    spelled = {key: modern(key) for key in run.keys}
    for family in _FAMILIES:
        named = spelled if family.modern else {key: key for key in spelled}
        whole = next(
            (key for key, name in named.items() if name in (family.whole, f"train/{family.whole}")),
            None,
        )
        if whole is not None:
            return whole, _parts(family, named)
    return run.indicators.get("step_time"), _parts(_FAMILIES[0], spelled)


def _parts(family: _Family, named: Mapping[str, str]) -> dict[str, str]:
    """Return name -> key of a framework's parts of the step."""
    found = {match[1]: key for key, name in named.items() if (match := family.part.fullmatch(name))}
    outside = family.outside(set(found))
    return {
        name: key
        for name, key in found.items()
        if name not in outside and not _NO_PART.fullmatch(name)
    }


# -- the breakdown ---------------------------------------------------------------------------------


def breakdown(run: Run, window: int = WINDOW) -> Breakdown | None:
    """Return where the time of recent steps went, None where the log has no timers."""
    whole, names = _timers(run)
    parts = {
        name: series for name, key in names.items() if (series := run.present(key)) is not None
    }
    step = run.present(whole)
    timed = step or max(parts.values(), key=len, default=None)
    if timed is None or not len(timed):
        return None
    steps = _window(timed, list(parts.values()), window)
    own = _within(step, steps[0]) if step is not None else {}
    seconds = {name: _within(series, steps[0]) for name, series in parts.items()}
    apart = set()
    if step is not None:
        since = _compared(step)
        apart = _apart(
            _within(step, since), {name: _within(series, since) for name, series in parts.items()}
        )
    taken = {name: sum(found.values()) / len(steps) for name, found in seconds.items()}
    known = [own[at] for at in steps if at in own]
    mean = _average(known) if known else sum(taken.values())
    every = mean + sum(taken[name] for name in apart)
    made = [
        Part(
            name,
            parts[name].key,
            taken[name],
            min(taken[name] / every, _LARGEST_SHARE) if every > 0 else 0.0,
            _average(found.values()),
            len(found),
            trend(parts[name], steps[0]),
            name not in apart,
        )
        for name, found in seconds.items()
        if found
    ]
    return Breakdown(
        tuple(steps),
        step.key if step is not None else "",
        mean,
        every,
        tuple(sorted(made, key=lambda part: -part.seconds)),
        every - sum(part.seconds for part in made),
        trend(step, steps[0]) if step is not None else None,
    )


def history(run: Run, found: Breakdown, count: int) -> list[tuple[int, list[float]]]:
    """Return the newest steps, each with the seconds of the breakdown's parts and of what they
    leave.
    """
    step = run.present(found.key)
    steps = _window(step, (), count) if step is not None else list(found.steps[-count:])
    own = _within(step, steps[0]) if step is not None else {}
    parts = [
        _within(series, steps[0])
        for part in found.parts
        if (series := run.present(part.key)) is not None
    ]
    rows = []
    for at in steps:
        seconds = [taken.get(at, 0.0) for taken in parts]
        inside = sum(s for s, part in zip(seconds, found.parts, strict=True) if part.inside)
        rows.append((at, [*seconds, max(0.0, own.get(at, inside) - inside)]))
    return rows


def trend(series: Series, since: int) -> float | None:
    """Return how many times as long a timer runs from a step on as it did before; None where too
    little is known.
    """
    first = bisect_left(series.steps, since)
    now = [
        value for value in series.values[max(first, len(series) - WINDOW) :] if math.isfinite(value)
    ]
    # The run's very first step compiles and warms up.
    past = [value for value in series.values[max(1, first - _PAST) : first] if math.isfinite(value)]
    usual = median(past) if len(past) >= _LEAST_PAST else 0.0
    return median(now) / usual if usual > 0 and len(now) >= 2 else None


def beside(run: Run) -> list[Series]:
    """Return the timers of what the step's own time leaves out, such as validation since verl
    v0.6.
    """
    whole, names = _timers(run)
    step = run.series(whole) if whole is not None else None
    if step is None:
        return []
    since = _compared(step)
    # There may be a hundred timers: those within the step need no series.
    outside = _apart(
        _within(step, since),
        {name: _durations(run.since(key, since)) for name, key in names.items()},
    )
    return [series for name in outside if (series := run.series(names[name])) is not None]


def _window(timed: Series, parts: Sequence[Series], least: int) -> list[int]:
    """Return the steps to average: as many as the rarest part needs to count with its due share."""
    count = least
    for part in parts:
        recent = part.steps[-_COMPARED:]
        if len(recent) > 1 and part.steps[-1] >= timed.steps[-1] - _LONGEST:
            count = max(count, min(_LONGEST, round((recent[-1] - recent[0]) / (len(recent) - 1))))
    start = max(0, len(timed) - count)
    # The run's very first step compiles and warms up, that of a short log too.
    return list(timed.steps[start if start or len(timed) < 3 else 1 :])


def _within(series: Series, since: int) -> dict[int, float]:
    """Return a timer's values from a step on."""
    return _durations(series.since(since))


def _durations(values: Mapping[int, float]) -> dict[int, float]:
    return {step: value for step, value in values.items() if 0 <= value < math.inf}


def _compared(step: Series) -> int:
    """Return the first of the steps that tell what lies beside them."""
    return step.steps[max(0, len(step) - _LONGEST)]


def _apart(own: Mapping[int, float], seconds: Mapping[str, Mapping[int, float]]) -> set[str]:
    """Return the parts that the step's own time leaves out: where they happen it is no longer than
    usual.

    Args:
        own: Seconds of each step.
        seconds: Seconds of each part, by its name and step.
    """
    rare = {
        name: found
        for name, found in seconds.items()
        if found and _is_rare(name, len(found), len(own))
    }
    if not rare:
        return set()
    regular = [found for name, found in seconds.items() if name not in rare]
    busy = {at for found in rare.values() for at in found}

    def left(at: int, others: Iterable[str] = ()) -> float:
        """What the step's own time has beside its regular parts and these others."""
        taken = sum(found.get(at, 0.0) for found in regular) + sum(
            rare[name].get(at, 0.0) for name in others
        )
        return own[at] - taken

    plain = [left(at) for at in [at for at in own if at not in busy][-_COMPARED:]]
    usual = median(plain) if plain else 0.0
    outside: set[str] = set()
    for name in sorted(rare, key=lambda name: -len(rare[name])):
        inside = [other for other in rare if other != name and other not in outside]
        occasions = [at for at in rare[name] if at in own]
        # Where it came alone is the clearer case.
        alone = [at for at in occasions if not any(at in rare[other] for other in inside)]
        looked = (alone or occasions)[-_COMPARED:]
        if (
            looked
            and median(left(at, inside) for at in looked) - usual
            < median(rare[name][at] for at in looked) / 2
        ):
            outside.add(name)
    return outside


def _is_rare(name: str, times: int, steps: int) -> bool:
    return name in _OCCASIONAL_PARTS or times < _OCCASIONAL * steps


# -- what it yields --------------------------------------------------------------------------------


def throughput(run: Run, found: Breakdown | None) -> Iterator[Figure]:
    """Yield what the run makes of its time: tokens, samples, use of the hardware, and how much of a
    step is waiting.
    """
    since = found.steps[0] if found is not None else (run.step or 0) - WINDOW
    speed = run.present(run.indicators.get("throughput"))
    unit = describe(speed.key).unit if speed is not None else ""
    each = _mean(speed, since)
    gpus = gpu_count(run.config)
    tokens = next((series for key in _TOKENS if (series := run.present(key)) is not None), None)
    count = _mean(tokens, since)
    if speed is not None and each is not None:
        yield Figure(describe(speed.key).label, each, unit, speed.key)
    if (
        count is not None
        and tokens is not None
        and found is not None
        and found.key
        and found.step > 0
    ):
        yield Figure(
            "throughput of all GPUs", count / found.step, "tokens/s", f"{tokens.key} / {found.key}"
        )
    elif speed is not None and each is not None and unit == "tokens/s/GPU" and gpus is not None:
        yield Figure(
            "throughput of all GPUs", each * gpus, "tokens/s", f"{speed.key} × {gpus} GPUs"
        )
    if count is not None and tokens is not None:
        yield Figure("tokens per step", count, "tokens", tokens.key)
    size = batch_size(run.config)
    if size is not None and found is not None and found.key and found.step > 0:
        yield Figure(
            "samples per second", size / found.step, "samples/s", f"batch size / {found.key}"
        )
    yield from _utilisation(run, since)


def _utilisation(run: Run, since: int) -> Iterator[Figure]:
    for key in run.keys:
        name = modern(key)
        if name.startswith("perf/mfu") or name == "train/mfu":
            value = _mean(run.present(key), since)
            described = describe(key)
            if value is not None:
                yield Figure(
                    described.label,
                    value / 100 if described.unit == "percent" else value,
                    "share",
                    key,
                )


_TOKENS = ("perf/total_num_tokens", "train/global_tokens", "train/perf/total_num_tokens")
_WAITING: Mapping[str, tuple[str, str]] = {
    # verl's fully asynchronous and V1 trainers, then prime-rl, slime, OpenRLHF; by verl's present
    # names.
    "fully_async/trainer/idle_ratio": ("trainer idle", "share"),
    "fully_async/rollouter/idle_ratio": ("rollouter idle", "share"),
    "fully_async/total_wait_time": ("waiting for samples", "s"),
    "fully_async/partial/partial_ratio": ("partial rollouts", "share"),
    "fully_async/partial/max_partial_span": ("longest partial span", "versions"),
    "fully_async/count/staleness_samples": ("stale samples", ""),
    "fully_async/count/stale_samples_processed": ("stale samples used", ""),
    "fully_async/count/dropped_stale_samples": ("dropped samples", ""),
    "training/off_policy/trajectory_staleness/mean": ("staleness", "versions"),
    "training/off_policy/trajectory_staleness/max": ("staleness, worst", "versions"),
    "training/off_policy/trajectory_spans/mean": ("versions per trajectory", "versions"),
    "training/off_policy/evicted_samples": ("evicted samples", ""),
    "training/filter_groups/evicted_samples": ("filtered samples", ""),
    "separate_async/switch/idle": ("idle while switching", "s"),
    "dynamic_resource/resource_utilization": ("use of the resources", "share"),
    "off_policy/mean": ("staleness", "versions"),
    "off_policy/max": ("staleness, worst", "versions"),
    "off_policy/dropped": ("dropped samples", ""),
    "perf/wait_time_ratio": ("trainer waiting", "share"),
    "timing/actor_idle_wait": ("trainer idle", "s"),
    "timing/vllm_idle_wait": ("engine idle", "s"),
}
"""Metric -> label and unit, of those that tell of waiting and of samples that come late."""
_GENERATION = ("gen", "wait_prev_gen", "generation", "wait_for_batch", "train_wait")


def bubble(run: Run, found: Breakdown) -> Figure | None:
    """Return the share of the step in which the trainer has nothing to train on: it generates or
    waits for samples.
    """
    for name in _GENERATION:
        part = next((part for part in found.parts if part.name == name), None)
        if part is not None:
            waits = name.startswith(("wait", "train_wait")) or any(
                modern(key) in _ASYNC for key in run.keys
            )
            return Figure(
                "time waiting for samples" if waits else "time spent generating",
                part.share,
                "share",
                part.key,
            )
    return None


_ASYNC = frozenset(
    {"training/off_policy/trajectory_staleness/mean", "fully_async/trainer/idle_ratio"}
)


def waiting(run: Run, found: Breakdown | None) -> Iterator[Figure]:
    """Yield what an asynchronous trainer tells of idle sides, late samples and those it dropped."""
    since = found.steps[0] if found is not None else (run.step or 0) - WINDOW
    known = {modern(key): key for key in run.keys}
    for name, (label, unit) in _WAITING.items():
        series = run.present(known.get(name))
        if series is None:
            continue
        last = series.last_finite
        value = _mean(series, since) if unit else (last.value if last is not None else None)
        if value is not None:
            yield Figure(label, value, unit, series.key)


def _mean(series: Series | None, since: int) -> float | None:
    """Return the mean since a step, the last value where there is none since; None without a
    number.
    """
    if series is None:
        return None
    recent = [value for at, value in zip(series.steps[-_LONGEST:], series.values[-_LONGEST:], strict=True)
              if at >= since and math.isfinite(value)]  # fmt: skip
    if recent:
        return _average(recent)
    last = series.last_finite
    return last.value if last is not None else None


def _average(values: Collection[float]) -> float:
    """Return the mean of numbers of any size."""
    try:
        return fmean(values)
    except OverflowError:
        return sum(value / len(values) for value in values)
