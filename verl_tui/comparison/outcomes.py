"""The figures that runs are compared by, those of one run, and whether they mean the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median_low
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui.comparison.statistics import deviation
from verl_tui.health.reward import bounded
from verl_tui.indicators import factor, resolve
from verl_tui.means import clamp, finite, mean
from verl_tui.metrics import describe, modern
from verl_tui.runs.time.step_clocks import Stop, seconds_per_step
from verl_tui.runs.views.checkpoints import is_better_low
from verl_tui.runs.views.identity import identity
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_LOSS = "loss"
"""In place of an indicator: the loss of a training without a reward."""
KeysByIndicator: TypeAlias = "Mapping[str, str | None]"
"""Indicator -> the log's own key under which a run is measured; others as the run has them."""
_SHARE = 10
"""A final value is the mean of a tenth of what the median run logged: heuristic, long enough to
level out batches and short enough to be the end.
"""
_FEWEST, _MOST = 10, 100
"""Bounds of that number of values."""
_ROUNDING = 1e-6


class FigureKind(NamedTuple):
    """One figure, independent of any run."""

    id: str
    """Public name."""
    label: str
    of: str
    """What it is of the indicator's values: the `mean` of the last ones, the `best`, `highest` or
    `last` one; or `steps` or `time`.
    """
    indicator: str = ""
    """Indicator that it is computed from, empty for none."""
    better: int = 0
    """1 where more is better, -1 where less is, 0 where neither is."""
    unit: str = ""
    """Unit where the log's key states none."""
    table: str = ""
    """The table that shows it: `outcome` or `course`."""
    band: float = 0.0
    """How far it may usually lie from a baseline's, on either side, as a share of that."""
    least: float = 0.0
    """The same at least, in its own unit: near 0, a share would be nothing."""


KINDS: Mapping[str, FigureKind] = {
    id: FigureKind(id, **row)
    for id, row in toml_table(__file__, "figures.toml").items()
}
"""By their ids, in the order of showing."""
FIGURES = tuple(KINDS.values())


class Figure(NamedTuple):
    """One of the figures that runs are compared by, as JSON has it; without a value if the run has
    none.
    """

    value: float | None = None
    sd: float | None = None
    """Standard deviation of the values that it is the mean of."""
    n: int = 0
    """Number of values that it is made of."""
    not_finite: int = 0
    """Values left out because they are no numbers."""
    step: int | None = None
    """Step of the value, None for means."""
    key: str | None = None
    """The log's own key."""
    unit: str | None = None
    outside_band: bool | None = None
    """True beyond the healthy band, None where no band applies."""


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
        return {kind.id: _figure(self, kind) for kind in FIGURES}

    def key(self, indicator: str) -> str | None:
        """Return the log's own key that an indicator is measured under."""
        return self.keys.get(indicator, self.run.indicators.get(indicator))

    def series(self, indicator: str) -> Series | None:
        """Return the values of an indicator that count, None where the log has none."""
        series = self.run.series(self.key(indicator) or "")
        if series is None or self.stop.step is None:
            return None
        return series.until(self.stop.step) or None

    def last_values(self, indicator: str, count: int | None = None) -> list[float]:
        """Return the numbers among the last logged values, oldest first: as many values as means
        are made of, unless a number is given.
        """
        series = self.series(indicator)
        if series is None:
            return []
        sign = factor(indicator, series.key)
        return [sign * value for value in finite(series.tail(count or self.count))]


def _figure(one: MeasuredRun, kind: FigureKind) -> Figure:
    if kind.of == "steps":
        return Figure(one.stop.step, n=1)
    if kind.of == "time":
        return Figure(one.stop.elapsed, n=1, unit="s")
    series = one.series(kind.indicator)
    if series is None:
        found = Figure()
    elif kind.of == "mean":
        found = _mean(one, kind, series)
    else:
        found = _point(one, kind, series)
    if found.value is None and kind.id == "step_time":
        seconds = seconds_per_step(one.run, one.stop, one.count)  # by the run's clock
        return found if seconds is None else Figure(seconds, n=1, unit="s")
    return found


def _mean(one: MeasuredRun, kind: FigureKind, series: Series) -> Figure:
    known = one.last_values(kind.indicator)
    return Figure(
        mean(known) if known else None,
        deviation(known),
        len(known),
        len(series.tail(one.count)) - len(known),
        key=series.key,
        unit=describe(series.key).unit or None,
    )


def _point(one: MeasuredRun, kind: FigureKind, series: Series) -> Figure:
    """Return the newest value that is a number, or the best or highest one, first of equals, and
    whether that lies beyond the healthy band.
    """
    sign = factor(kind.indicator, series.key)
    up = 1.0
    if kind.of == "best":
        up = -sign if is_better_low(kind.indicator, series.key) else sign
    point = series.last_finite if kind.of == "last" else series.highest_point(up)
    if point is None:
        return Figure()
    found = Figure(
        point.value * sign, n=1, key=series.key, unit=describe(series.key).unit or None
    )
    if kind.of == "last":
        return found
    _, high = one.guide.band(kind.indicator, one.run.dialect)
    beyond = None
    if kind.of == "highest" and high is not None:
        beyond = point.value * sign > high
    return found._replace(step=point.step, outside_band=beyond)


