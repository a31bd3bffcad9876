"""Series of Prometheus: which are metrics of training, what their labels name, and the rows of
steps that come of them, whether they are from pages or from a server.

Figures of machines have keys like those of W&B's system figures, but of the cluster:
`cluster/gpu.3.gpu/l:node-07`, since nobody says which machines a run uses.

A page shows the present values, and keeps showing them: the result of a step is the last value
before the next one. Figures measured by the clock are averaged over the step in which they were
measured.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from verl_tui import prometheus_names as ours
from verl_tui.means import clamp
from verl_tui.metrics import describe, slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.records import Event, EventKind, Progress, Restart
from verl_tui.sources.fields.row_batcher import Item, MetricRow
from verl_tui.text import one_line, safe
from verl_tui.toml_tables import toml_table

TABLE = toml_table(__file__, "exporters.toml")
"""What exporters call their figures."""
KEY = "verl_tui_key"
"""Label of a figure that was computed from series, by us or by a server: the figure's key."""
Labels = tuple[tuple[str, str], ...]
"""Names and values."""
LogKeys: TypeAlias = "Mapping[str, tuple[str, float]]"
"""The log's own keys that our exporter states, by their names, and the factors to their units."""


class PrometheusSeries(NamedTuple):
    """The values of one series over time; on a page it has one."""

    name: str
    labels: Mapping[str, str]
    points: Mapping[float, str | float]
    """Time in seconds since the epoch -> value, a number or its text: most are never parsed."""


STEPS = frozenset(TABLE["steps"])
"""Names of the progress of a run."""
_STATED = dict.fromkeys(STEPS, ours.STEPS) | {
    name: name for name in (ours.TOTAL_STEPS, ours.LAST_STEP, ours.LAST_VALIDATION)
}
"""Names of what is stated of a run's progress, and ours."""
_BY_CLOCK = NamePattern(rf"(?:{'|'.join(TABLE['by_clock'])})[_:].*")
"""Names of figures that go on whether training does or not."""
_NO_METRIC = NamePattern(
    rf"(?:{'|'.join(TABLE['of_processes'])})_.*|up|.*_(?:created|info)"
)
"""Names of what processes say about themselves."""
_OUR_OWN = ours.OWN.keys() - {ours.REWARD, ours.GENERATION}
"""What our exporter says of a run, but for the tutorials' names, under which it repeats metrics."""
_MOST = 1e15
"""DCGM writes 2^63 and a little less for figures that a board does not report
(`DCGM_INT64_BLANK`).
"""
_FIGURES = {
    name: ((kind, rank), figure["field"], figure.get("factor", 1.0))
    for kind in ("devices", "hosts")
    for rank, figures in enumerate(TABLE[kind].values())
    for name, figure in figures.items()
}
"""Name of a series -> its exporter, the field of a device or host, and its factor."""
MACHINES = frozenset(_FIGURES)
"""Names of the series that figures of machines are made of, counters aside."""
MachinePlace = tuple[tuple[str, int], str, str, str]
"""Exporter, node, index of a device, field."""
_OWN = _FIGURES[ours.GPU_MEMORY][0]
_NUMBER = pattern(r"(?:(?:cuda|gpu|npu|nvidia|device)[:_-]?)?(\d{1,4})", re.IGNORECASE)
_NO_SUBJECTS = {*TABLE["process_labels"], "le", "quantile", KEY}


def run_labels(labels: Mapping[str, str], *, by_job: bool) -> Labels:
    """Return the labels of a series that say whose it is: our exporter's `run`, RL-Insight's
    `experiment_name`, or the job that scrapes it.
    """
    for names in (("run",), ("project", "experiment_name"), ("job",) * by_job):
        if names and labels.get(names[-1]):
            return tuple((name, labels[name]) for name in names if labels.get(name))
    return ()


