"""Keep the runs up to date with the news from the sources, and judge them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.failures import in_full
from verl_tui.records import Batch, GpuReading, Preview, Reread
from verl_tui.runs.run import Run
from verl_tui.runs.samples import SAMPLE_BYTES
from verl_tui.runs.views.devices import DeviceHistory
from verl_tui.sources.discovery.finder import Discovery
from verl_tui.sources.discovery.passed_over import PassedOver, sentences

if TYPE_CHECKING:
    from verl_tui.config import Config
    from verl_tui.health.finding import Verdict
    from verl_tui.health.guide import Guide
    from verl_tui.health.judge import Judge
    from verl_tui.sources.http.addresses import Unreached

_QUIET = 600.0
"""Seconds without news after which a run is only looked at, not followed: heuristic."""
_NEARLY = 0.99
"""Share reported as read while some files have not been read at all."""

_ASLEEP = 60.0
"""Seconds without a sign of the front end after which it counts as asleep: heuristic, several times
what the app lets pass from one look to the next, and half of the shortest silence that is a stall.
"""

News = Batch | Discovery | GpuReading | Preview | Reread
"""Messages from the reading threads to the monitor."""


class Monitor:
    """All runs and their health. Changed by one caller only, so there are no locks."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.runs: dict[str, Run] = {}
        """By name, in the order they were found. While a long log is read, a preview stands for its
        run.
        """
        self.verdicts: dict[str, Verdict] = {}
        self.gpus: GpuReading | None = None
        self.gpu_history = DeviceHistory()
        self.problems: tuple[str, ...] = ()
        self.waiting: tuple[str, ...] = ()
        self.unreached: tuple[Unreached, ...] = ()
        """Addresses that nothing has come from so far."""
        self.passed: tuple[PassedOver, ...] = ()
        """Files and folders below the paths that are not shown."""
        self.revision = 0
        """Grows with every change."""
        self._active: float | None = None
        """Time at which the front end was last active."""
        self._read = True
        """True if all that was found has been read once: before that a run may seem silent that has
        long ended.
        """
        self._judges: dict[str, Judge] = {}
        self._due: list[str] = []
        """Names of the runs that are still to be judged, the next one last."""
        self.urgent: list[str] = []
        """Names of the runs that showed an end since they were judged last: they are judged before
        all others.
        """
        self._newest: dict[str, float] = {}
        """Time of each run's newest batch, apart from those with what lay there at the start."""
        self._broken: dict[tuple[str, str], str] = {}
        """By run and path, why a source's records cannot be taken in."""
        self._behind: dict[str, Run] = {}
        """The runs that are read while a preview stands for them."""

    @cached_property
    def guide(self) -> Guide:
        """The rules, with the user's changes."""
        from verl_tui.health.guide_settings import load_guide

        return load_guide(self.config.guide)

    def band(self, run: Run, indicator: str) -> tuple[float | None, float | None]:
        """Return the healthy band of an indicator in a run, for charts; open at both ends where the
        guide knows none.
        """
        from verl_tui.health.limits import response_limit

        limit = None
        if indicator == "response_length":
            limit = response_limit(run, self.guide).value
        return self.guide.band(indicator, run.dialect, limit)

    def apply(self, news: News, now: float) -> None:
        """Apply a piece of news from the sources.

        Args:
            news: A batch of records, what discovery found, a preview, or a reading of the GPUs.
            now: Time of arrival in seconds since the epoch.
        """
        self.revision += 1
        if isinstance(news, Batch):
            self._apply(news, now)
        elif isinstance(news, Preview):
            self._show_preview(news, now)
        elif isinstance(news, Reread):
            self._begin_anew(news)
        elif isinstance(news, GpuReading):
            self.gpus = news
            self.gpu_history.note(news)
            for run in self.runs.values():
                run.gpus = news
        else:
            self.problems = news.problems
            self.waiting = news.waiting
            self.passed = news.passed
            self.unreached = news.unreached
            self._read = news.read
            for name in tuple(self._behind) if news.read else ():
                self._show(self._behind.pop(name))

    def judge(
        self,
        now: float,
        until: float = math.inf,
        first: str = "",
        *,
        once: bool = False,
    ) -> bool:
        """Judge all runs, those without a verdict first; one that is as it was costs little.

        Args:
            now: Seconds since the epoch.
            until: Monotonic seconds from which no further run is judged, so that a screen can
                answer between many of them: the next call goes on behind the last one.
            first: Name of a run that each call judges.
            once: Whether nothing more is to come.

        Returns:
            Whether none is left.
        """
        with debug_log.timed("judged", runs=len(self._judges)):
            known = self.verdicts
            if not self._due:
                self._due = sorted(self._judges, key=known.__contains__)[::-1]
            self._due += [*self.urgent, first]
            self.urgent.clear()
            while self._due:
                name = self._due.pop()
                if judge := self._judges.get(name):  # else it is gone
                    known[name] = judge.verdict(now)
                    if once or self._is_quiet(self.runs[name], now):
                        judge.forget_figures()
                if name != first and monotonic() > until:
                    break
        return not self._due

    def awake(self, now: float) -> None:
        """Note that the front end is active; time in which it was not is never taken for a stall.

        A host that slept made no steps, and its clock is hours later when it wakes.
        """
        if self._active is not None and now - self._active > _ASLEEP:
            for run in self.runs.values():
                run.lose(now - self._active)
        self._active = now

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each path that was not found, is awaited or was passed over."""
        unreached = (one.sentence for one in self.unreached)
        return (*self.problems, *unreached, *self.waiting, *sentences(self.passed))

    @property
    def is_loading(self) -> bool:
        """True until all that was found has been read; asked at each batch, so that it costs
        nothing while there are files that have not been read at all.
        """
        statuses = (one for run in self.runs.values() for one in run.statuses)
        return not self._read or not all(one.whole or one.problem for one in statuses)

    def loaded(self) -> float:
        """Return how much of what lies on disk and can be read has been read, 0..1."""
        size = read = 0
        for name, run in self.runs.items():
            behind = self._behind.get(name, run)
            for state in {**run.sources, **behind.sources}.values():
                status = state.status
                if not status.problem:
                    size += status.size
                    read += min(status.bytes_read, status.size)
        share = min(1.0, read / size) if size else 1.0
        return share if self._read else min(share, _NEARLY)

    def _is_quiet(self, run: Run, now: float) -> bool:
        """Return whether a run has brought nothing for long."""
        news = max(self._newest.get(run.name, 0.0), run.modified or 0.0)
        return now - news > _QUIET

    def _apply(self, batch: Batch, now: float) -> None:
        """Have a run take a batch in; an error ends its source alone, whose status says why."""
        name = batch.run
        run = self._behind.get(name) or self.runs.get(name) or self._show(Run(name))
        source, before = (name, batch.status.path), _ends(run)
        try:
            if source not in self._broken:
                run.apply(batch, now)
        except Exception as error:  # noqa: BLE001 - a net at the border
            debug_log.note_error(f"taking in {batch.status.path}", error)
            self._broken[source] = f"cannot be taken in any further: {in_full(error)}"
        if source in self._broken:
            status = batch.status._replace(problem=self._broken[source])
            with suppress(Exception):  # its status cannot be taken in, either
                run.apply(batch._replace(records=(), status=status), now)
        if self._read:
            self._newest[name] = now
            self.urgent += [name] * (_ends(run) != before)
        if run.samples.size:
            self._bound_samples()
        if name in self._behind and _is_read(run, self.runs[name]):
            self._show(self._behind.pop(name))

    def _bound_samples(self) -> None:
        """Give up the oldest samples of the runs that have most, while all take too much memory."""
        known = [run.samples for run in (*self.runs.values(), *self._behind.values())]
        while sum(one.size for one in known) > SAMPLE_BYTES:
            most = max(known, key=attrgetter("spare"))
            if not most.spare:
                return
            most.give_way()

    def _show_preview(self, preview: Preview, now: float) -> None:
        """Show a run as a preview until all of it has been read; judge its end."""
        name = preview.run
        if name in self.runs:
            return
        shown = Run(name)
        try:
            for batch in preview.end:
                shown.apply(batch, now)
        except Exception as error:  # noqa: BLE001 - reading all of it says what is wrong
            debug_log.note_error(f"preview of {name}", error)
            return
        from verl_tui.health.judge import verdict_on_end

        shown.preview = True
        self._behind[name] = Run(name)
        self.verdicts[name] = verdict_on_end(self.guide, shown, now)
        self._show(shown)

    def _begin_anew(self, reread: Reread) -> None:
        """Forget everything known about a run."""
        name = reread.run
        self._behind.pop(name, None)
        if name not in self.runs:
            return
        if reread.left:
            self._show(Run(name))
            return
        for known in (self.runs, self.verdicts, self._judges):
            known.pop(name, None)

    def _show(self, run: Run) -> Run:
        """Let a run take the place of the one of its name, if any; have it judged, unless it is a
        preview.
        """
        name = run.name
        if name in self.runs:
            run.revision += self.runs[name].revision
        self.runs[name] = run
        run.gpus = self.gpus
        if not run.preview:
            # imported for the first run
            from verl_tui.health.judge import Judge

            self.verdicts.pop(name, None)
            self._judges[name] = Judge(self.guide, run)
        return run


def _ends(run: Run) -> object:
    """Return what shows that a run has ended: its last words, a process that is gone."""
    gone = [one.unheld or getattr(one.writer, "gone", False) for one in run.statuses]
    return run.outcome, sum(gone)


def _is_read(run: Run, preview: Run) -> bool:
    """Return whether all that a preview has read in part has been read whole."""
    parts = [path for path, state in preview.sources.items() if not state.status.whole]
    return all(path in run.sources and run.sources[path].status.whole for path in parts)


def load(specs: Sequence[str], config: Config, now: float) -> Monitor:
    """Return a monitor that has read everything there is, once, and judged it.

    Args:
        specs: Paths, directories, globs and addresses.
        config: The user's configuration.
        now: Seconds since the epoch.
    """
    from verl_tui.sources.feed import Feed

    monitor = Monitor(config)
    feed = Feed(specs)
    feed.settle()
    found = feed.scan()
    monitor.apply(found, now)
    for read in (feed.read, feed.finish, partial(feed.update_writers, now)):
        for batch in read():
            monitor.apply(batch, now)
    monitor.apply(replace(found, read=True), now)
    monitor.judge(now, once=True)
    return monitor
