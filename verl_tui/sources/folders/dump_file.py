"""One dump of samples: where its rows lie, and what stands in those that are asked for. Never held
in memory.
"""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.records import Sample, SampleFacts, Unreadable
from verl_tui.sources.fields.jsonl import objects, unreadable
from verl_tui.sources.fields.sample import all_text, is_padding, read_fact, read_sample
from verl_tui.sources.files.tail import Tail, opened
from verl_tui.sources.formats import rollouts
from verl_tui.sources.formats.lines import LONGEST_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    """A file of one sample a line, that may still grow. A row is a line that is neither blank nor
    pads the batch.

    Every method may raise OSError: the file is gone, or may not be read.
    """

    def __init__(
        self, path: Path | str, step: int, *, validation: bool = False
    ) -> None:
        self.path = Path(path)
        self.step = step
        self.validation = validation
        self.complete = False
        """True if all rows are known, as far as the file went when it was last looked at."""
        self.generation = 0
        """Grows when rows known before are no more: the file has begun anew, or a line goes on that
        was taken without its end.
        """
        self.offset = self.size = 0
        """Bytes looked at so far, and all there were then."""
        self._tail = Tail(self.path)
        self._begin()

    def _begin(self) -> None:
        self._rows: list[_Row] = []
        self._line = 1
        """Number of the line that is being read."""
        self._partial = b""
        """Its beginning, as far as it has been read; not more than the longest line."""
        self._at = 0
        """Its first byte."""
        self._is_unended = False
        """True if the last line was taken as a row without its end."""

    @property
    def count_so_far(self) -> int:
        """Rows known so far."""
        return len(self._rows)

    def index(self, limit: int = BLOCK) -> bool:
        """Find the rows in the next bytes; return whether more bytes wait."""
        chunk = self._tail.read(limit)
        self.offset, self.size = self._tail.offset, self._tail.size
        if chunk.restarted is not None:
            self.generation += 1
            self._begin()
        data = chunk.data
        if self._is_unended and data:
            # the last line was taken without its end: it goes on, unless that is all that came
            self._is_unended = False
            self._rows.pop()
            self.generation += bool(data.partition(b"\n")[0].strip())
        at, base = 0, self.offset - len(data)
        while (end := data.find(b"\n", at)) >= 0:
            self._take(self.path, self._partial + data[at:end], base + end)
            at, self._partial = end + 1, b""
            self._at = base + at
            self._line += 1
        self._partial += data[at:][: max(0, LONGEST_LINE + 1 - len(self._partial))]
        self.complete = not chunk.more
        whole = self._partial.rstrip().endswith(b"}") and bool(_object(self._partial))
        if self.complete and whole and not self._is_unended:
            self._is_unended = self._take(self.path, self._partial, self.offset)
        return chunk.more

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

    def texts(self, start: int, stop: int) -> Iterator[tuple[int, Iterator[str]]]:
        """Yield the index of each row with all its texts."""
        for index, _, record in self._read(range(len(self._rows))[start:stop]):
            if isinstance(record, Unreadable):
                yield index, iter((record.excerpt,))
            else:
                yield index, all_text(record)

    def lines(self, indices: Iterable[int]) -> Iterator[bytes | None]:
        """Yield rows to the byte as they stand in the file, without the line's end; None for one
        that is not JSON.
        """
        for _, line, record in self._read(indices):
            yield None if isinstance(record, Unreadable) else line

    def _read(
        self, indices: Iterable[int]
    ) -> Iterator[tuple[int, bytes, dict[str, Any] | Unreadable]]:
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

    def _take(self, path: Path, line: bytes, end: int) -> bool:
        """Note the line that ends here, if it is a row; return whether it is."""
        pads = b'"pad' in line and is_padding(_object(line))
        row = end - self._at > LONGEST_LINE or not (not line.strip() or pads)
        if row:
            self._rows.append(_Row(path, self._line, self._at, end))
        return row


class DumpFolder(DumpFile):
    """A folder with a file for each sample or prompt: of JSON one sample, of JSON lines several."""

    _files: tuple[tuple[Path, int], ...] = ()
    """Each with its size."""

    def index(self, limit: int = BLOCK) -> bool:  # noqa: ARG002 - the files are small
        """Find the rows of all files; more never wait."""
        layout, paths = rollouts.files_in(self.path)
        found = tuple((path, path.stat().st_size) for path in paths)
        known, self._files = self._files, found
        if found[: len(known)] != known:
            self.generation += 1
            self._begin()
            known = ()
        for path, _ in found[len(known) :]:
            with opened(path) as file:
                text = file.read(LONGEST_LINE)
            # a document of JSON is one line
            lines = [text] if path.suffix == ".json" else text.splitlines(keepends=True)
            self._at = 0
            for self._line, line in enumerate(lines, 1):
                if rollouts.holds(text, layout):
                    self._take(path, line, self._at + len(line))
                self._at += len(line)
        self.offset = self.size = sum(size for _, size in found)
        self.complete = True
        return False


def dump_at(path: Path | str, step: int, *, validation: bool = False) -> DumpFile:
    """Return the dump of a step: a file with a sample a line, or a folder with several files."""
    kind = DumpFolder if rollouts.files_in(Path(path))[1] else DumpFile
    return kind(path, step, validation=validation)


def _object(line: bytes) -> dict[str, Any]:
    """Return the object on a line, an empty one where it is broken."""
    try:
        return objects(line)[0]
    except ValueError:
        return {}
