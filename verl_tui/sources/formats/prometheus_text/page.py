"""A page of metrics in Prometheus's text format or OpenMetrics, read by prometheus-client, and what
pages come to at one moment: gauges as they are, counters as rates, histograms as quantiles.

Labels that name the process (engine, replica, …) do not distinguish metrics: counts are summed over
them. Other labels stay in the key, behind a `/`.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui import prometheus_names
from verl_tui.metrics import slashed
from verl_tui.sources.fields.jsonl import written_number
from verl_tui.sources.formats.prometheus_text.names import (
    CPU_SECONDS,
    KEY,
    QUANTILES,
    STEPS,
    TABLE,
    PrometheusSeries,
    node_of,
    of_subject,
    on,
    run_labels,
)
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.sources.formats.prometheus_text.names import Labels

NOBODYS = ""
"""Stands for the figures on a page of several runs that belong to none."""
MISSING = "needs prometheus-client to be read: pip install 'verl-tui[prometheus]'"
_MODES = {"idle": "idle", "iowait": "idle"}
"""Modes of a processor that does nothing."""
_COUNTED = ("counter", "histogram", "summary")
_TOTALS = {name for name, how in TABLE["engines"].items() if how == "count"}
"""Counters of failures, whose number says more than a rate."""


class PageSample(NamedTuple):
    """A sample, with its metric and the type of that."""

    metric: str
    kind: str
    name: str
    labels: Mapping[str, str]
    value: float


class Page(NamedTuple):
    """What a page says of each run."""

    runs: Mapping[str, Sequence[PageSample]]
    """By name, the figures of none under `NOBODYS`; the whole page where it is of one run."""
    keys: Mapping[str, str]
    """The log's own keys by the names of their series, as far as our exporter states them."""
    flaw: tuple[int, str] | None
    """The line from which on it could not be read, and why."""


def read_page(data: bytes) -> Page:
    """Parse the bytes of a page; never raises for their content.

    Raises:
        ModuleNotFoundError: There is nothing to read it with.
    """
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics

    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    text, _, cut = text.rpartition("\n")
    flaw = None
    if cut.strip() and not cut.startswith("#"):  # it may lack digits
        flaw = text.count("\n") + 2, "its last line has no end"
    whole = f"{text}\n{cut}" if cut.startswith("#") else f"{text}\n"
    form = openmetrics if whole.rstrip().endswith("# EOF") else parser
    file = io.StringIO(whole)
    samples: list[PageSample] = []
    try:
        for metric in form.text_fd_to_metric_families(file):
            samples += [
                PageSample(metric.name, metric.type, one.name, one.labels, one.value)
                for one in metric.samples
            ]
    except Exception as error:  # noqa: BLE001 - anybody's bytes
        why = f"cannot be read from here on: {one_line(str(error), 100)}"
        flaw = whole.count("\n", 0, file.tell()), why
    return Page(_runs(samples), _keys(samples), flaw)


def _keys(samples: Sequence[PageSample]) -> dict[str, str]:
    infos = [one.labels for one in samples if one.name == prometheus_names.INFO]
    return {one.get("name", ""): one.get("key", "") for one in infos}


def _runs(samples: Sequence[PageSample]) -> dict[str, list[PageSample]]:
    """Return the samples of a page by run; with their projects where two are called alike."""
    parts: dict[Labels, list[PageSample]] = defaultdict(list)
    for sample in samples:
        parts[run_labels(sample.labels, by_job=False)].append(sample)
    shared = parts.pop((), [])
    are_alike = len({own[-1] for own in parts}) < len(parts)
    runs = {
        one_line("/".join(value for _, value in own[-1 - are_alike :]), 120): part
        for own, part in parts.items()
    }
    if len(runs) == 1:
        return {name: shared + part for name, part in runs.items()}
    return {**runs, NOBODYS: shared} if shared or not runs else runs


