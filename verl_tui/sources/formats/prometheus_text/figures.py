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
from itertools import accumulate, chain, starmap
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_tui.metrics import slashed
from verl_tui.sources.fields.jsonl import written_number
from verl_tui.sources.formats.prometheus_text.names import (
    CPU_SECONDS,
    KEPT_TOTALS,
    KEY,
    NO_METRIC,
    QUANTILES,
    STEPS,
    SUMMARIES,
    PrometheusSeries,
    node_of,
    of_subject,
    on,
    subject,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.sources.formats.prometheus_text.page import Scrape


class PageFigures:
    """Takes pages of a run's workers in their order, and remembers what counters were at.

    Args:
        saved: Whether pages are saved ones, where a counter is shown by its total as long as there
            is no rate.
    """

    def __init__(self, *, saved: bool = False) -> None:
        self._saved = saved
        self._counts: dict[object, tuple[float, float | None, _Growth]] = {}
        """Value, time and growth by worker and series."""
        self.note: str | None = None
        """What should be known of the figures."""

    def take(
        self, pages: Mapping[str, tuple[Scrape, float | None]], at: float
    ) -> tuple[list[PrometheusSeries], dict[str, str]]:
        """Return the series at one moment, and the log's own keys as our exporter states them.

        A page that was taken before counts as it did then.

        Args:
            pages: The newest page of each worker by its address, with when it was asked for, in
                seconds since the epoch, if that is known.
            at: The moment.
        """
        self.note = None
        lines: list[PrometheusSeries] = []
        found: dict[tuple[str, str], dict[Any, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        keys: dict[str, str] = {}
        for worker, (page, time) in pages.items():
            keys |= page.keys
            instance = {"instance": instance_of(worker)} if worker else {}
            for (name, labels), value in page.samples.items():
                own = {**instance, **dict(labels)}
                stem, form = _form(name, page.kinds)
                if form:
                    grown = self._growth((worker, name, labels), value, time)
                    of, parts = self._parts(name, form, own, value, grown)
                    for part, amount in parts.items():
                        found[stem, of][part] += amount
                else:
                    lines.append(PrometheusSeries(name, own, {at: value}))
        for repeated in SUMMARIES if keys else ():
            found.pop((repeated, ""), None)
        for key, figure in chain.from_iterable(starmap(_figures, found.items())):
            lines.append(PrometheusSeries("", {KEY: key}, {at: figure}))
        return lines, keys

    def _parts(
        self,
        name: str,
        form: str,
        labels: Mapping[str, str],
        value: float,
        growth: _Growth,
    ) -> tuple[str, dict[Any, float]]:
        """Return what a counter is of, and what is added up of it."""
        grown, seconds = growth
        of = subject(labels.items())
        if form == "processor":
            idle = labels.get("mode") in ("idle", "iowait")
            own = {"idle" if idle else "busy": grown if seconds else 0.0}
            return node_of(labels), own
        if form == "bucket":
            return of, {written_number(labels.get("le", "nan")): grown}
        if form != "counter":
            return of, {form: grown}
        rate = {} if seconds is None else {"rate": grown / seconds}
        if (self._saved and seconds is None) or KEPT_TOTALS.fullmatch(name):
            self._note_all()
            return of, {**rate, "total": value}
        return of, rate

    def _growth(
        self, series: tuple[object, ...], value: float, time: float | None
    ) -> _Growth:
        """Return by how much a counter has grown since the page before, and in how many seconds if
        that is known.

        Without an earlier one, that is all of it; a process that began anew counts from 0.
        """
        known, before, growth = self._counts.get(series, (None, None, (0.0, None)))
        if known is None:
            self._note_all()
        elif time is not None and time == before:
            return growth
        seconds = time - before if time and before and time > before else None
        growth = value - (known if known is not None and known <= value else 0), seconds
        self._counts[series] = value, time, growth
        return growth

    def _note_all(self) -> None:
        if self._saved:
            self.note = (
                "counters and quantiles are of all the time since the process began"
            )


_Growth: TypeAlias = "tuple[float, float | None]"


def _figures(whole: tuple[str, str], parts: Mapping[Any, float]) -> Iterator[Any]:
    """Yield what the parts of a counter, histogram or summary come to, each with its key."""
    name, of = whole
    if name == CPU_SECONDS:
        if (seconds := sum(parts.values())) > 0:
            yield on("cluster/cpu", of), 100.0 * parts["busy"] / seconds
        return
    key = of_subject(slashed(name), of)
    if "rate" in parts:
        stem = slashed(name.removesuffix("_total"))
        yield of_subject(f"{stem}_per_second", of), parts["rate"]
    if "total" in parts:
        yield key, parts["total"]
    if parts["count"] > 0:
        yield key, parts["sum"] / parts["count"]
    buckets = {one: parts[one] for one in parts if isinstance(one, float)}
    for part, share in QUANTILES.items():
        if (value := quantile(buckets, share)) is not None:
            yield f"{key}/{part}", value


def instance_of(worker: str) -> str:
    """Return host and port of a worker, whose name is its address."""
    return worker.partition("://")[2].partition("/")[0] or worker


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
    if _is_plain(name):
        return name, ""
    if name in kinds or part not in ("bucket", "sum", "count", "total"):
        stem, part = name, ""
    kind = kinds.get(stem, "")
    if part == "bucket" or kind in ("histogram", "summary"):
        return stem, part or "quantile"
    if name == CPU_SECONDS:
        return name, "processor"
    counts = kind == "counter" or (part == "total" and stem not in kinds)
    return name, "counter" * counts
