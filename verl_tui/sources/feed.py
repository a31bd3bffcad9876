"""Read all sources of all runs, a little of each in turn, and follow them, in a thread of its
own.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from verl_tui import debug_log
from verl_tui.failures import in_full
from verl_tui.records import Batch, Preview, Reread
from verl_tui.sources.discovery.finder import Discovery, Finder
from verl_tui.sources.discovery.found import FileOwners, FoundFile, FoundRun
from verl_tui.sources.ends import previews
from verl_tui.sources.files import Source, is_folder
from verl_tui.sources.folders.checkpoint_folders import CheckpointSource
from verl_tui.sources.host.processes import Writers
from verl_tui.sources.http import addresses
from verl_tui.sources.http.served import Served
from verl_tui.sources.pipe import PipeSource
from verl_tui.sources.source_reader import SourceReader, source_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator, Sequence


FeedNews: TypeAlias = "Batch | Discovery | Preview | Reread"
"""What is told of the sources as they are followed."""
POLL = 1.0
"""Seconds between checks of the files' sizes: network file systems send no notices."""
_SOON = 0.05
"""Seconds between checks for the first answer of a server."""
_RESCAN = 3.0
"""Seconds between searches for new files and runs without a notice."""
_SHARE = 10
"""At least so many times as long as a search took: of 5,000 runs it takes more than a second."""
_QUIET = 10.0
"""Seconds without growth after which a last line without an end is taken as complete."""
_COLD = 600.0
"""Seconds without growth after which a file is checked only with the rescan."""
_ROUNDS = 8
"""One in so many rounds of reading belongs to all sources, others to the run that is shown: a log
that grows faster than it is read must not hold up all others.
"""
_MOST_WATCHED = 256
"""Directories watched by notices; inotify allows some thousand per user, others need theirs."""


