"""Pages of metrics in Prometheus's text format or OpenMetrics, read by prometheus-client, and what
they come to at one moment: gauges as they are, counters as rates, histograms as quantiles. Files
with saved ones: `curl … > node.prom`, textfiles of node_exporter.

Labels that name the process (engine, replica, …) do not distinguish metrics: counts are summed over
them. Other labels stay in the key, behind a `/`.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from verl_tui import prometheus_names
from verl_tui.means import gathered
from verl_tui.metrics import slashed
from verl_tui.patterns import pattern
from verl_tui.records import Records, Unreadable
from verl_tui.sources.fields.jsonl import written_number
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.files import status_at
from verl_tui.sources.formats.format import WholeReader
from verl_tui.sources.formats.prometheus_text.series import (
    KEY,
    STEPS,
    TABLE,
    PrometheusSeries,
    StepRows,
    node_of,
    of_subject,
    on,
    run_labels,
    run_name,
)
from verl_tui.text import decoded, one_line

name = "Prometheus metrics"
rank = 1  # the newest value that somebody came by to see: any log of the run knows more
anchor = True

NOBODYS = ""
"""Stands for the figures on a page of several runs that belong to none."""
MISSING = "needs prometheus-client to be read: pip install 'verl-tui[prometheus]'"
LARGEST = 32 * 2**20
"""Bytes of a page; Prometheus itself takes what is given, exporters of large clusters write some
MB.
"""
_TYPE = pattern(
    r"#[ \t]+TYPE[ \t]+\S{1,400}[ \t]+"
    r"(?:counter|gauge|histogram|summary|untyped|unknown|info|gaugehistogram|stateset)\s*"
)
_SAMPLE = pattern(r"[A-Za-z_:][\w:]{0,300}(?:\{[^}]*\})?[ \t]+[-+\d.eE]+\s*")
_COUNTED = ("counter", "histogram", "summary")
_TOTALS = {name for name, how in TABLE["engines"].items() if how == "count"}
"""Counters of failures, whose number says more than a rate."""
_SHORTEST = 1e-3
"""Seconds between two pages that a rate is taken over: a file may be replaced by an older one."""


def matches(path: Path, head: bytes) -> bool:
    """Return True if a file begins like a page of metrics: with a metric's type, or by its name
    with a sample.
    """
    lines = [*filter(str.strip, decoded(head).split("\n", 60)[:60])]
    if any(map(_TYPE.fullmatch, lines)) and lines[0].startswith("#"):
        return True
    is_named = path.suffix.lower() == ".prom"
    return is_named and bool(lines) and _SAMPLE.fullmatch(lines[0]) is not None


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
    flaw: tuple[int, str] | None
    """The line from which it could not be read, and why."""


def read_page(data: bytes) -> Page:
    """Parse the bytes of a page; never raises for their content.

    Raises:
        ModuleNotFoundError: There is nothing to read it with.
    """
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics

    text, _, cut = decoded(data).replace("\r\n", "\n").rpartition("\n")
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
    return Page(_runs(samples), flaw)


def _runs(samples: Sequence[PageSample]) -> dict[str, list[PageSample]]:
    """Return the samples of a page by run; of several runs each with the log's own keys, which are
    stated for all.
    """
    parts = gathered((run_labels(one.labels, by_job=False), one) for one in samples)
    shared = parts.pop((), [])
    keys = [one for one in shared if one.name == prometheus_names.INFO]
    if len(parts) == 1:
        keys, shared = shared, []
    runs: dict[str, list[PageSample]] = {}
    for own, part in parts.items():
        runs[run_name(own, runs)] = keys + part
    if shared or not runs:
        runs[NOBODYS] = shared
    return runs


class PageFigures:
    """Takes the pages of a process in their order, and remembers what counters were at.

    Args:
        instance: Host and port of the process; none of saved pages, where a counter is shown by its
            total as long as there is no rate.
    """

    def __init__(self, instance: str = "") -> None:
        self._process = {"instance": instance} if instance else {}
        self._then = math.inf
        """When the newest page was asked for."""
        self._known: dict[object, float] = {}
        """Its counts."""
        self.note: str | None = None
        """What should be known of the figures."""

    def series(
        self, samples: Sequence[PageSample], at: float
    ) -> list[PrometheusSeries]:
        """Return the series of a page at the moment at which it was asked for, in seconds since the
        epoch.
        """
        took = at - self._then
        seconds = took if took > _SHORTEST else 0.0
        known, self._known = self._known, {}
        self._then = at
        lines: list[PrometheusSeries] = []
        sums: dict[str, dict[Any, float]] = defaultdict(lambda: defaultdict(float))
        for sample in samples:
            one = sample._replace(labels={**self._process, **sample.labels})
            if one.kind not in _COUNTED or one.name in STEPS:
                lines.append(PrometheusSeries(one.name, one.labels, {at: one.value}))
                continue
            series = one.name, *one.labels.items()
            self._known[series] = one.value
            grown = _grown(known.get(series, 0.0), one.value)
            for key, part, amount in self._parts(one, grown, seconds):
                sums[key][part] += amount
        for called, figure in _figures(sums):
            lines.append(PrometheusSeries("", {KEY: called}, {at: figure}))
        alone = not self._process and self._known and not known
        why = "counters and quantiles are of all the time since the process began"
        self.note = why if alone else None
        return lines

    def _parts(
        self, sample: PageSample, grown: float, seconds: float
    ) -> Iterator[tuple[str, Any, float]]:
        """Yield what is added up of a count that has grown since the page before: keys, which part
        of their figures, and how much.
        """
        metric, kind, name, labels, value = sample
        if name == "node_cpu_seconds_total":
            part = "idle" if labels.get("mode") in ("idle", "iowait") else "busy"
            yield on("cluster/cpu", node_of(labels)), part, grown * bool(seconds)
        elif kind != "counter":
            part = name.rpartition("_")[2]
            le = written_number(labels.get("le", "")) if part == "bucket" else None
            yield of_subject(slashed(metric), labels), part if le is None else le, grown
        elif name in _TOTALS or not (self._process or seconds):
            yield of_subject(slashed(name), labels), "total", value
        elif seconds:
            rate = of_subject(f"{slashed(metric)}_per_second", labels)
            yield rate, "total", grown / seconds


def _grown(before: float, count: float) -> float:
    """Return by how much a count has grown; a process that was restarted counts from 0."""
    return count - before if before <= count else count


def _figures(sums: Mapping[str, dict[Any, float]]) -> Iterator[tuple[str, float]]:
    """Yield what the parts of counts, histograms and summaries come to, each with its key."""
    for key, parts in sums.items():
        if "total" in parts:
            yield key, parts["total"]
        if processor := parts["busy"] + parts["idle"]:
            yield key, 100.0 * parts["busy"] / processor
        if parts["count"] > 0:
            yield key, parts["sum"] / parts["count"]
        buckets = {one: parts[one] for one in parts if isinstance(one, float)}
        for part, share in TABLE["quantiles"].items():
            if (value := quantile(buckets, share)) is not None:
                yield f"{key}/{part}", value


def instance_of(address: str) -> str:
    """Return the host and port in an address."""
    return address.partition("://")[2].partition("/")[0]


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


class PageReader(WholeReader):
    """Waits for the whole page; each page that takes the place of the one before is one more
    moment.
    """

    largest = LARGEST

    ends = ()  # only the file's end shows that a page is complete

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._at = -math.inf
        self._figures = PageFigures()
        self._rows = StepRows()
        self._batcher = RowBatcher()

    @property
    def note(self) -> str | None:
        """Return a note on what a page leaves open."""
        return joined_notes(self._rows.note, self._figures.note)

    @property
    def findings(self) -> tuple[tuple[str, str], ...]:
        """Return what our exporter has found."""
        return self._rows.findings

    def finish(self) -> Records:
        """Return the records of the page, which is only complete at its end."""
        data = bytes(self._held)
        self._held.clear()
        if not data:
            return ()
        try:
            page = read_page(data)
        except ModuleNotFoundError:
            return (Unreadable(1, MISSING, ""),)
        if (count := len([*filter(None, page.runs)])) > 1:
            why = f"holds {count:,} runs: name the address of their exporter instead"
            return (Unreadable(1, why, ""),)
        written = getattr(status_at(self._path), "st_mtime", 0.0)
        # a page that takes another's place comes after it, whatever its time
        self._at = max(written, math.nextafter(self._at, math.inf))
        (own,) = page.runs.values()
        self._batcher.add(self._rows.records(self._figures.series(own, self._at)))
        flaws = (Unreadable(*page.flaw, ""),) if page.flaw else ()
        return (*flaws, *self._batcher.take())

    def goes_on(self) -> bool:
        """Expect a further page: node_exporter's textfiles are replaced as a whole."""
        super().__init__(self._path)
        return True


reader = PageReader
