"""The samples of a dump, whose rows are read as they are needed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verl_tui.on_demand.samples.sample_page import SamplePage
from verl_tui.records import Sample
from verl_tui.runs.samples import Place
from verl_tui.sources.files.paths import why
from verl_tui.sources.folders.dumps import dump_at

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator

    from verl_tui.records import Dump, SampleFacts, Unreadable

_KEPT = 256
"""Rows kept in memory, more than a screen shows."""
_WANTED = 64
"""Most rows that wait to be read; the oldest requests are dropped."""
SLICE = 512 * 1024
"""Bytes read and decoded in one go, in a few milliseconds, which other requests wait for."""
_RETRY = 2.0
"""Seconds after which an unreadable file is tried again."""


class DumpPage(SamplePage):
    """The rows of a dump."""

    def __init__(self, dump: Dump, wake: threading.Condition) -> None:
        super().__init__(Place(dump.step, dump.validation), wake)
        self._dump = dump
        self._file = dump_at(dump.path, dump.step, validation=dump.validation)
        self._facts: list[SampleFacts] = []
        self._rows: dict[int, Sample] = {}
        """Rows in memory, the one read last at the end."""
        self._wanted: dict[int, None] = {}
        """Rows to read, the newest request last."""
        self._grown = True
        """True if the file may hold more rows than are known."""
        self._failed = 0.0
        """Time of the last failure."""

    def show(self, dump: Dump) -> None:
        """Update the state of the dump; one that could not be read is tried again at times."""
        failed = self.problem is not None and time.monotonic() - self._failed > _RETRY
        if dump != self._dump or failed:
            self._dump = dump
            self._grown = True
            self.problem = None

    def sample(self, index: int) -> Sample | None:
        """Return a row, None while it is being read."""
        with self._wake:
            found = self._rows.get(index)
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
        behind = self._grown or self._wanted or len(self._facts) < self.count
        return self.problem is None and (bool(behind) or super().waits())

    def is_urgent(self) -> bool:
        """Return True if a requested row can be read at once."""
        with self._wake:
            known = any(index < self.count for index in self._wanted)
            return known and self.problem is None

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
                self._rows[wanted] = sample
                if len(self._rows) > _KEPT:
                    del self._rows[next(iter(self._rows))]
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
        generation, before = self._file.generation, self.count
        more = self._file.index()
        rewritten = self._file.generation != generation
        with self._wake:
            if rewritten:
                self._facts = []
                self._rows = {}
                self.generation = self._file.generation
                self._search_anew()
            self._grown = more
            self.facts = self._facts
            self.count = self._file.count_so_far
            self.complete = not more
            for hits in self._searches:
                hits.complete = hits.complete and hits.searched == self.count
        return rewritten or self.count > before or self.complete

    def _search(self) -> None:
        hits = self._searching()
        if hits is not None:
            stop = self._file.span(hits.searched, SLICE)
            hits.look(self._file.texts(hits.searched, stop))
            hits.complete = hits.searched >= self.count

    def _unreadable(self, row: Unreadable) -> Sample:
        """Return a sample that stands for an unreadable row."""
        reason = f"{self._file.path.name}, line {row.line}: {row.reason}"
        step, validation = self.place
        extras = {"unreadable": reason}
        return Sample(step, "", row.excerpt, extras=extras, validation=validation)