def measure(
    runs: Sequence[Run], stops: Sequence[Stop], guide: Guide, count: int | None = None
) -> list[MeasuredRun]:
    """Return runs to be compared by what they reached.

    Args:
        runs: The runs.
        stops: The points up to which they count.
        guide: Knows the healthy bands.
        count: Number of last logged values that means are made of; None: a tenth of those of the
            median run's reward (without one, its loss), 10 at least and 100 at most.
    """
    known = [
        len(series.until(stop.step))
        for run, stop in zip(runs, stops, strict=True)
        if (series := run.indicator("reward") or run.series(run.loss_alone or ""))
        and stop.step is not None
    ]
    usual = median_low(filter(None, known)) if any(known) else 0
    count = count or clamp(round(usual / _SHARE), _FEWEST, _MOST)
    return [
        MeasuredRun(run, stop, count, guide, keys)
        for run, stop, keys in zip(runs, stops, _common_keys(runs), strict=True)
    ]


def _common_keys(runs: Sequence[Run]) -> Sequence[KeysByIndicator]:
    """Return the key by which each run's reward and validation are measured, the same for all runs
    if possible: they may validate on several data sets and share only one.
    """
    found: list[dict[str, str | None]] = [{_LOSS: run.loss_alone} for run in runs]
    for indicator in ("reward", "validation"):
        logging = [at for at, run in enumerate(runs) if indicator in run.indicators]
        if len({modern(runs[at].indicators[indicator]) for at in logging}) > 1:
            spelled = {at: _spelled(runs[at]) for at in logging}
            first, *others = spelled.values()
            shared = resolve(set(first).intersection(*others)).get(indicator)
            if shared is not None:
                for at, keys in spelled.items():
                    found[at][indicator] = keys[shared]
    return found


def _spelled(run: Run) -> dict[str, str]:
    """Return a run's keys by their modern spelling, but for figures of printed samples: a few are
    no measure that all runs have.
    """
    logged = (key for key in run.metrics if not key.startswith("val_samples/"))
    return {modern(key): key for key in logged}


# -- whether it means the same ---------------------------------------------------------------------


def incomparable(kind: FigureKind, runs: Sequence[MeasuredRun]) -> str:
    """Return why a figure does not mean the same in several runs; empty if it does."""
    having = [one for one in runs if one.figures[kind.id].value is not None]
    if kind.indicator == "reward" and {True, False} <= set(
        map(_on_bounded_scale, having)
    ):
        return (
            "rewards are on different scales: some are scores from 0 to 1, others go "
            "beyond"
        )
    for reason, name in (
        _UNLIKE.get(kind.indicator, ("", lambda _: None)),
        (
            f"{kind.label} is in different units",
            lambda one: one.figures[kind.id].unit or "none",
        ),
    ):
        names = sorted({name(one) for one in having} - {None})
        if len(names) > 1:
            return f"{reason}: {', '.join(names)}"
    return ""


def _algorithm(one: MeasuredRun) -> str | None:
    fact = identity(one.run).get("algorithm")
    return fact.value if fact else None


_UNLIKE: Mapping[str, tuple[str, Callable[[MeasuredRun], Any]]] = {
    "validation": (
        "validations are of different metrics",
        lambda one: modern(one.key("validation") or "None"),
    ),
    _LOSS: ("losses are of different algorithms", _algorithm),
}
"""Indicator -> words and a name that tells whether it means the same in all runs that have it."""


def direction(kind: FigureKind, runs: Iterable[MeasuredRun]) -> int:
    """Return 1 where more of a figure is better, -1 where less is, 0 where neither is: judged by
    the first run that logs it.
    """
    if kind.indicator in ("reward", "validation"):
        keys = (one.run.indicators.get(kind.indicator) for one in runs)
        key = next(filter(None, keys), None)
        return -1 if key is not None and is_better_low(kind.indicator, key) else 1
    return kind.better


def _on_bounded_scale(one: MeasuredRun) -> bool | None:
    """Return whether a run's rewards are scores on a bounded scale, None if unknown: a score from 0
    to 1 is not comparable with one that goes beyond.
    """
    series = one.run.indicator("reward")
    if series is None:
        return None
    if bounded(one.run) is not None:
        return True
    ends = (series.highest_point(sign) for sign in (1.0, -1.0))
    sizes = [abs(point.value) for point in ends if point]
    return False if max(sizes, default=0.0) > 1 + _ROUNDING else None
