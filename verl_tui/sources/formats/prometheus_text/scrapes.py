"""Turns scrapes of a run's workers into figures: counters into rates, histograms into quantiles.

A series is a name with labels. Labels that name the process (engine, replica, …) do not distinguish
metrics: counts are summed over them, levels averaged. Other labels stay in the key, behind a `/`.
The labels' names decide which is which, a heuristic.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

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
    STEPS,
    SUMMARIES,
    WHO,
    key_and_factor,
)
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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


class ScrapeFigures(NamedTuple):
    """The figures of one moment."""

    step: int | None
    """None where unknown."""
    total: int | None
    """Steps of the whole run, None where unknown."""
    stepped: float | None
    """Time at which the step was reached, by the page."""
    metrics: Mapping[str, float]
    """Metrics of the step."""
    readings: Mapping[str, float]
    """Figures that go by the clock: engines, queues, machines, and all rates and quantiles."""
    validated: float | None = None
    """The step of the newest validation, as our exporter states it."""


_MOST_PARTS = 32
_MOST_KEYS = 2000
_MOST_READINGS = 20_000
"""A thousand nodes of eight devices have more figures than anybody looks at."""
QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Quantiles that are shown of a histogram."""

_Labels = tuple[tuple[str, str], ...]


class Scrapes:
    """Takes scrapes in their order, and remembers what counters were at."""

    def __init__(self, *, totals: bool = False) -> None:
        """Begin with nothing.

        Args:
            totals: Whether a counter is shown by its total as long as there is no rate: for a saved
                page there never is one.
        """
        self._totals = totals
        self._before: dict[tuple[str, str, _Labels], tuple[float, float | None]] = {}
        """By worker and series: the last value of a counter, and its time."""
        self._hosts = HostFigures()
        self._left_out = 0
        self._since_start = False
        self.findings: tuple[tuple[str, str], ...] = ()
        """Ids and severities that our exporter stated last."""

    @property
    def note(self) -> str | None:
        """Return what should be known of the figures."""
        notes = []
        if self._since_start:
            notes.append(
                "counters and quantiles are of all the time since the process began"
            )
        if self._left_out:
            notes.append(
                f"{self._left_out:,} metrics are left out: only the first ones are kept"
            )
        return "; ".join(notes) or None

    def take(
        self, scrapes: Mapping[str, Scrape], times: Mapping[str, float]
    ) -> ScrapeFigures:
        """Return what workers have said, at about one moment.

        Args:
            scrapes: By worker.
            times: When each was asked, in seconds since the epoch; those that are not known are
                left out.
        """
        builder = _FigureBuilder(self._before, totals=self._totals)
        rest = []
        for worker, scrape in scrapes.items():
            for sample in scrape.samples:
                if sample.name in MACHINES:
                    rest.append(
                        (
                            sample.name,
                            {**_at(worker), **dict(sample.labels)},
                            sample.value,
                        )
                    )
                else:
                    builder.add(
                        worker, sample, scrape.kinds, times.get(worker, sample.time)
                    )
        metrics, readings = builder.figures(_keys(scrapes.values()))
        readings |= {**device_figures(rest), **self._hosts.take(rest)}
        self._left_out = max(
            self._left_out, len(metrics) - _MOST_KEYS, len(readings) - _MOST_READINGS
        )
        self._since_start = self._totals and builder.whole
        if builder.ours:
            self.findings = tuple(builder.findings)
        metrics = _cut(metrics, _MOST_KEYS)
        readings = _cut(readings, _MOST_READINGS)
        return ScrapeFigures(
            builder.step,
            builder.total,
            builder.stepped,
            metrics,
            readings,
            builder.validated,
        )


