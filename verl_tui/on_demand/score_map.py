"""The scores of each prompt at each step, read a little at a time, the newest step first; of texts
only a part of each prompt is kept.
"""

from __future__ import annotations

from functools import partial
from math import isfinite, nan
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import mean
from verl_tui.on_demand.samples import SLICE, KeptRows
from verl_tui.on_demand.worker import Job
from verl_tui.patterns import pattern
from verl_tui.records import Sample
from verl_tui.sources.folders.dumps import DumpFile
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.runs.samples import Place, Samples

    Rows = DumpFile | KeptRows
    Opener = tuple[object, Callable[[], Rows]]

BUDGET = 2**30
"""Bytes read of dumps, those of the newest steps; of the newest step all."""
MOST_CELLS = 100_000
"""Prompts at steps after which no older step is read: some 60 MB."""
_WORDS = 200
"""Characters kept of a prompt, from a little before those on in which it differs from another."""
_BREAK = pattern(r"[\s<]")
_LED, _LOOKED_AT = 24, 20_000
"""Characters before those that are kept, and most characters that are compared."""


class Cell(NamedTuple):
    """The responses to a prompt at a step."""

    first: int
    """Index of the first one."""
    responses: int
    mean: float
    """The mean of the finite scores, NaN without any."""


class ScoreMap(Job):
    """The scores as far as they are known: a step is in here once it has been read whole."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        """Prompt -> a part of its text, in which it differs from others."""
        self.scores: list[float] = []
        """Finite scores: the two lowest, which differ, and the highest."""
        self.there = 0
        """Steps with samples, read or not."""
        self.wanted: dict[Place, Opener] = {}
        """Steps to read, the newest first: what changes when a step does, and what opens it."""
        self.failed: set[Place] = set()
        """Steps that cannot be read whole."""
        self.revision = 0
        """Grows with every step that is read."""
        self._seen = -1
        self._read: dict[Place, object] = {}
        """What is known of the steps that have been read."""
        self._cells: dict[int, dict[str, Cell]] = {}
        self._other = ("", "")
        """The prompt that was read before, and its text."""
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
        wanted: dict[Place, Opener] = {}
        for place in reversed(places):
            dump, kept = samples.dump(place), samples.kept(place)
            left -= dump.size if dump else 0
            if wanted and left < 0:
                break
            if not dump:
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
            if not step:
                yield False
                continue
            place, stamp, opened = step
            rated: dict[str, tuple[int, list[float | None]]] = {}
            self.failed.discard(place)
            try:
                rows, start = opened(), 0
                rows.index()
                while start < rows.count_so_far:
                    if len(rated) >= MOST_CELLS:
                        raise OSError("too many prompts")
                    stop = rows.span(start, SLICE)
                    for fact in rows.facts(start, stop):
                        if fact.prompt is not None:
                            self._name(fact.prompt, rows, fact.index)
                            known = rated.setdefault(fact.prompt, (fact.index, []))
                            known[1].append(fact.score)
                    start = stop
                    yield False
            except OSError:
                self.failed.add(place)
            self._cells[place.step] = {
                name: Cell(first, len(scores), self._mean(scores))
                for name, (first, scores) in rated.items()
            }
            self._read[place] = stamp
            self.revision += 1
            yield True

    def _name(self, name: str, rows: Rows, index: int) -> None:
        """Name a new prompt, and the one before it, by how they differ: many begin alike."""
        if name in self.words:
            return
        row = rows.row(index)
        text = row.prompt[:_LOOKED_AT] if isinstance(row, Sample) else ""
        both = self._other, (name, text)
        head, tail = (
            len(commonprefix([words[::way] for _, words in both]))  # noqa: RUF071 - no paths
            for way in (1, -1)
        )
        for one, words in both:
            near = words.rfind(" ", 0, max(0, head - _LED))
            begin = max(near, words.rfind("\n", 0, head)) + 1
            end = _BREAK.search(words, max(begin + 1, len(words) - tail))
            told = words[begin : end.start() if end else None]
            self.words[one] = one_line(told, _WORDS)
        self._other = name, text

    def _mean(self, scores: list[float | None]) -> float:
        known = [one for one in scores if one is not None and isfinite(one)]
        if not {*known} <= {*self.scores}:
            found = sorted({*known, *self.scores})
            self.scores = found[:2] + found[2:][-1:]
        return mean(known) if known else nan
