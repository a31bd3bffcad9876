"""Turns pages into series of one moment: counters into rates, histograms into quantiles.

Labels that name the process (engine, replica, …) do not distinguish metrics: counts are summed over
them. Other labels stay in the key, behind a `/`. The labels' names decide which is which, a
heuristic.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.metrics import slashed
from verl_tui.sources.fields.jsonl import written_number
from verl_tui.sources.formats.prometheus_text.machines import CPU_SECONDS, node_of, on
from verl_tui.sources.formats.prometheus_text.names import (
    KEPT_TOTALS,
    KEY,
    NO_METRIC,
    QUANTILES,
    STEPS,
    SUMMARIES,
    PrometheusSeries,
    of_subject,
    subject,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from verl_tui.sources.formats.prometheus_text.page import PrometheusSample, Scrape


class PageFigures:
    """Takes pages of a run's workers in their order, and remembers what counters were at."""

    def __init__(self, *, totals: bool = False) -> None:
        """Begin with nothing.

        Args:
            totals: Whether a counter is shown by its total as long as there is no rate: for a saved
                page there never is one.
        """
        self._totals = totals
        self._counts: dict[tuple[object, ...], _Count] = {}
        """By worker and series."""
        self._since_start = False
        """True if some figure is of all the time since a process began."""

    @property
    def note(self) -> str | None:
        """Return what should be known of the figures."""
        if not (self._totals and self._since_start):
            return None
        return "counters and quantiles are of all the time since the process began"

    def take(
        self,
        pages: Mapping[str, tuple[Scrape, float | None]],
        at: float,
    ) -> tuple[list[PrometheusSeries], dict[str, str]]:
        """Return the series at one moment, and the log's own keys as our exporter states them.

        A page that was taken before counts as it did then.

        Args:
            pages: The newest page of each worker by its address, with when it was asked for, in
                seconds since the epoch, if that is known.
            at: The moment.
        """
        self._since_start = False
        lines: list[PrometheusSeries] = []
        found = _Computed()
        keys: dict[str, str] = {}
        for worker, (page, time) in pages.items():
            keys |= page.keys
            instance = {"instance": instance_of(worker)} if worker else {}
            for sample in page.samples:
                labels = {**instance, **dict(sample.labels)}
                family, form = _form(sample.name, page.kinds)
                if form and not _is_plain(sample.name):
                    count = self._grown(worker, sample, time)
                    self._add(found, family, form, labels, count)
                else:
                    one = PrometheusSeries(sample.name, labels, {at: sample.value})
                    lines.append(one)
        figures = found.figures(SUMMARIES if keys else set())
        lines += [
            PrometheusSeries("", {KEY: key}, {at: figures[key]}) for key in figures
        ]
        return lines, keys

    def _add(
        self,
        found: _Computed,
        family: str,
        form: str,
        labels: Mapping[str, str],
        count: _Count,
    ) -> None:
        """Take a counter, or a part of a histogram or summary."""
        of = subject(labels.items())
        if form == "processor":
            if count.seconds is not None:
                idle = labels.get("mode") in ("idle", "iowait")
                found.processors[node_of(labels)][idle] += count.grown
        elif form != "counter":
            part = written_number(labels.get("le", "nan")) if form == "bucket" else form
            found.parts[family, of][part] += count.grown
        else:
            if count.seconds is not None:
                stem = slashed(family.removesuffix("_total"))
                rate = count.grown / count.seconds
                found.added[of_subject(f"{stem}_per_second", of)] += rate
            total = self._totals and count.seconds is None
            if total or KEPT_TOTALS.fullmatch(family):
                found.added[of_subject(slashed(family), of)] += count.sample.value
                self._since_start = True

    def _grown(
        self, worker: str, sample: PrometheusSample, time: float | None
    ) -> _Count:
        """Return by how much a counter has grown since the page before, and in how many seconds if
        that is known.

        Without an earlier one, that is all of it; a process that began anew counts from 0.
        """
        series = (worker, *sample.series)
        before = self._counts.get(series)
        grown, seconds = sample.value, None
        if before is None:
            self._since_start = True
        elif before.sample is sample and before.time == time:
            return before
        else:
            if sample.value >= before.sample.value:
                grown -= before.sample.value
            if time is not None and before.time is not None and time > before.time:
                seconds = time - before.time
        count = self._counts[series] = _Count(sample, time, grown, seconds)
        return count


class _Count(NamedTuple):
    """A counter on a page."""

    sample: PrometheusSample
    time: float | None
    """When the page was asked for."""
    grown: float
    """By how much it has grown since the page before."""
    seconds: float | None
    """How long ago that was, None where unknown."""


class _Computed:
    """What the counters, histograms and summaries of a moment come to."""

    def __init__(self) -> None:
        self.added: dict[str, float] = _zeros()
        """By key: rates and totals, which are summed over workers."""
        self.parts: dict[tuple[str, str], dict[Any, float]] = defaultdict(_zeros)
        """Sum, count and buckets by upper bound of histograms and summaries, by name and what they
        are of.
        """
        self.processors: dict[str, dict[bool, float]] = defaultdict(_zeros)
        """By node: seconds with work and without."""

    def figures(self, repeated: Collection[str]) -> dict[str, float]:
        """Return all by key but what repeats metrics."""
        out = dict(self.added)
        for (name, of), parts in self.parts.items():
            if name in repeated:
                continue
            key = of_subject(slashed(name), of)
            if parts["count"] > 0:
                out[key] = parts["sum"] / parts["count"]
            buckets = {one: parts[one] for one in parts if isinstance(one, float)}
            for part, share in QUANTILES.items():
                if (value := quantile(buckets, share)) is not None:
                    out[f"{key}/{part}"] = value
        for node, seconds in self.processors.items():
            if (whole := sum(seconds.values())) > 0:
                out[on("cluster/cpu", node)] = 100.0 * seconds[False] / whole
        return out


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
    bounds = sorted(one for one in buckets if not math.isnan(one))
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


@lru_cache(maxsize=16_384)
def _is_plain(name: str) -> bool:
    """Return whether a series is what it is whatever its type: steps, and what is no metric."""
    return bool(STEPS.fullmatch(name) or NO_METRIC.fullmatch(name))


def _form(name: str, kinds: Mapping[str, str]) -> tuple[str, str]:
    """Return the metric that a series belongs to, and how it counts: as `counter`, as seconds of a
    `processor`, as a part of a histogram or summary; empty for a level.
    """
    stem, _, part = name.rpartition("_")
    if name in kinds or part not in ("bucket", "sum", "count", "total"):
        stem, part = name, ""
    kind = kinds.get(stem, "")
    if part == "bucket" or kind in ("histogram", "summary"):
        return stem, part or "quantile"
    if name == CPU_SECONDS:
        return name, "processor"
    is_counter = kind == "counter" or (part == "total" and stem not in kinds)
    return name, "counter" if is_counter else ""
