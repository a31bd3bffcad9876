"""The scores of each prompt at each step, read a little at a time, the newest step first; of texts
only the ends of prompts are kept.
"""

from __future__ import annotations

from array import array
from functools import partial
from math import isfinite, nan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.on_demand.samples import SLICE, KeptRows
from verl_tui.on_demand.worker import Job
from verl_tui.records import Sample
from verl_tui.sources.folders.dumps import DumpFile
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.records import SampleFacts
    from verl_tui.runs.samples import Place, Samples

    Rows = DumpFile | KeptRows

BUDGET = 2**30
"""Bytes read of dumps, those of the newest steps; of the newest step all."""
MOST_CELLS = 100_000
"""Prompts at steps after which no older step is read: some 60 MB."""
_WORDS = 400
"""Characters kept of a prompt: questions stand at its end."""


class Cell(NamedTuple):
    """The responses to a prompt at a step."""

    first: int
    """Index of the first one."""
    scores: array[float]
    """Their scores, NaN for one without."""


class ScoreMap(Job):
    """The scores as far as they are known: a step is in here once it has been read whole."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        """Prompt -> the end of its text."""
        self.scores: list[float] = []
        """Finite scores: the two lowest, which differ, and the highest."""
        self.there = 0
        """Steps with samples, read or not."""
        self.wanted: dict[Place, tuple[object, Callable[[], Rows]]] = {}
        """Steps to read, the newest first: what changes when a step does, and what opens it."""
        self.failed: set[Place] = set()
        """Steps that cannot be read."""
        self.revision = 0
        """Grows with every step that is read."""
        self._seen = -1
        self._read: dict[Place, object] = {}
        """What is known of the steps that have been read."""
        self._cells: dict[int, dict[str, Cell]] = {}
        self._work = self._reading()

    @property
    def steps(self) -> dict[int, dict[str, Cell]]:
        """Step -> prompt -> its responses; ascending."""
        there = sorted(place.step for place in self.wanted)
        return {step: self._cells[step] for step in there if step in self._cells}

    def show(self, samples: Samples, *, validation: bool) -> bool:
        """Look for steps that are new or have changed, of validations or of training; return
        whether there may be some.
        """
        if samples.revision == self._seen:
            return False
        self._seen = samples.revision
        places = [one for one in samples.places if one.validation is validation]
        self.there, left = len(places), BUDGET
        wanted: dict[Place, tuple[object, Callable[[], Rows]]] = {}
        for place in reversed(places):
            dump, kept = samples.dump(place), samples.kept(place)
            left -= dump.size if dump is not None else 0
            if wanted and left < 0:
                break
            if dump is None:
                known = len(kept), *map(id, kept[-1:])
                wanted[place] = known, partial(KeptRows, kept)
            else:
                file = partial(DumpFile, dump.path, place.step, validation=validation)
                wanted[place] = dump, file
        self.wanted = wanted
        return True

    def _next(self) -> tuple[Place, object, Callable[[], Rows]] | None:
        """Return the newest step to read."""
        read = self._read
        full = sum(map(len, [*self._cells.values()])) >= MOST_CELLS
        for place, (known, opened) in self.wanted.items():
            if read.get(place) != known and not (full and place not in read):
                return place, known, opened
        return None

    def waits(self) -> bool:
        """Return True if there is a step to read."""
        return self._next() is not None

    def read_on(self) -> bool:
        """Read a little, in the thread; return True if a step has been read whole."""
        return next(self._work)

    def _reading(self) -> Iterator[bool]:
        """Read step after step, a slice at a time."""
        while True:
            step = self._next()
            if step is None:
                yield False
                continue
            place, known, opened = step
            cells: dict[str, Cell] = {}
            self.failed.discard(place)
            try:
                rows, start = opened(), 0
                rows.index()
                while start < rows.count_so_far:
                    stop = rows.span(start, SLICE)
                    for fact in rows.facts(start, stop):
                        self._add(cells, fact, rows)
                    start = stop
                    yield False
            except OSError:
                self.failed.add(place)
            self._cells[place.step] = cells
            self._read[place] = known
            self.revision += 1
            yield True

    def _add(self, cells: dict[str, Cell], fact: SampleFacts, rows: Rows) -> None:
        name, score = fact.prompt, fact.score
        if name is None:
            return
        if name not in self.words:
            row = rows.row(fact.index)
            prompt = row.prompt if isinstance(row, Sample) else ""
            self.words[name] = one_line(prompt[-_WORDS:], _WORDS)
        cell = cells.setdefault(name, Cell(fact.index, array("d")))
        cell.scores.append(nan if score is None else score)
        if score is not None and isfinite(score) and score not in self.scores:
            found = sorted((*self.scores, score))
            self.scores = found[:2] + found[2:][-1:]