def run_name(labels: Labels, taken: Collection[str]) -> str:
    """Return a run's name by its labels: as in the logs, with all of them where another is called
    so.
    """
    own, full = labels[-1][1], "/".join(value for _, value in labels)
    names = (one_line(one, 120) or "run" for one in (own, full))
    numbered = f"{own} ({len(taken) + 1})"
    return next((one for one in names if one not in taken), one_line(numbered, 120))


def of_subject(name: str, labels: Mapping[str, str]) -> str:
    """Return the key of a metric: with what it is of, unless its labels name only the process that
    exports it.
    """
    subjects = (labels[one] for one in labels if one not in _NO_SUBJECTS)
    of = "/".join(filter(None, subjects))
    return f"{name}/{one_line(of, 100)}" if of else name


def role(name: str, labels: Mapping[str, str], keys: LogKeys) -> tuple[str, Any, float]:
    """Return what kind of figure the values of a series are (`stated`, `metrics`, `by_clock`,
    `machines`), their key, and the factor to it; no key for one that says nothing.

    Args:
        name: Name of the series.
        labels: Its labels.
        keys: The log's own, as far as they are known.
    """
    if stated := _STATED.get(name):
        return "stated", stated, 1.0
    if name in MACHINES:
        return "machines", *_place(name, labels)
    computed = labels.get(KEY, "")
    called = computed.partition("/")[0] or name
    if not _is_metric(called, keys):
        return "", "", 1.0
    if computed.startswith("cluster/"):
        return "by_clock", on(computed, node_of(labels)), 1.0
    own, factor = keys.get(name, ("", 1.0))
    key = safe(of_subject(computed or own or _unflattened(name), labels), 300)
    kind = "by_clock" if computed or _BY_CLOCK.fullmatch(name) else "metrics"
    return kind, key, factor


def _is_metric(name: str, keys: LogKeys) -> bool:
    """Return whether a series is a metric, or a figure of an engine."""
    # with its keys known, all else of our exporter is what the log calls otherwise: the tutorials'
    # names, and new metrics, whose keys a server states within a minute
    of_run = name.startswith(ours.PREFIX) if keys else name in _OUR_OWN
    return name in keys or not (of_run or _NO_METRIC.fullmatch(name))


def _unflattened(name: str) -> str:
    plain = name.removeprefix(ours.PREFIX)
    own = slashed(plain)
    return own if own != plain else slashed(name)


def _place(name: str, labels: Mapping[str, str]) -> tuple[MachinePlace | None, float]:
    """Return what a figure of a machine is of, None for a part of a device (MIG), whose figures are
    not the board's; and the factor from a series' value to it.
    """
    exporter, field, factor = _FIGURES[name]
    if exporter[0] == "hosts":
        return (exporter, node_of(labels), "", field), factor
    found = _NUMBER.fullmatch(_first(labels, "index_labels").strip())
    if not found or labels.get("GPU_I_ID"):
        return None, factor
    return (exporter, node_of(labels), str(int(found[1])), field), factor


def machine_figures(
    values: Mapping[MachinePlace, float],
) -> Iterator[tuple[str, float]]:
    """Yield the figures of devices and hosts at one moment by key; of each kind those of the first
    exporter.
    """
    known = {place: one for place, one in values.items() if abs(one) < _MOST}
    first = dict(sorted({exporter for exporter, *_ in known}, reverse=True))
    places: dict[MachinePlace, dict[str, float]] = defaultdict(dict)
    for (exporter, node, index, field), value in sorted(known.items()):
        if first[exporter[0]] == exporter[1]:
            places[exporter, node, index, ""][field] = value
    for (exporter, node, index, _), fields in places.items():
        # of the run itself, or of others too
        of = "system" if exporter == _OWN else "cluster"
        share, device = "memory_percent", ""
        if index:
            share, device = "memoryAllocated", f"gpu.{index}."
        for field, value in _complete(fields, share):
            yield on(f"{of}/{device}{field}", node), value


