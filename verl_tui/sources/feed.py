"""Reads all sources of all runs, and keeps reading as they grow. Runs in a thread of its own;
touches no run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.records import Batch, SourceStatus
from verl_tui.sources import pipe
from verl_tui.sources.discovery import by_step
from verl_tui.sources.discovery.finder import Discovery, Finder
from verl_tui.sources.discovery.found import is_events, log_of
from verl_tui.sources.discovery.page_runs import is_page
from verl_tui.sources.discovery.trackio_runs import is_trackio
from verl_tui.sources.files.compressed import plain
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.folders.checkpoints import CheckpointSource
from verl_tui.sources.folders.completion_tables import TableFolder
from verl_tui.sources.folders.dumps import DumpSource
from verl_tui.sources.folders.settings import SettingsSource
from verl_tui.sources.formats import filelogger, parquet, rollouts
from verl_tui.sources.formats.console import decoder as console
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.trackio.run_follower import TrackioSource
from verl_tui.sources.formats.wandb import reader as wandb
from verl_tui.sources.host.writers import WriterWatch
from verl_tui.sources.http import addresses
from verl_tui.sources.http.engines import Engines, EngineSource
from verl_tui.sources.http.served import PageSource, Served, ServerSource
from verl_tui.sources.pipe import PipeSource
from verl_tui.sources.source import FileSource, Source, follower
from verl_tui.text import one_line

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.sources.discovery.found import FoundFile, FoundRun

_POLL = 1.0
"""Seconds between looks at the files' sizes: network file systems send no notices."""
_SOON = 0.05
"""Seconds between two looks whether a server has answered for the first time."""
_RESCAN = 3.0
"""Seconds between looks for new files and runs where no notice came."""
_QUIET = 10.0
"""Seconds without growth after which a last line without an end is taken as it stands."""
_COLD = 600.0
"""Seconds without growth after which a file is looked at with the rescan only."""
_HELD_OPEN = frozenset({console.name, filelogger.name, wandb.name})
"""Formats whose writers keep their file open all the time: where nobody has it open, nobody writes
it.
"""
_MOST_WATCHED = 256
"""Directories watched by notices; inotify allows some thousand per user, others need theirs."""


class _Reader:
    """One source of one run, with what has been told of it.

    Whatever a source raises ends that source and nothing else: it is down, with the reason, and all
    others go on.
    """

    def __init__(
        self, run: str, source: Source, path: Path | str, format: str, watch: WriterWatch
    ) -> None:
        self.run = run
        self.source = source
        self.file = (
            source.path
            if isinstance(source, FileSource) and not isinstance(source, PipeSource)
            else None
        )
        """The file that a process may hold open."""
        self._watch = watch
        self.status = SourceStatus(str(path), format)
        """How it was when it was asked last."""
        self.caught_up = False
        """Whether everything that lay there at the start has been read: what follows is live."""
        self.served = isinstance(source, PageSource | ServerSource | EngineSource)
        """Whether it is asked over a network: then its records state when they were, whenever they
        come.
        """
        self.told: SourceStatus | None = None
        self.finished_at = -1
        self._broken = False

    def read(self) -> tuple[Batch | None, bool]:
        """Return the next batch, None where there is nothing to tell, and whether more waits."""
        if self._broken:
            return None, False
        try:
            records, more = self.source.read()
            self.status = self._written(self.source.status())
        except Exception as error:  # noqa: BLE001 - a net at the border
            return self._down(error), False
        live = self.caught_up and not self.served
        if not more:
            self.caught_up = True
        if not records and self.status == self.told:
            return None, more
        self.told = self.status
        return Batch(self.run, self.status, records, live), more

    def finish(self) -> Batch | None:
        """Return what only waited for the end of its line."""
        if self._broken or self.finished_at == self.status.bytes_read:
            return None
        self.finished_at = self.status.bytes_read
        try:
            records = self.source.finish()
            self.status = self._written(self.source.status())
        except Exception as error:  # noqa: BLE001 - a net at the border
            return self._down(error)
        return Batch(self.run, self.status, records, live=False) if records else None

    def looked(self) -> Batch | None:
        """Return what has become known of who writes it."""
        if self._broken or self.status == self._written(self.status):
            return None
        self.status = self.told = self._written(self.status)
        return Batch(self.run, self.status)

    def _written(self, status: SourceStatus) -> SourceStatus:
        """Add who writes the file, as the last look told."""
        if self.file is None:
            return status
        held = self._watch.held(self.file)
        return replace(
            status, writer=held.writer, unheld=held.unheld and status.format in _HELD_OPEN
        )

    def _down(self, error: Exception) -> Batch:
        self._broken = self.caught_up = True
        why = one_line(f"cannot be read any further: {type(error).__name__}: {error}", 200)
        # As large as what was read of it: nothing more is to be waited for.
        self.status = self.told = replace(self.status, size=self.status.bytes_read, problem=why)
        return Batch(self.run, self.status)


