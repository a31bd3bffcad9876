"""The charts that a run gets."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import OF_NONE, DistributionKeys
from verl_tui.indicators import INDICATORS
from verl_tui.means import gathered, next_of
from verl_tui.metrics import (
    OF_MACHINES,
    OF_TIME,
    describe,
    device,
    family,
    family_rank,
    of_devices,
    place,
    without_repeats,
)
from verl_tui.patterns import NamePattern
from verl_tui.rendering.charts.x_axes import AXES, on_axis
from verl_tui.rendering.text.numbers import compact
from verl_tui.runs.cached import cached_by_keys
from verl_tui.runs.views.checkpoints import is_better_low
from verl_tui.runs.views.provenance import losses, shown_kl
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.words import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from verl_tui.rendering.charts.axes import ZoomSpan
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Points


_ORDER = toml_table(__file__, "charts.toml")["order"]
"""Indicators in the order of showing: the reward and what explains it, then the others."""


_PART = NamePattern(
    r"reward part (?!.* spread$)(.+?)(?: (?:rewards?|func(?:tion)?|fn))*"
)
"""The label of a part of the reward, and what is said of it below that."""


class ChartLook(NamedTuple):
    """How charts are drawn."""

    axis: str = "step"
    """One of `verl_tui.rendering.charts.x_axes.AXES`."""
    log_y: bool = False
    usual_y: bool = False
    """True if outliers are left out of the y axis."""
    smoothing: float | None = None
    """Weight of the past, 0 for the values as they are, None for as much as the noise asks for."""
    span: ZoomSpan | None = None
    """The steps that are shown, None for all."""

    def next_axis(self) -> ChartLook:
        """Return the look with the next kind of x axis."""
        return self._replace(axis=next_of(AXES, self.axis))

    def steps(self, run: Run) -> tuple[int, int] | None:
        """Return the first and the last step that are shown of a run, None for all."""
        if self.span is None or run.reach is None:
            return None
        return self.span.shown(run.reach)

    def words(self, run: Run | None = None) -> Iterator[str]:
        """Yield what differs from the usual look, for people."""
        if self.axis != "step":
            words = "" if run is None else on_axis(run, self.axis).words
            yield f"x: {words or self.axis}"
        yield from ["log y"] * self.log_y + ["y without outliers"] * self.usual_y
        if run is not None and self.span is not None and run.reach is not None:
            yield self.span.words(run.reach)
        if self.smoothing is not None:
            yield f"smoothing {self.smoothing:g}" if self.smoothing else "raw values"


class PlannedChart(NamedTuple):
    """One chart: the metric, and what is drawn with it."""

    key: str
    """The log's own key."""
    label: str
    unit: str = ""
    indicator: str | None = None
    envelope: Sequence[str] = ()
    """Keys of the least and the greatest."""
    score: str = ""
    """Key of the validation that is drawn as joined points with the reward."""
    spread: DistributionKeys = OF_NONE
    """The distribution that the metric is of."""
    devices: tuple[str, ...] = ()
    """Keys of the same figure of several devices, its own among them."""
    in_row: bool = False
    """True if one row is enough: it has had only one value, or only counts."""
    machine: bool = False
    """True if it tells nothing of the training: memory, disks, utilisation."""
    large: bool = False
    """True if it is what the training is about, and stands out."""
    repeats: bool = False
    """True if the large chart shows it already, so that a row is enough."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all that is drawn."""
        score = [self.score] * bool(self.score)
        around = (*self.envelope, *score, *self.spread.quantiles)
        return (self.key, *around, *self.devices[1:])

    @property
    def of_its_own(self) -> tuple[str, ...]:
        """The keys of the metric, of what is around it, and of its distribution."""
        return (self.key, *self.envelope, *self.spread.parts, *self.devices)

    def shows(self, key: str | None) -> bool:
        """Return whether a metric is in this chart."""
        return bool(key) and key in (*self.of_its_own, self.score)

    def matches(self, filter_: str) -> bool:
        """Return whether key or label contain a text; case does not matter."""
        words = (self.label, *self.of_its_own)
        return any(filter_.lower() in text.lower() for text in words)


