"""A Prometheus server as a source: finds the runs it has series of, loads their past, and follows
them.

It is asked three things an interval at most: the metrics of all runs, the figures of devices, those
of engines and hosts (https://prometheus.io/docs/prometheus/latest/querying/api).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from operator import attrgetter
from time import localtime, strftime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import RowBatcher
from verl_tui.sources.http import prometheus_queries as queries
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.prometheus_answers import (
    AnswerRows,
    AnswerSeries,
    data_of,
    parsed_series,
)
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.http.addresses import Address
    from verl_tui.sources.http.client import Client
    from verl_tui.sources.http.prometheus_queries import Labels

name = "Prometheus server"
rank = 1

_PAST = 15 * 86_400.0
"""Seconds that are looked back: what Prometheus keeps by default."""
_SCRAPE = 15.0
"""Seconds between two scrapes if the server does not state them: a usual choice; 60 is Prometheus's
default.
"""
_SHORTEST, _LONGEST = 1.0, 120.0
_MOST_POINTS = 10_000
"""Points of one series in one answer; Prometheus refuses more than 11,000."""
_BUDGET = 400_000
"""Points of all series in one answer: some 12 MB."""
_TOGETHER = 3_000_000
"""Points of all runs that are loaded."""
_LEAST_POINTS = 100
_TOO_MUCH = pattern(
    r"answers with more than|gives no complete answer|cannot answer|answers with HTTP [45]"
)
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PIECE = pattern(r"(\d{1,15})(ms|[smhd])")
"""A part of a duration, and its units in seconds."""
_READING_POINTS = 120
"""Points of the past of each figure that is measured by the clock: as many as the GPU panel
shows.
"""
_LATE = 1.0
"""Seconds that a scrape takes to be found."""
_HOUR = 3600.0
"""Seconds to look back if no step shows the beginning."""
_REDISCOVER = 60.0
_MOST_RUNS = 100
_STALE = 300.0
"""Seconds for which Prometheus takes a series for alive after its last sample."""


@dataclass(slots=True)
class ServedRun:
    """One run that a server has series of."""

    name: str
    labels: Labels
    """Labels that distinguish its series from those of others; empty for figures of no run."""
    names: set[str] = field(default_factory=set)
    series: int = 0
    """How many it has at most at a time."""
    span: tuple[float, float] | None = None
    """When its steps were seen first and last."""
    rows: AnswerRows = field(default_factory=AnswerRows)
    batcher: RowBatcher = field(default_factory=RowBatcher)
    waiting: deque[tuple[Record, ...]] = field(default_factory=deque)
    """Batches of rows that wait to be read."""
    loaded: bool = False
    coarse: float | None = None
    """Seconds between two points of its past, where that is more than between two scrapes."""
    received: int = 0
    """Bytes of the answers about it; its share of those about several runs."""
    absent: float | None = None
    """Since when the server has had nothing new of it."""

    def goes_on(self, now: float) -> bool:
        """Return whether the server still has something new of it."""
        if self.loaded:
            return self.absent is None
        return self.span is not None and now - self.span[1] <= _STALE

    def hand_on(self) -> None:
        """Put what has been gathered where it is taken from."""
        if records := self.batcher.take():
            self.waiting.append(records)

    def note(self, interval: float) -> str | None:
        """Say how exact its past is, given the seconds between two scrapes."""
        parts = []
        if not self.labels:
            parts = ["what no run is named for: as steps minutes are counted"]
        if self.coarse is not None and self.coarse > interval:
            parts.append(
                f"its past is shown by a point every {self.coarse:,.0f} s,"
                f" of a scrape every {interval:g} s"
            )
        if self.absent is not None:
            parts.append(
                f"nothing new since {strftime('%H:%M:%S', localtime(self.absent))}"
            )
        return "; ".join(parts) or None


class Server:
    """Asks one server. Its `ask` is called by one thread, again and again; others only take from
    `runs`.
    """

    def __init__(self, address: Address, client: Client) -> None:
        self.address = address
        self.interval = _SCRAPE
        self.runs: dict[str, ServedRun] = {}
        """By name, in the order of finding; new ones are put in whole."""
        self.left_out = 0
        """Runs beyond those that are shown."""
        self.asked = 0
        """Questions so far."""
        self._client = client
        self._names: set[str] = set()
        self._keys: dict[str, str] = {}
        """The log's own keys, by the names that our exporter gives them."""
        self._shared: ServedRun | None = None
        """The run that figures of devices, engines and hosts are assigned to."""
        self._followed: float | None = None
        """Up to when it has been asked."""
        self._discovered = -math.inf

    def ask(self, now: float) -> None:
        """Ask for new figures.

        Args:
            now: Seconds since the epoch.

        Raises:
            NoAnswerError: There is no answer that can be used.
        """
        if now - self._discovered >= _REDISCOVER:
            self._discover(now)
            self._discovered = now
        for run in _newest_first(self.runs.values(), now):
            if not run.loaded:
                self._load(run, now)
        if self._followed is not None:
            self._follow(self._followed, now)
        self._followed = self._until(now)

    # -- finding -----------------------------------------------------------------------------------

    def _discover(self, now: float) -> None:
        since = max(now - _PAST, self._discovered - _REDISCOVER)
        period = urlencode({"start": f"{since:.0f}", "end": f"{now:.0f}"})
        self.interval = self._scrape_interval()
        names = self._data(f"/api/v1/label/__name__/values?{period}")
        self._names.update(map(str, _list(names)))
        matches = urlencode([("match[]", selector) for selector in queries.RUNS])
        all_series = self._data("/api/v1/series", form=f"{matches}&{period}")
        runs = {run.labels: run for run in self.runs.values()}
        new: dict[Labels, ServedRun] = {}
        counts: Counter[Labels] = Counter()
        for labels in _dicts(all_series):
            series = {str(key): str(value) for key, value in labels.items()}
            name = series.get("__name__", "")
            if name == prometheus_names.INFO:
                self._keys[series.get("name", "")] = series.get("key", "")
                continue
            own = queries.belongs(series)
            run = runs.get(own) or new.setdefault(own, ServedRun("", own))
            run.names.add(name)
            counts[own] += 1
        for own, run in (runs | new).items():
            run.series = max(run.series, counts[own])
        if new:
            self._add(new, now)
        if self._readings():
            self._shared = self._owner(now)
            self.runs.setdefault(self._shared.name, self._shared)

    def _add(self, new: Mapping[Labels, ServedRun], now: float) -> None:
        """Take the newest of the new runs, as long as there is room."""
        spans = self._spans(now)
        for labels, run in new.items():
            run.span = spans.get(labels)
        room = max(0, _MOST_RUNS - len(self.runs))
        self.left_out = max(0, len(new) - room)
        for run in _newest_first(new.values(), 0.0)[:room]:
            run.name = self._name(dict(run.labels))
            self.runs[run.name] = run

    def _name(self, labels: Mapping[str, str]) -> str:
        """Return a run's name: as in the logs, with its project if another one has the same
        name.
        """
        own = (
            labels.get("run")
            or labels.get("experiment_name")
            or labels.get("job")
            or self.address.place
        )
        numbered = (f"{own} ({at})" for at in range(2, _MOST_RUNS + 2))
        names = (own, f"{labels.get('project', '')}/{own}", *numbered)
        shown = (one_line(name, 120) or "run" for name in names)
        return next(name for name in shown if name not in self.runs)

    def _owner(self, now: float) -> ServedRun:
        """Return the run that the figures of machines belong to: the only one that goes on, or the
        only one; else none.
        """
        trained = [run for run in self.runs.values() if run.labels]
        live = [run for run in trained if run.goes_on(now)]
        owners = live or trained
        if len(owners) == 1:
            return owners[0]
        nobodys = next((run for run in self.runs.values() if not run.labels), None)
        return nobodys or ServedRun(self._name({}), ())

    def _spans(self, now: float) -> dict[Labels, tuple[float, float]]:
        """Return from when to when the steps of each run were seen."""
        every = max(self.interval, _PAST / _MOST_POINTS)
        spans: dict[Labels, tuple[float, float]] = {}
        for line in self._range(queries.steps(), now - _PAST, self._until(now), every):
            if line.points:
                run = queries.belongs(line.labels)
                times = (*line.points, *spans.get(run, ()))
                spans[run] = min(times), max(times)
        return {run: (at - every, to + every) for run, (at, to) in spans.items()}

    def _scrape_interval(self) -> float:
        """Return the seconds between two scrapes, of the targets that are scraped most often."""
        try:
            data = self._data("/api/v1/targets?state=active")
        except NoAnswerError:
            return self.interval
        targets = _dicts(data.get("activeTargets") if isinstance(data, dict) else None)
        stated = [promql_duration(target.get("scrapeInterval")) for target in targets]
        shortest = min(filter(None, stated), default=self.interval)
        return min(max(shortest, _SHORTEST), _LONGEST)

    # -- the past ----------------------------------------------------------------------------------

    def _load(self, run: ServedRun, now: float) -> None:
        """Load a run's past, at a distance of points at which it can be answered."""
        before = self._client.received
        first, last = run.span or (now - _HOUR, now)
        last = min(last, self._until(now))
        if run.labels:
            values = min(_BUDGET, _TOGETHER // max(1, len(self.runs)))
            share = values // max(1, run.series)
            points = min(_MOST_POINTS, max(_LEAST_POINTS, share))
            query = queries.of_run(dict(run.labels))
            run.coarse, lines = self._past(query, first, last, points)
            run.batcher.add(run.rows.metrics(lines, self._keys_of(run)))
        if run is self._shared:
            self._load_readings(run, first, last)
        run.received += self._client.received - before
        run.hand_on()
        run.loaded = True

    def _load_readings(self, run: ServedRun, first: float, last: float) -> None:
        for group, query in self._readings().items():
            _, lines = self._past(query, first, last, _READING_POINTS)
            run.batcher.add(run.rows.readings(lines, group))

    def _past(
        self, query: str, first: float, last: float, points: int
    ) -> tuple[float, list[AnswerSeries]]:
        """Return the distance of points that could be had, and the series at that."""
        while True:
            scrapes = math.ceil((last - first) / (points * self.interval))
            every = self.interval * max(1, scrapes)
            try:
                return every, self._range(query, first, last, every)
            except NoAnswerError as error:
                # Too much at once for the server or for us: a quarter of it.
                points = int((last - first) / every) // 4
                if points < _LEAST_POINTS // 4 or not _TOO_MUCH.match(str(error)):
                    raise

    # -- what comes --------------------------------------------------------------------------------

    def _follow(self, since: float, now: float) -> None:
        first = since + self.interval
        last = self._until(now)
        if last < first:
            return
        before = self._client.received
        names = set().union(*(run.names for run in self.runs.values()))
        if names:
            live = [run.series for run in self.runs.values() if run.goes_on(now)]
            points = max(_LEAST_POINTS, _BUDGET // max(1, sum(live)))
            _, lines = self._past(queries.of_all_runs(names), first, last, points)
            self._deal_out(lines, now)
        if self._shared is not None:
            self._load_readings(self._shared, first, last)
        for run in self.runs.values():
            run.received += (self._client.received - before) // len(self.runs)
            run.hand_on()

    def _deal_out(self, lines: Sequence[AnswerSeries], now: float) -> None:
        """Give each run its series."""
        by_run: defaultdict[Labels, list[AnswerSeries]] = defaultdict(list)
        for line in lines:
            by_run[queries.belongs(line.labels)].append(line)
        for run in filter(attrgetter("labels"), self.runs.values()):
            own = by_run.get(run.labels)
            if own:
                run.absent = None
                run.batcher.add(run.rows.metrics(own, self._keys_of(run)))
            elif run.absent is None:
                run.absent = run.rows.newest or now

    def _until(self, now: float) -> float:
        """Return the last moment for which all scrapes have arrived by now."""
        late = min(_LATE, self.interval / 2)
        return math.floor((now - late) / self.interval) * self.interval

    def _keys_of(self, run: ServedRun) -> Mapping[str, str]:
        """Return the log's own keys, if our exporter serves this run."""
        return self._keys if run.names & self._keys.keys() else {}

    def _readings(self) -> dict[str, str]:
        """Return what asks for the readings of each group."""
        window = max(60, int(4 * self.interval))
        asked = {
            "devices": queries.device_query(self._names),
            "engines": queries.engines(self._names, window),
        }
        return {group: query for group, query in asked.items() if query}

    def _data(self, path: str, form: str | None = None) -> Any:
        """Return the data in the answer to a question."""
        return data_of(self._ask(path, form))

    def _ask(self, path: str, form: str | None = None) -> bytes:
        self.asked += 1
        try:
            return self._client.ask(self.address.below(path), form=form)
        except NoAnswerError as error:
            if error.body.startswith(b"{"):
                data_of(error.body)  # says why in the server's own words
            raise

    def _range(
        self, query: str, first: float, last: float, every: float
    ) -> list[AnswerSeries]:
        # the newest moment is always among them
        first = last - math.floor((last - first) / every) * every
        period = {"start": f"{first:.3f}", "end": f"{last:.3f}", "step": f"{every:g}"}
        form = urlencode({"query": query, **period})
        return parsed_series(self._ask("/api/v1/query_range", form))


def _newest_first(runs: Iterable[ServedRun], otherwise: float) -> list[ServedRun]:
    """Return runs, the one first whose steps were seen last; `otherwise`: when those of a run
    without a span were.
    """
    return sorted(runs, key=lambda run: -(run.span[1] if run.span else otherwise))


def is_one(client: Client, address: Address) -> bool:
    """Return whether a server speaks Prometheus's API.

    Raises:
        NoAnswerError: It does not answer at all.
    """
    try:
        data_of(client.ask(address.below("/api/v1/status/buildinfo")))
    except NoAnswerError as error:
        if error.status is None and not str(error).startswith("answers with"):
            raise
        return False
    return True


def _list(data: object) -> list[Any]:
    return data if isinstance(data, list) else []


def _dicts(data: object) -> list[dict[Any, Any]]:
    return [one for one in _list(data) if isinstance(one, dict)]


def promql_duration(text: object) -> float | None:
    """Return a duration as Prometheus writes it: `15s`, `1m`, `1m30s`, `500ms`."""
    pieces = _PIECE.findall(text) if isinstance(text, str) else []
    if "".join(map("".join, pieces)) != text:
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in pieces) or None