def stated_finding(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return id and severity of a finding that our exporter states."""
    return labels.get("id", ""), labels.get("severity", "")


def instance_of(worker: str) -> str:
    """Return host and port of a worker, whose name is its address."""
    return worker.partition("://")[2].partition("/")[0] or worker


def _at(worker: str) -> dict[str, str]:
    """Return the label for a worker's host, for samples that do not state one."""
    if not worker:
        return {}
    return {"instance": instance_of(worker)}


def _keys(scrapes: Iterable[Scrape]) -> dict[str, str]:
    """Return the log's own keys of names, if our exporter states them."""
    tables = (
        dict(sample.labels)
        for one in scrapes
        for sample in one.samples
        if sample.name == prometheus_names.INFO
    )
    return {labels.get("name", ""): labels.get("key", "") for labels in tables}


class _FigureBuilder:
    """Builds the figures of one moment from its samples."""

    def __init__(
        self,
        before: dict[tuple[str, str, _Labels], tuple[float, float | None]],
        *,
        totals: bool,
    ) -> None:
        self.step: int | None = None
        self.total: int | None = None
        self.stepped: float | None = None
        self.validated: float | None = None
        self.findings: list[tuple[str, str]] = []
        self.ours = False
        """True if our exporter says here how the run is."""
        self.whole = False
        """True if some figure is of all the time since a process began."""
        self._before = before
        self._all = totals
        self._levels: dict[tuple[str, str], list[float]] = defaultdict(list)
        """By name and what it is of."""
        self._rates: dict[tuple[str, str], float] = defaultdict(float)
        self._totals: dict[tuple[str, str], float] = defaultdict(float)
        self._buckets: dict[tuple[str, str], dict[float, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self._quantiles: dict[str, list[float]] = defaultdict(list)
        self._sums: dict[tuple[str, str], dict[str, float]] = defaultdict(
            lambda: defaultdict(float)
        )

    def _note_ours(self, sample: PrometheusSample) -> None:
        """Note what verl-tui's own exporter states."""
        self.ours = self.ours or sample.name == prometheus_names.STATE
        if sample.name == prometheus_names.FINDING and sample.value == 1:
            self.findings.append(stated_finding(dict(sample.labels)))

    def add(
        self,
        worker: str,
        sample: PrometheusSample,
        kinds: Mapping[str, str],
        time: float | None,
    ) -> None:
        """Take a sample."""
        name = sample.name
        self._note_ours(sample)
        if self._progress(name, sample.value) or NO_METRIC.fullmatch(name):
            return
        family, part = _family(name, kinds)
        kind = kinds.get(family, "")
        what = _what(sample.labels)
        if part == "bucket" or (kind == "histogram" and part):
            self._histogram(worker, sample, family, part, what)
        elif kind == "summary":
            self._summary(worker, sample, family, part, what)
        elif kind == "counter" or (not kind and name.endswith("_total")):
            self._counter(worker, sample, what, time)
        else:
            self._levels[name, what].append(sample.value)

    def _progress(self, name: str, value: float) -> bool:
        """Take a sample about the progress of training; return whether it was one."""
        if name == prometheus_names.LAST_STEP:
            self.stepped = max(self.stepped or 0.0, value)
            return True
        if name == prometheus_names.LAST_VALIDATION:
            self.validated = value
            return True
        planned = name == prometheus_names.TOTAL_STEPS
        if not planned and STEPS.fullmatch(name) is None:
            return False
        if 0 <= value < 2**53:
            self.step = self.step if planned else max(self.step or 0, int(value))
            self.total = int(value) if planned else self.total
        return True

    def _summary(
        self, worker: str, sample: PrometheusSample, family: str, part: str, what: str
    ) -> None:
        if part:
            self._sums[family, what][part] += self._grown(worker, sample, None)[0]
            return
        stated = dict(sample.labels).get("quantile", "")
        name = next(
            (name for name, share in QUANTILES.items() if stated == str(share)), None
        )
        if name is not None:
            self._quantiles[_joined(slashed(family), what) + f"/{name}"].append(
                sample.value
            )

    def _histogram(
        self, worker: str, sample: PrometheusSample, family: str, part: str, what: str
    ) -> None:
        grown, _ = self._grown(worker, sample, None)
        if part != "bucket":
            self._sums[family, what][part] += grown
            return
        try:
            bound = float(dict(sample.labels).get("le", "nan"))
        except ValueError:
            return
        if not math.isnan(bound):
            self._buckets[family, what][bound] += grown

    def _counter(
        self, worker: str, sample: PrometheusSample, what: str, time: float | None
    ) -> None:
        name = sample.name
        grown, seconds = self._grown(worker, sample, time)
        if seconds is not None:
            self._rates[name.removesuffix("_total"), what] += grown / seconds
        if (self._all and seconds is None) or KEPT_TOTALS.fullmatch(name):
            self._totals[name, what] += sample.value
            self.whole = True

    def _grown(
        self, worker: str, sample: PrometheusSample, time: float | None
    ) -> tuple[float, float | None]:
        """Return by how much a counter has grown since the scrape before, and in how many seconds
        if that is known.

        Without an earlier one, that is all of it; a process that began anew counts from 0.
        """
        series = (worker, *sample.series)
        before = self._before.get(series)
        self._before[series] = sample.value, time
        if before is None:
            self.whole = True
            return sample.value, None
        grown = sample.value - before[0] if sample.value >= before[0] else sample.value
        seconds = 0.0
        if time is not None and before[1] is not None:
            seconds = time - before[1]
        return grown, seconds if seconds > 0 else None

    def figures(
        self, keys: Mapping[str, str]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the figures of the step and those measured by the clock, by key.

        Args:
            keys: Names whose keys in the log our exporter states.
        """
        metrics: dict[str, float] = {}
        readings: dict[str, float] = {}
        parts: dict[str, int] = defaultdict(int)
        for (name, what), values in self._levels.items():
            parts[name] += 1
            if parts[name] > _MOST_PARTS or (keys and name in SUMMARIES):
                continue
            own, factor = key_and_factor(name, keys)
            level = (
                sum(values)
                if ADDED.fullmatch(name) and not keys.get(name)
                else _mean(values)
            )
            (readings if BY_CLOCK.fullmatch(name) else metrics)[_joined(own, what)] = (
                level * factor
            )
        readings |= self._counted(keys)
        return metrics, readings

    def _counted(self, keys: Mapping[str, str]) -> dict[str, float]:
        """Return what comes of counters, histograms and summaries."""
        out = {
            _joined(f"{slashed(name)}_per_second", what): rate
            for (name, what), rate in self._rates.items()
        }
        out |= {
            _joined(slashed(name), what): total
            for (name, what), total in self._totals.items()
        }
        out |= {key: _mean(values) for key, values in self._quantiles.items()}
        repeated = SUMMARIES if keys else frozenset()
        for (name, what), sums in self._sums.items():
            if sums["count"] > 0 and name not in repeated:
                out[_joined(slashed(name), what)] = sums["sum"] / sums["count"]
        for (name, what), buckets in self._buckets.items():
            if name not in repeated:
                out |= _quantiles(_joined(slashed(name), what), buckets)
        return out


def _quantiles(key: str, buckets: Mapping[float, float]) -> dict[str, float]:
    """Return the quantiles of a histogram by key."""
    found = {
        f"{key}/{part}": quantile(buckets, share) for part, share in QUANTILES.items()
    }
    return {name: value for name, value in found.items() if value is not None}


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
    wanted = share * count
    below = 0.0
    lower = min(0.0, bounds[0])
    for bound in bounds[:-1]:
        up_to = max(below, buckets[bound])
        if up_to >= wanted:
            if up_to == below:
                return bound
            return lower + (bound - lower) * (wanted - below) / (up_to - below)
        below = up_to
        lower = bound
    return lower


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


def _cut(figures: Mapping[str, float], most: int) -> dict[str, float]:
    return {safe(key, 300): value for key, value in islice(figures.items(), most)}


def _mean(values: Sequence[float]) -> float:
    if all(map(math.isfinite, values)):
        return mean(values)
    return sum(values) / len(values)
