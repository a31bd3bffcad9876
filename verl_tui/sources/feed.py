"""Read all sources of all runs, and keep reading as they grow, in a thread of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.records import Reread
from verl_tui.sources.ahead import in_turn
from verl_tui.sources.discovery.finder import Discovery, Finder
from verl_tui.sources.discovery.found import FileOwners
from verl_tui.sources.ends import previews
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.folders.checkpoint_folders import CheckpointSource
from verl_tui.sources.host.writers import Writers
from verl_tui.sources.http import addresses
from verl_tui.sources.http.served import Served
from verl_tui.sources.pipe import PipeSource
from verl_tui.sources.source_reader import SourceReader, source_of
from verl_tui.text import one_line

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from watchfiles import Change

    from verl_tui.records import Batch, Preview
    from verl_tui.sources.discovery.found import FoundFile, FoundRun
    from verl_tui.sources.source import Source

POLL = 1.0
"""Seconds between checks of the files' sizes: network file systems send no notices."""
_SOON = 0.05
"""Seconds between checks for the first answer of a server."""
_RESCAN = 3.0
"""Seconds between searches for new files and runs without a notice."""
_QUIET = 10.0
"""Seconds without growth after which a last line without an end is taken as complete."""
_COLD = 600.0
"""Seconds without growth after which a file is checked only with the rescan."""
_MOST_WATCHED = 256
"""Directories watched by notices; inotify allows some thousand per user, others need theirs."""