class PageFigures:
    """Takes pages of a run's workers in their order, and remembers what counters were at.

    Args:
        saved: Whether pages are saved ones, where a counter is shown by its total as long as there
            is no rate.
    """

    def __init__(self, *, saved: bool = False) -> None:
        self._saved = saved
        self._seen: dict[str, tuple[_Counts, _Counts]] = {}
        """The counts of a worker's page before the newest, and of that."""

    @property
    def note(self) -> str | None:
        """Return what should be known of the figures."""
        alone = [one for one in self._seen.values() if one[1][1] and not one[0][1]]
        why = "counters and quantiles are of all the time since the process began"
        return why if self._saved and alone else None

    def take(
        self,
        pages: Mapping[str, tuple[Sequence[PageSample], float | None]],
        at: float,
    ) -> list[PrometheusSeries]:
        """Return the series at one moment. A page that was taken before counts as it did then.

        Args:
            pages: The newest page of each worker by its address, with when it was asked for, in
                seconds since the epoch, if that is known.
            at: The moment.
        """
        lines: list[PrometheusSeries] = []
        sums: dict[str, dict[Any, float]] = defaultdict(lambda: defaultdict(float))
        for worker, (samples, time) in pages.items():
            of_worker = {"instance": instance_of(worker)} if worker else {}
            own = [one._replace(labels={**of_worker, **one.labels}) for one in samples]
            lines += [
                PrometheusSeries(one.name, one.labels, {at: one.value})
                for one in own
                if not _is_count(one)
            ]
            counts = filter(_is_count, own)
            for key, part, amount in self._counted(worker, counts, time):
                sums[key][part] += amount
        for key, figure in chain.from_iterable(starmap(_figures, sums.items())):
            lines.append(PrometheusSeries("", {KEY: key}, {at: figure}))
        return lines

    def _counted(
        self, worker: str, counts: Iterable[PageSample], time: float | None
    ) -> Iterator[tuple[str, Any, float]]:
        """Yield what is added up of a worker's counts: keys, which part of their figures, and the
        amount since the page before.
        """
        before, now = self._seen.get(worker, (_NOTHING, _NOTHING))
        if time is None or now[0] != time:
            before, now = now, (time, {})
            self._seen[worker] = before, now
        seconds = max(0.0, time - before[0]) if time and before[0] else 0.0
        for one in counts:
            series = one.name, *one.labels.items()
            now[1][series] = one.value
            known = before[1].get(series, 0.0)
            # a process that began anew counts from 0
            grown = one.value - (known if known <= one.value else 0.0)
            yield from self._parts(one, grown, seconds)

    def _parts(
        self, sample: PageSample, grown: float, seconds: float
    ) -> Iterator[tuple[str, Any, float]]:
        metric, kind, name, labels, value = sample
        key = of_subject(slashed(metric), labels)
        if name == CPU_SECONDS:
            part = _MODES.get(labels.get("mode", ""), "busy")
            yield on("cluster/cpu", node_of(labels)), part, grown * bool(seconds)
        elif kind != "counter":
            part = name.rpartition("_")[2]
            le = written_number(labels.get("le", "")) if part == "bucket" else None
            yield key, part if le is None else le, grown
        elif name in _TOTALS or (self._saved and not seconds):
            yield of_subject(slashed(name), labels), "total", value
        elif seconds:
            rate = of_subject(f"{slashed(metric)}_per_second", labels)
            yield rate, "total", grown / seconds


_Counts: TypeAlias = "tuple[float | None, dict[object, float]]"
_NOTHING: _Counts = (None, {})


def _is_count(sample: PageSample) -> bool:
    return sample.kind in _COUNTED and sample.name not in STEPS


def _figures(key: str, parts: Mapping[Any, float]) -> Iterator[tuple[str, float]]:
    """Yield what the parts of a count, histogram or summary come to, each with its key."""
    if "total" in parts:
        yield key, parts["total"]
    if processor := parts.get("busy", 0.0) + parts.get("idle", 0.0):
        yield key, 100.0 * parts.get("busy", 0.0) / processor
    if parts.get("count", 0.0) > 0:
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
    import numpy as np  # after the first frame

    count = buckets.get(math.inf, 0.0)
    bounds = sorted(one for one in buckets if math.isfinite(one))
    if not bounds or not 0 < count < math.inf:
        return None
    up_to = np.maximum.accumulate([0.0, *(buckets[bound] for bound in bounds)])
    return float(np.interp(share * count, up_to, [min(0.0, bounds[0]), *bounds]))
