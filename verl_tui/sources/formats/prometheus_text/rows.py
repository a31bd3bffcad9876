"""Turns the series of one run into rows of steps, whether they come from pages or from a server.

A page shows the present values, and keeps showing them: the result of a step is the last value
before the next one. Figures measured by the clock are averaged over the step in which they were
measured.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_tui import prometheus_names
from verl_tui.means import clamp
from verl_tui.metrics import describe
from verl_tui.records import Event, EventKind, Progress, Restart
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.names import (
    AMOUNTS,
    BY_CLOCK,
    KEY,
    MACHINES,
    NO_METRIC,
    STEPS,
    SUMMARIES,
    key_and_factor,
    machine_figures,
    machine_place,
    node_of,
    of_subject,
    on,
)
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries

_SAVING = "timing_s/save_checkpoint"
_NOW_AND_THEN = {_SAVING, "timing_s/testing"}
"""Metrics besides those of validations that a trainer logs now and then: in between, pages hold the
last value.
"""
_ENDS = {"finished": EventKind.FINISHED, "crashed": EventKind.FATAL}
"""States that our exporter gives to runs that have ended for certain."""
_STEP = prometheus_names.STEPS
_TOTAL = prometheus_names.TOTAL_STEPS
_STAMP = prometheus_names.LAST_STEP
_VALIDATED = prometheus_names.LAST_VALIDATION
_MINUTE = 60.0
_KINDS = ("stated", "metrics", "by_clock", "machines")
_Moment: TypeAlias = "dict[str, dict[Any, list[float]]]"
"""What series say at one time: of each kind the values by key."""


class StepRows:
    """Makes rows of the series of one run, which come in the order of time."""

    def __init__(self) -> None:
        self.findings: tuple[tuple[str, str], ...] = ()
        """Ids and severities that our exporter states at the newest moment."""
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
        self._trained = -1
        """The step of the last row of metrics, -1 where none was stated."""
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

    def take(
        self, lines: Sequence[PrometheusSeries], keys: Mapping[str, str]
    ) -> Iterator[MetricRow | Record]:
        """Yield the records of what is new.

        Args:
            lines: All series of the run at some moments; 0.0 is one of unknown time.
            keys: The log's own keys of their names, as far as our exporter states them.
        """
        logged = self._logged
        for at, moment in _moments(lines, keys).items():
            if at > self._logged and (moment["stated"] or moment["metrics"]):
                self._logged = at
                yield from self._logs(at, moment)
            if at > self._measured and (figures := _clocked(moment)):
                self._measured = at
                yield self._new_row(at, figures, clocked=True)
        if self._logged > logged:
            yield from self._said(lines)

    def _logs(self, at: float, moment: _Moment) -> Iterator[MetricRow | Record]:
        """Yield the metrics of a moment, and what is stated besides, unless the last moment had the
        same: a page repeats them again and again.
        """
        said = moment["stated"], moment["metrics"]
        if said == self._last:
            return
        self._last = said
        stated = _furthest(moment["stated"])
        if _STEP in stated:
            self._reach(int(stated[_STEP]), at)
        total = int(stated.get(_TOTAL, self._total))
        if total != self._total:
            self._total = total
            yield Progress(total=total)
        metrics = _combined(moment["metrics"])
        self._drop_held(metrics, stated.get(_VALIDATED))
        if metrics:
            yield from self._row(self._new_row(at, metrics), stated.get(_STAMP))

    def _row(
        self, row: MetricRow, stamp: float | None
    ) -> Iterator[MetricRow | Restart]:
        """Yield a row of metrics, with a restart where its step is an earlier one."""
        if not self._steps:
            yield row
            return
        if row.step < self._trained:
            # said here: after a restart other metrics may be logged than before
            yield Restart(f"steps went back from {self._trained} to {row.step}")
        self._trained = row.step
        yield row._replace(time=stamp or self._times[-1] or None)

    def _new_row(
        self, at: float, figures: Mapping[str, float], *, clocked: bool = False
    ) -> MetricRow:
        """Return the row of a moment; where no step is stated minutes are counted."""
        known = bool(self._steps)
        if known:
            step = self._steps[max(0, bisect_right(self._times, at) - 1)]
        else:
            self._first = at if self._first is None else self._first
            step = int(clamp((at - self._first) / _MINUTE, 0, 2**53))
        row = MetricRow(step, tuple(figures), tuple(figures.values()), at or None)
        return row._replace(
            mean=clocked, progress=known and not clocked, estimated=not known
        )

    def _reach(self, step: int, at: float) -> None:
        """Note that a step was seen."""
        if self._steps[-1:] != [step]:
            if self._steps and step < self._steps[-1]:
                self._held.clear()
            self._times.append(at)
            self._steps.append(step)

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
            if line.name == prometheus_names.FINDING
        )
        told = (one.labels for one in now if one.name == prometheus_names.STATE)
        state = next(told, {}).get("state", self._state)
        kind = _ENDS.get(state)
        if kind is not None and state != self._state:
            words = f"the exporter of its log calls it {state}"
            yield Event(kind, words, 0, bare=kind is EventKind.FATAL)
        self._state = state


@cache
def _is_now_and_then(key: str) -> bool:
    """Return whether a metric is logged with some steps only."""
    return key in _NOW_AND_THEN or describe(key).group == "validation"


def _moments(
    lines: Sequence[PrometheusSeries], keys: Mapping[str, str]
) -> dict[float, _Moment]:
    """Return what series say at each time."""
    moments: dict[float, _Moment] = defaultdict(
        lambda: {kind: defaultdict(list) for kind in _KINDS}
    )
    for name, labels, points in lines:
        kind, key, factor = _role(name, labels, keys)
        for at, value in points.items() if key else ():
            number = float(value) * factor
            same = math.nan if math.isnan(number) else number  # one that equals itself
            moments[at][kind][key].append(same)
    return dict(sorted(moments.items()))


def _furthest(stated: Mapping[str, list[float]]) -> dict[str, float]:
    """Return what is stated: of several workers by that which is furthest."""
    valid = {
        name: [one for one in own if 0 <= one < 2**53] for name, own in stated.items()
    }
    return {name: max(own) for name, own in valid.items() if own}


def _clocked(moment: _Moment) -> dict[str, float]:
    """Return all figures that are measured by the clock."""
    machines = machine_figures(moment["machines"]).items()
    found = {safe(key, 300): value for key, value in machines}
    known = _combined(moment["by_clock"]).items()
    # NaN is a rate or quantile of nothing
    return found | {key: one for key, one in known if not math.isnan(one)}


def _role(
    name: str, labels: Mapping[str, str], keys: Mapping[str, str]
) -> tuple[str, Any, float]:
    """Return where the values of a series belong, under which key, and their factor; no key for one
    that says nothing.
    """
    if name in (_TOTAL, _STAMP, _VALIDATED):
        return "stated", name, 1.0
    if name in STEPS:
        return "stated", _STEP, 1.0
    if name in MACHINES:
        return "machines", *machine_place(name, labels)
    key, factor = key_and_factor(name, keys)
    computed = labels.get(KEY, "")
    if not _is_metric(computed.partition("/")[0] or name, keys):
        return "", "", 1.0
    if computed:
        of_host = computed.startswith("cluster/")
        key = on(computed, node_of(labels)) if of_host else of_subject(computed, labels)
    else:
        key = of_subject(key, labels)
    kind = "by_clock" if computed or BY_CLOCK.fullmatch(name) else "metrics"
    return kind, safe(key, 300), factor


def _is_metric(name: str, keys: Mapping[str, str]) -> bool:
    """Return whether a series is a metric, or a figure of an engine."""
    if name in keys:
        return True
    # of our own exporter what the log calls otherwise: the tutorials' names, and new metrics, whose
    # keys a server states within a minute
    ours = name.startswith(prometheus_names.PREFIX) if keys else _is_about_runs(name)
    return not (ours or NO_METRIC.fullmatch(name))


def _is_about_runs(name: str) -> bool:
    return name in prometheus_names.OWN and name not in SUMMARIES


def _combined(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return one value for each key: amounts are summed over workers, others averaged."""
    return {
        key: own[0] if len(own) == 1 else sum(own) / (1 if _adds(key) else len(own))
        for key, own in values.items()
    }


def _adds(key: str) -> bool:
    return key.partition("/")[0] in AMOUNTS
