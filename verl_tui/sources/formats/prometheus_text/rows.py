"""Turns the series of one run into rows of steps, whether they come from pages or from a server.

A page shows the present values, and keeps showing them: the result of a step is the last value
before the next one. Figures measured by the clock are averaged over the step in which they were
measured.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.means import clamp
from verl_tui.metrics import describe
from verl_tui.records import Event, EventKind, Progress, Restart
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.names import (
    ADDED,
    BY_CLOCK,
    KEY,
    MACHINES,
    NO_METRIC,
    STEPS,
    SUMMARIES,
    key_and_factor,
    machine_figures,
    node_of,
    of_subject,
    on,
    subject,
)
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries

_SAVING = "timing_s/save_checkpoint"
_NOW_AND_THEN = {_SAVING, "timing_s/testing"}
"""Metrics besides those of validations that a trainer logs now and then: in between, pages hold the
last value.
"""
_ENDS = {"finished": EventKind.FINISHED, "crashed": EventKind.FATAL}
"""States that our exporter gives to runs that have ended for certain."""
_TOTAL = prometheus_names.TOTAL_STEPS
_STAMP = prometheus_names.LAST_STEP
_VALIDATED = prometheus_names.LAST_VALIDATION
_STEP = prometheus_names.STEPS
_MINUTE = 60.0


class _Moment:
    """What series say at one time."""

    def __init__(self) -> None:
        self.stated: dict[str, list[float]] = defaultdict(list)
        """Steps, and what else our exporter states of the run."""
        self.metrics: dict[str, list[float]] = defaultdict(list)
        self.by_clock: dict[str, list[float]] = defaultdict(list)
        """Figures that are measured by the clock."""
        self.machines: list[tuple[str, Mapping[str, str], float]] = []

    def highest(self, name: str) -> float | None:
        """Return what is stated: of several workers by that which is furthest."""
        valid = (one for one in self.stated.get(name, ()) if 0 <= one < 2**53)
        return max(valid, default=None)

    def figures(self, amounts: Collection[str]) -> dict[str, float]:
        """Return all figures that are measured by the clock."""
        machines = machine_figures(self.machines).items()
        found = {safe(key, 300): value for key, value in machines}
        known = _combined(self.by_clock, amounts).items()
        # NaN is a rate or quantile of nothing
        return found | {key: one for key, one in known if not math.isnan(one)}


class StepRows:
    """Makes rows of the series of one run, which come in the order of time."""

    def __init__(self) -> None:
        self.findings: tuple[tuple[str, str], ...] = ()
        """Ids and severities that our exporter states at the newest moment."""
        self.newest: float | None = None
        """Time of the newest point that was taken."""
        self._times: list[float] = []
        self._steps: list[int] = []
        """The steps reached, and when."""
        self._first: float | None = None
        """The first moment of a run without steps."""
        self._logged = self._measured = -math.inf
        """Up to when metrics have been taken, and figures by the clock: series may overlap."""
        self._total: int | None = None
        self._state = ""
        """The run's state, by our exporter."""
        self._trained = -1
        """The step of the last row of metrics, -1 where none was stated."""
        self._last_row: tuple[object, ...] = ()
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
        moments, amounts = _moments(lines, keys)
        before = self._logged
        yield from self._logs(moments, amounts)
        if self._logged > before:
            yield from self._said(lines)
        for at, moment in moments.items():
            if at > self._measured and (figures := moment.figures(amounts)):
                self._measured = at
                self.newest = max(at, self.newest or at)
                yield self._new_row(at, figures, clocked=True)

    def _logs(
        self, moments: Mapping[float, _Moment], amounts: Collection[str]
    ) -> Iterator[MetricRow | Record]:
        """Yield the metrics of each step, and what is stated besides."""
        stated = {at: one.highest(_STEP) for at, one in moments.items()}
        steps = {at: int(step) for at, step in stated.items() if step is not None}
        logged = steps or {at for at in moments if moments[at].metrics}
        times = filter(self._logged.__lt__, sorted(logged))
        for _, same in groupby(times, lambda at: steps.get(at, at)):
            seen, *later = same
            at = self._logged = self.newest = later[-1] if later else seen
            if at in steps:
                self._reach(steps[at], seen)
            yield from self._planned(moments[at].highest(_TOTAL))
            metrics = _combined(moments[at].metrics, amounts)
            self._drop_held(metrics, moments[at].highest(_VALIDATED))
            yield from self._row(metrics, seen, moments[at].highest(_STAMP))

    def _planned(self, total: float | None) -> Iterator[Progress]:
        """Yield how many steps are planned where that has changed."""
        if total is not None and int(total) != self._total:
            self._total = int(total)
            yield Progress(total=self._total)

    def _row(
        self, metrics: Mapping[str, float], seen: float, stamp: float | None
    ) -> Iterator[MetricRow | Restart]:
        """Yield the metrics of a step, unless the last moment had the same: a page repeats them
        again and again.

        Args:
            metrics: By key.
            seen: When the step was seen first.
            stamp: When it was reached, by our exporter.
        """
        row = self._new_row(seen, metrics)
        if self._steps:
            time = (stamp or self._times[-1]) or None
            row = row._replace(time=time)
        same = (row.step, row.time, *metrics, bytes(array("d", metrics.values())))
        if not metrics or same == self._last_row:
            return
        self._last_row = same
        if self._steps and row.step < self._trained:
            # said here: after a restart other metrics may be logged than before
            yield Restart(f"steps went back from {self._trained} to {row.step}")
        self._trained = row.step if self._steps else -1
        yield row

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
        at = self._logged
        now = [one for one in lines if _number(one.points.get(at)) == 1.0]
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
) -> tuple[dict[float, _Moment], set[str]]:
    """Return what series say at each time, and the keys of amounts, which are summed over
    workers.
    """
    moments: dict[float, _Moment] = defaultdict(_Moment)
    amounts: set[str] = set()
    for line in lines:
        name, labels, points = line
        if name in MACHINES and KEY not in labels:
            for at, value in points.items():
                moments[at].machines.append((name, labels, _number(value)))
            continue
        kind, key, factor = _role(line, keys)
        if kind != "stated" and ADDED.fullmatch(name) and name not in keys:
            amounts.add(key)
        for at, value in points.items() if key else ():
            getattr(moments[at], kind)[key].append(_number(value) * factor)
    return dict(sorted(moments.items())), amounts


