"""A Prometheus server as a source: finds the runs it has series of, loads their past, and follows
them by the same question (https://prometheus.io/docs/prometheus/latest/querying/api).
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from itertools import chain, count
from time import localtime, strftime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from verl_tui import prometheus_names
from verl_tui.means import clamp
from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.formats.prometheus_text.names import (
    BY_CLOCK,
    KEY,
    MACHINES,
    PrometheusSeries,
)
from verl_tui.sources.formats.prometheus_text.rows import StepRows
from verl_tui.sources.http import prometheus_queries as queries
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.names import Labels
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
_MOMENTS = 2000
"""Moments of a run's past that are loaded: some 300 series come to 20 MB."""
_LEAST_POINTS = 25
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
"""Seconds to look back where no run shows the beginning."""
_REDISCOVER = 60.0
_STALE = 300.0
"""Seconds for which Prometheus takes a series for alive after its last sample."""
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PIECE = pattern(r"(\d{1,15})(ms|[smhd])")
"""A part of a duration, and its units in seconds."""


class ServedRun:
    """One run that a server has series of."""

    format = name
    rank = rank
    modified: float | None = None
    live = True
    """True if the server still has something new of it."""
    followed: float | None = None
    """Up to when its series were asked for."""
    coarse: str | None = None
    """Says how exact its past is, where a point is more than a scrape."""

    def __init__(self, called: str, labels: Labels, span: tuple[float, float]) -> None:
        self.name = called
        self.labels = labels
        """Labels that distinguish its series from those of others; empty for figures of no run."""
        self.span = span
        """When its steps were seen first and last."""
        self.rows = StepRows()
        self._batcher = RowBatcher()
        self._ready: deque[tuple[Record, ...]] = deque()

    @property
    def waiting(self) -> bool:
        """True if further records wait."""
        return bool(self._ready)

    def add(self, lines: list[PrometheusSeries], keys: Mapping[str, str]) -> None:
        """Make rows of new series.

        Args:
            lines: Of the run.
            keys: The log's own keys, by the names that our exporter gives them.
        """
        ours = any(label == "run" for label, _ in self.labels)
        self._batcher.add(self.rows.take(lines, keys if ours else {}))
        if records := self._batcher.take():
            self._ready.append(records)

    def take(self) -> tuple[Record, ...]:
        """Return the next records."""
        return self._ready.popleft() if self._ready else ()

    @property
    def note(self) -> str | None:
        """Say how exact its past is, and since when nothing has come."""
        since = None
        if not self.live and self.rows.newest is not None:
            newest = strftime("%H:%M:%S", localtime(self.rows.newest))
            since = f"nothing new since {newest}"
        return joined_notes(self.rows.note, self.coarse, since)


