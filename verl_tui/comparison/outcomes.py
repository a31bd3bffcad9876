"""The figures that runs are compared by, and those of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from statistics import median_low
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from verl_tui.comparison.statistics import deviation
from verl_tui.health.finding import Severity
from verl_tui.health.reward_scale import bounded
from verl_tui.indicators import factor, resolve
from verl_tui.means import clamp, finite, mean
from verl_tui.metrics import describe, modern
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.alignment import seconds_per_step
from verl_tui.runs.views.checkpoints import is_better_low

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Point, Series
    from verl_tui.runs.views.alignment import Stop


LOSS = "loss"
"""In place of an indicator: the loss of a training without a reward."""
KeysByIndicator: TypeAlias = "Mapping[str, str | None]"
"""Indicator -> the log's own key under which a run is measured; others as the run has them."""


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A run with what it reached."""

    run: Run
    stop: Stop
    """The point up to which it counts."""
    count: int
    """Number of last logged values that means are made of."""
    guide: Guide
    """Knows the healthy bands."""
    keys: KeysByIndicator = field(default_factory=dict)

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """What it reached, by the ids of `FIGURES`."""
        return {kind.id: kind.measure(self, kind.indicator) for kind in FIGURES}

    def key(self, indicator: str) -> str | None:
        """Return the log's own key that an indicator is measured under."""
        return self.keys.get(indicator, self.run.indicators.get(indicator))

    def series(self, indicator: str) -> Series | None:
        """Return the values of an indicator that count, None where the log has none."""
        key = self.key(indicator)
        series = None if key is None else self.run.series(key)
        if series is None or self.stop.step is None:
            return None
        return series.until(self.stop.step)

    def last_values(self, indicator: str, count: int) -> list[float]:
        """Return those of the last logged values that are numbers, oldest first."""
        series = self.series(indicator)
        if series is None:
            return []
        sign = factor(indicator, series.key)
        return [sign * value for value in finite(series.tail(count))]


def measure(
    runs: Sequence[Run], stops: Sequence[Stop], count: int, guide: Guide
) -> list[MeasuredRun]:
    """Return runs to be compared by what they reached.

    Args:
        runs: The runs.
        stops: The points up to which they count.
        count: Number of last logged values that means are made of.
        guide: Knows the healthy bands.
    """
    return [
        MeasuredRun(run, stop, count, guide, keys)
        for run, stop, keys in zip(runs, stops, common_keys(runs), strict=True)
    ]


def _spelled(run: Run) -> dict[str, str]:
    """Return a run's keys by their modern spelling, but for figures of printed samples: a few are
    no measure that all runs have.
    """
    logged = (key for key in run.metrics if not key.startswith("val_samples/"))
    return {modern(key): key for key in logged}


def common_keys(runs: Sequence[Run]) -> Sequence[KeysByIndicator]:
    """Return the key by which each run's reward and validation are measured, the same for all runs
    if possible: they may validate on several data sets and share only one.
    """
    found: list[dict[str, str | None]] = [{LOSS: run.loss_alone} for run in runs]
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
    known = [
        len(series.until(stop.step))
        for run, stop in zip(runs, stops, strict=True)
        if (series := run.indicator("reward") or run.series(run.loss_alone or ""))
        and stop.step is not None
    ]
    usual = median_low(filter(None, known)) if any(known) else 0
    return clamp(round(usual / _SHARE), _FEWEST, _MOST)


def last(one: MeasuredRun, indicator: str) -> Figure:
    """Return the newest value that is a number."""
    series = one.series(indicator)
    point = None if series is None else series.last_finite
    return _figure(indicator, series, point)._replace(step=None)


def final(one: MeasuredRun, indicator: str) -> Figure:
    """Return the mean of the last logged values, of those that are numbers."""
    series = one.series(indicator)
    if not series:
        return Figure()
    known = one.last_values(indicator, one.count)
    return Figure(
        value=mean(known) if known else None,
        spread=deviation(known),
        size=len(known),
        not_finite=len(series.tail(one.count)) - len(known),
        key=series.key,
        unit=describe(series.key).unit,
    )


def best_figure(one: MeasuredRun, indicator: str) -> Figure:
    """Return the best value, first of equals."""
    series = one.series(indicator)
    if series is None:
        return Figure()
    sign = factor(indicator, series.key)
    lowest = is_better_low(indicator, series.key)
    return _figure(indicator, series, series.highest_point(-sign if lowest else sign))


def highest(one: MeasuredRun, indicator: str) -> Figure:
    """Return the highest value, first of equals, and whether it lies beyond the healthy band."""
    series = one.series(indicator)
    point = None if series is None else series.highest_point()
    figure = _figure(indicator, series, point)
    _, high = one.guide.band(indicator, one.run.dialect) or (None, None)
    if figure.value is None or high is None:
        return figure
    return figure._replace(outside=figure.value > high)


def step_time(one: MeasuredRun, indicator: str = "step_time") -> Figure:
    """Return the mean time of the last steps in seconds: as logged, else by the run's clock."""
    known = final(one, indicator)
    if known.value is not None:
        return known
    seconds = seconds_per_step(one.run, one.stop, one.count)
    return known if seconds is None else Figure(seconds, size=1, unit="s")


class FigureKind(NamedTuple):
    """One figure, independent of any run."""

    id: str
    """Public name."""
    label: str
    indicator: str
    """Indicator that it is computed from, empty for none."""
    measure: Callable[[MeasuredRun, str], Figure]
    better: int = 0
    """1 where more is better, -1 where less is, 0 where neither is."""
    unit: str = ""
    """Unit where the log's key states none."""

    @property
    def is_mean(self) -> bool:
        """True for means over the last logged values."""
        return self.measure in (final, step_time)

    @property
    def has_step(self) -> bool:
        """True for values of a single step, which are said with it."""
        return self.measure in (best_figure, highest)


FIGURES: tuple[FigureKind, ...] = (
    FigureKind("final_reward", "final reward", "reward", final, 1),
    FigureKind("best_reward", "best reward", "reward", best_figure, 1),
    FigureKind("final_loss", "final loss", LOSS, final, -1),
    FigureKind("last_validation", "last validation", "validation", last, 1),
    FigureKind("best_validation", "best validation", "validation", best_figure, 1),
    FigureKind("highest_policy_kl", "highest policy KL", "policy_kl", highest),
    FigureKind("highest_reference_kl", "highest reference KL", "reference_kl", highest),
    FigureKind("response_length", "response length", "response_length", final),
    FigureKind("throughput", "throughput", "throughput", final, 1),
    FigureKind("step_time", "step time", "step_time", step_time, -1, "s"),
    FigureKind("steps", "steps", "", lambda one, _: Figure(one.stop.step, size=1)),
    FigureKind(
        "time", "time", "", lambda one, _: Figure(one.stop.elapsed, size=1, unit="s")
    ),
)
"""In the order of showing."""
KINDS: Mapping[str, FigureKind] = {kind.id: kind for kind in FIGURES}


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
    lowest = series.highest_point(-1.0)
    low = 0.0 if lowest is None else lowest.value
    beyond = max(series.highest, -low) > 1 + _ROUNDING
    return False if beyond else None


def _figure(indicator: str, series: Series | None, point: Point | None) -> Figure:
    if series is None:
        return Figure()
    unit = describe(series.key).unit
    if point is None:
        return Figure(key=series.key, unit=unit)
    value = point.value * factor(indicator, series.key)
    return Figure(value, point.step, size=1, key=series.key, unit=unit)
