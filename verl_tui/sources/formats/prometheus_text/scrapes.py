"""Turns scrapes of a run's workers into figures: counters into rates, histograms into quantiles.

A series is a name with labels. Labels that name the process (engine, replica, …) do not distinguish
metrics: counts are summed over them, levels averaged. Other labels stay in the key, behind a `/`.
The labels' names decide which is which, a heuristic.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui import prometheus_names
from verl_tui.means import mean
from verl_tui.metrics import slashed
from verl_tui.sources.formats.prometheus_text.machine_exporters import (
    HostFigures,
    device_figures,
)
from verl_tui.sources.formats.prometheus_text.series_names import (
    ADDED,
    BY_CLOCK,
    KEPT_TOTALS,
    MACHINES,
    NO_METRIC,
    OF_RUN,
    STEPS,
    SUMMARIES,
    WHO,
    key_and_factor,
)
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class PrometheusSample(NamedTuple):
    """One line of a page."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    time: float | None = None
    """Seconds since the epoch, where the line states it."""

    @property
    def series(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Name and labels of its series."""
        return self.name, self.labels


class Scrape(NamedTuple):
    """The samples of one process at one moment."""

    samples: Sequence[PrometheusSample]
    kinds: Mapping[str, str]
    """Metric -> its type, as far as the page states it."""


@dataclass(slots=True)
class ScrapeFigures:
    """The figures of one moment."""

    step: int | None = None
    """None where unknown."""
    total: int | None = None
    """Steps of the whole run, None where unknown."""
    stepped: float | None = None
    """Time at which the step was reached, by the page."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Metrics of the step."""
    readings: dict[str, float] = field(default_factory=dict)
    """Figures that go by the clock: engines, queues, machines, and all rates and quantiles."""
    validated: float | None = None
    """The step of the newest validation, as our exporter states it."""


_MOST_PARTS = 32
QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Quantiles that are shown of a histogram."""

_STATED = {str(share): part for part, share in QUANTILES.items()}
"""Quantiles as summaries state them."""

_Labels = tuple[tuple[str, str], ...]
_Place = tuple[str, str]
"""Name of a metric, and what it is of."""


class Scrapes:
    """Takes scrapes in their order, and remembers what counters were at."""

    def __init__(self, *, totals: bool = False) -> None:
        """Begin with nothing.

        Args:
            totals: Whether a counter is shown by its total as long as there is no rate: for a saved
                page there never is one.
        """
        self._totals = totals
        self._before: dict[tuple[object, ...], tuple[float, float | None]] = {}
        """By worker and series: the last value of a counter, and its time."""
        self._hosts = HostFigures()
        self._since_start = False
        """True if some figure is of all the time since a process began."""
        self.findings: tuple[tuple[str, str], ...] = ()
        """Ids and severities that our exporter stated last."""
        self._begin()

    def _begin(self) -> None:
        """Begin a moment."""
        self._found = ScrapeFigures()
        self._stated: list[tuple[str, str]] = []
        self._ours = False
        """True if our exporter says here how the run is."""
        self._levels: dict[_Place, list[float]] = defaultdict(list)
        self._added: dict[str, float] = defaultdict(float)
        """By key: rates and totals, which are summed over workers."""
        self._quantiles: dict[str, list[float]] = defaultdict(list)
        """By key: those that summaries state."""
        self._sums: dict[_Place, dict[str, float]] = defaultdict(_zeros)
        """Sum and count of histograms and summaries."""
        self._buckets: dict[_Place, dict[float, float]] = defaultdict(_zeros)
        self._since_start = False

    @property
    def note(self) -> str | None:
        """Return what should be known of the figures."""
        if not (self._totals and self._since_start):
            return None
        return "counters and quantiles are of all the time since the process began"

    def take(
        self, scrapes: Mapping[str, Scrape], times: Mapping[str, float]
    ) -> ScrapeFigures:
        """Return what workers have said, at about one moment.

        Args:
            scrapes: By worker.
            times: When each was asked, in seconds since the epoch; those that are not known are
                left out.
        """
        self._begin()
        machines = []
        keys: dict[str, str] = {}
        for worker, scrape in scrapes.items():
            at = {"instance": instance_of(worker)} if worker else {}
            for sample in scrape.samples:
                if sample.name in MACHINES:
                    labels = {**at, **dict(sample.labels)}
                    machines.append((sample.name, labels, sample.value))
                elif sample.name == prometheus_names.INFO:
                    stated = dict(sample.labels)
                    keys[stated.get("name", "")] = stated.get("key", "")
                elif not self._is_of_run(sample):
                    time = times.get(worker, sample.time)
                    self._add(worker, sample, scrape.kinds, time)
        if self._ours:
            self.findings = tuple(self._stated)
        found = self._found
        self._tell_levels(keys)
        self._tell_counts(SUMMARIES if keys else frozenset())
        found.readings |= {**device_figures(machines), **self._hosts.take(machines)}
        found.metrics = _safe(found.metrics)
        found.readings = _safe(found.readings)
        return found

    def _is_of_run(self, sample: PrometheusSample) -> bool:
        """Return whether a sample is none of a metric; take what it says of the run."""
        name = sample.name
        self._ours |= name == prometheus_names.STATE
        if name == prometheus_names.FINDING and sample.value == 1:
            self._stated.append(stated_finding(dict(sample.labels)))
        if name in OF_RUN or STEPS.fullmatch(name):
            self._reach(name, sample.value)
            return True
        return NO_METRIC.fullmatch(name) is not None

    def _reach(self, name: str, value: float) -> None:
        """Take how far a run is."""
        found = self._found
        if name == prometheus_names.LAST_STEP:
            found.stepped = max(found.stepped or 0.0, value)
        elif name == prometheus_names.LAST_VALIDATION:
            found.validated = value
        elif 0 <= value < 2**53 and name == prometheus_names.TOTAL_STEPS:
            found.total = int(value)
        elif 0 <= value < 2**53:
            found.step = max(found.step or 0, int(value))

    def _add(
        self,
        worker: str,
        sample: PrometheusSample,
        kinds: Mapping[str, str],
        time: float | None,
    ) -> None:
        """Take a sample of a metric."""
        name = sample.name
        family, part = _family(name, kinds)
        kind = kinds.get(family, "")
        what = _what(sample.labels)
        if part == "bucket" or (part and kind in ("histogram", "summary")):
            self._distribution(worker, sample, (family, what), part)
        elif kind == "summary":
            stated = _STATED.get(dict(sample.labels).get("quantile", ""))
            if stated is not None:
                key = _joined(slashed(family), what)
                self._quantiles[f"{key}/{stated}"].append(sample.value)
        elif kind == "counter" or (not kind and name.endswith("_total")):
            self._counter(worker, sample, what, time)
        else:
            self._levels[name, what].append(sample.value)

    def _distribution(
        self, worker: str, sample: PrometheusSample, place: _Place, part: str
    ) -> None:
        """Take a part of a histogram or a summary."""
        grown, _ = self._grown(worker, sample, None)
        if part != "bucket":
            self._sums[place][part] += grown
            return
        try:
            bound = float(dict(sample.labels).get("le", "nan"))
        except ValueError:
            return
        if not math.isnan(bound):
            self._buckets[place][bound] += grown

    def _counter(
        self, worker: str, sample: PrometheusSample, what: str, time: float | None
    ) -> None:
        stem = slashed(sample.name.removesuffix("_total"))
        grown, seconds = self._grown(worker, sample, time)
        if seconds is not None:
            self._added[_joined(f"{stem}_per_second", what)] += grown / seconds
        if (self._totals and seconds is None) or KEPT_TOTALS.fullmatch(sample.name):
            self._added[_joined(slashed(sample.name), what)] += sample.value
            self._since_start = True

    def _grown(
        self, worker: str, sample: PrometheusSample, time: float | None
    ) -> tuple[float, float | None]:
        """Return by how much a counter has grown since the scrape before, and in how many seconds
        if that is known.

        Without an earlier one, that is all of it; a process that began anew counts from 0.
        """
        series = (worker, *sample.series)
        before, then = self._before.get(series, (None, None))
        self._before[series] = sample.value, time
        if before is None:
            self._since_start = True
            return sample.value, None
        grown = sample.value - before if sample.value >= before else sample.value
        known = time is not None and then is not None and time > then
        return grown, time - then if known else None  # type: ignore[operator]

    def _tell_levels(self, keys: Mapping[str, str]) -> None:
        """Tell gauges, by the log's own keys as far as our exporter states them."""
        found = self._found
        parts: dict[str, int] = defaultdict(int)
        for (name, what), values in self._levels.items():
            parts[name] += 1
            if parts[name] > _MOST_PARTS or (keys and name in SUMMARIES):
                continue
            own, factor = key_and_factor(name, keys)
            is_added = ADDED.fullmatch(name) and not keys.get(name)
            level = sum(values) if is_added else _mean(values)
            out = found.readings if BY_CLOCK.fullmatch(name) else found.metrics
            out[_joined(own, what)] = level * factor

    def _tell_counts(self, repeated: Collection[str]) -> None:
        """Tell what comes of counters, histograms and summaries, unless it repeats metrics."""
        out = self._found.readings
        out |= self._added
        out |= {key: _mean(values) for key, values in self._quantiles.items()}
        for (name, what), sums in self._sums.items():
            if sums["count"] > 0 and name not in repeated:
                out[_joined(slashed(name), what)] = sums["sum"] / sums["count"]
        for (name, what), buckets in self._buckets.items():
            for part, share in QUANTILES.items() if name not in repeated else ():
                if (value := quantile(buckets, share)) is not None:
                    out[f"{_joined(slashed(name), what)}/{part}"] = value


def stated_finding(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return id and severity of a finding that our exporter states."""
    return labels.get("id", ""), labels.get("severity", "")


def instance_of(worker: str) -> str:
    """Return host and port of a worker, whose name is its address."""
    return worker.partition("://")[2].partition("/")[0] or worker


def _zeros() -> defaultdict[Any, float]:
    return defaultdict(float)


def quantile(buckets: Mapping[float, float], share: float) -> float | None:
    """Return a quantile of a histogram as Prometheus's `histogram_quantile`, None if it is empty.

    Args:
        buckets: Upper bound -> how many values lie up to it; the greatest bound is infinite.
        share: From 0 to 1.
    """
    bounds = sorted(buckets)
    count = buckets[bounds[-1]] if bounds else 0.0
    if len(bounds) < 2 or bounds[-1] != math.inf or not 0 < count < math.inf:
        return None
    bounds.pop()
    up_to = list(accumulate((buckets[bound] for bound in bounds), max))
    at = bisect_left(up_to, share * count)
    if at == len(bounds):
        return bounds[-1]
    below, lower = (up_to[at - 1], bounds[at - 1]) if at else (0.0, min(0.0, bounds[0]))
    return lower + (bounds[at] - lower) * (share * count - below) / (up_to[at] - below)


def _family(name: str, kinds: Mapping[str, str]) -> tuple[str, str]:
    """Return the metric that a sample belongs to, and which part of it it is."""
    if name in kinds:
        return name, ""
    stem, _, part = name.rpartition("_")
    if part == "bucket" or (part in ("sum", "count", "total") and stem in kinds):
        return stem, "" if part == "total" else part
    return name, ""


_NO_SUBJECTS = WHO | {"le", "quantile"}


def _what(labels: _Labels) -> str:
    """Return the subject of a sample, empty if its labels name only the process that exports it."""
    others = [value for label, value in labels if label not in _NO_SUBJECTS]
    return "/".join(filter(None, others))


def _joined(name: str, what: str) -> str:
    return f"{name}/{one_line(what, 100)}" if what else name


def _safe(figures: Mapping[str, float]) -> dict[str, float]:
    return {safe(key, 300): value for key, value in figures.items()}


def _mean(values: Sequence[float]) -> float:
    if all(map(math.isfinite, values)):
        return mean(values)
    return sum(values) / len(values)