class Feed:
    """All sources behind the paths that a user named."""

    def __init__(
        self,
        specs: Sequence[str],
        *,
        poll_interval: float | None = None,
        shown: Callable[[], str | None] = lambda: None,
        source_of: Callable[[FoundFile], Source] = source_of,
    ) -> None:
        """Prepare; nothing is looked for yet.

        Args:
            specs: Paths, directories, globs and addresses.
            poll_interval: Seconds between two questions to an address, None for what suits it.
            shown: Returns the name of the run that is shown, to be read before all others.
            source_of: Makes the source of a file.
        """
        self._source_of = source_of
        self._shown = shown
        self._finder = Finder([spec for spec in specs if not addresses.is_meant(spec)])
        self._served = Served(
            [spec for spec in specs if addresses.is_meant(spec)], every=poll_interval
        )
        self._readers: dict[tuple[str, str], SourceReader] = {}
        """By the name of the run, and by the place of the source."""
        self._owners = FileOwners()
        self._writers = Writers()
        self._is_followed = False
        self._first_look: Iterator[Batch] = iter(())
        """Brings who writes the logs, once."""
        self._fresh: dict[str, list[FoundFile]] = {}
        """By run, the files that have not been read yet."""
        self.reread: list[Reread] = []
        """The runs whose files the last search found to have other formats; to be announced before
        anything that is read of them.
        """

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runs that have been found."""
        return tuple(dict.fromkeys(name for name, _ in self._readers))

    def keep(self, name: str) -> None:
        """Read one run only, by its name."""
        known = self._readers.items()
        self._readers = {key: one for key, one in known if one.run == name}

    # -- searching ---------------------------------------------------------------------------------

    def scan(self) -> Discovery:
        """Search for new runs and files; a run keeps its first name."""
        sources = (one.source for one in self._readers.values())
        self._finder.moved = {one.path: one.moved for one in sources if one.moved}
        with debug_log.timed("searched"):
            discovery = self._finder.scan()
        dropped = self._owners.forget(self._finder.changed)
        known = self._readers.items()
        self._readers = {
            key: one for key, one in known if one.served or one.run not in dropped
        }
        for run in discovery.runs:
            self._add(run)
        self.reread = [Reread(name, name in self.names) for name in dropped]
        self._add_served()
        return replace(
            discovery,
            problems=(*discovery.problems, *self._served.problems),
            waiting=(*discovery.waiting, *self._served.waiting),
            unreached=self._served.unreached,
        )

    def _add(self, run: FoundRun) -> None:
        """Start to read the files of a run that are not read yet."""
        name, own = self._owners.claimed(run)
        for file in own:
            # A directory is one for each format of the files in it.
            kind = f"{_kind(file)} " if is_folder(file.path) else ""
            key = name, f"{kind}{file.path}"
            is_read = file.path in self._finder.moved.values()
            if key not in self._readers and not is_read:
                count = sum(known == name for known, _ in self._readers)
                at = self._owners.ordinal(name, file, count)
                placed = file._replace(ordinal=at)
                self._fresh.setdefault(name, []).append(placed)
                source = self._source_of(placed)
                source.ordinal = at
                self._read(key, source)
                debug_log.note("found", run=name, format=_kind(file), path=file.path)
        logs = [file.path for file in own if file.is_log]
        if logs and run.directory not in logs:  # a part of a file has none of its own
            self._add_checkpoints(name, run)

    def _add_checkpoints(self, name: str, run: FoundRun) -> None:
        """Read a run's checkpoints, wherever they lie by now."""
        key = name, f"checkpoints {run.directory}"
        if key not in self._readers:
            self._read(key, CheckpointSource(run.directory, ()))
        source = self._readers[key].source
        assert isinstance(source, CheckpointSource)
        source.homes = run.checkpoints

    def _add_served(self) -> None:
        """Start to read what addresses tell of since the last call."""
        for run in self._served.sources():
            self._read((run.name, str(run)), run)

    def _read(self, key: tuple[str, str], source: Source) -> None:
        """Start to read a source of a run."""
        self._readers[key] = SourceReader(key[0], source, self._writers)

    # -- a single look -----------------------------------------------------------------------------

    def settle(self) -> None:
        """Poll all addresses once and wait for the answers."""
        self._served.settle()

    def read(self) -> Iterator[Batch]:
        """Yield what has been appended since the last call, a little of each source in turn.

        Standard input is read to its end.
        """
        readers = self._readers.values()
        for reader in readers:
            if isinstance(reader.source, PipeSource):
                reader.source.to_the_end()
        return (batch for _, batch, _ in _in_turn(readers) if batch)

    def finish(self) -> Iterator[Batch]:
        """Yield last lines without an end."""
        return filter(None, map(SourceReader.finish, self._readers.values()))

    def update_writers(self, now: float) -> Iterator[Batch]:
        """Look up once which processes write the files, and yield the changes."""
        self._want_writers(now)
        self._writers.scan(self._writers.wanted)
        return filter(None, map(SourceReader.update_writer, self._readers.values()))

    def _want_writers(self, now: float) -> None:
        readers = self._readers.values()
        files = ((one.file, one.status.modified) for one in readers if one.file)
        self._writers.want(files, now)

    # -- following ---------------------------------------------------------------------------------

    def follow(
        self, stop: threading.Event, clock: Callable[[], float]
    ) -> Iterator[FeedNews]:
        """Yield everything, then what is appended, until `stop` is set.

        Args:
            stop: Ends the following within a poll.
            clock: Seconds, monotonic enough to pace the polls.
        """
        if not self._is_followed:
            self._is_followed = True
            self._served.start(stop)
            self._first_look = self._look_for_writers(stop, clock)
        last: Discovery | None = None
        while not stop.is_set():
            searched = clock()
            discovery = self._searched(last)
            pause = max(_RESCAN, _SHARE * (clock() - searched))
            is_new = discovery != last
            if is_new:
                yield discovery
            yield from self.reread
            fresh, self._fresh = self._fresh, {}
            yield from previews(fresh, self._first())
            yield from self._read_on(clock(), self._readers.values())
            self._add_served()
            yield from self._first_look
            if is_new:
                yield replace(discovery, read=True)
            last = discovery
            self._want_writers(clock())
            for added in self._notices(stop):
                now = clock()
                warm = [one for one in self._readers.values() if _is_warm(one, now)]
                yield from self._read_on(now, warm)
                if added or not 0 <= clock() - searched < pause:
                    break

    def _look_for_writers(
        self, stop: threading.Event, clock: Callable[[], float]
    ) -> Iterator[Batch]:
        """Look up who writes the logs, which tells at once whether their runs go on; then have it
        looked up again and again.
        """
        try:
            yield from self.update_writers(clock())
        finally:
            self._writers.start(stop)

    def _searched(self, last: Discovery | None) -> Discovery:
        """Search for new runs; an error is reported and costs nothing that was found."""
        self.reread = []
        try:
            return self.scan()
        except Exception as error:  # noqa: BLE001 - a net at the border
            debug_log.note_error("search", error)
            why = f"the search for new logs failed: {in_full(error)}"
            return replace(last or Discovery((), (), ()), problems=(why,))

    def _first(self) -> str | None:
        """Return the name of the run to read first: as long as none is shown, the first one."""
        return self._shown() or next((name for name, _ in self._readers), None)

    def _read_on(self, now: float, readers: Iterable[SourceReader]) -> Iterator[Batch]:
        """Yield what sources bring up to their present ends."""
        turns = _in_turn(readers, self._first)
        for reader, batch, more in turns:
            if batch:
                yield batch
                reader.grew = now if batch.live else reader.grew
            last = None if more or not _is_quiet(reader, now) else reader.finish()
            if last:
                yield last

    def _notices(self, stop: threading.Event) -> Iterator[bool]:
        """Yield at each notice of the file system and each poll; true if there may be new files."""
        while self._served.awaited:
            yield stop.wait(_SOON) or self._served.grown
        import watchfiles  # 40 ms, after the first frame

        directories = [*filter(is_folder, sorted(self._finder.directories))]
        # None come where inotify's limit is reached, a directory vanishes or its name is not UTF-8:
        # then polling goes on.
        with suppress(OSError, RuntimeError, ValueError):
            for changes in watchfiles.watch(
                *directories[:_MOST_WATCHED],
                watch_filter=None,
                debounce=100,
                stop_event=stop,
                rust_timeout=int(POLL * 1000),
                yield_on_timeout=True,
                recursive=False,
                raise_interrupt=False,
            ):
                modified = watchfiles.Change.modified
                yield any(kind is not modified for kind, _ in changes)
        while not stop.wait(POLL):
            yield False


def _in_turn(
    readers: Iterable[SourceReader], shown: Callable[[], str | None] = lambda: None
) -> Iterator[tuple[SourceReader, Batch | None, bool]]:
    """Read sources to their present ends, a little of each in turn, first of all those of the run
    that is shown; yield each with its batch and whether more of it waits.
    """
    waiting = [*readers]
    for number in count(1):
        first = shown() if number % _ROUNDS else None
        for reader in [one for one in waiting if one.run == first] or [*waiting]:
            batch, more = reader.read()
            if not more:
                waiting.remove(reader)
            yield reader, batch, more
        if not waiting:
            return


def _kind(file: FoundFile) -> str:
    return file.format.name if file.format is not None else "settings"


def _is_warm(reader: SourceReader, now: float) -> bool:
    """Return whether a source may bring something soon: it is no file, is new, or grew lately."""
    is_new = not reader.delivered
    return reader.served or is_new or now - (reader.status.modified or 0.0) < _COLD


def _is_quiet(reader: SourceReader, now: float) -> bool:
    """Return whether a file has not grown for long, by its own time and by what was seen: a file
    server's clock may be far behind.
    """
    changed = reader.status.modified or now
    return now - changed > _QUIET and not 0 <= now - reader.grew <= _QUIET
