"""Parse the answers of a Prometheus server, and make rows of those about one run."""

from __future__ import annotations

import math
from bisect import bisect_right
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from verl_tui import prometheus_names
from verl_tui.records import Event, EventKind
from verl_tui.sources.formats.prometheus_text.machine_exporters import (
    device_figures,
    node_of,
)
from verl_tui.sources.formats.prometheus_text.scraped_rows import (
    ScrapedRows,
    reading,
)
from verl_tui.sources.formats.prometheus_text.scrapes import (
    ScrapeFigures,
    stated_finding,
)
from verl_tui.sources.formats.prometheus_text.series_names import (
    is_metric,
    key_and_factor,
)
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.prometheus_queries import STEP_NAMES
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

ValuesByTime = dict[float, str]
"""Time -> value as it is written: most are never parsed."""
_Column = list[tuple[ValuesByTime, float]]
"""The points of the series of one key, with what each is to be multiplied with."""


class AnswerSeries(NamedTuple):
    """One series of an answer."""

    name: str
    labels: Mapping[str, str]
    points: ValuesByTime


def data_of(body: bytes) -> Any:
    """Return the data in an answer of Prometheus's API.

    Raises:
        NoAnswerError: It reports an error, or is not an answer of the API.
    """
    try:
        answer = orjson.loads(body)
    except ValueError as error:
        kind = "a web page" if b"<html" in body[:2000].lower() else "something else"
        raise NoAnswerError(
            f"answers with {kind} in place of Prometheus's JSON"
        ) from error
    if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
        raise NoAnswerError("answers with JSON that is not Prometheus's")
    if answer["status"] == "error":
        raise NoAnswerError(f"cannot answer: {one_line(str(answer.get('error')), 160)}")
    return answer.get("data")


def parsed_series(body: bytes) -> list[AnswerSeries]:
    """Return the series of an answer to a range query; invalid entries are left out."""
    data = data_of(body)
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list):
        raise NoAnswerError("answers with JSON that is not Prometheus's")
    return [series for one in result if (series := _series(one)) is not None]


