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
from verl_tui.means import clamp, mean
from verl_tui.metrics import describe
from verl_tui.records import Event, EventKind, Progress, Restart
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.machines import (
    MACHINES,
    machine_figures,
    node_of,
    on,
)
from verl_tui.sources.formats.prometheus_text.names import (
    ADDED,
    BY_CLOCK,
    KEY,
    NO_METRIC,
    STEPS,
    SUMMARIES,
    key_and_factor,
    of_subject,
    subject,
)
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries

_TESTING, _SAVING = "timing_s/testing", "timing_s/save_checkpoint"
"""Metrics besides those of validations that a trainer logs now and then: in between, pages hold the
last value.
"""
_ENDS = {"finished": EventKind.FINISHED, "crashed": EventKind.FATAL}
"""States that our exporter gives to runs that have ended for certain."""
_STATED = (
    prometheus_names.TOTAL_STEPS,
    prometheus_names.LAST_STEP,
    prometheus_names.LAST_VALIDATION,
)
_MOST_PARTS = 32
"""Subjects of one metric."""
_MINUTE = 60.0
_STEP = "step"
"""Stands for the step among what a moment states."""


class _Moment:
    """What the series of a run say at one time."""

    def __init__(self) -> None:
        self.stated: dict[str, float] = {}
        """The step, and what else it states of the run: of several workers that of the one that is
        furthest.
        """
        self.metrics: dict[str, list[float]] = {}
        self.by_clock: dict[str, list[float]] = {}
        """The values of each key, those of figures that are measured by the clock apart."""
        self.machines: list[tuple[str, Mapping[str, str], float]] = []

    def state(self, name: str, value: float) -> None:
        """Take a step, or a time."""
        if self.stated.get(name, 0.0) <= value < 2**53:
            self.stated[name] = value

    def add(self, key: str, value: float, *, by_clock: bool) -> None:
        """Take one of the values of a key."""
        values = self.by_clock if by_clock else self.metrics
        values.setdefault(key, []).append(value)

    def compute(self, key: str, value: float) -> None:
        """Take a figure that was computed; NaN is a rate or quantile of nothing."""
        if not math.isnan(value):
            self.by_clock[key] = [value]

    def figures(self, added: set[str]) -> dict[str, float]:
        """Return all figures that are measured by the clock."""
        found = {
            safe(key, 300): one for key, one in machine_figures(self.machines).items()
        }
        return found | _combined(self.by_clock, added)


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
        found = _Moments(keys)
        for line in lines:
            found.add(line)
        moments, added = sorted(found.items()), found.added
        logged = self._logs(moments)
        for _, same in groupby(logged, lambda one: one[1].stated.get(_STEP, one[0])):
            shown = list(same)
            yield from self._metrics(shown[-1][1], shown[0][0], added)
        if logged:
            self._logged = self.newest = logged[-1][0]
            yield from self._said(lines)
        for at, moment in moments:
            if at > self._measured and (figures := moment.figures(added)):
                self._measured = at
                self.newest = max(at, self.newest or at)
                yield self._reading(figures, at)

    def _logs(
        self, moments: Sequence[tuple[float, _Moment]]
    ) -> list[tuple[float, _Moment]]:
        """Return the new moments to take metrics of: those that state a step, if any does."""
        stated = [one for one in moments if _STEP in one[1].stated]
        named = stated or [one for one in moments if one[1].metrics]
        return [one for one in named if one[0] > self._logged]

    def _metrics(
        self, moment: _Moment, seen: float, added: set[str]
    ) -> Iterator[MetricRow | Record]:
        """Yield the metrics of a moment, whose step was seen first at some time."""
        stated = moment.stated
        planned = stated.get(prometheus_names.TOTAL_STEPS)
        if planned is not None and int(planned) != self._total:
            self._total = int(planned)
            yield Progress(total=self._total)
        if _STEP in stated:
            self._reach(int(stated[_STEP]), seen)
        found = _combined(moment.metrics, added)
        self._drop_held(found, stated.get(prometheus_names.LAST_VALIDATION))
        yield from self._row(found, seen, stated.get(prometheus_names.LAST_STEP))

    def _reach(self, step: int, at: float) -> None:
        """Note that a step was seen."""
        if self._steps[-1:] == [step]:
            return
        if self._steps and step < self._steps[-1]:
            self._held.clear()
        self._times.append(at)
        self._steps.append(step)

    def _step_at(self, time: float) -> tuple[int, bool]:
        """Return the step of a moment, and whether it is known; else minutes are counted."""
        if self._steps:
            return self._steps[max(0, bisect_right(self._times, time) - 1)], True
        if self._first is None:
            self._first = time
        return int(clamp((time - self._first) / _MINUTE, 0, 2**53)), False

    def _drop_held(self, metrics: dict[str, float], validated: float | None) -> None:
        """Drop the values of validations long past."""
        for key in [*filter(_is_now_and_then, metrics)]:
            value = metrics[key], (validated if key != _SAVING else None)
            if self._held.get(key) == value:
                del metrics[key]
            else:
                self._held[key] = value

    def _row(
        self, metrics: Mapping[str, float], seen: float, stamp: float | None
    ) -> Iterator[MetricRow | Restart]:
        """Yield the metrics of a step, unless the last moment had the same: a page repeats them
        again and again.

        Args:
            metrics: By key.
            seen: When.
            stamp: When the step was reached, by our exporter.
        """
        step, stated = self._step_at(seen)
        time = (stamp or self._times[-1]) if stated else seen
        values = array("d", metrics.values())
        row = (step, time, *metrics, values.tobytes())
        if not metrics or row == self._last_row:
            return
        self._last_row = row
        if stated and step < self._trained:
            # said here: after a restart other metrics may be logged than before
            yield Restart(f"steps went back from {self._trained} to {step}")
        self._trained = step if stated else -1
        yield MetricRow(
            step,
            tuple(metrics),
            values,
            time or None,
            progress=stated,
            estimated=not stated,
        )

    def _reading(self, figures: Mapping[str, float], at: float) -> MetricRow:
        """Return the row of figures that are measured by the clock."""
        step, stated = self._step_at(at)
        return MetricRow(
            step,
            tuple(figures),
            tuple(figures.values()),
            at or None,
            mean=True,
            progress=False,
            estimated=not stated,
        )

    def _said(self, lines: Sequence[PrometheusSeries]) -> Iterator[Event]:
        """Take what our exporter says of the run; yield that it has ended, once it says so."""
        now = list(filter(self._holds_now, lines))
        self.findings = tuple(
            (line.labels.get("id", ""), line.labels.get("severity", ""))
            for line in now
            if line.name == prometheus_names.FINDING
        )
        told = [line for line in now if line.name == prometheus_names.STATE]
        state = told[0].labels.get("state", "") if told else self._state
        kind = _ENDS.get(state)
        if kind is not None and state != self._state:
            words = f"the exporter of its log calls it {state}"
            yield Event(kind, words, 0, bare=kind is EventKind.FATAL)
        self._state = state

    def _holds_now(self, line: PrometheusSeries) -> bool:
        """Return whether our exporter states something that is so at the newest moment."""
        if line.name not in (prometheus_names.FINDING, prometheus_names.STATE):
            return False
        at = max(line.points, default=-math.inf)
        return at >= self._logged and _number(line.points[at]) == 1.0


