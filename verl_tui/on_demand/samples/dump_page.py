"""The samples of a dump, whose rows are read as they are needed."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from verl_tui.on_demand.samples.sample_page import SamplePage
from verl_tui.on_demand.samples.text_search import all_text
from verl_tui.records import Sample
from verl_tui.runs.samples import Place
from verl_tui.sources.files.paths import why
from verl_tui.sources.folders.dump_file import dump_at

if TYPE_CHECKING:
    import threading
    from collections.abc import Hashable, Iterable, Iterator

    from verl_tui.records import Dump, SampleFacts, Unreadable

TEXTS = 32 * 2**20
"""Bytes of rows kept in memory."""
_WANTED = 64
"""Most rows that wait to be read; the oldest requests are dropped."""
SLICE = 512 * 1024
"""Bytes read and decoded in one go, in a few milliseconds, which other requests wait for."""
_RETRY = 2.0
"""Seconds after which an unreadable file is tried again."""


class DumpPage(SamplePage):
    """The rows of a dump."""

    def __init__(self, dump: Dump, wake: threading.Condition, texts: TextCache) -> None:
        super().__init__(Place(dump.step, dump.validation), wake)
        self._dump = dump
        self._file = dump_at(dump.path, dump.step, validation=dump.validation)
        self._facts: list[SampleFacts] = []
        self._texts = texts
        self._token = object()
        """Part of the cache keys, so that rows of an earlier page of the same path are not used."""
        self._wanted: dict[int, None] = {}
        """Rows to read, the newest request last."""
        self._grown = True
        """True if the file may hold more rows than are known."""
        self._failed = 0.0
        """Time of the last failure."""

    def show(self, dump: Dump) -> None:
        """Update the state of the dump."""
        if dump != self._dump:
            self._dump = dump
            self._grown = True
            self.problem = None
        elif self.problem is not None and time.monotonic() - self._failed > _RETRY:
            self._grown = True
            self.problem = None

    def sample(self, index: int) -> Sample | None:
        """Return a row, None while it is being read."""
        with self._wake:
            found = self._texts.get(self._key(index))
            if (
                found is None
                and index >= 0
                and (index < self.count or not self.complete)
            ):
                self._wanted.pop(index, None)
                self._wanted[index] = None
                if len(self._wanted) > _WANTED:
                    del self._wanted[next(iter(self._wanted))]
                self._wake.notify()
            return found

    def lines(self, indices: Iterable[int]) -> Iterator[bytes | None]:
        """Return the raw rows."""
        return self._file.lines(indices)

    def waits(self) -> bool:
        """Return True if there is something to read."""
        if self.problem is not None:
            return False
        return (
            self._grown
            or bool(self._wanted)
            or len(self._facts) < self.count
            or super().waits()
        )

    def is_urgent(self) -> bool:
        """Return True if a requested row can be read at once."""
        with self._wake:
            return self.problem is None and any(
                index < self.count for index in self._wanted
            )

    def read_on(self) -> bool:
        """Read requested rows, then count rows, then read their facts, then search."""
        try:
            return self._read_on()
        except OSError as error:
            self.problem = why(error)
            self._failed = time.monotonic()
            return True

    def _read_on(self) -> bool:
        wanted = self._next_wanted()
        if wanted is not None:
            row = self._file.row(wanted)
            sample = row if isinstance(row, Sample) else self._unreadable(row)
            with self._wake:
                self._texts.put(self._key(wanted), sample)
        elif self._grown:
            return self._index()
        elif len(self._facts) < self.count:
            start = len(self._facts)
            self._facts.extend(self._file.facts(start, self._file.span(start, SLICE)))
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
        """Find further rows, or all of them again if the file was rewritten."""
        generation = self._file.generation
        before = self.count
        more = self._file.index()
        with self._wake:
            if self._file.generation != generation:
                self._facts = []
                self.generation = self._file.generation
                self._search_anew()
            self._grown = more
            self.facts = self._facts
            self.count = self._file.count_so_far
            self.complete = not more
            for hits in self._searches:
                hits.complete = hits.complete and hits.searched == self.count
        return (
            self._file.generation != generation or self.count > before or self.complete
        )

    def _search(self) -> None:
        hits = self._searching()
        if hits is not None:
            stop = self._file.span(hits.searched, SLICE)
            hits.look(self._file.texts(hits.searched, stop))
            hits.complete = hits.searched >= self.count

    def _unreadable(self, row: Unreadable) -> Sample:
        """Return a sample that stands for an unreadable row."""
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


class TextCache:
    """A cache of rows with a limit in bytes; the least recently used are dropped."""

    def __init__(self) -> None:
        self._samples: OrderedDict[Hashable, tuple[Sample, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> Sample | None:
        """Return a row, None if it is not cached."""
        if key not in self._samples:
            return None
        self._samples.move_to_end(key)
        return self._samples[key][0]

    def put(self, key: Hashable, sample: Sample) -> None:
        """Add a row."""
        size = 1000 + sum(map(sys.getsizeof, all_text(sample)))
        self._size += size - self._samples.pop(key, (None, 0))[1]
        self._samples[key] = sample, size
        while self._size > TEXTS and len(self._samples) > 1:
            self._size -= self._samples.popitem(last=False)[1][1]
