"""A Prometheus server as a source: finds the runs it has series of, loads their past, and follows
them by one query an interval.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from time import localtime, strftime
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.means import clamp
from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.formats.prometheus_text.machines import MACHINES
from verl_tui.sources.formats.prometheus_text.names import BY_CLOCK, KEY
from verl_tui.sources.formats.prometheus_text.rows import StepRows
from verl_tui.sources.http import prometheus_queries as queries
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.prometheus_api import PrometheusApi
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.names import (
        Labels,
        PrometheusSeries,
    )
    from verl_tui.sources.http.addresses import Address
    from verl_tui.sources.http.client import Client

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
    series: int = 0
    """How many it has at most at a time."""
    span: tuple[float, float] | None = None
    """When its steps were seen first and last, as it was found."""
    seen: float = -math.inf
    """When the server had something of it last."""
    followed: float | None = None
    """Up to when its series were asked for."""
    rows: StepRows = field(default_factory=StepRows)
    waiting: deque[tuple[Record, ...]] = field(default_factory=deque)
    """Batches of rows that wait to be read."""
    loaded: bool = False
    coarse: float | None = None
    """Seconds between two points of its past, where that is more than between two scrapes."""
    _batcher: RowBatcher = field(default_factory=RowBatcher)

    def goes_on(self, now: float) -> bool:
        """Return whether the server still has something new of it."""
        return now - self.seen <= _STALE

    def take(self, lines: list[PrometheusSeries], keys: Mapping[str, str]) -> None:
        """Make rows of new series.

        Args:
            lines: Of the run.
            keys: The log's own keys, by the names that our exporter gives them.
        """
        ours = any(label == "run" for label, _ in self.labels)
        self._batcher.add(self.rows.take(lines, keys if ours else {}))
        if records := self._batcher.take():
            self.waiting.append(records)
        self.loaded = True

    def note(self, interval: float, now: float) -> str | None:
        """Say how exact its past is, given the seconds between two scrapes, and how old."""
        coarse = since = None
        if self.coarse is not None and self.coarse > interval:
            coarse = (
                f"its past is shown by a point every {self.coarse:,.0f} s,"
                f" of a scrape every {interval:g} s"
            )
        newest = self.rows.newest
        if self.labels and newest is not None and not self.goes_on(now):
            since = f"nothing new since {strftime('%H:%M:%S', localtime(newest))}"
        return joined_notes(self.rows.note, coarse, since)


class Server:
    """Follows one server. Its `ask` is called by one thread, again and again; others only take from
    `runs`.
    """

    def __init__(self, address: Address, client: Client) -> None:
        self.api = PrometheusApi(address, client)
        self.interval = _SCRAPE
        self.now = 0.0
        """When it was asked last."""
        self.runs: dict[str, ServedRun] = {}
        """By name, in the order of finding; new ones are put in whole."""
        self.left_out = 0
        """Runs beyond those that are shown."""
        self._keys: dict[str, str] = {}
        """The log's own keys, by the names that our exporter gives them."""
        self._nobodys: ServedRun | None = None
        """Takes the figures of machines and engines while no run, or several, may own them."""
        self._measured: float | None = None
        """Up to when those were asked for."""
        self._discovered = -math.inf

    def ask(self, now: float) -> None:
        """Ask for new figures.

        Args:
            now: Seconds since the epoch.

        Raises:
            NoAnswerError: There is no answer that can be used.
        """
        self.now = now
        if now - self._discovered >= _REDISCOVER:
            self._discover(now)
            self._discovered = now
        for run in _newest_first(self.runs.values(), now):
            if run.labels and (not run.loaded or run.goes_on(now)):
                self._follow(run, now)
        self._measure(now)

    # -- finding -----------------------------------------------------------------------------------

    def _discover(self, now: float) -> None:
        since = max(now - _PAST, self._discovered - _REDISCOVER)
        with suppress(NoAnswerError):  # what only looks like Prometheus has no targets
            stated = self.api.scrape_interval() or self.interval
            self.interval = clamp(stated, _SHORTEST, _LONGEST)
        counts: Counter[Labels] = Counter()
        for series in self.api.labels(queries.RUNS, since, now):
            if series.get("__name__") == prometheus_names.INFO:
                self._keys[series.get("name", "")] = series.get("key", "")
            else:
                counts[queries.belongs(series)] += 1
        known = {run.labels: run for run in self.runs.values()}
        new = [ServedRun("", own) for own in counts if own and own not in known]
        if new:
            self._add(new, now)
        for run in self.runs.values():
            run.series = max(run.series, counts[run.labels])
            if run.labels in counts and run.labels in known:
                run.seen = now

    def _add(self, new: list[ServedRun], now: float) -> None:
        """Take the newest of the new runs, as long as there is room."""
        spans = self._spans(now)
        for run in new:
            run.span = spans.get(run.labels)
            run.seen = min(now, run.span[1]) if run.span else now
        room = max(0, _MOST_RUNS - len(self.runs))
        self.left_out = max(0, len(new) - room)
        for run in _newest_first(new, 0.0)[:room]:
            run.name = self._name(dict(run.labels))
            self.runs[run.name] = run

    def _name(self, labels: Mapping[str, str]) -> str:
        """Return a run's name: as in the logs, with its project if another one has the same
        name.
        """
        stated = (labels.get(label) for label in ("run", "experiment_name", "job"))
        own = next(filter(None, stated), self.api.address.place)
        numbered = (f"{own} ({at})" for at in range(2, _MOST_RUNS + 2))
        names = (own, f"{labels.get('project', '')}/{own}", *numbered)
        shown = (one_line(name, 120) or "run" for name in names)
        return next(name for name in shown if name not in self.runs)

    def _spans(self, now: float) -> dict[Labels, tuple[float, float]]:
        """Return from when to when the steps of each run were seen."""
        every = max(self.interval, _PAST / _MOST_POINTS)
        spans: dict[Labels, tuple[float, float]] = {}
        lines = self.api.range(queries.STEPS, now - _PAST, self._until(now), every)
        for line in lines:
            if line.points:
                run = queries.belongs(line.labels)
                times = (*line.points, *spans.get(run, ()))
                spans[run] = min(times), max(times)
        return {run: (at - every, to + every) for run, (at, to) in spans.items()}

    # -- the past, and what comes ------------------------------------------------------------------

    def _follow(self, run: ServedRun, now: float) -> None:
        """Ask for a run's past, at a distance of points at which it can be answered, or for what is
        new of it.
        """
        first, last = run.span or (now - _HOUR, now)
        if run.followed is not None:
            first, last = run.followed + self.interval, now
        values = min(_BUDGET, _TOGETHER // len(self.runs))
        points = min(_MOST_POINTS, values // max(1, run.series))
        last = min(last, self._until(now))
        if first <= last:
            every, lines = self._past(queries.of_run(run.labels), first, last, points)
            run.coarse = run.coarse or every
            run.take(lines, self._keys)
        run.followed = self._until(now)

    def _measure(self, now: float) -> None:
        """Ask for figures of machines and engines: of the only run that goes on; else of one that
        is called after the server.
        """
        live = [run for run in self.runs.values() if run.labels and run.goes_on(now)]
        if len(live) != 1 and self._nobodys is None:
            self._nobodys = ServedRun(self._name({}), ())
        owner = live[0] if len(live) == 1 or self._nobodys is None else self._nobodys
        first, last = (owner.span or (now - _HOUR,))[0], self._until(now)
        if self._measured is not None:
            first = self._measured + self.interval
        if first > last:
            return
        query = queries.readings(max(60, int(4 * self.interval)), ours=bool(self._keys))
        _, lines = self._past(query, first, last, _READING_POINTS)
        self._measured = last
        if lines:
            self.runs.setdefault(owner.name, owner)
            owner.take(lines, self._keys)

    def _past(
        self, query: str, first: float, last: float, points: int
    ) -> tuple[float, list[PrometheusSeries]]:
        """Return the distance of points that could be had, and the series at that."""
        points = max(_LEAST_POINTS, points)
        while True:
            scrapes = math.ceil((last - first) / (points * self.interval))
            every = self.interval * max(1, scrapes)
            try:
                lines = self.api.range(query, first, last, every)
            except NoAnswerError as error:
                # Too much at once for the server or for us: a quarter of it.
                points = int((last - first) / every) // 4
                if points < _LEAST_POINTS // 4 or not _TOO_MUCH.match(str(error)):
                    raise
            else:
                return every, [line for line in lines if _is_used(line)]

    def _until(self, now: float) -> float:
        """Return the last moment for which all scrapes have arrived by now."""
        late = min(_LATE, self.interval / 2)
        return math.floor((now - late) / self.interval) * self.interval


def _is_used(line: PrometheusSeries) -> bool:
    """Return whether a series is none that the server computes a figure of."""
    if KEY in line.labels or line.name in MACHINES:
        return True
    parts = ("_bucket", "_sum", "_count")
    return not line.name.endswith(parts) and not BY_CLOCK.fullmatch(line.name)


def _newest_first(runs: Iterable[ServedRun], otherwise: float) -> list[ServedRun]:
    """Return runs, the one first whose steps were seen last; `otherwise`: when those of a run
    without a span were.
    """
    return sorted(runs, key=lambda run: -(run.span[1] if run.span else otherwise))
