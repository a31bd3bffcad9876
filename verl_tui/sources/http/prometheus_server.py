"""A Prometheus server as a source: finds the runs it has series of, loads their past, and follows
them by the same question (https://prometheus.io/docs/prometheus/latest/querying/api).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import orjson

from verl_tui import prometheus_names as ours
from verl_tui.means import clamp
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.formats.prometheus_text.reader import instance_of
from verl_tui.sources.formats.prometheus_text.series import (
    KEY,
    MACHINES,
    STEPS,
    TABLE,
    Labels,
    PrometheusSeries,
    run_labels,
    run_name,
)
from verl_tui.sources.http.addresses import AddressRun, AskedAddress, NoAnswerError
from verl_tui.text import one_line
from verl_tui.times import parse_elapsed

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
_PROGRESS = (
    f'max by (run, project, experiment_name, job) ({{__name__=~"{"|".join(STEPS)}"}})'
)
"""Query for the progress of each run."""


class ServedRun(AddressRun):
    """One run that a server has series of.

    Args:
        name: Its name here.
        labels: Labels that distinguish its series from those of others; empty for figures of no
            run.
        span: When its steps were seen first and last.
        asked: The server.
    """

    followed: float | None = None
    """Up to when its series were asked for."""
    coarse: str | None = None
    """Says how exact its past is, where a point is more than a scrape."""

    def __init__(
        self, name: str, labels: Labels, span: tuple[float, float], asked: AskedAddress
    ) -> None:
        super().__init__(name, asked)
        self.labels = labels
        self.span = span

    @property
    def note(self) -> str | None:
        """Say how exact its past is, too."""
        return joined_notes(super().note, self.coarse)


class Server:
    """Follows one server. Its `ask` is called by one thread, again and again; others only take from
    `runs`.

    Args:
        asked: Its address, after which figures that are no run's are called.
        answer: Returns what it answers below a path, given a form to post or none.
    """

    def __init__(
        self, asked: AskedAddress, answer: Callable[[str, str | None], bytes]
    ) -> None:
        self._asked = asked
        self._answer = answer
        self.interval = _SCRAPE
        self.runs: dict[str, ServedRun] = {}
        """By name, in the order of finding; new ones are put in whole."""
        self._keys: dict[str, PrometheusSeries] = {}
        """What our exporter says of the log's own keys, by the names that it gives them."""
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
            if error.status is None:
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

    def _discover(self, now: float) -> None:
        since = max(now - _PAST, self._discovered - _REDISCOVER)
        # what only looks like Prometheus has no targets
        with suppress(NoAnswerError, KeyError):
            targets = self._data("/api/v1/targets?state=active")["activeTargets"]
            stated = [parse_elapsed(one["scrapeInterval"]) for one in targets]
            shortest = min(filter(None, stated), default=self.interval)
            self.interval = clamp(shortest, _SHORTEST, _LONGEST)
        period = {"start": f"{since:.0f}", "end": f"{now:.0f}"}
        form = urlencode({"match[]": ours.INFO, **period})
        for one in self._data("/api/v1/series", form):
            self._keys[one.get("name", "")] = PrometheusSeries(ours.INFO, one, {})
        known = {run.labels: run for run in self.runs.values()}
        spans = self._spans(since, now)
        for labels in sorted(spans, key=lambda one: -spans[one][1]):
            if labels in known:
                known[labels].span = known[labels].span[0], spans[labels][1]
            else:
                self._new(labels, spans[labels])

    def _new(self, labels: Labels, span: tuple[float, float]) -> ServedRun:
        host = instance_of(self._asked.address)
        called = run_name(labels or (("host", host),), self.runs)
        self.runs[called] = ServedRun(called, labels, span, self._asked)
        return self.runs[called]

    def _spans(self, since: float, now: float) -> dict[Labels, tuple[float, float]]:
        """Return from when to when the steps of each run were seen."""
        every = max(self.interval, (now - since) / _MOST_POINTS)
        spans: dict[Labels, tuple[float, float]] = {}
        for line in self._range(_PROGRESS, since, self._until(now), every):
            run = run_labels(line.labels, by_job=True)
            if run and line.points:
                times = (*line.points, *spans.get(run, ()))
                spans[run] = min(times), max(times)
        return {run: (at - every, to + every) for run, (at, to) in spans.items()}

    def _follow(self, run: ServedRun, now: float) -> None:
        """Ask for a run's past, at a distance of points at which it can be answered, or for what is
        new of it.
        """
        last = self._until(now if _lives(run, now) else min(now, run.span[1]))
        begins = run.followed is None
        first = run.span[0] if begins else (run.followed or 0.0) + self.interval
        if first > last:
            return
        every, lines = self._past(of_run(run.labels), first, last, _MOMENTS)
        if begins and every > self.interval:
            run.coarse = (
                f"its past is shown by a point every {every:,.0f} s,"
                f" of a scrape every {self.interval:g} s"
            )
        self._add(run, lines, last)

    def _add(self, run: ServedRun, lines: list[PrometheusSeries], last: float) -> None:
        is_ours = any(label == "run" for label, _ in run.labels)
        run.add([*(self._keys.values() if is_ours else ()), *lines])
        run.followed = last

    def _measure(self, now: float) -> None:
        """Ask for figures of machines and engines: they belong to the only run that goes on, else
        to what is called after the server.
        """
        owner = self._owner(now)
        last = self._until(now)
        first = owner.span[0] if owner else now - _HOUR
        if self._measured is not None:
            first = self._measured + self.interval
        if first > last:
            return
        query = readings(max(60, int(4 * self.interval)))
        _, lines = self._past(query, first, last, _READING_POINTS)
        self._measured = last
        if lines:
            self._add(owner or self._new((), (first, last)), lines, last)

    def _owner(self, now: float) -> ServedRun | None:
        runs = self.runs.values()
        live = [run for run in runs if run.labels and _lives(run, now)]
        unnamed = next((run for run in runs if not run.labels), None)
        return live[0] if len(live) == 1 else unnamed

    def _past(
        self, query: str, first: float, last: float, points: int
    ) -> tuple[float, list[PrometheusSeries]]:
        """Return the distance of points that could be had, and the series at that."""
        scrapes = max(1, math.ceil((last - first) / (points * self.interval)))
        while True:
            every = self.interval * scrapes
            try:
                return every, self._range(query, first, last, every)
            except NoAnswerError:
                # perhaps too much at once for the server or for us: a quarter of it
                scrapes *= 4
                if (last - first) / (self.interval * scrapes) < _LEAST_POINTS:
                    raise

    def _until(self, now: float) -> float:
        """Return the last moment for which all scrapes have arrived by now."""
        late = min(_LATE, self.interval / 2)
        return math.floor((now - late) / self.interval) * self.interval

    def _range(
        self, query: str, first: float, last: float, every: float
    ) -> list[PrometheusSeries]:
        """Return the values of a query in a period, the newest moment always among them."""
        first = last - math.floor((last - first) / every) * every
        period = {"start": f"{first:.3f}", "end": f"{last:.3f}", "step": f"{every:g}"}
        form = urlencode({"query": query, **period})
        return [
            PrometheusSeries(labels.pop("__name__", ""), labels, dict(one["values"]))
            for one in self._data("/api/v1/query_range", form)["result"]
            for labels in [one["metric"]]
        ]

    def _data(self, path: str, form: str | None = None) -> Any:
        """Return the data in an answer of Prometheus's API.

        Raises:
            NoAnswerError: There is none, it reports an error, or is not an answer of the API.
        """
        try:
            return data_of(self._answer(path, form))
        except NoAnswerError as error:
            if error.body.startswith(b"{"):
                data_of(error.body)  # says why in the server's own words
            raise