class Feed:
    """All sources behind the paths a user named."""

    def __init__(
        self,
        specs: Sequence[str],
        watch: WriterWatch | None = None,
        *,
        poll_interval: float | None = None,
        scrape_engines: bool = False,
    ) -> None:
        """Look for nothing yet.

        Args:
            specs: Paths, directories, globs and addresses.
            watch: Knows who writes the files.
            poll_interval: Seconds between two questions to an address, None for what suits it.
            scrape_engines: Whether to ask the engines that consoles name for their figures.
        """
        self._finder = Finder([spec for spec in specs if not addresses.is_meant(spec)])
        self._served = Served(
            [spec for spec in specs if addresses.is_meant(spec)], every=poll_interval
        )
        self._readers: dict[tuple[str, Path], _Reader] = {}
        self._names: dict[Path, str] = {}
        """The run that a file was first found to be of, by its name."""
        self._shared: dict[tuple[str, str], int] = {}
        """Places among a run's sources that several files of one log share."""
        self._watch = watch or WriterWatch()
        self._engines = Engines(every=poll_interval) if scrape_engines else None
        self.discovery = Discovery((), (), ())
        """What the last look has found."""

    def scan(self) -> Discovery:
        """Look for new runs and files; a run keeps the name under which it was first told."""
        discovery = self._finder.scan(
            {one.file: one.status.reported for one in self._readers.values() if one.file}
        )
        for run in discovery.runs:
            self._add(run)
        for name, source in self._served.sources():
            address = source.status().path
            self._readers[name, Path(address)] = _Reader(
                name, source, address, source.status().format, self._watch
            )
        self.discovery = replace(
            discovery,
            problems=(*discovery.problems, *self._served.problems),
            waiting=(*discovery.waiting, *self._served.waiting),
            unreached=self._served.unreached,
        )
        return self.discovery

    def settle(self) -> None:
        """Ask at all addresses once, and wait for the answers: for a look that nobody repeats."""
        self._served.settle()

    def read(self) -> Iterator[Batch]:
        """Yield what has been appended since the last call, a little of each source in turn.

        Standard input is read to its end. Where the consoles tell which files belong together,
        these are looked for once more.
        """
        yield from self._read_all(list(self._readers.values()))
        if self._finder.undecided:
            known = set(self._readers)
            self.scan()
            yield from self._read_all(
                [reader for key, reader in self._readers.items() if key not in known]
            )

    def _read_all(self, waiting: list[_Reader]) -> Iterator[Batch]:
        for reader in waiting:
            if isinstance(reader.source, PipeSource):
                reader.source.to_the_end()
        while waiting:
            again = []
            for reader in waiting:
                batch, more = self._next(reader)
                if batch is not None:
                    yield batch
                if more:
                    again.append(reader)
            waiting = again

    def ask_engines(self, now: float) -> Iterator[Batch]:
        """Ask the engines that consoles name once, where that is wanted, and yield what they
        say.
        """
        if self._engines is None:
            return
        found = [self._engine_reader(run, source) for run, source in self._engines.found(now)]
        self._engines.ask_once()
        yield from (batch for batch, _ in map(_Reader.read, found) if batch is not None)

    def _start_engines(self, now: float) -> None:
        """Begin to ask the engines that consoles have named since the last call."""
        for run, source in self._engines.found(now) if self._engines is not None else ():
            self._engine_reader(run, source)
            source.start()

    def _engine_reader(self, run: str, source: EngineSource) -> _Reader:
        status = source.status()
        reader = self._readers[run, Path(f"engine {status.path}")] = _Reader(
            run, source, status.path, status.format, self._watch
        )
        return reader

    def _next(self, reader: _Reader) -> tuple[Batch | None, bool]:
        """Read a little of a source, and heed which engines it names."""
        batch, more = reader.read()
        if self._engines is not None and batch is not None and not reader.served:
            self._engines.heed(batch)
        return batch, more

    def finish(self) -> Iterator[Batch]:
        """Yield last lines without an end, for a look that nobody repeats."""
        for reader in self._readers.values():
            if (batch := reader.finish()) is not None:
                yield batch

    def look(self, now: float) -> Iterator[Batch]:
        """Look once who writes the files, and yield what that tells."""
        self._want(now)
        self._watch.look()
        for reader in self._readers.values():
            if (batch := reader.looked()) is not None:
                yield batch

    def _want(self, now: float) -> None:
        self._watch.want(
            ((one.file, one.status.modified) for one in self._readers.values() if one.file), now
        )

    def follow(
        self,
        stop: threading.Event,
        deliver: Callable[[Batch | Discovery], None],
        clock: Callable[[], float],
    ) -> None:
        """Read everything, then what is appended, until `stop` is set.

        Args:
            stop: Ends the following within a poll.
            deliver: Takes what was read; may block, which slows the reading down.
            clock: Seconds, monotonic enough to pace the polls.
        """
        told: Discovery | None = None
        self._watch.start(stop)
        self._served.start(stop)
        next_scan = clock()
        while not stop.is_set():
            if clock() >= next_scan:
                discovery = self._rescanned(told)
                changed, told = discovery != told, discovery
                if changed:
                    deliver(discovery)
                next_scan = clock() + _RESCAN
                self._deliver(stop, deliver, clock(), list(self._readers.values()))
                self._start_engines(clock())
                if changed:
                    deliver(replace(discovery, read=True))
                self._want(clock())
            for added in self._wait(stop):
                if added:
                    next_scan = clock()
                self._deliver(stop, deliver, clock(), self._warm(clock()))
                if clock() >= next_scan:
                    break
        if self._engines is not None:
            self._engines.end()

    def _rescanned(self, told: Discovery | None) -> Discovery:
        """Look for new runs; whatever goes wrong is told, and what has been found goes on."""
        try:
            return self.scan()
        except Exception as error:  # noqa: BLE001 - a net at the border
            why = one_line(f"the search for new logs failed: {type(error).__name__}: {error}", 200)
            return replace(told or Discovery((), (), ()), problems=(why,))

    def _deliver(
        self,
        stop: threading.Event,
        deliver: Callable[[Batch | Discovery], None],
        now: float,
        readers: list[_Reader],
    ) -> None:
        while readers and not stop.is_set():
            again = []
            for reader in readers:
                batch, more = self._next(reader)
                if batch is not None:
                    deliver(batch)
                if more:
                    again.append(reader)
                elif (
                    now - (reader.status.modified or now) > _QUIET
                    and (last := reader.finish()) is not None
                ):
                    deliver(last)
                if stop.is_set():
                    return
            readers = again

    def _warm(self, now: float) -> list[_Reader]:
        """Return the sources that may have grown: those that did so lately, and all that are asked
        over a network.
        """
        return [
            one
            for one in self._readers.values()
            if one.served or one.told is None or now - (one.told.modified or 0.0) < _COLD
        ]

    def _wait(self, stop: threading.Event) -> Iterator[bool]:
        """Yield at every notice of the file system and at every poll; true where files, or sources
        of others, came.
        """
        if self._served.awaited:
            yield stop.wait(_SOON) or self._served.grown
            return
        import watchfiles  # 40 ms, after the first frame

        known = sorted(self._finder.directories)
        directories = [path for path in known if is_folder(path) and _is_text(path)][:_MOST_WATCHED]
        if directories:
            try:
                for changes in watchfiles.watch(
                    *directories,
                    watch_filter=None,
                    debounce=100,
                    step=20,
                    stop_event=stop,
                    rust_timeout=int(_POLL * 1000),
                    yield_on_timeout=True,
                    recursive=False,
                    raise_interrupt=False,
                ):
                    yield any(kind is not watchfiles.Change.modified for kind, _ in changes)
            except (OSError, RuntimeError, ValueError):
                # No notices to be had (inotify's instances are used up, a directory vanished): the
                # poll goes on.
                pass
        if not stop.wait(_POLL):
            yield False

    def _add(self, run: FoundRun) -> None:
        name = self._name(run)
        own = [file for file in run.files if self._names.get(file.path, name) == name]
        for file in own:
            key = (name, by_step.place(file))
            if key in self._readers:
                continue
            ordinal = self._ordinal(name, file)
            format = file.format.name if file.format is not None else "settings"
            self._readers[key] = _Reader(
                name, _source(file, ordinal), file.path, format, self._watch
            )
        if (name, run.directory) not in self._readers and any(
            f.format is not None and f.format.anchor for f in own
        ):
            source = CheckpointSource(run.directory, homes=())
            self._readers[name, run.directory] = _Reader(
                name, source, run.directory, "checkpoints", self._watch
            )
        known = self._readers.get((name, run.directory))
        if known is not None and isinstance(known.source, CheckpointSource):
            known.source.homes = run.checkpoints

    def _name(self, run: FoundRun) -> str:
        """Return what a run is called: as it was when the first of its files was found.

        A file stays with the run that it was first found to be of, even if more files make it look
        otherwise: what has been shown is not taken away, nor shown twice. Settings alone may belong
        to several.
        """
        logs = [file for file in run.files if file.format is not None]
        known = [
            file.path
            for file in sorted(logs, key=lambda file: not (file.format and file.format.anchor))
        ]
        name = next((self._names[path] for path in known if path in self._names), run.name)
        for path in known:
            self._names.setdefault(path, name)
        return name

    def _ordinal(self, run: str, file: FoundFile) -> int:
        """Return a file's place among its run's sources, by age.

        The event files of one log share one: which of two values came later is told by their times,
        see `verl_tui.sources.formats.tensorboard.reader`.
        """
        count = sum(1 for name, _ in self._readers if name == run)
        return (
            self._shared.setdefault((run, log_of(file)), count) if is_events(file.path) else count
        )


def _source(file: FoundFile, ordinal: int) -> Source:
    """Return what reads a file, or a directory of dumps."""
    if file.format is None:
        return SettingsSource(file.path, ordinal)
    if file.format is rollouts and plain(file.path) == file.path:
        return DumpSource(file.path, ordinal)
    if file.format is parquet and is_folder(file.path):
        return TableFolder(file.path, ordinal)
    if is_trackio(file):
        return TrackioSource(file.path, ordinal)
    if file.path == pipe.PATH:
        return PipeSource(file.format, ordinal)
    if is_page(file):
        return FileSource(
            file.path, file.format, ordinal, tail=follower(exposition.place_of(file.path)[0])
        )
    return FileSource(file.path, file.format, ordinal)


def _is_text(path: Path) -> bool:
    """Tell whether a path can be written as UTF-8: of others there are no notices, they are only
    polled.
    """
    return not any("\ud800" <= sign <= "\udfff" for sign in str(path))


def explain(discovery: Discovery) -> str:
    """Return what was not found and what is waited for, a sentence a line."""
    return one_line("; ".join((*discovery.problems, *discovery.pending)), 2000)
