"""The end of a long log: its newest steps, without reading the earlier ones.

It reads the beginning, for settings and the length of the run, and a number of bytes at the end.
Only logs whose records state their steps can be read in this way; for others, `counts_steps` is
true after reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.files.tail import Chunk, Tail
from verl_tui.sources.parts import LogParts, PartSteps
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.formats.format import PartedFormat, PartReader


class EndSource(FileSource):
    """The beginning of a log, for facts about the whole run, and its end."""

    def __init__(
        self, path: Path, format: PartedFormat, ordinal: int, wanted: int
    ) -> None:
        """Read nothing yet.

        Args:
            path: A log that is not compressed.
            format: Its format.
            ordinal: Its place among the run's sources.
            wanted: Bytes to read at its end.
        """
        self._end = Tail(path)
        super().__init__(path, format, ordinal, tail=self._end)
        self._wanted = wanted
        self.parts = LogParts(path, format)
        """The log, for parts before its end."""
        self._steps = PartSteps(self.parts.cut)
        self._part: PartReader | None = None
        """Reads its end; None before that was found."""
        self._beginning: tuple[Record, ...] = ()
        self.start = 0
        """The byte at which its end begins; 0 if the whole file is read."""

    @property
    def cost(self) -> int:
        """Bytes read so far."""
        return self.parts.cost + max(0, self._end.offset - self.start)

    @property
    def complete_from(self) -> int | None:
        """The first step that is complete in the part that is read, None if unknown."""
        return self._steps.complete_from

    @property
    def has_rows(self) -> bool:
        """True if there were numbers in the part that is read."""
        return self._steps.has_rows

    @property
    def needs_beginning(self) -> bool:
        """True if its steps depend on records before the part that is read."""
        part = self._part
        return self._steps.estimated or (part is not None and part.needs_beginning)

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the records of the next bytes, and whether more wait."""
        records, more = super().read()
        self._steps.note(records)
        records = (*self._beginning, *records)
        self._beginning = ()
        return records, more

    def finish(self) -> tuple[Record, ...]:
        """Return what only waits for its end."""
        records = super().finish()
        self._steps.note(records)
        return records

    def _next(self) -> Chunk:
        if self._part is None and not self._begin():
            return Chunk(b"")
        return super()._next()

    def _begin(self) -> bool:
        """Find where the end begins; false where no record begins among the bytes wanted, as far as
        the file goes now.
        """
        size = self.path.stat().st_size
        found = self.parts.begin(size - self._wanted, size)
        self.start = self._end.offset = size if found is None else found
        if found is None:
            self._end.size = size
            return False
        self._reader = self._part = self.parts.reader(self.start)
        if self.start:
            self._beginning = tuple(self.parts.beginning)
        return True
