"""A directory of dumps: which steps it holds, and figures of their samples. The samples themselves
stay on disk.

A run leaves a dump of tens of MB at each step. So the directory is listed and little is read: the
newest dumps whole, of older ones a part, one at a time, newest first, as much as `BUDGET` allows.
New dumps are read as they are written.
"""

from __future__ import annotations

import math
import os
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from verl_tui.evaluation import LOOKED_AT, Evaluation
from verl_tui.given_files import why
from verl_tui.records import (
    Dump,
    Record,
    Records,
    Restart,
    Sample,
    SampleFacts,
    Unreadable,
)
from verl_tui.sources.fields.jsonl import Fields, objects, unreadable
from verl_tui.sources.fields.sample import (
    is_padding,
    is_validation,
    read_fact,
    read_sample,
)
from verl_tui.sources.fields.sample_figures import figure_records
from verl_tui.sources.files import is_folder, opened
from verl_tui.sources.folders.step_files import Stamp, StepFolder
from verl_tui.sources.formats import rollouts
from verl_tui.sources.formats.lines import LONGEST_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from verl_tui.trainers import SampleFiles


BLOCK = 2**20
"""Bytes looked at in one go: a few milliseconds."""
LONGEST_SHOWN = 200_000
"""Characters kept of the prompt and of the response of a row that is shown: 32k tokens and
more.
"""


class _Row(NamedTuple):
    """Where a row stands."""

    path: Path
    line: int
    """Number of its line."""
    start: int
    end: int
    """Its first byte, and the one after its last."""


class DumpFile:
    """The samples of a step: a file with one on each line, or a folder with several files. A row is
    a line that is neither blank nor pads the batch; one without an end has to be whole.

    Every method may raise OSError: a file is gone, or may not be read.
    """

    def __init__(
        self, path: Path | str, step: int, *, validation: bool = False
    ) -> None:
        self.path = Path(path)
        self.step = step
        self.validation = validation
        self.generation = 0
        """Grows when rows known before are gone: the file has started over, or a line goes on that
        was taken without its end.
        """
        self.offset = self.size = 0
        """Bytes looked at, and all there were then."""
        self._rows: list[_Row] = []

    @property
    def complete(self) -> bool:
        """True if all rows are known, as far as the file went when it was last looked at."""
        return self.offset >= self.size

    @property
    def count_so_far(self) -> int:
        """Rows known so far."""
        return len(self._rows)

    def index(self, limit: float = math.inf) -> None:
        """Find the rows again, those that begin in so many bytes of a file."""
        known, self._rows = self._rows, []
        self.offset = self.size = 0
        layout, paths = rollouts.files_in(self.path)
        for path in paths or (self.path,):
            with opened(path, BLOCK) as file:
                size = os.fstat(file.fileno()).st_size
                head = os.pread(file.fileno(), LONGEST_LINE, 0) if paths else b""
                held = not paths or rollouts.holds(head, layout)
                self.offset += self._find(path, file, limit) if held else size
                self.size += size
        self.generation += self._rows[: len(known)] != known

    def _find(self, path: Path, file: BinaryIO, limit: float) -> int:
        """Note the rows of a file that begin in so many bytes; return how many bytes were read."""
        whole = path.suffix == ".json"  # a document is one line
        read = file.read if whole else file.readline
        at = 0
        for number in count(1):
            line = read(LONGEST_LINE + 1) if at < limit else b""
            if not line:
                break
            end = at + len(line)
            if _is_row(line, whole=whole):
                self._rows.append(_Row(path, number, at, end - line.endswith(b"\n")))
            at = end
        return at

    def span(self, start: int, size: int = BLOCK) -> int:
        """Return where to stop so that the rows from `start` are about `size` bytes, and one at
        least.
        """
        stop = start
        while stop < len(self._rows) and size > 0:
            size -= self._rows[stop].end - self._rows[stop].start
            stop += 1
        return stop

    def row(self, index: int) -> Sample | Unreadable:
        """Return a row with all its text."""
        ((_, _, record),) = self._read((index,))
        if isinstance(record, Unreadable):
            return record
        longest = LONGEST_SHOWN
        sample = read_sample(
            record, self.step, validation=self.validation, longest=longest
        )
        return sample or self._no_sample(index)

    def facts(self, start: int, stop: int) -> list[SampleFacts]:
        """Return what can be said of rows without their text; of an unreadable one, nothing."""
        return [
            SampleFacts(at, None, None, 0, {}, self.validation)
            if isinstance(fact, Unreadable)
            else fact
            for at, fact in enumerate(self.facts_or_flaws(start, stop), start)
        ]

    def facts_or_flaws(
        self, start: int, stop: int
    ) -> Iterator[SampleFacts | Unreadable]:
        """Yield what can be said of each row without its text, or why it cannot be read."""
        for index, _, record in self._read(range(len(self._rows))[start:stop]):
            if isinstance(record, Unreadable):
                yield record
            else:
                fact = read_fact(record, index, validation=self.validation)
                yield fact or self._no_sample(index)

    def lines(self, indices: Iterable[int]) -> Iterator[bytes | None]:
        """Yield rows to the byte as they stand in the file, without the line's end; None for one
        that is not JSON.
        """
        for _, line, record in self._read(indices):
            yield None if isinstance(record, Unreadable) else line

    def _read(
        self, indices: Iterable[int]
    ) -> Iterator[tuple[int, bytes, Fields | Unreadable]]:
        """Yield indices of rows, their bytes, and what stands in them."""
        for path, there in groupby(indices, lambda index: self._rows[index].path):
            with opened(path) as file:
                for index in there:
                    _, number, start, end = self._rows[index]
                    if end - start > LONGEST_LINE:
                        reason = f"longer than {LONGEST_LINE >> 20} MiB"
                        yield index, b"", Unreadable(number, reason, "")
                        continue
                    line = os.pread(file.fileno(), end - start, start)
                    try:
                        yield index, line, objects(line)[0]
                    except ValueError as error:
                        yield index, line, unreadable(line, number, str(error))

    def _no_sample(self, index: int) -> Unreadable:
        return Unreadable(self._rows[index].line, "no prompt and response", "")


