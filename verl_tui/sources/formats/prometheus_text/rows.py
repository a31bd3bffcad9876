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
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Iterator, Mapping, Sequence

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
        found = _Moments(lines, keys)
        before = self._logged
        yield from self._logs(found)
        if self._logged > before:
            yield from self._said(lines)
        yield from self._readings(found)

    def _logs(self, found: _Moments) -> Iterator[MetricRow | Record]:
        """Yield the metrics of each step, and what is stated besides."""
        steps = found.highest(_STEP)
        stated = {name: found.highest(name) for name in _STATED}
        times = [at for at in sorted(steps or found.metrics) if at > self._logged]
        for _, same in groupby(times, lambda at: steps.get(at, at)):
            seen, *later = same
            at = self._logged = self.newest = later[-1] if later else seen
            if steps:
                self._reach(int(steps[at]), seen)
            metrics = found.combined(found.metrics[at])
            about = {name: stated[name].get(at) for name in _STATED}
            yield from self._progress(about[prometheus_names.TOTAL_STEPS])
            self._drop_held(metrics, about[prometheus_names.LAST_VALIDATION])
            yield from self._row(metrics, seen, about[prometheus_names.LAST_STEP])

    def _readings(self, found: _Moments) -> Iterator[MetricRow]:
        """Yield the figures that are measured by the clock."""
        for at in sorted(found.by_clock.keys() | found.machines.keys()):
            if at > self._measured and (figures := found.figures(at)):
                self._measured = at
                self.newest = max(at, self.newest or at)
                step, known = self._step_at(at)
                row = MetricRow(
                    step, tuple(figures), tuple(figures.values()), at or None
                )
                yield row._replace(mean=True, progress=False, estimated=not known)

    def _progress(self, planned: float | None) -> Iterator[Progress]:
        """Yield how many steps are planned where that has changed."""
        if planned is not None and int(planned) != self._total:
            self._total = int(planned)
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
        step, known = self._step_at(seen)
        time = (stamp or self._times[-1]) if known else seen
        values = array("d", metrics.values())
        row = (step, time, *metrics, values.tobytes())
        if not metrics or row == self._last_row:
            return
        self._last_row = row
        if known and step < self._trained:
            # said here: after a restart other metrics may be logged than before
            yield Restart(f"steps went back from {self._trained} to {step}")
        self._trained = step if known else -1
        plain = MetricRow(step, tuple(metrics), values, time or None)
        yield plain._replace(progress=known, estimated=not known)

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


_Values = defaultdict[float, defaultdict[str, list[float]]]
"""Some values at each time by key."""


class _Moments:
    """What series say at each time."""

    def __init__(
        self, lines: Sequence[PrometheusSeries], keys: Mapping[str, str]
    ) -> None:
        self._stated = self._values()
        """Steps, and what else our exporter states of the run, by series."""
        self.metrics = self._values()
        self.by_clock = self._values()
        """Figures that are measured by the clock."""
        self.machines: dict[float, list[Any]] = defaultdict(list)
        self._added: set[str] = set()
        """The keys of amounts, which are summed over workers."""
        self._keys = keys
        self._subjects: defaultdict[str, set[str]] = defaultdict(set)
        for line in lines:
            if line.name in MACHINES and KEY not in line.labels:
                for at, value in line.points.items():
                    one = line.name, line.labels, _number(value)
                    self.machines[at].append(one)
            elif (role := self._role(line)) is not None:
                values, key, factor = role
                for at, value in line.points.items():
                    values[at][key].append(_number(value) * factor)

    @staticmethod
    def _values() -> _Values:
        return defaultdict(lambda: defaultdict(list))

    def highest(self, name: str) -> dict[float, float]:
        """Return what is stated under a name at each time: of several workers that of the one that
        is furthest.
        """
        found = {}
        for at, stated in self._stated.items():
            if valid := [one for one in stated[name] if 0 <= one < 2**53]:
                found[at] = max(valid)
        return found

    def figures(self, at: float) -> dict[str, float]:
        """Return all figures that are measured by the clock."""
        of_machines = machine_figures(self.machines[at])
        found = {safe(key, 300): of_machines[key] for key in of_machines}
        known = self.combined(self.by_clock[at])
        # NaN is a rate or quantile of nothing
        return found | {key: one for key, one in known.items() if one == one}  # noqa: PLR0124

    def combined(self, values: Mapping[str, Sequence[float]]) -> dict[str, float]:
        """Return one value for each key: amounts are summed over workers, others averaged."""
        found = {}
        for key, own in values.items():
            if len(own) == 1:
                found[key] = own[0]
            elif key not in self._added and all(map(math.isfinite, own)):
                found[key] = mean(own)
            else:
                found[key] = sum(own) / (1 if key in self._added else len(own))
        return found

    def _role(self, line: PrometheusSeries) -> tuple[_Values, str, float] | None:
        """Return where the values of a series belong, under which key, and their factor; None for
        one that says nothing.
        """
        name, labels = line.name, line.labels
        if name in _STATED or (STEPS.fullmatch(name) and name not in self._keys):
            return self._stated, name if name in _STATED else _STEP, 1.0
        if computed := labels.get(KEY):
            return self.by_clock, safe(_keyed(computed, labels), 300), 1.0
        return self._level(name, labels) if _is_level(name, self._keys) else None

    def _level(
        self, name: str, labels: Mapping[str, str]
    ) -> tuple[_Values, str, float] | None:
        """Return the same of a metric, or of a figure of an engine."""
        of = subject(labels.items())
        known = self._subjects[name]
        if len(known | {of}) > _MOST_PARTS:
            return None
        known.add(of)
        own, factor = key_and_factor(name, self._keys)
        key = safe(of_subject(own, of), 300)
        if ADDED.fullmatch(name) and name not in self._keys:
            self._added.add(key)
        by_clock = BY_CLOCK.fullmatch(name)
        return self.by_clock if by_clock else self.metrics, key, factor


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


def _number(written: object) -> float:
    try:
        return float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