def _complete(fields: dict[str, float], share: str) -> Iterator[tuple[str, float]]:
    """Yield figures, with the share of memory in use in place of what is free."""
    free, whole = fields.pop("free", None), fields.pop("total", None)
    used = fields.pop("used", fields.get("memoryAllocatedBytes"))
    yield from fields.items()
    if free is not None:
        whole = whole or (used or 0.0) + free
        used = whole - free if used is None else used
    if used is not None and whole:
        yield share, 100.0 * used / whole


def on(key: str, node: str) -> str:
    """Return the key of a figure of one host."""
    return safe(f"{key}/l:{node}" if node else key, 300)


def node_of(labels: Mapping[str, str]) -> str:
    """Return the name of the host that a sample is of, without its port; empty if no label names
    it.
    """
    name = _first(labels, "node_labels")
    head, _, port = name.rpartition(":")
    return head if head and port.isdecimal() and not head.endswith(":") else name


def _first(labels: Mapping[str, str], which: str) -> str:
    return next((labels[one] for one in TABLE[which] if labels.get(one)), "")


# -- rows of steps ---------------------------------------------------------------------------------

_SAVING = "timing_s/save_checkpoint"
_NOW_AND_THEN = {_SAVING, "timing_s/testing"}
"""Metrics besides those of validations that a trainer logs now and then: in between, pages hold the
last value.
"""
_AMOUNTS = {name for name, how in TABLE["engines"].items() if how == "sum"}
"""Gauges that are summed over workers; others are averaged."""
_ENDS = {"finished": EventKind.FINISHED, "crashed": EventKind.FATAL}
"""States that our exporter gives to runs that have ended for certain."""
_MINUTE = 60.0
_Moment: TypeAlias = "dict[str, dict[Any, list[float]]]"
"""What series say at one time: of each kind the values by key."""


