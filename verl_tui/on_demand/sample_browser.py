"""Looks into the samples of a run for a screen: reads dumps in a thread of its own, a little at a
time.
"""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from verl_tui.on_demand.worker import Worker
from verl_tui.records import Sample, SampleFacts, Unreadable
from verl_tui.runs.samples import Place
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.sample import group_of
from verl_tui.sources.folders.dump_file import DumpFile

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from verl_tui.on_demand.worker import Job
    from verl_tui.records import Dump
    from verl_tui.runs.samples import Samples

__all__ = ["Hits", "Page", "Place", "PlainText", "SampleBrowser", "SampleFacts", "TextMatcher"]

_PAGES = 4
"""Pages that are kept: the one that is seen, and those one has just come from."""
_TEXTS = 32 * 2**20
"""Bytes of rows kept in memory."""
_WANTED = 64
"""Rows that may wait to be read; of more the oldest wishes are forgotten."""
_SLICE = 512 * 1024
"""Bytes read and decoded in one go, in a few milliseconds: what is asked for meanwhile waits so
long.
"""
_SLICE_KEPT = 256
"""Samples in memory that are searched in one go."""
_SEARCHES = 2
"""Searches of a page that go on side by side: of a filter, and of whoever looks for one thing
meanwhile.
"""
_RETRY = 2.0
"""Seconds after which a file that could not be read is tried again."""


