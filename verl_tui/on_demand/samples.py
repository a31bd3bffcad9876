"""The samples of a run: for a screen by the step, read from dumps by a thread, a little at a time;
at once for what is written down (an answer, a report, a bundle).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_not
from typing import TYPE_CHECKING, Protocol

from verl_tui.on_demand.worker import FileJob, Job, Worker
from verl_tui.records import Dump, Sample, SampleFacts, Unreadable
from verl_tui.sources.fields.jsonl import numbers_in
from verl_tui.sources.fields.sample import all_text, group_of
from verl_tui.sources.folders.dumps import DumpFile

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.runs.samples import Place, Samples


_PAGES = 4
"""Most pages kept: the one shown and those shown before."""
_KEPT = 256
"""Rows kept in memory, more than a screen shows."""
_WANTED = 64
"""Most rows that wait to be read; the oldest requests are dropped."""
_FIRST = 4 * 2**20
"""Bytes of a dump that are looked at before all others."""
SLICE = 512 * 1024
"""Bytes read and decoded in one go, in a few milliseconds, which other requests wait for."""
_KEPT_SLICE = 256
"""Samples in memory searched in one go."""


class TextMatcher(Protocol):
    """A condition for rows."""

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if the texts of a row match."""
        ...


@dataclass(slots=True)
class Hits:
    """Result of a search so far."""

    query: TextMatcher
    rows: list[int] = field(default_factory=list)
    """Indices of matching rows, ascending."""
    searched: int = 0
    """Number of rows searched."""
    complete: bool = False
    """True once all rows have been searched."""


@dataclass(eq=False)
class KeptRows:
    """Samples in memory, as the rows of a dump."""

    samples: Sequence[Sample]
    complete, generation = True, 0

    @property
    def count_so_far(self) -> int:
        """Rows there are."""
        return len(self.samples)

    def index(self, limit: float = math.inf) -> None:
        """Do nothing: all rows are there."""

    def span(self, start: int, size: int = 0) -> int:  # noqa: ARG002 - a dump's has bytes
        """Return where to stop reading from `start`."""
        return min(start + _KEPT_SLICE, self.count_so_far)

    def row(self, index: int) -> Sample:
        """Return a sample."""
        return self.samples[index]

    def facts(self, start: int, stop: int) -> list[SampleFacts]:
        """Return what can be said of samples without their text."""
        return [_fact(self.samples[at], at) for at in range(start, stop)]


def _fact(sample: Sample, index: int) -> SampleFacts:
    numbers = numbers_in({**sample.extras})
    prompt = group_of(sample.prompt)
    known = sample.score, sample.group or prompt, len(sample.response), numbers
    return SampleFacts(index, *known, sample.validation, prompt)


def rows_at(samples: Samples, place: Place) -> DumpFile | KeptRows:
    """Return the samples of a step as rows; those of a dump are not read yet."""
    dump = samples.dump(place)
    if not dump:
        return KeptRows(samples.kept(place))
    return DumpFile(dump.path, place.step, validation=place.validation)