def _is_row(line: bytes, *, whole: bool) -> bool:
    """Return whether a line is a row, `whole` if it is so without an end."""
    ended = whole or line.endswith(b"\n") or len(line) > LONGEST_LINE
    pads = b'"pad' in line and is_padding(_object(line))
    return bool(line.strip()) and not pads and (ended or bool(_object(line)))


def _object(line: bytes) -> Fields:
    """Return the object on a line, an empty one where it is broken."""
    try:
        return objects(line)[0]
    except ValueError:
        return {}


WHOLE = 64 * 2**20
"""Most bytes of one dump that its figures are made of, the first ones."""
BUDGET = 2**30
"""Bytes read for figures of all the dumps that are found at once, at the start above all."""
LEAST = 2**20
"""Fewest bytes of a dump that make figures worth showing; if the budget allows fewer for each, some
have none.
"""
_BUSY_READS = 32
"""Reads after which the directory is listed again while there is still something to read."""
_REPORTED_UNREADABLE = 1000
"""Unreadable rows handed on one by one; further ones are only counted."""


class _Seen(NamedTuple):
    """What a dump held when its figures were made."""

    stamp: Stamp
    records: int
    unreadable: int
    size: int
    """Bytes that were read."""


class DumpSource(StepFolder):
    """All dumps of a directory, or a single one that was named. Its size is what is read for
    figures, not all that is there.
    """

    format = rollouts.name
    rank = rollouts.rank

    def __init__(self, path: Path) -> None:
        place = None if is_folder(path) else rollouts.place_of(path)
        layout, step = place or (_layout_in(path), None)
        directory, only = (step.parent, step.name) if step else (path, "")
        # stands for all dumps of the directory in the name of the source
        every = directory / f"*{Path(layout.inner or 'all.jsonl').suffix}"
        super().__init__(
            every if step is None else path,
            lambda name: rollouts.step_in(
                name if only in ("", name) else "", (layout,)
            ),
            "" if "*" in layout.inner else layout.inner,
        )
        self.directory = directory
        named = layout.validation == "named" and is_validation(directory.name)
        self.validation = named or layout.validation == "always"
        self._limits: dict[int, int] = {}
        """Most bytes to read of each dump for its figures; of others none."""
        self._seen: dict[int, _Seen] = {}
        self._reads = self._order = 0

    def read(self) -> tuple[Records, bool]:
        """Return which dumps have come, changed or gone, and the figures of what was read; and
        whether more waits.
        """
        records: list[Record] = []
        if not self._waiting or self._reads % _BUSY_READS == 0:
            records += self._watch()
        self._reads += 1
        records += self._next()
        seen = self._seen.values()
        self._bytes = sum(one.size for one in seen)
        self._records = sum(one.records for one in seen)
        self._unreadable = sum(one.unreadable for one in seen)
        return tuple(records), bool(self._waiting)

    def _size(self, step: int) -> int:
        return min(super()._size(step), self._limits.get(step, 0))

    def _watch(self) -> Iterator[Dump]:
        """Yield the dumps that have come, changed or gone, newest first; have them read for their
        figures.
        """
        before = self._names
        changes = self.changes()
        sizes = {step: stamp.size for step, stamp in changes.items() if stamp}
        limits = plan(sizes)
        self._note = _reading_note(sizes, limits) or self._note
        names = {**before, **self._names}
        for step, stamp in changes.items():
            path = str(self.directory / names[step] / self._inner)
            if not stamp:
                yield Dump(step, path, self.validation, 0, removed=True)
                continue
            self._limits[step] = self._limits.get(step) or limits[step]
            seconds = stamp.modified / 1e9
            yield Dump(step, path, self.validation, stamp.size, modified=seconds)
        self._wait_for(step for step in sizes if self._limits[step])

    def _file(self, step: int) -> Iterator[Record]:
        """Yield the figures of a dump, and what cannot be read of it that was not said before. One
        that grows is read again: most are written at once.
        """
        stamp, limit = self.stamps[step], self._limits[step]
        before = self._seen.get(step, _Seen(stamp, 0, 0, 0))
        file = DumpFile(self.step_path(step), step, validation=self.validation)
        evaluation, flaws = _evaluated(file, limit)
        self._seen[step] = _Seen(stamp, evaluation.count, len(flaws), file.offset)
        if stamp.inode != before.stamp.inode or stamp.size < before.stamp.size:
            yield Restart("dump written again", step, self.validation)
        for flaw in flaws[before.unreadable : _REPORTED_UNREADABLE]:
            yield flaw._replace(reason=f"{file.path.name}: {flaw.reason}")
        told = evaluation.count == before.records and stamp.size > before.stamp.size
        if told or not evaluation.count:
            return
        partial = limit <= file.offset < file.size  # by intention
        share = file.offset / file.size if partial else 1.0
        self._order += 1
        place = self.validation, step
        yield from figure_records(evaluation, place, self._order, share)


