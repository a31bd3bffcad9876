"""The figures that runs are compared by, and those of one run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from verl_tui.comparison.statistics import deviation
from verl_tui.health.applicability.scales import bounded
from verl_tui.health.finding import Severity
from verl_tui.indicators import factor, resolve
from verl_tui.means import mean
from verl_tui.metrics import describe, modern
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.alignment import (
    extreme,
    logged,
    newest,
    seconds_per_step,
    value,
)
from verl_tui.runs.views.checkpoints import is_better_low

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series
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

KeysByIndicator: TypeAlias = "dict[str, str | None]"
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


def common_keys(runs: Sequence[Run]) -> list[KeysByIndicator]:
    """Return the key by which each run's reward and validation are measured, the same for all runs
    if possible: they may validate on several data sets and share only one.
    """
    found: list[KeysByIndicator] = [{LOSS: run.loss_alone} for run in runs]
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


_SHARE = 10
"""A final value is the mean of a tenth of what the median run logged: heuristic, long enough to
level out batches and short enough to be the end.
"""
_ROUNDING = 1e-6
_FEWEST, _MOST = 10, 100
"""Bounds of that number of values."""


class Figure(NamedTuple):
    """One of the figures that runs are compared by; without a value if the run has none."""

    value: float | None = None
    step: int | None = None
    """Step of the value, None for means."""
    spread: float | None = None
    """Standard deviation of the values that it is the mean of."""
    size: int = 0
    """Number of values that it is made of."""
    not_finite: int = 0
    """Values left out because they are no numbers."""
    key: str = ""
    """The log's own key."""
    unit: str = ""
    outside: bool | None = None
    """True beyond the healthy band, None where no band applies."""


def usual_last(runs: Sequence[Run], stops: Sequence[Stop]) -> int:
    """Return the number of last logged values that a final value is the mean of, the same for all
    runs: a tenth of those of the median run's reward (without one, its loss), 10 at least and 100
    at most.
    """
    counts = [
        logged(series_of("reward", run, run.loss_alone), stop)
        for run, stop in zip(runs, stops, strict=True)
    ]
    known = sorted(filter(None, counts))
    median = known[(len(known) - 1) // 2] if known else 0
    return min(max(_FEWEST, round(median / _SHARE)), _MOST)


def series_of(indicator: str, run: Run, key: str | None = None) -> Series | None:
    """Return the values of an indicator, under a key of the log's own if one is given."""
    if key is None:
        return run.indicator(indicator)
    return run.series(key)


def last(indicator: str, run: Run, stop: Stop, key: str | None = None) -> Figure:
    """Return the newest value that is a number."""
    series = series_of(indicator, run, key)
    return _figure(series, value(series, stop), indicator)


def last_values(
    indicator: str, run: Run, stop: Stop, count: int, key: str | None = None
) -> list[float]:
    """Return those of the last logged values that are numbers, oldest first."""
    series = series_of(indicator, run, key)
    if series is None:
        return []
    sign = factor(indicator, series.key)
    return [
        sign * value for value in newest(series, stop, count) if math.isfinite(value)
    ]


def final(
    indicator: str, run: Run, stop: Stop, count: int, key: str | None = None
) -> Figure:
    """Return the mean of the last logged values, of those that are numbers."""
    series = series_of(indicator, run, key)
    asked = len(newest(series, stop, count))
    if series is None or not asked:
        return Figure()
    known = last_values(indicator, run, stop, count, series.key)
    return Figure(
        value=mean(known) if known else None,
        spread=deviation(known),
        size=len(known),
        not_finite=asked - len(known),
        key=series.key,
        unit=describe(series.key).unit,
    )


def best_figure(indicator: str, run: Run, stop: Stop, key: str | None = None) -> Figure:
    """Return the best value, first of equals."""
    series = series_of(indicator, run, key)
    if series is None:
        return Figure()
    # The lowest value of a negated series is the highest one.
    lowest = is_better_low(indicator, series.key) is (factor(indicator, series.key) > 0)
    point = extreme(series, stop, lowest=lowest)
    if point is None:
        return _figure(series, None, indicator)
    return _figure(series, point.value, indicator, point.step)


def highest(indicator: str, run: Run, stop: Stop, guide: Guide) -> Figure:
    """Return the highest value, first of equals, and whether it lies beyond the healthy band."""
    series = run.indicator(indicator)
    point = extreme(series, stop)
    if series is None or point is None:
        return _figure(series, None, indicator)
    figure = _figure(series, point.value, indicator, point.step)
    _, high = guide.band(indicator, run.dialect) or (None, None)
    if figure.value is None or high is None:
        return figure
    return figure._replace(outside=figure.value > high)


def step_time(run: Run, stop: Stop, count: int) -> Figure:
    """Return the mean time of the last steps in seconds: as logged, else by the run's clock."""
    known = final("step_time", run, stop, count)
    seconds = seconds_per_step(run, stop, count) if known.value is None else None
    if seconds is None:
        return known
    return Figure(seconds, size=1, unit="s")


def weighty(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that count: warnings and worse."""
    return [finding for finding in findings if finding.severity > Severity.INFO]


def better_low(runs: Iterable[Run], indicator: str) -> bool:
    """Return whether less of an indicator is better, judged by the first run that logs it."""
    keys = (run.indicators.get(indicator) for run in runs)
    key = next((key for key in keys if key is not None), None)
    return key is not None and is_better_low(indicator, key)


def one_scale(runs: Iterable[Run]) -> bool:
    """Return whether rewards are comparable as far as the logs show: a score from 0 to 1 is not
    comparable with one that goes beyond.
    """
    return len({_on_bounded_scale(run) for run in runs} - {None}) < 2


@cached_by_revision
def _on_bounded_scale(run: Run) -> bool | None:
    """Return whether a run's rewards are scores on a bounded scale, None if unknown."""
    series = run.indicator("reward")
    if series is None:
        return None
    if bounded(run) is not None:
        return True
    beyond = (
        series.highest > 1 + _ROUNDING
        or series.first_beyond(-1.0 - _ROUNDING, down=True) is not None
    )
    return False if beyond else None


def _figure(
    series: Series | None, number: float | None, indicator: str, step: int | None = None
) -> Figure:
    if series is None:
        return Figure()
    unit = describe(series.key).unit
    if number is None:
        return Figure(key=series.key, unit=unit)
    number *= factor(indicator, series.key)
    return Figure(number, step, size=1, key=series.key, unit=unit)