class Feed:
    """All sources behind the paths that a user named."""

    def __init__(
        self,
        specs: Sequence[str],
        watch: Writers | None = None,
        *,
        poll_interval: float | None = None,
        scrape_engines: bool = False,
        workers: int | None = 0,
        shown: Callable[[], str | None] = lambda: None,
        source_of: Callable[[FoundFile, int], Source] = source_of,
    ) -> None:
        """Prepare; nothing is looked for yet.

        Args:
            specs: Paths, directories, globs and addresses.
            watch: Knows who writes the files.
            poll_interval: Seconds between two questions to an address, None for what suits it.
            scrape_engines: Whether to ask the engines that consoles name for their figures.
            workers: Processes that may read large logs, None for as many as suit the machine.
            shown: Returns the name of the run that is shown, to be read before all others.
            source_of: Makes the source of a file, given its index among the run's sources.
        """
        self._source_of = source_of
        self._workers = workers
        self._shown = shown
        self._only: str | None = None
        """The run that is read, None for all."""
        self._finder = Finder([spec for spec in specs if not addresses.is_meant(spec)])
        self._served = Served(
            [spec for spec in specs if addresses.is_meant(spec)],
            every=poll_interval,
            engines=scrape_engines,
        )
        self._readers: dict[tuple[str, str], SourceReader] = {}
        """By the name of the run, and by the place of the source."""
        self._owners = FileOwners()
        self._watch = watch or Writers()
        self._fresh: dict[str, list[tuple[FoundFile, int]]] = {}
        """By run, the files that have not been read yet."""
        self.discovery = Discovery((), (), ())
        """Result of the last search."""
        self.reread: list[Reread] = []
        """The runs whose files the last search found to have other formats; to be announced before
        anything that is read of them.
        """

    def scan(self) -> Discovery:
        """Search for new runs and files; a run keeps its first name."""
        with debug_log.timed("searched"):
            discovery = self._finder.scan()
        dropped = self._owners.forget(self._finder.changed)
        self._readers = {
            key: one
            for key, one in self._readers.items()
            if key[0] not in dropped or one.served
        }
        for run in discovery.runs:
            self._add(run)
        self.reread = [Reread(name, name in self.names) for name in dropped]
        self._add_served()
        self.discovery = replace(
            discovery,
            problems=(*discovery.problems, *self._served.problems),
            waiting=(*discovery.waiting, *self._served.waiting),
            unreached=self._served.unreached,
        )
        return self.discovery

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runs that have been found."""
        return tuple(dict.fromkeys(name for name, _ in self._readers))

    def _first(self) -> str | None:
        """Return the name of the run to read first: as long as none is shown, the first one."""
        return self._shown() or next((name for name, _ in self._readers), None)

    def keep(self, name: str) -> None:
        """Read one run only, by its name."""
        self._only = name
        self._readers = {
            key: one for key, one in self._readers.items() if key[0] == name
        }

    def settle(self) -> None:
        """Poll all addresses once and wait for the answers: for a single look."""
        self._served.settle()

    def read(self) -> Iterator[Batch]:
        """Yield what has been appended since the last call, a little of each source in turn.

        Standard input is read to its end.
        """
        waiting = list(self._readers.values())
        for reader in waiting:
            if isinstance(reader.source, PipeSource):
                reader.source.to_the_end()
        read = in_turn(waiting, self._next, self._workers)
        yield from filter(None, (batch for _, batch, _ in read))

    def ask_engines(self, now: float) -> Iterator[Batch]:
        """Yield the answers of the engines that consoles name, if they are to be polled."""
        self._served.look(now)
        self._served.settle()
        read = map(SourceReader.read, self._add_served())
        yield from (batch for batch, _ in read if batch is not None)

    def _add_served(self) -> list[SourceReader]:
        """Return readers of what addresses tell of since the last call."""
        added = {
            (run.name, str(run)): SourceReader(run.name, run, self._watch)
            for run in self._served.sources()
        }
        self._readers |= added
        return [*added.values()]

    def _next(self, reader: SourceReader) -> tuple[Batch | None, bool]:
        """Read a little of a source, and note the engines that it names."""
        batch, more = reader.read()
        if batch is not None and not reader.served:
            self._served.heed(batch)
        return batch, more

    def finish(self) -> Iterator[Batch]:
        """Yield last lines without an end: for a single look."""
        yield from filter(None, map(SourceReader.finish, self._readers.values()))

    def update_writers(self, now: float) -> Iterator[Batch]:
        """Look up once which processes write the files, and yield the changes."""
        self._watch_writers(now)
        self._watch.look()
        yield from filter(None, map(SourceReader.update_writer, self._readers.values()))

    def _watch_writers(self, now: float) -> None:
        self._watch.want(
            (
                (one.file, one.status.modified)
                for one in self._readers.values()
                if one.file
            ),
            now,
        )

    def follow(
        self,
        stop: threading.Event,
        deliver: Callable[[Batch | Discovery | Preview | Reread], None],
        clock: Callable[[], float],
    ) -> None:
        """Read everything, then what is appended, until `stop` is set.

        Args:
            stop: Ends the following within a poll.
            deliver: Takes what was read; may block, which slows the reading down.
            clock: Seconds, monotonic enough to pace the polls.
        """
        last: Discovery | None = None
        self._watch.start(stop)
        self._served.start(stop)
        next_scan = clock()
        while not stop.is_set():
            if _is_due(next_scan, clock()):
                discovery = self._rescanned(last)
                changed = discovery != last
                last = discovery
                if changed:
                    deliver(discovery)
                self._deliver_first(stop, deliver)
                next_scan = clock() + _RESCAN
                self._deliver(stop, deliver, clock(), list(self._readers.values()))
                self._served.look(clock())
                self._add_served()
                if changed:
                    deliver(replace(discovery, read=True))
                self._watch_writers(clock())
            for added in self._wait(stop):
                if added:
                    next_scan = clock()
                self._deliver(stop, deliver, clock(), self._active(clock()))
                if _is_due(next_scan, clock()):
                    break

    def _rescanned(self, last: Discovery | None) -> Discovery:
        """Search for new runs; an error is reported and costs nothing that was found."""
        self.reread = []
        try:
            return self.scan()
        except Exception as error:  # noqa: BLE001 - a net at the border
            debug_log.note_error("search", error)
            why = one_line(
                f"the search for new logs failed: {type(error).__name__}: {error}", 200
            )
            return replace(last or Discovery((), (), ()), problems=(why,))

    def _deliver_first(
        self,
        stop: threading.Event,
        deliver: Callable[[Batch | Discovery | Preview | Reread], None],
    ) -> None:
        """Deliver which runs are read once more, and the previews of long logs."""
        for again in self.reread:
            deliver(again)
        fresh, self._fresh = self._fresh, {}
        for preview in previews(fresh, self._first()):
            deliver(preview)
            if stop.is_set():
                return

    def _deliver(
        self,
        stop: threading.Event,
        deliver: Callable[[Batch | Discovery | Preview | Reread], None],
        now: float,
        readers: list[SourceReader],
    ) -> None:
        for reader, batch, more in in_turn(
            readers, self._next, self._workers, self._first
        ):
            if batch is not None:
                deliver(batch)
            if batch is not None and batch.live:
                reader.grew = now
            if (
                not more
                and _is_quiet(reader, now)
                and (last := reader.finish()) is not None
            ):
                deliver(last)
            if stop.is_set():
                return

    def _active(self, now: float) -> list[SourceReader]:
        """Return the sources that grew lately, and all that come over a network."""
        return [one for one in self._readers.values() if _is_warm(one, now)]

    def _wait(self, stop: threading.Event) -> Iterator[bool]:
        """Yield at each notice of the file system and each poll; true if there may be new files."""
        if self._served.awaited:
            yield stop.wait(_SOON) or self._served.grown
            return
        import watchfiles  # 40 ms, after the first frame

        known = sorted(self._finder.directories)
        directories = [path for path in known if is_folder(path) and _is_text(path)]
        if directories:
            notices = watchfiles.watch(
                *directories[:_MOST_WATCHED],
                watch_filter=None,
                debounce=100,
                stop_event=stop,
                rust_timeout=int(POLL * 1000),
                yield_on_timeout=True,
                recursive=False,
                raise_interrupt=False,
            )
            try:
                for changes in notices:
                    yield _any_new(changes)
            except (OSError, RuntimeError, ValueError):
                # No notices (inotify's limit is reached, a directory vanished): polling goes on.
                pass
        if not stop.wait(POLL):
            yield False

    def _add(self, run: FoundRun) -> None:
        """Start to read the files of a run that are not read yet."""
        name = self._owners.name(run)
        if self._only not in (None, name):
            return
        own = [file for file in run.files if self._owners.owns(name, file)]
        for file in own:
            if (name, _key(file)) not in self._readers:
                self._read_file(name, file)
        logs = [file.path for file in own if file.is_log]
        if logs and run.directory not in logs:  # a part of a file has none of its own
            self._add_checkpoints(name, run)

    def _read_file(self, run: str, file: FoundFile) -> None:
        """Start to read a file of a run."""
        count = sum(1 for name, _ in self._readers if name == run)
        ordinal = self._owners.ordinal(run, file, count)
        source = self._source_of(file, ordinal)
        self._fresh.setdefault(run, []).append((file, ordinal))
        format = _kind(file)
        reader = SourceReader(run, source, self._watch)
        self._readers[run, _key(file)] = reader
        debug_log.note("found", run=run, format=format, path=file.path)

    def _add_checkpoints(self, name: str, run: FoundRun) -> None:
        """Read a run's checkpoints, wherever they lie by now."""
        key = name, f"checkpoints {run.directory}"
        if key not in self._readers:
            source = CheckpointSource(run.directory, ())
            self._readers[key] = SourceReader(name, source, self._watch)
        known = self._readers[key].source
        if isinstance(known, CheckpointSource):
            known.homes = run.checkpoints