def plan_charts(
    run: Run, wanted: Sequence[str], filter_: str = "", pins: Sequence[str] = ()
) -> tuple[PlannedChart, ...]:
    """Return a run's charts: those wanted, else the indicators, then all other metrics by family;
    figures of time behind the training's, those of the machines last.

    Args:
        run: The run.
        wanted: Indicator ids or metric keys to begin with; the usual indicators where empty.
        filter_: Keeps only charts whose key or label contains it.
        pins: Metric keys that come before all others.
    """
    every, families = _of_each(run)
    planned: list[PlannedChart] = []
    asked = (*pins, *wanted)
    usual = () if wanted else (*losses(run), "reward", shown_kl(run), *_ORDER)
    for name, key in _wished(run, every, (*asked, *usual)):
        if not any(plan.shows(key) for plan in planned):
            planned.append(_plan(run, key, families, name))
    # what is drawn as points has a chart of its own, too
    taken = {*chain.from_iterable(plan.of_its_own for plan in planned)}
    for key, plan in every.items():
        if key not in taken:
            planned.append(plan)
            taken.update(plan.of_its_own)
    return _by_section(planned, {key for _, key in _wished(run, every, asked)}, filter_)


def _by_section(
    planned: Iterable[PlannedChart], first: set[str], filter_: str
) -> tuple[PlannedChart, ...]:
    """Return the charts that pass a filter: those of the first keys, then section by section; what
    several devices have is in one chart.
    """
    alike = gathered(
        (plan.key if plan.key in first else of_devices(plan.key), plan)
        for plan in planned
        if not filter_ or plan.matches(filter_)
    )
    sections: tuple[list[PlannedChart], ...] = [], [], []
    for plans in alike.values():
        plan = plans[0]
        if len(plans) > 1:
            known = {device(one.key) or 0: one for one in plans}
            low, high = min(known), max(known)
            label = of_devices(known[low].label, f"{low}–{high}")
            devices = tuple(known[at].key for at in sorted(known))
            plan = known[low]._replace(label=label, devices=devices)
        rank = family_rank(plan.key) * (plan.key not in first)
        machine = rank >= OF_MACHINES
        sections[(rank >= OF_TIME) + machine].append(plan._replace(machine=machine))
    return tuple(chain.from_iterable(sections))


@cached_by_keys
def _of_each(
    run: Run,
) -> tuple[Mapping[str, PlannedChart], dict[str, dict[str, str]]]:
    """Return the chart of each metric of a run, in the order of showing; and the metrics by stem
    and part.
    """
    keys = without_repeats(run.metrics)
    families: dict[str, dict[str, str]] = {}
    for key in keys:
        stem, part = family(key) or ("", "")
        families.setdefault(stem, {})[part] = key
    ordered = sorted(keys, key=lambda key: (family_rank(key), place(key)))
    return {key: _plan(run, key, families) for key in ordered}, families


