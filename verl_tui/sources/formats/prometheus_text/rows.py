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

from verl_tui import prometheus_names as names
from verl_tui.means import clamp
from verl_tui.metrics import describe
from verl_tui.records import Event, EventKind, Progress, Restart
from verl_tui.sources.fields.row_batcher import Item, MetricRow
from verl_tui.sources.formats.prometheus_text.names import TABLE, machine_figures, role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.sources.formats.prometheus_text.names import PrometheusSeries

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

    def take(self, lines: Sequence[PrometheusSeries]) -> Iterator[Item]:
        """Yield the records of what is new, given all series of the run at some moments; 0.0 is one
        of unknown time.
        """
        for one in lines:
            if one.name == names.INFO:
                key = one.labels.get("key", "")
                factor = 1.0 / names.named(key).factor
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
        yield from self._reach(int(stated.get(names.STEPS, -1)), at)
        total = int(stated.get(names.TOTAL_STEPS, self._total))
        if total != self._total:
            self._total = total
            yield Progress(total=total)
        metrics = _combined(moment["metrics"])
        self._drop_held(metrics, stated.get(names.LAST_VALIDATION))
        if metrics:
            time = stated.get(names.LAST_STEP) or (self._times or [at])[-1]
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
            if line.name == names.FINDING
        )
        told = (one.labels for one in now if one.name == names.STATE)
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