class SamplePage(FileJob):
    """The samples of one step as far as they are known, read as they are needed: the browser's
    thread adds to them.
    """

    def __init__(
        self, place: Place, rows: DumpFile | KeptRows, wake: threading.Condition
    ) -> None:
        super().__init__(wake, _WANTED)
        self.place = place
        self.rows = rows
        """The rows, for the browser's thread; those of a dump may raise OSError."""
        self.count = 0
        """Number of rows known so far."""
        self.complete = isinstance(rows, KeptRows)
        """True once all rows are known."""
        self.facts: list[SampleFacts] = []
        """Facts of the rows read so far, from the first on."""
        self.generation = 0
        """Grows when the file is rewritten, which makes all rows known before invalid."""
        self._hits: Hits | None = None
        """The newest search."""
        self._dump: Dump | None = None
        self._read: dict[int, Sample] = {}
        """Rows of a dump in memory, the one read last at the end."""
        self._is_new, self._grown = True, False
        """True until it has been looked at, and if the file may hold more rows than are known."""

    def show(self, dump: Dump | None, kept: Sequence[Sample]) -> None:
        """Update the state of the dump, else the samples in memory, which are mostly the same ones
        and more. A dump that could not be read is tried again at times.
        """
        if isinstance(self.rows, KeptRows):
            self._keep(self.rows, kept)
        elif dump != self._dump or (self.problem is not None and self._may_try()):
            self._dump = dump
            self._grown = True
            self.problem = None

    def _keep(self, rows: KeptRows, samples: Sequence[Sample]) -> None:
        known, rows.samples = rows.samples, samples
        self.count = len(samples)
        # A step that is made again may begin with the same sample.
        if self.count < len(known) or any(map(is_not, known[:1], samples[:1])):
            self.facts = []
        if self.count != len(self.facts):
            self._search_anew()
            self.facts += rows.facts(len(self.facts), self.count)

    def sample(self, index: int) -> Sample | None:
        """Return a row; None if it does not exist or is still being read, then ask again later."""
        if isinstance(self.rows, KeptRows):
            return self.rows.row(index) if 0 <= index < self.count else None
        with self._wake:
            found = self._read.get(index)
            may_be = 0 <= index < (math.inf if self._grown else self.count)
            if not found and may_be:
                self._want(index)
            return found

    def hits(self, query: TextMatcher) -> Hits:
        """Return the rows found so far in whose texts a query matches: prompt, response, ground
        truth and all further fields. The search goes on in the background, that of the newest
        query only, row by row while other work waits.
        """
        with self._wake:
            if not self._hits or self._hits.query != query:
                self._hits = Hits(query)
                self._wake.notify()
            return self._hits

    def _search_anew(self) -> None:
        """Restart the search, since the rows have changed."""
        self._hits = Hits(self._hits.query) if self._hits else None

    def waits(self) -> bool:
        """Return True if there is something to read or to search."""
        behind = self._grown or self._wanted or len(self.facts) < self.count
        searches = self._hits is not None and not self._hits.complete
        return self.problem is None and (bool(behind) or searches)

    def _read_on(self) -> bool:
        """Read requested rows, then count rows, then read their facts, then search."""
        wanted = self._next_wanted()
        start = len(self.facts)
        if wanted is not None:
            row = self.rows.row(wanted)
            sample = row if isinstance(row, Sample) else self._unreadable(row)
            with self._wake:
                self._read[wanted] = sample
                if len(self._read) > _KEPT:
                    del self._read[next(iter(self._read))]
        elif self._grown:
            return self._index()
        elif start < self.count:
            self.facts += self.rows.facts(start, self.rows.span(start, SLICE))
        elif self._hits:
            self._search(self._hits)
        return True

    def _search(self, hits: Hits) -> None:
        """Search a little."""
        for index in range(hits.searched, self.rows.span(hits.searched, SLICE)):
            row = self.rows.row(index)
            texts = all_text(row) if isinstance(row, Sample) else (row.excerpt,)
            if hits.query.found(texts):
                hits.rows.append(index)
            hits.searched = index + 1
        hits.complete = hits.searched >= self.count

    def _next_wanted(self) -> int | None:
        with self._wake:
            known = [index for index in self._wanted if index < self.count]
            if known:
                del self._wanted[known[-1]]
                return known[-1]
            if not self._grown:
                self._wanted.clear()
        return None

    def _index(self) -> bool:
        """Find further rows, or all of them again if the file was rewritten."""
        before = self.count
        self.rows.index(_FIRST if self._is_new else math.inf)
        self._is_new = False
        rewritten = self.rows.generation != self.generation
        with self._wake:
            if rewritten:
                self.facts = []
                self._read = {}
                self.generation = self.rows.generation
                self._search_anew()
            self.count = self.rows.count_so_far
            self.complete = self.rows.complete
            self._grown = not self.complete
            if self._hits and self._hits.searched != self.count:
                self._hits.complete = False
        return rewritten or self.count > before or self.complete

    def _unreadable(self, row: Unreadable) -> Sample:
        """Return a sample that stands for an unreadable row of a dump."""
        assert isinstance(self.rows, DumpFile)
        reason = f"{self.rows.path.name}, line {row.line}: {row.reason}"
        step, validation = self.place
        extras = {"unreadable": reason}
        return Sample(step, "", row.excerpt, extras=extras, validation=validation)


class SampleBrowser(Worker[SamplePage]):
    """The pages that a screen shows, and the thread that reads them."""

    def __init__(self, notify: Callable[[], object]) -> None:
        super().__init__(notify, name="samples", kept=_PAGES)
        self._later_jobs: list[Job] = []
        """Jobs for idle time, done one after the other."""

    def page(self, samples: Samples, place: Place) -> SamplePage:
        """Return the page of a step without reading or waiting."""
        dump = samples.dump(place)
        key = dump.path if dump else (id(samples), place)
        with self._wake:
            page = self._recall(
                key, lambda: SamplePage(place, rows_at(samples, place), self._wake)
            )
            page.show(dump, samples.kept(place))
            self._wake.notify()
        return page

    def run_later(self, job: Job) -> None:
        """Add a job that runs when no page needs to be read."""
        with self._wake:
            waiting = (other for other in self._later_jobs if other.waits())
            self._later_jobs = [*waiting, job]
            self._begin()
            self._wake.notify()

    def _next(self) -> Job | None:
        """Return a page to read, or else a job for idle time."""
        later = (job for job in self._later_jobs if job.waits())
        return super()._next() or next(later, None)


class StepSamples:
    """The samples of one step at once; only those asked for are decoded whole."""

    def __init__(
        self, samples: Samples, place: Place, *, size: float = math.inf
    ) -> None:
        """Find them.

        Args:
            samples: Those of the run.
            place: The step.
            size: Bytes of a dump that are enough.

        Raises:
            OSError: The dump cannot be read.
        """
        self.place = place
        self._rows = rows_at(samples, place)
        self._rows.index(size)
        self.complete = self._rows.complete

    def __len__(self) -> int:
        return self._rows.count_so_far

    @cached_property
    def scores(self) -> list[float | None]:
        """The score of each sample."""
        return [fact.score for fact in self._rows.facts(0, len(self))]

    def row(self, index: int) -> Sample | Unreadable:
        """Return a sample, or why it cannot be read."""
        return self._rows.row(index)

    def ranked(self, *, best: bool = False) -> list[int]:
        """Return the indices of the samples with a score, from the lowest on, or from the best; of
        equals the first comes first.
        """
        sign = -1 if best else 1
        scores = ((one, at) for at, one in enumerate(self.scores) if one is not None)
        known = [(sign * one, at) for one, at in scores if math.isfinite(one)]
        return [at for _, at in sorted(known)]

    def first(self, most: int) -> list[Sample]:
        """Return the first samples that can be read, so many at most."""
        rows = map(self.row, range(min(most, len(self))))
        return [row for row in rows if isinstance(row, Sample)]