def _wished(
    run: Run, keys: Collection[str], names: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the names of indicators and metrics that a run has, each with its key."""
    spreads = run.spreads.values()
    lines = {part: spread.line for spread in spreads for part in spread.parts}
    for wish in names:
        name = run.meanings.get(wish, lines.get(wish, wish))
        key = run.indicators.get(name, name)
        if name in run.indicators or key in keys:
            yield name, key


def unknown_charts(wanted: Iterable[str], runs: Iterable[Run]) -> Iterator[str]:
    """Yield a sentence for each wanted chart that is neither an indicator nor a metric of any run.

    Not for names with a slash: they are the log's own, of metrics that may be yet to come or of
    other trainings.
    """
    keys = set(chain.from_iterable(run.keys for run in runs))
    for name in wanted if keys else ():
        if "/" not in name and name not in INDICATORS and name not in keys:
            meant = one_line(nearest(name, [*INDICATORS, *keys], 1))
            said = f"charts in the configuration: nothing is called {one_line(name)}"
            yield "; ".join(filter(None, (said, meant)))


def single_metric(run: Run, key: str, label: str = "") -> PlannedChart:
    """Return the chart of a metric without what others of its name are drawn with; it has its
    distribution still.
    """
    spread = run.spreads.get(key, OF_NONE)
    metric = describe(spread.stem or key)
    unit, meaning = describe(key).unit, run.meanings.get(key)
    return PlannedChart(key, label or metric.label, unit, meaning, spread=spread)


def _plan(
    run: Run, key: str, families: dict[str, dict[str, str]], name: str | None = None
) -> PlannedChart:
    """Return the chart of a metric, or an indicator, with what is drawn with it."""
    indicator = name if name in INDICATORS else None
    stem, _ = family(key) or ("", "")
    parts = families.get(stem, {})
    around: Sequence[str] = ()
    if parts.keys() >= {"mean", "min", "max"}:
        key = key if indicator is not None else parts["mean"]
        around = (parts["min"], parts["max"]) * (key == parts["mean"])
    found = single_metric(run, key, INDICATORS[indicator].label if indicator else "")
    score = run.indicators.get("validation", "") if indicator == "reward" else ""
    if score and (reward := run.series(key)) and (scores := run.series(score)):
        score *= on_one_scale(reward, scores)
    return found._replace(indicator=indicator, envelope=around, score=score)


def second_metric(
    found: PlannedChart, plans: Sequence[PlannedChart]
) -> PlannedChart | None:
    """Return what belongs into a chart, the reward's where nothing else does; None where the run
    has neither.
    """
    known = INDICATORS.get(found.indicator or "")
    wanted = (known and known.partners) or ("reward", "policy_kl")
    by_name = {plan.indicator: plan for plan in plans if plan.key != found.key}
    return next((by_name[name] for name in wanted if name in by_name), None)


_APART, _SHARES_APART = 2.5, 20.0
"""How many times as large the largest value of the one may be, and the same of two that are within
-1 and 1: such are shares or scores of right and wrong, and far apart only while little is learned.
Heuristic: beyond these, the smaller one is a flat line.
"""
_ROUNDING = 1e-6
_DOTS, _POINTS, _FEW = 200, 50, 5
"""Dots of a large chart; points of a series at which two are compared, and fewer than which say
little.
"""


def on_one_scale(one: Points, other: Points) -> bool:
    """Return whether two series can share a y axis: their largest values, signs aside, are of about
    the same size, or both stay within -1 and 1.

    A reward of -5 to 5 and an accuracy of 0 to 1 do not. Largest values only ever grow, so that
    the answer hardly ever changes while a run goes on. Without a number on either side it is yes.
    """
    sizes = []
    for points in (one, other):
        bounds = points.bounds
        if bounds is None:
            return True
        sizes.append(max(map(abs, bounds)))
    least, most = sorted(sizes)
    apart = _SHARES_APART if most <= 1 + _ROUNDING else _APART
    return most <= least * apart or not least


def lookalikes(one: Points, run: Run, keys: Iterable[str]) -> set[str]:
    """Return which metrics look like a series over the steps that both have: nowhere further apart
    than a dot is high (a heuristic).
    """
    found: set[str] = set()
    count = len(one.values)
    every = max(1, count // _POINTS)
    values = one.values[::every]
    apart = (max(values) - min(values)) / _DOTS if values else 0.0
    for key in keys:
        other = run.series(key)
        if other is None or len(other) < _FEW or not count < 2 * len(other) < 4 * count:
            continue
        if all(
            one.steps[at] == other.steps[at]
            and abs(one.values[at] - other.values[at]) <= apart
            for at in range(0, min(count, len(other)), every)
        ):
            found.add(key)
    return found


@cached_by_keys
def reward_parts(run: Run) -> dict[str, str]:
    """Return the keys of the parts of a reward, with their names; none where there is but one."""
    found = ((key, _PART.fullmatch(describe(key).label)) for key in run.keys)
    parts = {key: part[1] for key, part in found if part}
    return parts if len(parts) > 1 else {}


def newest_and_best(run: Run) -> str:
    """Return the newest and the best validation score of a run: `val 0.697, best 0.706 @900`;
    nothing where it has none or is a preview.
    """
    key = run.indicators.get("validation")
    series = run.present(key)
    if key is None or series is None or run.preview or not series.values:
        return ""
    newest = f"val {compact(series.values[-1])}"
    best = series.highest_point(-1 if is_better_low("validation", key) else 1)
    if best is None or len(series) < 2:
        return newest
    is_newest = series.steps[-1] == best.step
    said = "best so far" if is_newest else f"best {compact(best.value)} @{best.step}"
    return f"{newest}, {said}"
