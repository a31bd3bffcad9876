"""Runs as Prometheus sees them: the newest value of everything, under the names of
`verl_tui.prometheus_names`.

Neither a step nor a model's text is ever a label, and the number of series is bounded; what is left
out is reported.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from prometheus_client.core import Metric

from verl_tui import prometheus_names as names
from verl_tui.failures import note_failure
from verl_tui.indicators import INDICATORS, factor
from verl_tui.means import gathered
from verl_tui.prometheus_names import Name, names_of
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.devices import logged_devices
from verl_tui.runs.views.state import State, state
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.health.finding import Verdict
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run


_PER_SAMPLE = "timing_s/agent_loop/generate_sequences/mean"
"""Mean time that verl's agent loop takes for one sample; `generation_time` is that of a whole
batch.
"""
_MAYBE_SHARES = frozenset({"gpu_utilization", "gpu_memory"})
"""Indicators that some logs write as percentages and others as shares of 1."""
_KINDS = {
    names.GENERATION: "histogram",
    **dict.fromkeys(
        (names.STEPS, names.SOURCE_RECORDS, names.SOURCE_UNREADABLE), "counter"
    ),
}
"""Types of the families that are no gauges."""
_OF_LOG = "The log's metric; its key is in verl_metric_info."


class Exposition(NamedTuple):
    """All metrics at one moment; immutable, so that any thread may read it."""

    families: Sequence[Metric]
    left_out: tuple[str, ...] = ()
    """One sentence for each limit that left something out, and for each run with something
    missing.
    """

    def collect(self) -> Iterable[Metric]:
        """Return the families, as a collector of prometheus-client does."""
        return self.families


def exposition(
    monitor: Monitor, now: float, *, most_runs: int = 100, most_metrics: int = 500
) -> Exposition:
    """Return all metrics as they are now.

    Args:
        monitor: Has read and judged.
        now: Seconds since the epoch.
        most_runs: Runs that are exported, those whose newest record is youngest.
        most_metrics: Metrics of each: its indicators, then others in the order of the log.
    """
    out = _Families()
    known = [run for run in monitor.runs.values() if run.sources]
    newest = sorted(known, key=lambda run: -(run.last_record or 0.0))
    runs = newest[:most_runs]
    out.left["runs"] = len(newest) - len(runs)
    for gpu in monitor.gpus.gpus if monitor.gpus else ():
        if gpu.memory_used is not None:
            out.add(names.GPU_MEMORY, gpu.memory_used, device=gpu.index)
    labelled = _labelled(runs).items()
    said = [_add(out, monitor, *one, now, most_metrics) for one in labelled]
    for kind, most in (
        ("runs", f"{most_runs:,}"),
        ("metrics", f"{most_metrics:,} of a run"),
    ):
        left = out.left[kind]
        out.add(names.LEFT_OUT, left, kind=kind)
        if left:
            what = counted(left, kind.removesuffix("s"))
            said.append(f"{what} left out: at most {most} exported")
    return Exposition(out.families(), tuple(filter(None, said)))


def _add(
    out: _Families,
    monitor: Monitor,
    label: str,
    run: Run,
    now: float,
    most: int,
) -> str:
    """Add a run's metrics; return why some are missing, empty if none is."""
    try:
        _metrics(out, run, label, most)
        for family, value, labels in chain(
            _progress(run, now),
            _indicators(run),
            _devices(run),
            _sources(run),
            _generation_times(run),
            _bands(run, monitor),
            _findings(monitor.verdicts.get(run.name)),
        ):
            out.add(family, value, run=label, **labels)
    except Exception as error:  # noqa: BLE001 - one run's failure is no other's
        why = note_failure(f"exporting {run.name}", error)
        return f"{run.name}: metrics are missing: {why}"
    return ""


class _Families:
    """Samples by family. Of two with the same labels the first counts: scrapers refuse both."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}
        self._taken: set[tuple[str, ...]] = set()
        self._keys: dict[tuple[str, str], None] = {}
        self.left: Counter[str] = Counter()
        """Number left out, by kind."""

    def add(self, family: str, value: float, suffix: str = "", **labels: str) -> None:
        """Add a sample; labels without a value are left out."""
        labels = {name: text for name, text in labels.items() if text}
        place = (family, suffix, *labels, *labels.values())
        if place not in self._taken:
            self._taken.add(place)
            self._family(family).add_sample(family + suffix, labels, float(value))

    def metric(self, name: str, key: str, run: str, value: float) -> None:
        """Add a log's own metric."""
        self._keys[name, key] = None
        self._family(name).add_sample(name, {"run": run}, value)

    def families(self) -> list[Metric]:
        """Return all families, those of the exporter first."""
        for name, key in self._keys:
            self.add(names.INFO, 1, name=name, key=one_line(key))
        own = [name for name in names.OWN if name in self._families]
        others = sorted(self._families.keys() - names.OWN.keys())
        return [self._families[name] for name in (*own, *others)]

    def _family(self, name: str) -> Metric:
        if name not in self._families:
            kind = _KINDS.get(name, "gauge")
            words = names.OWN.get(name, _OF_LOG)
            # The client writes a counter's `_total` itself.
            stem = name.removesuffix("_total") if kind == "counter" else name
            self._families[name] = Metric(stem, words, kind)
        return self._families[name]