def _evaluated(file: DumpFile, limit: int) -> tuple[Evaluation, list[Unreadable]]:
    """Return the figures of a dump's first bytes, and its rows that cannot be read."""
    evaluation, flaws = Evaluation(), list[Unreadable]()
    try:
        file.index(limit)
        for fact in file.facts_or_flaws(0, file.count_so_far):
            if isinstance(fact, Unreadable):
                flaws.append(fact)
                continue
            looked_at = evaluation.count < LOOKED_AT
            row = file.row(fact.index) if looked_at else None
            response = row.response if isinstance(row, Sample) else None
            known = fact.score, fact.group, fact.length, fact.numbers
            evaluation.add(*known, response)
    except OSError as error:
        flaws.append(Unreadable(1, why(error), ""))
    return evaluation, flaws


def _layout_in(directory: Path) -> SampleFiles:
    """Return how the dumps lie in a directory, as verl's do where there is none yet."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 - only names are needed
    except OSError:
        names = []
    return rollouts.layout_in(directory, names) or rollouts.VERL


def plan(sizes: Mapping[int, int]) -> dict[int, int]:
    """Return how many bytes are read for figures of each of the dumps that are found at once, given
    their bytes by step: the beginning of one is a sample of its rows.
    """
    if sum(min(size, WHOLE) for size in sizes.values()) <= BUDGET:
        return dict.fromkeys(sizes, WHOLE)
    stride = -(-len(sizes) // (BUDGET // LEAST))
    kept = sorted(sizes, reverse=True)[::stride]
    limit = min(WHOLE, BUDGET // len(kept))
    return {step: limit if step in kept else 0 for step in sizes}


def _reading_note(sizes: Mapping[int, int], limits: Mapping[int, int]) -> str | None:
    """Return a sentence on what is read for figures, None if that is everything."""
    whole = sum(sizes[step] <= limit for step, limit in limits.items())
    none = sum(not limit and sizes[step] > 0 for step, limit in limits.items())
    part = len(limits) - whole - none
    if part or none:
        return f"read for figures: {whole:,} whole, {part:,} in part, {none:,} not"
    return None
