"""The samples of one step, read at once for what is written down: an answer, a report, a bundle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.records import Sample
from verl_tui.sources.folders.dumps import dump_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.records import SampleFacts, Unreadable
    from verl_tui.runs.samples import Place, Samples


class StepSamples:
    """Samples in memory or in a dump, of which only those asked for are decoded whole."""

    def __init__(
        self,
        samples: Samples,
        place: Place,
        *,
        rows: float = math.inf,
        size: float = math.inf,
    ) -> None:
        """Find them.

        Args:
            samples: Those of the run.
            place: The step.
            rows: How many are enough.
            size: Bytes of a dump that are enough.

        Raises:
            OSError: The dump cannot be read.
        """
        self.place = place
        self.complete = True
        """True if all were found, not only enough."""
        dump = samples.dump(place)
        self._kept = samples.kept(place) if dump is None else ()
        self._file = None
        if dump is not None:
            file = dump_at(dump.path, dump.step, validation=dump.validation)
            while file.index() and file.count_so_far < rows and file.offset < size:
                pass
            self._file = file
            self.complete = file.complete

    def __len__(self) -> int:
        return len(self._kept) if self._file is None else self._file.count_so_far

    def scores(self) -> Iterator[float | None]:
        """Yield the score of each sample."""
        if self._file is None:
            yield from (sample.score for sample in self._kept)
            return
        start = 0
        while start < len(self):
            stop = self._file.span(start)
            facts: Sequence[SampleFacts] = self._file.facts(start, stop)
            yield from (fact.score for fact in facts)
            start = stop

    def row(self, index: int) -> Sample | Unreadable:
        """Return a sample, or why it cannot be read."""
        return self._kept[index] if self._file is None else self._file.row(index)

    def first(self, most: int) -> list[Sample]:
        """Return the first samples that can be read, so many at most."""
        rows = map(self.row, range(min(most, len(self))))
        return [row for row in rows if isinstance(row, Sample)]