def _labelled(runs: Sequence[Run]) -> dict[str, Run]:
    """Return each run by a unique label."""
    labels: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.name):
        name = one_line(run.name) or "run"
        numbered = (f"{name} ({number})" for number in count(2))
        labels[next(one for one in chain([name], numbered) if one not in labels)] = run
    return labels


_Samples: TypeAlias = "Iterator[tuple[str, float, Mapping[str, str]]]"
"""Family, value, and labels beside that of the run."""


def _progress(run: Run, now: float) -> _Samples:
    validation = run.present(run.indicators.get("validation"))
    progress = {
        names.STEPS: run.step,
        names.TOTAL_STEPS: run.total_steps,
        names.LAST_STEP: run.last_record,
        names.LAST_VALIDATION: validation.steps[-1] if validation else None,
    }
    for name, value in progress.items():
        if value is not None:
            yield name, value, {}
    yield names.RUN, 1, {"run_id": one_line(run_id(run))}
    current = state(run, now)
    for one in State:
        yield names.STATE, one is current, {"state": one.value}


def _indicators(run: Run) -> _Samples:
    for id in INDICATORS:
        key = run.indicators.get(id)
        value = _last(run, key)
        if key is None or value is None:
            continue
        value *= factor(id, key)
        in_base_units = value * _factor(run, key, names.named(key))
        yield names.INDICATOR, in_base_units, {"indicator": id}
        if id == "reward":
            yield names.REWARD, value, {}


def _bands(run: Run, monitor: Monitor) -> _Samples:
    for id, key in run.indicators.items():
        for bound, value in zip(("low", "high"), monitor.band(run, id), strict=True):
            if value is not None:
                # A band is in the indicator's unit, whichever way the log writes it.
                end = value * names.named(key).factor
                yield names.BAND, end, {"indicator": id, "bound": bound}


def _metrics(out: _Families, run: Run, label: str, most: int) -> None:
    keys = [*dict.fromkeys((*run.indicators.values(), *run.keys))]
    # Names are given in the log's own order, so that they do not depend on the limit.
    named = names_of(run.keys)
    for key in keys[:most]:
        name = named[key]
        value = _last(run, key)
        if value is not None:
            out.metric(name.name, key, label, value * _factor(run, key, name))
    out.left["metrics"] += max(0, len(keys) - most)


def _last(run: Run, key: str | None) -> float | None:
    values = run.tail(key, 1) if key is not None else ()
    return values[-1] if values else None


def _factor(run: Run, key: str, name: Name) -> float:
    """Return the factor to the base unit, 1 for a percentage that this log writes as a share of
    1.
    """
    if name.factor != 0.01 or key not in map(run.indicators.get, _MAYBE_SHARES):
        return name.factor
    series = run.series(key)
    if series is not None and series.highest <= 1.0:
        return 1.0
    return name.factor


def _devices(run: Run) -> _Samples:
    for gpu, node, *_ in logged_devices(run):
        if gpu.memory_used is not None:
            where = {"node": one_line(node), "device": one_line(gpu.index)}
            yield names.GPU_MEMORY, gpu.memory_used, where


def _sources(run: Run) -> _Samples:
    """Yield the state of the sources, combined by format: W&B writes one file per table, and each
    would be a series.
    """
    formats = gathered((one_line(one.title), one) for one in run.statuses)
    for format, status in formats.items():
        of = {"format": format}
        yield names.SOURCE_UP, all(one.problem is None for one in status), of
        yield names.SOURCE_RECORDS, sum(one.records for one in status), of
        yield names.SOURCE_UNREADABLE, sum(one.unreadable for one in status), of
        changed = [one.modified for one in status if one.modified is not None]
        if changed:
            yield names.SOURCE_CHANGED, max(changed), of


def _findings(verdict: Verdict | None) -> _Samples:
    for one in verdict.findings if verdict else ():
        what = {"id": one.id, "severity": one.severity.word}
        if one.consequence_of is None:
            yield names.FINDING, 1, what
        else:
            yield names.FOLLOWS, 1, {**what, "cause": one.consequence_of}
    for past in verdict.history if verdict else ():
        yield names.FINDING, 0, {"id": past.id, "severity": past.severity.word}


def _generation_times(run: Run) -> _Samples:
    """Yield the histogram of the generation times."""
    series = run.series(_PER_SAMPLE) or run.indicator("generation_time")
    values = np.asarray(series.values if series is not None else ())
    values = values[np.isfinite(values)]
    if not values.size:
        return
    for bound in (*names.GENERATION_BUCKETS, math.inf):
        le = "+Inf" if bound == math.inf else str(bound)
        count = int(np.count_nonzero(values <= bound))
        yield names.GENERATION, count, {"suffix": "_bucket", "le": le}
    yield names.GENERATION, values.size, {"suffix": "_count"}
    yield names.GENERATION, float(values.sum()), {"suffix": "_sum"}