@cache
def _is_now_and_then(key: str) -> bool:
    """Return whether a metric is logged with some steps only."""
    return key in (_SAVING, _TESTING) or describe(key).group == "validation"


class _Moments(defaultdict[float, _Moment]):
    """What series say at each time."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        super().__init__(_Moment)
        self.added: set[str] = set()
        """The keys of amounts, which are summed over workers."""
        self._keys = keys
        self._subjects: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, line: PrometheusSeries) -> None:
        """Take a series."""
        take = self._taker(line)
        if take is not None:
            for at, value in line.points.items():
                take(self[at], _number(value))

    def _taker(self, line: PrometheusSeries) -> Callable[[_Moment, float], None] | None:
        """Return what a moment takes a value of a series by, None for one that says nothing."""
        name, labels = line.name, line.labels
        if name in _STATED or (STEPS.fullmatch(name) and name not in self._keys):
            stated = name if name in _STATED else _STEP
            return lambda moment, value: moment.state(stated, value)
        if key := labels.get(KEY):
            computed = safe(_keyed(key, labels), 300)
            return lambda moment, value: moment.compute(computed, value)
        if name in MACHINES:
            return lambda moment, value: moment.machines.append((name, labels, value))
        return self._level(line) if _is_level(name, self._keys) else None

    def _level(self, line: PrometheusSeries) -> Callable[[_Moment, float], None] | None:
        """Return what takes a metric, or a figure of an engine."""
        of = subject(line.labels.items())
        known = self._subjects[line.name]
        if len(known) >= _MOST_PARTS and of not in known:
            return None
        known.add(of)
        own, factor = key_and_factor(line.name, self._keys)
        key = safe(of_subject(own, of), 300)
        if ADDED.fullmatch(line.name) and line.name not in self._keys:
            self.added.add(key)
        by_clock = bool(BY_CLOCK.fullmatch(line.name))
        return lambda moment, value: moment.add(key, value * factor, by_clock=by_clock)


def _is_level(name: str, keys: Mapping[str, str]) -> bool:
    """Return whether a series is a metric, or a figure of an engine."""
    if name in keys:
        return True
    # of our own exporter what the log calls otherwise: the tutorials' names, and new metrics, whose
    # keys a server states within a minute
    ours = keys and (name in SUMMARIES or name.startswith(prometheus_names.PREFIX))
    return not (ours or NO_METRIC.fullmatch(name))


def _keyed(key: str, labels: Mapping[str, str]) -> str:
    """Return the key of a figure that was computed, with what it is of."""
    if key.startswith("cluster/"):
        return on(key, node_of(labels))
    return of_subject(key, labels.get("task_name", ""))


def _combined(
    values: Mapping[str, Sequence[float]], added: set[str]
) -> dict[str, float]:
    """Return one value for each key: amounts are summed over workers, others averaged."""
    found = {}
    for key, own in values.items():
        if len(own) == 1:
            found[key] = own[0]
        elif key not in added and all(map(math.isfinite, own)):
            found[key] = mean(own)
        else:
            found[key] = sum(own) / (1 if key in added else len(own))
    return found


def _number(written: object) -> float:
    try:
        return float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
