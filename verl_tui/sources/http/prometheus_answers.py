"""Parse the answers of a Prometheus server, and make rows of those about one run."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui import prometheus_names
from verl_tui.records import Event, EventKind, Progress
from verl_tui.sources.fields.jsonl import loads
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.machine_exporters import (
    device_figures,
    node_of,
)
from verl_tui.sources.formats.prometheus_text.scraped_rows import held, is_now_and_then
from verl_tui.sources.formats.prometheus_text.scrapes import stated_finding
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
    from verl_tui.sources.formats.prometheus_text.scraped_rows import StampedValue

ValuesByTime = dict[float, str]
"""Time -> value as it is written: most are never parsed."""
_RowKey = tuple[int | None, float, tuple[str, ...], str]
"""Step, time, keys and values of a row."""


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
        answer = loads(body)
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


def _series(entry: object) -> AnswerSeries | None:
    if not isinstance(entry, dict):
        return None
    metric = entry.get("metric")
    values = entry.get("values")
    if not isinstance(metric, dict) or not isinstance(values, list):
        return None
    try:
        points: ValuesByTime = dict(values)
    except (TypeError, ValueError):
        return None
    if not set(map(type, points)) <= {int, float}:
        return None
    labels = {
        str(name): str(value) for name, value in metric.items() if name != "__name__"
    }
    return AnswerSeries(str(metric.get("__name__", "")), labels, points)


_ENDS = {"finished": EventKind.FINISHED, "crashed": EventKind.FATAL}
"""States that our exporter gives to runs that have ended for certain."""


class AnswerRows:
    """Makes rows of the answers about one run, which come in the order of time."""

    def __init__(self) -> None:
        self._total: int | None = None
        self._state: str | None = None
        """The run's state, by our exporter."""
        self._held: dict[str, StampedValue] = {}
        """Last values of the metrics that are logged now and then."""
        self._last_rows: set[_RowKey] = set()
        """The first and the last rows of the last answer."""
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
        steps = _highest(line.points for line in lines if line.name in STEP_NAMES)
        columns = _columns(lines, keys)
        times = sorted(steps or _times(columns))
        new_times = times[bisect_right(times, self._seen) :]
        picked = list(_last_of_each(new_times, steps))
        if picked:
            self._seen = self.newest = picked[-1][0]
            yield from self._planned(lines)
            yield from self._rows(picked, steps, columns, lines)
            yield from self._ended(lines)
            self.findings = tuple(
                stated_finding(line.labels)
                for line in lines
                if line.name == prometheus_names.FINDING and self._holds_now(line)
            )
        yield from self._own_devices(lines)

    def _planned(self, lines: Sequence[AnswerSeries]) -> Iterator[Progress]:
        """Yield how many steps the whole run will take, where that has become known or is another
        number now.
        """
        planned = _highest_of(lines, prometheus_names.TOTAL_STEPS)
        total = int(planned[max(planned)]) if planned else None
        if total is not None and total != self._total:
            self._total = total
            yield Progress(total=total)

    def _ended(self, lines: Sequence[AnswerSeries]) -> Iterator[Event]:
        """Yield that the run has ended, once our exporter says so."""
        state = self._newest_state(lines)
        if state is None or state == self._state:
            return
        self._state = state
        kind = _ENDS.get(state)
        if kind is not None:
            words = f"the exporter of its log calls it {state}"
            yield Event(kind, words, 0, bare=kind is EventKind.FATAL)

    def _newest_state(self, lines: Sequence[AnswerSeries]) -> str | None:
        """Return the state that our exporter gives the run now, None if it gives none."""
        for line in lines:
            if line.name == prometheus_names.STATE and self._holds_now(line):
                return line.labels.get("state", "")
        return None

    def _holds_now(self, line: AnswerSeries) -> bool:
        """Return whether a series is 1 at the newest point."""
        at, on = max(line.points.items(), default=(-math.inf, 0.0))
        return at >= self._seen and _number(on) == 1.0

    def _rows(
        self,
        picked: Sequence[tuple[float, float]],
        steps: Mapping[float, float],
        columns: Mapping[str, list[tuple[ValuesByTime, float]]],
        lines: Sequence[AnswerSeries],
    ) -> Iterator[MetricRow]:
        """Yield rows at the times picked, one a step and group of metrics that came together."""
        stamps = _highest_of(lines, prometheus_names.LAST_STEP)
        validated = _highest_of(lines, prometheus_names.LAST_VALIDATION)
        ats = [at for at, _ in picked]
        back = _falls(list(map(steps.__getitem__, ats))) if steps else set()
        tables = self._tables(columns, ats, back, list(map(validated.get, ats)))
        before = self._last_rows
        self._last_rows = set()
        for i, (at, seen) in enumerate(picked):
            reached = at in steps
            number = int(steps[at]) if reached else self._step_at(at)[0]
            step = number if reached else None
            time = stamps.get(at, self._reach(step, seen))
            edge = i in (0, len(picked) - 1)  # the step of the last answer may go on
            for mask, keys, rows in tables:
                if not mask[i]:
                    continue
                if edge and self._repeats((step, time, keys, str(rows[i])), before):
                    continue
                yield MetricRow(
                    number, keys, rows[i], time, progress=reached, estimated=not reached
                )

    def _repeats(self, row: _RowKey, before: set[_RowKey]) -> bool:
        """Note a row; return whether the last answer held it as well."""
        self._last_rows.add(row)
        return row in before

    def _tables(
        self,
        columns: Mapping[str, list[tuple[ValuesByTime, float]]],
        ats: Sequence[float],
        back: set[int],
        validated: Sequence[float | None],
    ) -> list[tuple[bytes, tuple[str, ...], list[tuple[Any, ...]]]]:
        """Return metrics that have values at the same times together: at which of them, their keys,
        a row a time.
        """
        groups: dict[bytes, tuple[list[str], list[list[float | None]]]] = {}
        for key, parts in columns.items():
            column = _column(parts, ats)
            if is_now_and_then(key):
                column = self._unheld(key, column, back, validated)
            mask = bytes([value is not None for value in column])
            names, group = groups.setdefault(mask, ([], []))
            names.append(key)
            group.append(column)
        return [
            (mask, tuple(names), list(zip(*group, strict=True)))
            for mask, (names, group) in groups.items()
        ]

    def _unheld(
        self,
        key: str,
        column: Sequence[float | None],
        back: set[int],
        validated: Sequence[float | None],
    ) -> list[float | None]:
        """Return a column without repetitions: pages keep the last value of a validation."""
        out: list[float | None] = []
        for i, value in enumerate(column):
            if i in back:
                self._held.pop(key, None)
            current = held(key, value, validated[i]) if value is not None else None
            out.append(value if self._held.get(key) != current else None)
            if current is not None:
                self._held[key] = current
        return out

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
            figures = {safe(key, 300): value for key, value in every[at].items()}
            if not figures:
                continue
            step, stated = self._step_at(at)
            self.newest = max(at, self.newest or at)
            yield MetricRow(
                step,
                tuple(figures),
                tuple(figures.values()),
                at,
                mean=True,
                progress=False,
                estimated=not stated,
            )

    def _own_devices(self, lines: Sequence[AnswerSeries]) -> Iterator[MetricRow]:
        own = [line for line in lines if line.name == prometheus_names.GPU_MEMORY]
        if own:
            yield from self.readings(own, "own")

    def _reach(self, step: int | None, at: float) -> float:
        """Note that a step was seen; return when it was seen first."""
        if step is None:
            return at
        if not self._steps or step != self._steps[-1]:
            self._times.append(at)
            self._steps.append(step)
        return self._times[-1]

    def _step_at(self, time: float) -> tuple[int, bool]:
        """Return the step of a moment, and whether it is known; else moments are counted by the
        minute.
        """
        if self._steps:
            return self._steps[max(0, bisect_right(self._times, time) - 1)], True
        if not self._times:
            self._times.append(time)
        return max(0, int((time - self._times[0]) / _MINUTE)), False


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
                every.setdefault(at, {})[key] = value
    for at, samples in by_time.items():
        every.setdefault(at, {}).update(device_figures(samples))
    return every


