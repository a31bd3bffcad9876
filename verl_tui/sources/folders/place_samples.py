"""The samples of one step of a run, in memory or in a dump; only those asked for are decoded
whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import Sample
from verl_tui.sources.folders.dump_file import dump_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.records import SampleFacts
    from verl_tui.runs.samples import Place, Samples


class PlaceSamples:
    """The samples of a place.

    Raises:
        OSError: Its dump cannot be read.
    """

    def __init__(self, samples: Samples, place: Place) -> None:
        self.place = place
        dump = samples.dump(place)
        self._kept = samples.kept(place) if dump is None else ()
        self._file = None
        if dump is not None:
            self._file = dump_at(dump.path, dump.step, validation=dump.validation)
            while self._file.index():
                pass

    def __len__(self) -> int:
        return len(self._kept) if self._file is None else self._file.count_so_far

    def scores(self) -> Iterator[tuple[float | None, int]]:
        """Yield the score of each sample with its index."""
        if self._file is None:
            yield from ((sample.score, at) for at, sample in enumerate(self._kept))
            return
        start = 0
        while start < len(self):
            stop = self._file.span(start)
            facts: Sequence[SampleFacts] = self._file.facts(start, stop)
            yield from ((fact.score, fact.index) for fact in facts)
            start = stop

    def sample(self, index: int) -> Sample | None:
        """Return a sample, None for a row that cannot be read."""
        if self._file is None:
            return self._kept[index]
        row = self._file.row(index)
        return row if isinstance(row, Sample) else None

    def first(self, most: int) -> list[Sample]:
        """Return the first samples that can be read, so many at most."""
        rows = map(self.sample, range(min(most, len(self))))
        return [row for row in rows if row is not None]
