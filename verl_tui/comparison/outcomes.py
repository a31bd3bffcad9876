"""The figures that runs are compared by, and those of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.figures import (
    Figure,
    best_figure,
    final,
    highest,
    last,
    last_values,
    loss_key,
    step_time,
)
from verl_tui.indicators import resolve
from verl_tui.metrics import modern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run
    from verl_tui.runs.views.alignment import Stop


class FigureKind(NamedTuple):
    """One figure, independent of any run."""

    id: str
    """Public name."""
    label: str
    indicator: str
    """Indicator that it is computed from, empty for none."""
    better: int = 0
    """1 where more is better, -1 where less is, 0 where neither is."""
    is_mean: bool = False
    """True for means over the last logged values."""
    unit: str = ""
    """Unit where the log's key states none."""


LOSS = "loss"
"""In place of an indicator: the loss of a training without a reward."""
FIGURES: tuple[FigureKind, ...] = (
    FigureKind("final_reward", "final reward", "reward", 1, is_mean=True),
    FigureKind("best_reward", "best reward", "reward", 1),
    FigureKind("final_loss", "final loss", LOSS, -1, is_mean=True),
    FigureKind("last_validation", "last validation", "validation", 1),
    FigureKind("best_validation", "best validation", "validation", 1),
    FigureKind("highest_policy_kl", "highest policy KL", "policy_kl"),
    FigureKind("highest_reference_kl", "highest reference KL", "reference_kl"),
    FigureKind("response_length", "response length", "response_length", is_mean=True),
    FigureKind("throughput", "throughput", "throughput", 1, is_mean=True),
    FigureKind("step_time", "step time", "step_time", -1, is_mean=True, unit="s"),
    FigureKind("steps", "steps", ""),
    FigureKind("time", "time", "", unit="s"),
)
"""In the order of showing."""
KINDS: Mapping[str, FigureKind] = {kind.id: kind for kind in FIGURES}

KeysByIndicator = dict[str, str]
"""Indicator -> the log's own key under which a run is measured; others as the run has them."""


class MeasuredRun(NamedTuple):
    """A run with what it reached."""

    run: Run
    stop: Stop
    """The point up to which it counts."""
    keys: KeysByIndicator
    figures: Mapping[str, Figure]
    """By the ids of `FIGURES`."""

    def measured_by(self, indicator: str) -> str | None:
        """Return the present name of the key that an indicator is measured under."""
        key = self.keys.get(indicator, self.run.indicators.get(indicator))
        return None if key is None else modern(key)

    def last_values(self, indicator: str, count: int) -> list[float]:
        """Return those of the last logged values that are numbers, oldest first."""
        return last_values(
            indicator, self.run, self.stop, count, self.keys.get(indicator)
        )


def measure(
    runs: Sequence[Run], stops: Sequence[Stop], count: int, guide: Guide
) -> list[MeasuredRun]:
    """Return what runs reached.

    Args:
        runs: The runs.
        stops: The points up to which they count.
        count: Number of last logged values that means are made of.
        guide: Knows the healthy bands.
    """
    return [
        MeasuredRun(run, stop, keys, _figures(run, stop, count, guide, keys))
        for run, stop, keys in zip(runs, stops, common_keys(runs), strict=True)
    ]


def _figures(
    run: Run, stop: Stop, count: int, guide: Guide, keys: KeysByIndicator
) -> dict[str, Figure]:
    reward = keys.get("reward")
    validation = keys.get("validation")
    return {
        "final_reward": final("reward", run, stop, count, reward),
        "best_reward": best_figure("reward", run, stop, reward),
        "final_loss": final(LOSS, run, stop, count, keys.get(LOSS)),
        "last_validation": last("validation", run, stop, validation),
        "best_validation": best_figure("validation", run, stop, validation),
        "highest_policy_kl": highest("policy_kl", run, stop, guide),
        "highest_reference_kl": highest("reference_kl", run, stop, guide),
        "response_length": final("response_length", run, stop, count),
        "throughput": final("throughput", run, stop, count),
        "step_time": step_time(run, stop, count),
        "steps": Figure(stop.step, size=1),
        "time": Figure(stop.elapsed, size=1, unit="s"),
    }


def _spelled(run: Run) -> dict[str, str]:
    """Return a run's keys by their modern spelling."""
    return {modern(key): key for key in run.metrics}


def _own_keys(run: Run) -> KeysByIndicator:
    key = loss_key(run)
    return {} if key is None else {LOSS: key}


def common_keys(runs: Sequence[Run]) -> list[KeysByIndicator]:
    """Return the key by which each run's reward and validation are measured, the same for all runs
    if possible: they may validate on several data sets and share only one.
    """
    found = [_own_keys(run) for run in runs]
    for indicator in ("reward", "validation"):
        logging = [at for at, run in enumerate(runs) if indicator in run.indicators]
        usual = {modern(runs[at].indicators[indicator]) for at in logging}
        if len(usual) < 2:
            continue
        spelled = [_spelled(runs[at]) for at in logging]
        shared = resolve(set(spelled[0]).intersection(*spelled[1:])).get(indicator)
        if shared is None:
            continue
        for at, keys in zip(logging, spelled, strict=True):
            found[at][indicator] = keys[shared]
    return found