def _columns(
    lines: Iterable[AnswerSeries], keys: Mapping[str, str]
) -> dict[str, list[tuple[ValuesByTime, float]]]:
    """Return by key the points of its series, with what each is to be multiplied with."""
    columns: dict[str, list[tuple[ValuesByTime, float]]] = {}
    for line in lines:
        ours = bool(keys) and line.name.startswith(prometheus_names.PREFIX)
        # its key will be known within a minute
        if line.name in STEP_NAMES or (ours and line.name not in keys):
            continue
        if line.name in keys or is_metric(line.name, known=bool(keys)):
            key, factor = key_and_factor(line.name, keys)
            columns.setdefault(safe(key, 300), []).append((line.points, factor))
    return columns


def _times(columns: Mapping[str, list[tuple[ValuesByTime, float]]]) -> set[float]:
    """Return all times at which a column has a value."""
    times: set[float] = set()
    for parts in columns.values():
        for points, _ in parts:
            times.update(points)
    return times


def _highest_of(lines: Iterable[AnswerSeries], name: str) -> dict[float, float]:
    return _highest(line.points for line in lines if line.name == name)


def _highest(series: Iterable[ValuesByTime]) -> dict[float, float]:
    """Return the highest value at each time: of several workers the one that is furthest."""
    found: dict[float, float] = {}
    for points in series:
        for at, written in points.items():
            value = _number(written)
            if math.isfinite(value) and value >= found.get(at, 0.0):
                found[at] = value
    return found


def _falls(steps: Sequence[float]) -> set[int]:
    """Return the places of the steps that are lower than the one before."""
    return {i for i, (before, step) in enumerate(pairwise(steps), 1) if step < before}


def _last_of_each(
    times: Sequence[float], steps: Mapping[float, float]
) -> Iterator[tuple[float, float]]:
    """Yield the last time of each step, with the first one; all times where there are no steps."""
    if not steps:
        yield from zip(times, times, strict=True)
        return
    for _, group in groupby(times, steps.__getitem__):
        same = list(group)
        yield same[-1], same[0]


def _column(
    parts: Sequence[tuple[ValuesByTime, float]], ats: Sequence[float]
) -> list[float | None]:
    """Return the values at some times, None if there is none: of several workers their mean."""
    if len(parts) > 1:
        return [_mean(parts, at) for at in ats]
    points, factor = parts[0]
    written = list(map(points.get, ats))
    try:
        column = list(map(float, written))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [None if one is None else _number(one) * factor for one in written]
    if factor == 1.0:
        return list(column)
    return [value * factor for value in column]


def _mean(parts: Sequence[tuple[ValuesByTime, float]], at: float) -> float | None:
    values = [_number(points[at]) * factor for points, factor in parts if at in points]
    if not values:
        return None
    return sum(values) / len(values)


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