def _lives(run: ServedRun, now: float) -> bool:
    """Return whether a server still has something new of a run."""
    return now - run.span[1] <= _STALE


def of_run(labels: Labels) -> str:
    """Return the query for all series of one run but those that a figure is computed of.

    Args:
        labels: What its series have in common, see `run_labels`.
    """
    # PromQL writes texts as JSON does
    stated = [f"{name}={orjson.dumps(value).decode()}" for name, value in labels]
    names = dict(labels)
    if "job" in names:
        stated.append('run="",experiment_name=""')
    if "experiment_name" not in names:
        stated.append(f'__name__=~"verl_.+",__name__!="{ours.INFO}"')
    stated.append('__name__!~".+_(bucket|sum|count)"')
    return f"{{{','.join(stated)}}}"


def readings(window: int) -> str:
    """Return the query for the figures of devices, hosts, engines and queues; rates are taken over
    a window of seconds.
    """
    asked = {**TABLE["queries"]}
    for name, how in TABLE["engines"].items():
        end, shown, query = TABLE["combined"].get(how, ("", "", f"{how}(%s)"))
        series = f'{{__name__=~"{name.replace(":", "[:_]")}"}}'  # OpenMetrics has `_`
        asked[f"{name.removesuffix(end)}{shown}"] = query % series
    machines = "|".join(sorted(MACHINES - {ours.GPU_MEMORY}))
    computed = (
        f'label_replace({query.replace("WINDOW", str(window))}, "{KEY}", "{key}", "", "")'
        for key, query in asked.items()
    )
    return " or ".join((f'{{__name__=~"{machines}"}}', *computed))


def data_of(body: bytes) -> Any:
    """Return the data in the body of an answer of Prometheus's API.

    Raises:
        NoAnswerError: It reports an error, or is not an answer of the API.
    """
    try:
        answer = orjson.loads(body)
    except ValueError:
        answer = None
    status = answer.get("status") if isinstance(answer, dict) else None
    if status == "error":
        why = f"cannot answer: {one_line(str(answer.get('error')), 160)}"
        raise NoAnswerError(why, 200)
    if status != "success":
        raise NoAnswerError("answers with something else than Prometheus's JSON", 200)
    return answer.get("data")