class StepRows:
    """Makes rows of the series of one run, which come in the order of time."""

    def __init__(self) -> None:
        self.findings: tuple[tuple[str, str], ...] = ()
        """Ids and severities that our exporter states at the newest moment."""
        self._keys: dict[str, tuple[str, float]] = {}
        self._times: list[float] = []
        self._steps: list[int] = []
        """The steps reached, and when."""
        self._first: float | None = None
        """The first moment of a run without steps."""
        self._logged = self._measured = -math.inf
        """Up to when metrics have been taken, and figures by the clock: series may overlap."""
        self._total = -1
        self._state = ""
        """The run's state, by our exporter."""
        self._last: tuple[object, ...] = ()
        """What the last moment stated, and its metrics."""
        self._held: dict[str, tuple[float, float | None]] = {}
        """Last values of metrics that are logged now and then, each with the step of its
        validation: without that two validations that came out alike are one.
        """

    @property
    def note(self) -> str | None:
        """Say what stands in for steps, where none have been stated."""
        if self._first is None or self._steps:
            return None
        return "no step is stated: minutes are counted"

    def records(self, lines: Sequence[PrometheusSeries]) -> Iterator[Item]:
        """Yield the records of what is new, given all series of the run at some moments; 0.0 is one
        of unknown time.
        """
        for one in lines:
            if one.name == ours.INFO:
                key = one.labels.get("key", "")
                factor = 1.0 / ours.named(key).factor
                self._keys[one.labels.get("name", "")] = key, factor
        logged = self._logged
        for at, moment in self._moments(lines):
            if at > self._logged and (moment["stated"] or moment["metrics"]):
                self._logged = at
                yield from self._logs(at, moment)
            if at > self._measured and (figures := _clocked(moment)):
                self._measured = at
                yield self._row(at, figures)._replace(mean=True, progress=False)
        if self._logged > logged:
            yield from self._said(lines)

    def _moments(
        self, lines: Sequence[PrometheusSeries]
    ) -> Iterator[tuple[float, _Moment]]:
        """Yield what series say at each time."""
        moments: dict[float, _Moment] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        for name, labels, points in lines:
            kind, key, factor = role(name, labels, self._keys)
            for at, value in points.items() if key else ():
                number = float(value) * factor
                same = (
                    math.nan if math.isnan(number) else number
                )  # one that equals itself
                moments[at][kind][key].append(same)
        yield from sorted(moments.items())

    def _logs(self, at: float, moment: _Moment) -> Iterator[Item]:
        """Yield the metrics of a moment, and what is stated besides, unless the last moment had the
        same: a page repeats them again and again.
        """
        said = moment["stated"], moment["metrics"]
        if said == self._last:
            return
        self._last = said
        stated = _furthest(moment["stated"])
        yield from self._reach(int(stated.get(ours.STEPS, -1)), at)
        total = int(stated.get(ours.TOTAL_STEPS, self._total))
        if total != self._total:
            self._total = total
            yield Progress(total=total)
        metrics = _combined(moment["metrics"])
        self._drop_held(metrics, stated.get(ours.LAST_VALIDATION))
        if metrics:
            time = stated.get(ours.LAST_STEP) or (self._times or [at])[-1]
            yield self._row(at, metrics)._replace(time=time or None)

    def _reach(self, step: int, at: float) -> Iterator[Restart]:
        """Note that a step was seen, if it is one; yield a restart where it is an earlier one."""
        last = self._steps[-1] if self._steps else -1
        if step in (-1, last):
            return
        if step < last:
            self._held.clear()
            # said here: after a restart other metrics may be logged than before
            yield Restart(f"steps went back from {last} to {step}")
        self._times.append(at)
        self._steps.append(step)

    def _row(self, at: float, figures: Mapping[str, float]) -> MetricRow:
        """Return the row of a moment; where no step is stated minutes are counted."""
        known = bool(self._steps)
        if known:
            step = self._steps[max(0, bisect_right(self._times, at) - 1)]
        else:
            self._first = at if self._first is None else self._first
            step = int(clamp((at - self._first) / _MINUTE, 0, 2**53))
        row = MetricRow(step, tuple(figures), tuple(figures.values()), at or None)
        return row._replace(progress=known, estimated=not known)

    def _drop_held(self, metrics: dict[str, float], validated: float | None) -> None:
        """Drop the values of validations long past."""
        for key in [*filter(_is_now_and_then, metrics)]:
            value = metrics[key], (validated if key != _SAVING else None)
            if self._held.get(key) == value:
                del metrics[key]
            self._held[key] = value

    def _said(self, lines: Sequence[PrometheusSeries]) -> Iterator[Event]:
        """Take what our exporter says of the run at the newest moment; yield that it has ended,
        once it says so.
        """
        now = [one for one in lines if float(one.points.get(self._logged, 0)) == 1.0]
        self.findings = tuple(
            (line.labels.get("id", ""), line.labels.get("severity", ""))
            for line in now
            if line.name == ours.FINDING
        )
        told = (one.labels for one in now if one.name == ours.STATE)
        state = next(told, {}).get("state", self._state)
        kind = _ENDS.get(state)
        if kind and state != self._state:
            words = f"the exporter of its log calls it {state}"
            yield Event(kind, words, 0, bare=kind is EventKind.FATAL)
        self._state = state


@cache
def _is_now_and_then(key: str) -> bool:
    """Return whether a metric is logged with some steps only."""
    return key in _NOW_AND_THEN or describe(key).group == "validation"


def _furthest(stated: Mapping[str, list[float]]) -> dict[str, float]:
    """Return what is stated: of several workers by that which is furthest."""
    valid = {
        name: [one for one in own if 0 <= one < 2**53] for name, own in stated.items()
    }
    return {name: max(own) for name, own in valid.items() if own}


def _clocked(moment: _Moment) -> dict[str, float]:
    """Return all figures that are measured by the clock."""
    newest = {place: given[-1] for place, given in moment["machines"].items()}
    known = _combined(moment["by_clock"]).items()
    # NaN is a rate or quantile of nothing
    engines = {key: one for key, one in known if not math.isnan(one)}
    return dict(machine_figures(newest)) | engines


def _combined(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return one value for each key: amounts are summed over workers, others averaged."""
    return {
        key: sum(own) / (1 if key.partition("/")[0] in _AMOUNTS else len(own))
        for key, own in values.items()
    }