def _kind(file: FoundFile) -> str:
    return file.format.name if file.format is not None else "settings"


def _key(file: FoundFile) -> str:
    """Return a file's place; a directory is one for each format of the files in it."""
    of_steps = is_folder(file.path)
    return f"{_kind(file)} {file.path}" if of_steps else str(file.path)


def _any_new(changes: set[tuple[Change, str]]) -> bool:
    from watchfiles import Change

    return any(kind is not Change.modified for kind, _ in changes)


def _is_text(path: Path) -> bool:
    """True if a path is valid UTF-8: all others get no notices and are only polled."""
    return not any("\ud800" <= sign <= "\udfff" for sign in str(path))


def _is_due(at: float, now: float) -> bool:
    """Return whether a search is due; a clock that was set back puts it off no further."""
    return not now < at <= now + _RESCAN


def _is_warm(reader: SourceReader, now: float) -> bool:
    """Return whether a source may bring something soon: it is no file, is new, or grew lately."""
    if reader.served or reader.delivered is None:
        return True
    return now - (reader.delivered.modified or 0.0) < _COLD


def _is_quiet(reader: SourceReader, now: float) -> bool:
    """Return whether a file has not grown for long, by its own time and by what was seen: a file
    server's clock may be far behind.
    """
    changed = reader.status.modified or now
    return now - changed > _QUIET and not 0 <= now - reader.grew <= _QUIET