class Server:
    """Follows one server. Its `ask` is called by one thread, again and again; others only take from
    `runs`.
    """

    def __init__(self, address: Address, client: Client) -> None:
        self._address = address
        self._client = client
        self.interval = _SCRAPE
        self.runs: dict[str, ServedRun] = {}
        """By name, in the order of finding; new ones are put in whole."""
        self._keys: dict[str, str] = {}
        """The log's own keys, by the names that our exporter gives them."""
        self._measured: float | None = None
        """Up to when figures of machines and engines were asked for."""
        self._discovered = -math.inf

    def is_there(self) -> bool:
        """Return whether the server speaks Prometheus's API.

        Raises:
            NoAnswerError: It does not answer at all.
        """
        try:
            self._data("/api/v1/status/buildinfo")
        except NoAnswerError as error:
            if error.status is None and not str(error).startswith("answers with"):
                raise
            return False
        return True

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
        for run in sorted(self.runs.values(), key=lambda one: -one.span[1]):
            if run.labels:
                self._follow(run, now)
        self._measure(now)

    # -- finding -----------------------------------------------------------------------------------

    def _discover(self, now: float) -> None:
        since = max(now - _PAST, self._discovered - _REDISCOVER)
        with suppress(NoAnswerError):  # what only looks like Prometheus has no targets
            stated = self._scrape_interval() or self.interval
            self.interval = clamp(stated, _SHORTEST, _LONGEST)
        period = [("start", f"{since:.0f}"), ("end", f"{now:.0f}")]
        form = urlencode([("match[]", prometheus_names.INFO), *period])
        for one in _dicts(self._data("/api/v1/series", form)):
            self._keys[str(one.get("name", ""))] = str(one.get("key", ""))
        known = {run.labels: run for run in self.runs.values()}
        spans = self._spans(since, now)
        for labels in spans.keys() & known.keys():
            known[labels].span = (known[labels].span[0], spans[labels][1])
        new = sorted(spans.keys() - known.keys(), key=lambda one: -spans[one][1])
        for labels in new:
            called = self._name(dict(labels))
            self.runs[called] = ServedRun(called, labels, spans[labels])

    def _scrape_interval(self) -> float | None:
        """Return the seconds between two scrapes of the targets that are scraped most often."""
        data = self._data("/api/v1/targets?state=active")
        targets = _dicts(data.get("activeTargets") if isinstance(data, dict) else None)
        stated = [promql_duration(target.get("scrapeInterval")) for target in targets]
        return min(filter(None, stated), default=None)

    def _name(self, labels: Mapping[str, str]) -> str:
        """Return a run's name: as in the logs, with its project if another one has the same
        name.
        """
        stated = (labels.get(label) for label in ("run", "experiment_name", "job"))
        own = next(filter(None, stated), self._address.netloc)
        numbered = (f"{own} ({at})" for at in count(2))
        names = chain((own, f"{labels.get('project', '')}/{own}"), numbered)
        shown = (one_line(one, 120) or "run" for one in names)
        return next(one for one in shown if one not in self.runs)

    def _spans(self, since: float, now: float) -> dict[Labels, tuple[float, float]]:
        """Return from when to when the steps of each run were seen."""
        every = max(self.interval, (now - since) / _MOST_POINTS)
        spans: dict[Labels, tuple[float, float]] = {}
        for line in self._range(queries.STEPS, since, self._until(now), every):
            run = queries.belongs(line.labels)
            if run and line.points:
                times = (*line.points, *spans.get(run, ()))
                spans[run] = min(times), max(times)
        return {run: (at - every, to + every) for run, (at, to) in spans.items()}

    # -- the past, and what comes ------------------------------------------------------------------

    def _follow(self, run: ServedRun, now: float) -> None:
        """Ask for a run's past, at a distance of points at which it can be answered, or for what is
        new of it.
        """
        run.live = now - run.span[1] <= _STALE
        last = self._until(now if run.live else min(now, run.span[1]))
        begins = run.followed is None
        first = run.span[0] if begins else (run.followed or 0.0) + self.interval
        if first > last:
            return
        every, lines = self._past(queries.of_run(run.labels), first, last, _MOMENTS)
        if begins and every > self.interval:
            run.coarse = (
                f"its past is shown by a point every {every:,.0f} s,"
                f" of a scrape every {self.interval:g} s"
            )
        run.add(lines, self._keys)
        run.followed = last

    def _measure(self, now: float) -> None:
        """Ask for figures of machines and engines."""
        owner = self._owner(now)
        first, last = owner.span[0], self._until(now)
        if self._measured is not None:
            first = self._measured + self.interval
        if first > last:
            return
        query = queries.readings(max(60, int(4 * self.interval)), ours=bool(self._keys))
        _, lines = self._past(query, first, last, _READING_POINTS)
        self._measured = last
        if lines:
            owner.add(lines, self._keys)
            self.runs.setdefault(owner.name, owner).followed = last

    def _owner(self, now: float) -> ServedRun:
        """Return the run that the figures of machines belong to: the only one that goes on; else
        what is called after the server.
        """
        live = [run for run in self.runs.values() if run.labels and run.live]
        if len(live) == 1:
            return live[0]
        nobodys = next((run for run in self.runs.values() if not run.labels), None)
        return nobodys or ServedRun(self._name({}), (), (now - _HOUR, now))

    def _past(
        self, query: str, first: float, last: float, points: int
    ) -> tuple[float, list[PrometheusSeries]]:
        """Return the distance of points that could be had, and the series at that."""
        while True:
            scrapes = math.ceil((last - first) / (points * self.interval))
            every = self.interval * max(1, scrapes)
            try:
                lines = self._range(query, first, last, every)
            except NoAnswerError as error:
                # Too much at once for the server or for us: a quarter of it.
                points = int((last - first) / every) // 4
                if points < _LEAST_POINTS or not _TOO_MUCH.match(str(error)):
                    raise
            else:
                return every, [line for line in lines if _is_used(line)]

    def _until(self, now: float) -> float:
        """Return the last moment for which all scrapes have arrived by now."""
        late = min(_LATE, self.interval / 2)
        return math.floor((now - late) / self.interval) * self.interval

    # -- questions ---------------------------------------------------------------------------------

    def _range(
        self, query: str, first: float, last: float, every: float
    ) -> list[PrometheusSeries]:
        """Return the values of a query in a period, the newest moment always among them."""
        first = last - math.floor((last - first) / every) * every
        period = {"start": f"{first:.3f}", "end": f"{last:.3f}", "step": f"{every:g}"}
        form = urlencode({"query": query, **period})
        return parsed_series(self._data("/api/v1/query_range", form))

    def _data(self, path: str, form: str | None = None) -> Any:
        try:
            body = self._client.ask(self._address.below(path), form=form)
        except NoAnswerError as error:
            if error.body.startswith(b"{"):
                data_of(error.body)  # says why in the server's own words
            raise
        return data_of(body)


def _is_used(line: PrometheusSeries) -> bool:
    """Return whether a series is none that the server computes a figure of."""
    if KEY in line.labels or line.name in MACHINES:
        return True
    parts = ("_bucket", "_sum", "_count")
    return not line.name.endswith(parts) and not BY_CLOCK.fullmatch(line.name)


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
    status = answer.get("status") if isinstance(answer, dict) else None
    if status == "error":
        raise NoAnswerError(f"cannot answer: {one_line(str(answer.get('error')), 160)}")
    if status != "success":
        raise NoAnswerError("answers with JSON that is not Prometheus's")
    return answer.get("data")


def parsed_series(data: Any) -> list[PrometheusSeries]:
    """Return the series of the data of a range query; invalid entries are left out."""
    found = []
    for entry in _dicts(data.get("result") if isinstance(data, dict) else None):
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            points = dict(entry["values"])
            labels = {str(name): str(value) for name, value in entry["metric"].items()}
            if set(map(type, points)) <= {int, float}:
                called = labels.pop("__name__", "")
                found.append(PrometheusSeries(called, labels, points))
    return found


def _dicts(data: object) -> list[dict[Any, Any]]:
    return (
        [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    )


def promql_duration(text: object) -> float | None:
    """Return a duration as Prometheus writes it: `15s`, `1m`, `1m30s`, `500ms`."""
    pieces = _PIECE.findall(text) if isinstance(text, str) else []
    return sum(int(number) * _UNITS[unit] for number, unit in pieces) or None