def _series(entry: Any) -> AnswerSeries | None:
    try:
        points: ValuesByTime = dict(entry["values"])
        labels = {str(name): str(value) for name, value in entry["metric"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if not set(map(type, points)) <= {int, float}:
        return None
    return AnswerSeries(labels.pop("__name__", ""), labels, points)


_ENDS = {"finished": EventKind.FINISHED, "crashed": EventKind.FATAL}
"""States that our exporter gives to runs that have ended for certain."""


class AnswerRows:
    """Makes rows of the answers about one run, which come in the order of time."""

    def __init__(self) -> None:
        self._rows = ScrapedRows()
        self._state: str | None = None
        """The run's state, by our exporter."""
        self._first: float | None = None
        """Time of the first point of a run without steps."""
        self._times: list[float] = []
        self._steps: list[int] = []
        """The steps reached, and when."""
        self._seen = -math.inf
        self._read: dict[str, float] = {}
        """Up to when metrics have been taken, and each group of readings: answers may overlap."""
        self.findings: tuple[tuple[str, str], ...] = ()
        """Ids and severities that our exporter states at the newest point."""
        self.newest: float | None = None
        """Time of the newest point that was taken."""

    def metrics(
        self, lines: Sequence[AnswerSeries], keys: Mapping[str, str]
    ) -> Iterator[MetricRow | Record]:
        """Yield the metrics of training.

        Args:
            lines: All series of the run, all at the same times.
            keys: The log's own keys of their names, as far as they are known.
        """
        steps = _highest(lines, *STEP_NAMES)
        columns = _columns(lines, keys)
        times = sorted(steps or _times(columns.values()))
        picked = _last_of_each(times[bisect_right(times, self._seen) :], steps)
        if picked:
            self._seen = self.newest = picked[-1][0]
            for figures, seen in _moments(picked, steps, columns, lines):
                self._reach(figures.step, seen)
                yield from self._rows.take(figures, seen, self._step_at(seen)[0])
            yield from self._stated(lines)
        own = [line for line in lines if line.name == prometheus_names.GPU_MEMORY]
        yield from self.readings(own, "own")

    def _stated(self, lines: Sequence[AnswerSeries]) -> Iterator[Event]:
        """Take what our exporter says of the run; yield that it has ended, once it says so."""
        now = [line for line in lines if self._holds_now(line)]
        self.findings = tuple(
            stated_finding(line.labels)
            for line in now
            if line.name == prometheus_names.FINDING
        )
        states = (line for line in now if line.name == prometheus_names.STATE)
        if (line := next(states, None)) is not None:
            state = line.labels.get("state", "")
            kind = _ENDS.get(state)
            if kind is not None and state != self._state:
                words = f"the exporter of its log calls it {state}"
                yield Event(kind, words, 0, bare=kind is EventKind.FATAL)
            self._state = state

    def _holds_now(self, line: AnswerSeries) -> bool:
        """Return whether a series is 1 at the newest point."""
        at, on = max(line.points.items(), default=(-math.inf, 0.0))
        return at >= self._seen and _number(on) == 1.0

    def readings(
        self, lines: Sequence[AnswerSeries], group: str
    ) -> Iterator[MetricRow]:
        """Yield the figures that are measured by the clock.

        Args:
            group: Name of the query that these lines answer.
            lines: Figures of devices under the exporters' names, and others that carry their key as
                a label.
        """
        every = _figures_by_time(lines)
        since = self._read.get(group, -math.inf)
        for at in sorted(at for at in every if at > since):
            self._read[group] = at
            if every[at]:
                step, stated = self._step_at(at)
                self.newest = max(at, self.newest or at)
                yield reading(every[at], at, step, stated=stated)

    def _reach(self, step: int | None, at: float) -> None:
        """Note that a step was seen."""
        if step is not None and self._steps[-1:] != [step]:
            self._times.append(at)
            self._steps.append(step)

    def _step_at(self, time: float) -> tuple[int, bool]:
        """Return the step of a moment, and whether it is known; else moments are counted by the
        minute.
        """
        if self._steps:
            return self._steps[max(0, bisect_right(self._times, time) - 1)], True
        if self._first is None:
            self._first = time
        return max(0, int((time - self._first) / _MINUTE)), False


_MINUTE = 60.0


def _figures_by_time(lines: Sequence[AnswerSeries]) -> dict[float, dict[str, float]]:
    """Return the figures at each time by their keys."""
    every: dict[float, dict[str, float]] = {}
    by_time: dict[float, list[tuple[str, Mapping[str, str], float]]] = {}
    for line in lines:
        key = _key(line)
        for at, written in line.points.items():
            value = _number(written)
            if key is None:
                by_time.setdefault(at, []).append((line.name, line.labels, value))
            elif not math.isnan(value):  # a rate or quantile of nothing
                every.setdefault(at, {})[safe(key, 300)] = value
    for at, samples in by_time.items():
        found = device_figures(samples)
        every.setdefault(at, {}).update({safe(key, 300): found[key] for key in found})
    return every


def _moments(
    picked: Sequence[tuple[float, float]],
    steps: Mapping[float, float],
    columns: Mapping[str, _Column],
    lines: Sequence[AnswerSeries],
) -> Iterator[tuple[ScrapeFigures, float]]:
    """Yield the figures at the times picked, each with when its step was first seen."""
    planned = _highest(lines, prometheus_names.TOTAL_STEPS)
    stamps = _highest(lines, prometheus_names.LAST_STEP)
    validated = _highest(lines, prometheus_names.LAST_VALIDATION)
    ats = [at for at, _ in picked]
    values = [_values(column, ats) for column in columns.values()]
    rows = list(zip(*values, strict=True)) or [()] * len(picked)
    for (at, seen), row in zip(picked, rows, strict=True):
        metrics = dict(zip(columns, row, strict=True))
        if None in row:
            metrics = {key: one for key, one in metrics.items() if one is not None}
        figures = ScrapeFigures(
            int(steps[at]) if steps else None,
            int(planned[at]) if at in planned else None,
            stamps.get(at),
            metrics,
            {},
            validated.get(at),
        )
        yield figures, seen


def _columns(
    lines: Iterable[AnswerSeries], keys: Mapping[str, str]
) -> dict[str, _Column]:
    """Return the series of metrics by key."""
    columns: dict[str, _Column] = {}
    for line in lines:
        ours = bool(keys) and line.name.startswith(prometheus_names.PREFIX)
        # its key will be known within a minute
        if line.name in STEP_NAMES or (ours and line.name not in keys):
            continue
        if line.name in keys or is_metric(line.name, known=bool(keys)):
            key, factor = key_and_factor(line.name, keys)
            columns.setdefault(safe(key, 300), []).append((line.points, factor))
    return columns


def _times(columns: Iterable[_Column]) -> set[float]:
    """Return all times at which a column has a value."""
    return {at for column in columns for points, _ in column for at in points}


def _highest(lines: Iterable[AnswerSeries], *names: str) -> dict[float, float]:
    """Return the highest value of some series at each time: of several workers the one that is
    furthest.
    """
    found: dict[float, float] = {}
    for line in lines:
        for at, written in line.points.items() if line.name in names else ():
            value = _number(written)
            if math.isfinite(value) and value >= found.get(at, 0.0):
                found[at] = value
    return found


def _last_of_each(
    times: Sequence[float], steps: Mapping[float, float]
) -> list[tuple[float, float]]:
    """Return the last time of each step, with the first one; all times where there are no steps."""
    groups = (list(same) for _, same in groupby(times, lambda at: steps.get(at, at)))
    return [(same[-1], same[0]) for same in groups]


def _values(column: _Column, ats: Sequence[float]) -> list[float | None]:
    """Return the values at some times, None if there is none: of several workers their mean."""
    if len(column) == 1:
        points, factor = column[0]
        with suppress(TypeError, ValueError):  # whole columns mostly
            return [float(one) * factor for one in map(points.get, ats)]  # type: ignore[arg-type]
    return [_mean(column, at) for at in ats]


def _mean(column: _Column, at: float) -> float | None:
    values = [_number(points[at]) * factor for points, factor in column if at in points]
    return sum(values) / len(values) if values else None


def _number(written: object) -> float:
    try:
        return float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def _key(line: AnswerSeries) -> str | None:
    """Return the key of a figure that carries it as a label; followed by its subject and its
    host.
    """
    key = line.labels.get("key")
    if key is None:
        return None
    if key.startswith("cluster/"):
        node = node_of(line.labels)
        return f"{key}/l:{node}" if node else key
    task = line.labels.get("task_name")
    return f"{key}/{task}" if task else key