def _role(line: PrometheusSeries, keys: Mapping[str, str]) -> tuple[str, str, float]:
    """Return where the values of a series belong, under which key, and their factor; no key for one
    that says nothing.
    """
    name, labels = line.name, line.labels
    if name in (_TOTAL, _STAMP, _VALIDATED):
        return "stated", name, 1.0
    if STEPS.fullmatch(name) and name not in keys:
        return "stated", _STEP, 1.0
    if computed := labels.get(KEY):
        of_host = computed.startswith("cluster/")
        of_task = of_subject(computed, labels.get("task_name", ""))
        key = on(computed, node_of(labels)) if of_host else of_task
        return "by_clock", safe(key, 300), 1.0
    if not _is_level(name, keys):
        return "", "", 1.0
    own, factor = key_and_factor(name, keys)
    kind = "by_clock" if BY_CLOCK.fullmatch(name) else "metrics"
    return kind, safe(of_subject(own, subject(labels.items())), 300), factor


def _is_level(name: str, keys: Mapping[str, str]) -> bool:
    """Return whether a series is a metric, or a figure of an engine."""
    if name in keys:
        return True
    # of our own exporter what the log calls otherwise: the tutorials' names, and new metrics, whose
    # keys a server states within a minute
    ours = keys and (name in SUMMARIES or name.startswith(prometheus_names.PREFIX))
    return not (ours or NO_METRIC.fullmatch(name))


def _combined(
    values: Mapping[str, Sequence[float]], amounts: Collection[str]
) -> dict[str, float]:
    """Return one value for each key: amounts are summed over workers, others averaged."""
    return {
        key: sum(own) / (1 if key in amounts else len(own))
        for key, own in values.items()
    }


def _number(written: object) -> float:
    try:
        return float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
