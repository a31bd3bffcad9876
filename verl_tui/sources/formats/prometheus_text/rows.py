"""Turns the series of one run into rows of steps, whether they come from pages or from a server.

A page shows the present values, and keeps showing them: the result of a step is the last value
before the next one. Figures measured by the clock are averaged over the step in which they were
measured.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from contextlib import suppress
from functools import cache
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple, cast

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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries

_TESTING, _SAVING = "timing_s/testing", "timing_s/save_checkpoint"
"""Metrics besides those of validations that a trainer logs now and then: in between, pages hold the
last value.
"""
_ENDS = {"finished": EventKind.FINISHED, "crashed": EventKind.FATAL}
"""States that our exporter gives to runs that have ended for certain."""
_MOST_PARTS = 32
"""Subjects of one metric."""
_MINUTE = 60.0


class _MetricColumn(NamedTuple):
    """The series of one metric, mostly one."""

    parts: list[tuple[Mapping[float, object], float]]
    """The values of each, with what they are to be multiplied with."""
    added: bool
    """True if several are summed, in place of averaged."""

    def at(self, times: Sequence[float]) -> list[float | None]:
        """Return the values at some times, None where there is none."""
        if len(self.parts) == 1:
            points, factor = self.parts[0]
            with suppress(TypeError, ValueError):  # whole columns mostly
                return [float(one) * factor for one in map(points.get, times)]  # type: ignore
        return [self._combined(time) for time in times]

    def _combined(self, time: float) -> float | None:
        values = [
            _number(points[time]) * factor
            for points, factor in self.parts
            if time in points
        ]
        if not values:
            return None
        if not self.added and all(map(math.isfinite, values)):
            return mean(values)
        return sum(values) / (1 if self.added else len(values))


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
        metrics, by_clock = _columns(lines, keys)
        steps = _steps(lines, keys)
        times = sorted(steps or set(chain.from_iterable(map(_times, metrics.values()))))
        picked = _last_of_each(times[bisect_right(times, self._logged) :], steps)
        if picked:
            self._logged = self.newest = picked[-1][0]
            yield from self._metrics(picked, steps, metrics, lines)
            yield from self._stated(lines)
        for at, figures in sorted(_figures(lines, by_clock).items()):
            if at > self._measured:
                self._measured = at
                self.newest = max(at, self.newest or at)
                yield self._reading(figures, at)

    def _metrics(
        self,
        picked: Sequence[tuple[float, float]],
        steps: Mapping[float, float],
        metrics: Mapping[str, _MetricColumn],
        lines: Sequence[PrometheusSeries],
    ) -> Iterator[MetricRow | Record]:
        """Yield the metrics at the times picked, each given with when its step was first seen."""
        planned = _highest(lines, prometheus_names.TOTAL_STEPS)
        stamps = _highest(lines, prometheus_names.LAST_STEP)
        validated = _highest(lines, prometheus_names.LAST_VALIDATION)
        ats = [at for at, _ in picked]
        values = [column.at(ats) for column in metrics.values()]
        rows = list(zip(*values, strict=True)) or [()] * len(ats)
        for (at, seen), row in zip(picked, rows, strict=True):
            if at in planned and int(planned[at]) != self._total:
                self._total = int(planned[at])
                yield Progress(total=self._total)
            if steps:
                self._reach(int(steps[at]), seen)
            found = _known(dict(zip(metrics, row, strict=True)))
            self._drop_held(found, validated.get(at))
            yield from self._row(found, seen, stamps.get(at))

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

    def _stated(self, lines: Sequence[PrometheusSeries]) -> Iterator[Event]:
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


def _columns(
    lines: Iterable[PrometheusSeries], keys: Mapping[str, str]
) -> tuple[dict[str, _MetricColumn], dict[str, _MetricColumn]]:
    """Return metrics by key, and figures that are measured by the clock."""
    metrics: dict[str, _MetricColumn] = {}
    by_clock: dict[str, _MetricColumn] = {}
    subjects: dict[str, set[str]] = {}
    for line in lines:
        if not _is_level(line, keys):
            continue
        of = subject(line.labels.items())
        known = subjects.setdefault(line.name, {of})
        if len(known) >= _MOST_PARTS and of not in known:
            continue
        known.add(of)
        key, factor = key_and_factor(line.name, keys)
        added = bool(ADDED.fullmatch(line.name)) and line.name not in keys
        out = by_clock if BY_CLOCK.fullmatch(line.name) else metrics
        column = out.setdefault(
            safe(of_subject(key, of), 300), _MetricColumn([], added)
        )
        column.parts.append((line.points, factor))
    return metrics, by_clock


def _is_level(line: PrometheusSeries, keys: Mapping[str, str]) -> bool:
    """Return whether a series is a metric, or a figure of an engine."""
    name = line.name
    if name in keys:
        return True
    # of our own exporter what the log calls otherwise: the tutorials' names, and new metrics, whose
    # keys a server states within a minute
    ours = keys and (name in SUMMARIES or name.startswith(prometheus_names.PREFIX))
    return not (
        ours
        or name in MACHINES
        or KEY in line.labels
        or STEPS.fullmatch(name)
        or NO_METRIC.fullmatch(name)
    )


def _figures(
    lines: Sequence[PrometheusSeries], by_clock: Mapping[str, _MetricColumn]
) -> dict[float, dict[str, float]]:
    """Return the figures that are measured by the clock at each time by their keys."""
    found = _of_machines(lines)
    for key, column in by_clock.items():
        ats = _times(column)
        for at, level in zip(ats, column.at(ats), strict=True):
            found.setdefault(at, {})[key] = _number(level)
    for line in lines:
        key = safe(_computed_key(line.labels), 300)
        for at, written in line.points.items() if key else ():
            value = _number(written)
            if not math.isnan(value):  # a rate or quantile of nothing
                found.setdefault(at, {})[key] = value
    return found


def _of_machines(lines: Sequence[PrometheusSeries]) -> dict[float, dict[str, float]]:
    """Return the figures of devices and hosts at each time by their keys."""
    samples: dict[float, list[tuple[str, Mapping[str, str], float]]] = {}
    for line in lines:
        of_machine = line.name in MACHINES and KEY not in line.labels
        for at, value in line.points.items() if of_machine else ():
            samples.setdefault(at, []).append((line.name, line.labels, _number(value)))
    every = {at: machine_figures(samples[at]) for at in samples}
    return {
        at: {safe(key, 300): found[key] for key in found}
        for at, found in every.items()
        if found
    }


def _computed_key(labels: Mapping[str, str]) -> str:
    """Return the key of a figure that was computed, empty for any other series."""
    key = labels.get(KEY, "")
    if key.startswith("cluster/"):
        return on(key, node_of(labels))
    return of_subject(key, labels.get("task_name", "")) if key else ""


def _times(column: _MetricColumn) -> list[float]:
    """Return all times at which a column has a value."""
    return list(dict.fromkeys(at for points, _ in column.parts for at in points))


def _known(row: dict[str, float | None]) -> dict[str, float]:
    """Return a row without the metrics that have no value."""
    if None not in row.values():
        return cast("dict[str, float]", row)
    return {key: one for key, one in row.items() if one is not None}


def _steps(
    lines: Iterable[PrometheusSeries], keys: Mapping[str, str]
) -> dict[float, float]:
    """Return the step reached at each time."""
    told = {line.name for line in lines if STEPS.fullmatch(line.name)}
    return _highest(lines, *(told - keys.keys()))


def _highest(lines: Iterable[PrometheusSeries], *names: str) -> dict[float, float]:
    """Return the highest value of some series at each time: of several workers the one that is
    furthest.
    """
    found: dict[float, float] = {}
    for line in lines:
        for at, written in line.points.items() if line.name in names else ():
            value = _number(written)
            if found.get(at, 0.0) <= value < 2**53:
                found[at] = value
    return found


def _last_of_each(
    times: Sequence[float], steps: Mapping[float, float]
) -> list[tuple[float, float]]:
    """Return the last time of each step, with the first one; all times where there are no steps."""
    groups = (list(same) for _, same in groupby(times, lambda at: steps.get(at, at)))
    return [(same[-1], same[0]) for same in groups]


def _number(written: object) -> float:
    try:
        return float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
