"""The timers of a step: which metric holds the whole step's time, and which its parts.

verl's timers are seconds on the driver (`verl/trainer/ppo/ray_trainer.py`, `v1/trainer_base.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.metrics import modern
from verl_tui.patterns import NamePattern
from verl_tui.runs.cached import cached_by_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.runs.run import Run


class _TimerNames(NamedTuple):
    """Timers of one framework."""

    whole: str
    """The name of the whole step's."""
    part: NamePattern
    """A timer; its first group is the name of a part."""
    outside: Callable[[set[str]], set[str]]
    """Returns the names that are no parts, given all names: nested in others, or running beside the
    step.
    """
    modern: bool = False
    """True if keys are to be read by verl's present names."""


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


_FRAMEWORKS = (
    _TimerNames(
        "timing_s/step", NamePattern(r"(?:timing_s/)+([^/]+)"), _verl, modern=True
    ),
    _TimerNames(
        "timing/train/total_step_time",
        NamePattern(r"(?:train/)?timing/train/([^/]+)"),
        _none,
    ),
    _TimerNames("timing/step_total", NamePattern(r"(?:train/)?timing/([^/]+)"), _none),
    _TimerNames("perf/step_time", NamePattern(r"perf/(\w+)_time"), _slime),
    _TimerNames("time/step", NamePattern(r"time/([^/]+)"), _none),
)
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
    modern_names = {key: modern(key) for key in run.keys}
    for framework in _FRAMEWORKS:
        names = modern_names if framework.modern else {key: key for key in modern_names}
        accepted = (framework.whole, f"train/{framework.whole}")
        whole = next((key for key, name in names.items() if name in accepted), None)
        if whole is not None:
            return StepTimers(whole, _parts(framework, names))
    return StepTimers(
        run.indicators.get("step_time"), _parts(_FRAMEWORKS[0], modern_names)
    )


def _parts(framework: _TimerNames, names: Mapping[str, str]) -> dict[str, str]:
    """Return name -> key of a framework's parts of the step."""
    found = {}
    for key, name in names.items():
        match = framework.part.fullmatch(name)
        if match:
            found[match[1]] = key
    outside = framework.outside(set(found))
    return {
        name: key
        for name, key in found.items()
        if name not in outside and not _NO_PART.fullmatch(name)
    }
