"""Read one run, whole or from the end of its long logs, as far as an answer needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.health.finding import Verdict
from verl_tui.runs.run import Run
from verl_tui.runs.run_id import find_run, run_id
from verl_tui.sources.discovery.passed_over import sentences
from verl_tui.sources.ends import EndSource, end_source
from verl_tui.sources.feed import Feed
from verl_tui.sources.files import Source, file_size
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from verl_tui.sources.discovery.found import FoundFile

LONG = 2 * 2**20
"""Bytes from which a log is read from its end where the newest of it are asked for."""
FIRST = 2**20
"""Bytes read at the end of a long log in the first attempt."""
_FURTHER = 4
"""How many times as much is read in each further attempt, so that all together cost at most a third
more than the last.
"""
DEEP = 16 * 2**20
"""Bytes at the end of a long log that must contain at least one of the requested values or samples,
else the request is taken for a mistake (heuristic: hundreds of steps of the wordiest logs).
"""


class Reading(NamedTuple):
    """A run that has been read, whole or in part."""

    run: Run
    bytes_read: int
    """Bytes read in all attempts, except those read to recognise file formats."""
    sentences: tuple[str, ...]
    """Sentences on files that were skipped and on what is missing."""
    whole: bool = True
    complete_from: int | None = 0
    """The first step from which the numbers are complete, None where that is not known; 0 where all
    was read.
    """
    needs_all: bool = False
    """True if no part of it can be used, because its steps depend on the beginning of a log."""
    starts: Mapping[str, int] = {}
    """Path -> the byte at which the part that was read begins; 0 for paths not in here."""
    wanted: int | None = None
    """Bytes that were read at the end of each long log, None if all."""
    now: float = 0.0
    """When it is asked for, in seconds since the epoch."""
    guide: Any = None
    """The rules by which it is judged, None where no answer takes them."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on it; nothing is judged of a part."""
        from verl_tui.health.judge import Judge

        run = self.run
        return Judge(self.guide, run).verdict(self.now) if self.whole else Verdict()

    @property
    def searched(self) -> str | None:
        """The part that was searched, in words, if it was all or enough to conclude that something
        is not in the log; None if it was less.
        """
        if self.whole:
            return ""
        if self.wanted is None or self.wanted < DEEP:
            return None
        return f" in the last {self.wanted >> 20} MiB of its log (--whole reads all)"

    @property
    def named(self) -> dict[str, object]:
        """Whose answer it is, as fields of it."""
        return {"run": self.run.name, "run_id": run_id(self.run)}

    @property
    def part(self) -> dict[str, object]:
        """Whose answer it is, and how much was read for it, as fields of it."""
        read = "whole" if self.whole else "end"
        return {**self.named, "read": read, "bytes_read": self.bytes_read}


def run_names(specs: Sequence[str]) -> Sequence[tuple[str, ...]]:
    """Return the names of the runs behind paths, and what was passed over; no log is read."""
    return _scanned(Feed(specs))[::-1]


def _scanned(feed: Feed) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what was passed over at paths, and the names of the runs there."""
    discovery = feed.scan()
    said = (*discovery.problems, *discovery.waiting, *sentences(discovery.passed))
    return said, feed.names


def readings(
    specs: Sequence[str],
    name: str | None,
    now: float,
    *,
    long: int | None = None,
    first: int = FIRST,
    alive: bool = False,
) -> Iterator[Reading]:
    """Yield a run, each time with more of the end of its long logs, at last whole: stop at the
    first that gives an answer.

    Args:
        specs: Paths.
        name: The run, None where there is only one.
        now: Seconds since the epoch.
        long: Bytes from which a log is long, None to read all at once.
        first: Bytes read at the end of a long log in the first attempt.
        alive: Whether to look up which processes write its logs, by which its state is judged.

    Raises:
        UsageError: There are several runs and none of them is named, or none has this name.
        NothingError: There is none.
    """
    wanted, spent, whole = None if long is None else first, 0, False
    while not whole:
        reading = read_run(specs, name, now, wanted, long or 0, spent, alive=alive)
        whole, spent = reading.whole, reading.bytes_read
        wanted = None if wanted is None or reading.needs_all else wanted * _FURTHER
        if not reading.needs_all:
            yield reading


def read_run(
    specs: Sequence[str],
    name: str | None,
    now: float,
    wanted: int | None = None,
    long: int = 0,
    spent: int = 0,
    *,
    alive: bool = False,
) -> Reading:
    """Read a run once, see `readings`.

    Args:
        specs: Paths.
        name: The run.
        now: Seconds since the epoch.
        wanted: Bytes at the end of long logs, None for all.
        long: Bytes from which a log is long.
        spent: Bytes that earlier attempts have read.
        alive: Whether to look up which processes write its logs.
    """
    ends: list[EndSource] = []

    def chosen(file: FoundFile) -> Source:
        if wanted is not None and file_size(file.path) > max(long, wanted):
            end = end_source(file, wanted)
            if end:
                ends.append(end)
                return end
        return source_of(file)

    feed = Feed(specs, source_of=chosen)
    feed.settle()
    said, names = _scanned(feed)
    run = find_run(list(map(Run, names)), name, said)
    feed.keep(run.name)
    for batch in chain(feed.read(), feed.finish()):
        run.apply(batch, now)
    for batch in feed.update_writers(now) if alive else ():
        run.apply(batch, now)
    return _measured(Reading(run, spent, said, wanted=wanted), ends)


def _measured(read: Reading, ends: Sequence[EndSource]) -> Reading:
    """Return a reading with what is known of the logs that were read from their end only."""
    own = (end for end in ends if str(end.path) in read.run.sources)
    partial = {str(end.path): end for end in own if end.start}
    costs = {one.path: one.bytes_read for one in read.run.statuses}
    costs |= {path: end.cost for path, end in partial.items()}
    return read._replace(
        bytes_read=read.bytes_read + sum(costs.values()),
        whole=not partial,
        complete_from=_complete_from(partial.values()) if partial else 0,
        needs_all=any(end.needs_beginning for end in partial.values()),
        starts={path: end.start for path, end in partial.items()},
    )


def _complete_from(ends: Iterable[EndSource]) -> int | None:
    """Return the first step from which the numbers are complete."""
    found = [end.complete_from for end in ends if end.steps]
    known = [step for step in found if step is not None]
    return max(known, default=None) if known == found else None
