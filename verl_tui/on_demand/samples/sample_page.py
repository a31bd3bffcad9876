"""The samples of one step as far as they are known, and those that are kept in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from verl_tui.on_demand.worker import Job
from verl_tui.records import SampleFacts
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.sample import all_text, group_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import Sample
    from verl_tui.runs.samples import Place


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

    def look(self, rows: Iterable[tuple[int, Iterable[str]]]) -> None:
        """Search further rows, given as index and texts."""
        for index, texts in rows:
            if self.query.found(texts):
                self.rows.append(index)
            self.searched = index + 1


_SEARCHES = 2
"""Most searches of a page at a time: a filter, and a search for the same prompt."""
_SLICE = 256
"""Samples in memory searched in one go."""


class SamplePage(Job):
    """The samples of one step as far as they are known; the browser's thread adds to them."""

    def __init__(self, place: Place, wake: threading.Condition) -> None:
        self.place = place
        self.count = 0
        """Number of rows known so far."""
        self.complete = False
        """True once all rows are known."""
        self.facts: Sequence[SampleFacts] = ()
        """Facts of the rows read so far, from the first on."""
        self.problem: str | None = None
        """Why the file cannot be read, None if it can."""
        self.generation = 0
        """Grows when the file is rewritten, which makes all rows known before invalid."""
        self._wake = wake
        self._searches: list[Hits] = []
        """Searches, the newest last."""

    def sample(self, index: int) -> Sample | None:
        """Return a row; None if it does not exist or is still being read, then ask again later."""
        raise NotImplementedError

    def lines(
        self,
        indices: Iterable[int],  # noqa: ARG002 - a page of a dump has some
    ) -> Iterator[bytes | None] | None:
        """Return the raw rows of a dump, None for one that is not JSON, or None for other samples.

        For the browser's thread; the iterator may raise OSError.
        """
        return None

    def hits(self, query: TextMatcher) -> Hits:
        """Return the rows found so far in whose texts a query matches: prompt, response, ground
        truth and all further fields. The search goes on in the background, that of the newest
        queries only, row by row while other work waits.
        """
        with self._wake:
            hits = next((hits for hits in self._searches if hits.query == query), None)
            if hits is None:
                hits = Hits(query)
                self._searches = [*self._searches, hits][-_SEARCHES:]
                self._wake.notify()
            return hits

    def _search_anew(self) -> None:
        """Restart all searches, since the rows have changed."""
        self._searches = [Hits(hits.query) for hits in self._searches]

    def _searching(self) -> Hits | None:
        """Return the search to go on with."""
        return next(
            (hits for hits in reversed(self._searches) if not hits.complete), None
        )

    def waits(self) -> bool:
        """Return True if there is something to read or to search."""
        return self._searching() is not None


class MemoryPage(SamplePage):
    """Samples that are kept in memory."""

    def __init__(self, place: Place, wake: threading.Condition) -> None:
        super().__init__(place, wake)
        self.complete = True
        self._samples: Sequence[Sample] = ()
        self._facts: list[SampleFacts] = []

    def show(self, samples: Sequence[Sample]) -> None:
        """Replace the samples, mostly by the same ones and more."""
        known = self._samples
        if known and (len(samples) < len(known) or samples[0] is not known[0]):
            self._facts = []
        if len(samples) != len(self._facts):
            self._search_anew()
        self._facts.extend(
            _fact(samples[i], i) for i in range(len(self._facts), len(samples))
        )
        self._samples = samples
        self.facts = self._facts
        self.count = len(samples)

    def sample(self, index: int) -> Sample | None:
        """Return a sample."""
        if 0 <= index < len(self._samples):
            return self._samples[index]
        return None

    def read_on(self) -> bool:
        """Search a little."""
        hits = self._searching()
        samples = self._samples
        if hits is not None:
            stop = min(len(samples), hits.searched + _SLICE)
            hits.look((i, all_text(samples[i])) for i in range(hits.searched, stop))
            hits.complete = stop == len(samples)
        return True


def _fact(sample: Sample, index: int) -> SampleFacts:
    found = {
        key: number(value) for key, value in sample.extras.items() if value is not None
    }
    numbers = {key: value for key, value in found.items() if value is not None}
    group = sample.group or group_of(sample.prompt)
    return SampleFacts(
        index, sample.score, group, len(sample.response), numbers, sample.validation
    )