class TextMatcher(Protocol):
    """A condition for rows."""

    def found(self, texts: Iterable[str]) -> bool:
        """Return whether a row's texts are what is searched for."""
        ...


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text, to the letter; capitals matter where it has some."""

    text: str

    def found(self, texts: Iterable[str]) -> bool:
        """Return whether one of the texts holds it."""
        fold = self.text == self.text.lower()
        return any(self.text in (text.lower() if fold else text) for text in texts)


@dataclass(slots=True)
class Hits:
    """Result of a search so far."""

    query: TextMatcher
    rows: list[int] = field(default_factory=list)
    """Rows that have what is searched for, ascending."""
    searched: int = 0
    """Rows looked at."""
    complete: bool = False
    """Whether all rows have been looked at."""

    def look(self, rows: Iterable[tuple[int, Iterable[str]]]) -> None:
        """Search further rows: pairs of an index and all texts of that row."""
        for index, texts in rows:
            if self.query.found(texts):
                self.rows.append(index)
            self.searched = index + 1


class Page:
    """The samples of one place, as far as they are known. The thread adds to it; ask the browser
    for it each time.
    """

    def __init__(self, place: Place, wake: threading.Condition) -> None:
        self.place = place
        self.count = 0
        """Rows known so far."""
        self.complete = False
        """Whether all rows are known."""
        self.facts: Sequence[SampleFacts] = ()
        """Facts of the first rows, as far as they have been read."""
        self.problem: str | None = None
        """Why nothing more can be read, None while it can."""
        self.generation = 0
        """Grows when the file has begun anew: rows known before are no more."""
        self._wake = wake
        self._searches: list[Hits] = []
        """The one begun last at the end."""

    def sample(self, index: int) -> Sample | None:
        """Return a row; None while it is being read, and for one that is not there. Asking again
        later gives it.
        """
        raise NotImplementedError

    def lines(self, indices: Iterable[int]) -> Iterator[bytes | None] | None:  # noqa: ARG002 - a page of a dump has some
        """Return rows to the byte as they stand in their file, None for one that is not JSON. For
        the browser's thread.

        Samples that came another way have no such lines: None is returned for all. What is returned
        may raise OSError.
        """
        return None

    def hits(self, query: TextMatcher | str) -> Hits:
        """Return the rows found so far that have what is searched for in one of their texts.

        These are prompt, response, ground truth and all further fields. It goes on in the
        background; of several searches only the last ones do. A query is asked row by row while all
        else waits: it must answer in about the time of reading a row, as `PlainText` does.
        """
        query = PlainText(query) if isinstance(query, str) else query
        with self._wake:
            hits = next((hits for hits in self._searches if hits.query == query), None)
            if hits is None:
                hits = Hits(query)
                self._searches = [*self._searches, hits][-_SEARCHES:]
                self._wake.notify()
            return hits

    def _search_anew(self) -> None:
        """Begin all searches again: the rows are others."""
        self._searches = [Hits(hits.query) for hits in self._searches]

    def _searching(self) -> Hits | None:
        """Return the search that is to go on."""
        return next((hits for hits in reversed(self._searches) if not hits.complete), None)

    def waits(self) -> bool:
        """Return whether there is something to read or to search."""
        return self._searching() is not None

    def is_urgent(self) -> bool:
        """Return whether a row that is to be seen can be read at once: a notice waits for it."""
        return False

    def read_on(self) -> bool:
        """Read or search a little; return whether there is something new to draw. For the browser's
        thread.
        """
        raise NotImplementedError


class _MemoryPage(Page):
    """Samples that lie in memory."""

    def __init__(self, place: Place, wake: threading.Condition) -> None:
        super().__init__(place, wake)
        self.complete = True
        self._samples: Sequence[Sample] = ()
        self._facts: list[SampleFacts] = []

    def show(self, samples: Sequence[Sample]) -> None:
        """Take what there is now: mostly what there was, and more."""
        known = self._samples
        if known and (len(samples) < len(known) or samples[0] is not known[0]):
            self._facts = []
        if len(samples) != len(self._facts):
            self._search_anew()
        self._facts.extend(_fact(samples[i], i) for i in range(len(self._facts), len(samples)))
        self._samples, self.facts, self.count = samples, self._facts, len(samples)

    def sample(self, index: int) -> Sample | None:
        """Return a sample."""
        return self._samples[index] if 0 <= index < len(self._samples) else None

    def read_on(self) -> bool:
        """Search a little."""
        hits, samples = self._searching(), self._samples
        if hits is not None:
            stop = min(len(samples), hits.searched + _SLICE_KEPT)
            hits.look((i, _all_text(samples[i])) for i in range(hits.searched, stop))
            hits.complete = stop == len(samples)
        return True


class _DumpPage(Page):
    """Rows of a dump."""

    def __init__(self, dump: Dump, wake: threading.Condition, texts: _Texts) -> None:
        super().__init__(Place(dump.step, dump.validation), wake)
        self._dump = dump
        self._file = DumpFile(dump.path, dump.step, validation=dump.validation)
        self._facts: list[SampleFacts] = []
        self._texts = texts
        self._token = object()
        """Tells its rows from those of an earlier page of the same file, which may have been
        another one then.
        """
        self._wanted: dict[int, None] = {}
        """Rows to be read, the one asked for last at the end."""
        self._grown = True
        """Whether the file may hold more than is known."""
        self._failed = 0.0
        """When it could not be read."""

    def show(self, dump: Dump) -> None:
        """Take note of how the dump is now."""
        if dump != self._dump:
            self._dump, self._grown, self.problem = dump, True, None
        elif self.problem is not None and time.monotonic() - self._failed > _RETRY:
            self._grown, self.problem = True, None

    def sample(self, index: int) -> Sample | None:
        """Return a row, None while it is not read."""
        with self._wake:
            found = self._texts.get(self._key(index))
            if found is None and index >= 0 and (index < self.count or not self.complete):
                self._wanted.pop(index, None)
                self._wanted[index] = None
                if len(self._wanted) > _WANTED:
                    del self._wanted[next(iter(self._wanted))]
                self._wake.notify()
            return found

    def lines(self, indices: Iterable[int]) -> Iterator[bytes | None]:
        """Return rows as they stand in the dump."""
        return self._file.lines(indices)

    def waits(self) -> bool:
        """Return whether there is something to read."""
        if self.problem is not None:
            return False
        return self._grown or bool(self._wanted) or len(self._facts) < self.count or super().waits()

    def is_urgent(self) -> bool:
        """Return whether a row that is wanted can be read at once."""
        with self._wake:
            return self.problem is None and any(index < self.count for index in self._wanted)

    def read_on(self) -> bool:
        """Read a little of what is wanted most: rows that are seen, then how many there are, then
        what they show.
        """
        try:
            return self._read_on()
        except OSError as error:
            self.problem = os.strerror(error.errno).lower() if error.errno else str(error)
            self._failed = time.monotonic()
            return True

    def _read_on(self) -> bool:
        wanted = self._next_wanted()
        if wanted is not None:
            row = self._file.row(wanted)
            sample = row if isinstance(row, Sample) else self._told(row)
            with self._wake:
                self._texts.put(self._key(wanted), sample)
        elif self._grown:
            return self._index()
        elif len(self._facts) < self.count:
            start = len(self._facts)
            self._facts.extend(self._file.facts(start, self._file.span(start, _SLICE)))
        else:
            self._search()
        return True

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
        """Find further rows; begin anew where the file has."""
        generation, before = self._file.generation, self.count
        more = self._file.index()
        with self._wake:
            if self._file.generation != generation:
                self._facts = []
                self.generation = self._file.generation
                self._search_anew()
            self._grown = more
            self.facts, self.count, self.complete = self._facts, self._file.count_so_far, not more
            for hits in self._searches:
                hits.complete = hits.complete and hits.searched == self.count
        return self._file.generation != generation or self.count > before or self.complete

    def _search(self) -> None:
        hits = self._searching()
        if hits is not None:
            stop = self._file.span(hits.searched, _SLICE)
            hits.look(self._file.texts(hits.searched, stop))
            hits.complete = hits.searched >= self.count

    def _told(self, row: Unreadable) -> Sample:
        """Return what is shown in place of a row that cannot be read."""
        reason = f"{self._file.path.name}, line {row.line}: {row.reason}"
        return Sample(
            self.place.step,
            "",
            row.excerpt,
            extras={"unreadable": reason},
            validation=self.place.validation,
        )

    def _key(self, index: int) -> Hashable:
        return self._token, self._file.generation, index


class _Texts:
    """Rows that have been read, within a budget of memory; those asked for least lately give
    way.
    """

    def __init__(self) -> None:
        self._samples: OrderedDict[Hashable, tuple[Sample, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> Sample | None:
        """Return a row that is known."""
        if key not in self._samples:
            return None
        self._samples.move_to_end(key)
        return self._samples[key][0]

    def put(self, key: Hashable, sample: Sample) -> None:
        """Keep a row."""
        size = 1000 + sum(map(sys.getsizeof, _all_text(sample)))
        self._size += size - self._samples.pop(key, (None, 0))[1]
        self._samples[key] = sample, size
        while self._size > _TEXTS and len(self._samples) > 1:
            self._size -= self._samples.popitem(last=False)[1][1]


class SampleBrowser(Worker[Page]):
    """The pages that a screen looks at, and the thread that reads them."""

    def __init__(self, notify: Callable[[], object]) -> None:
        super().__init__(notify, name="samples", kept=_PAGES)
        self._texts = _Texts()
        self._later_jobs: list[Job] = []
        """Jobs for idle time, one after the other."""

    def page(self, samples: Samples, place: Place) -> Page:
        """Return the page of a place; never waits, never reads."""
        dump = samples.dump(place)
        with self._wake:
            page: Page
            if dump is not None:
                page = self._recall(dump.path, lambda: _DumpPage(dump, self._wake, self._texts))
                if isinstance(page, _DumpPage):
                    page.show(dump)
            else:
                page = self._recall((id(samples), place), lambda: _MemoryPage(place, self._wake))
                if isinstance(page, _MemoryPage):
                    page.show(samples.kept(place))
            self._start()
        return page

    def run_later(self, job: Job) -> None:
        """Have something done when nothing waits to be seen, however many pages are asked for
        meanwhile.
        """
        with self._wake:
            self._later_jobs = [*(other for other in self._later_jobs if other.waits()), job]
            self._start()

    def _next(self) -> Job | None:
        """Return a page to read on, or what has been undertaken."""
        return super()._next() or next((job for job in self._later_jobs if job.waits()), None)


def _fact(sample: Sample, index: int) -> SampleFacts:
    extras = sample.extras.items()
    numbers = {
        key: found
        for key, value in extras
        if value is not None and (found := number(value)) is not None
    }
    group = sample.group or group_of(sample.prompt)
    return SampleFacts(index, sample.score, group, len(sample.response), numbers, sample.validation)


def _all_text(sample: Sample) -> Iterator[str]:
    yield from (sample.prompt, sample.response, sample.ground_truth or "")
    yield from (value for value in sample.extras.values() if isinstance(value, str))
