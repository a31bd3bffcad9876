"""A file of one format as a source of records, followed as it grows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from verl_tui.given_files import why
from verl_tui.records import Record, Records, Restart, SourceStatus, digest
from verl_tui.sources.files import CHUNK, Chunk, Source, Tail
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

_APPENDED = {".log", ".jsonl", ".out", ".err", ".txt", ""}
"""Suffixes of texts to which lines are appended."""
FIRST = 4096
"""Bytes of a log's first line by which it is known."""


class FileSource(Source):
    """A file of one format, followed as it grows."""

    def __init__(
        self,
        path: Path,
        format: Format,
        chunk: int = CHUNK,
        tail: Tail | None = None,
    ) -> None:
        super().__init__(path)
        self._format = format
        self._chunk = chunk
        """Bytes that are read at once."""
        self._tail = tail or Tail(path)
        self._reader = format.reader(path)
        self.first = b""
        """Its first bytes."""
        self._origin = ""
        """What it is known by, once that is certain."""

    @property
    def note(self) -> str | None:
        """Return a remark on its figures, None without one."""
        if not self.moved:
            return self._reader.note
        moved = f"moved while it was written: read as {one_line(self.moved.name)}"
        return "; ".join(filter(None, (moved, self._reader.note)))

    def read(self) -> tuple[Records, bool]:
        """Return the records of the next bytes, and whether more wait."""
        try:
            chunk = self._next()
        except OSError as error:
            self._problem = why(error)
            return (), False
        self._problem, self.moved = None, self._tail.moved
        again: Sequence[Record] = ()
        if chunk.restarted is not None:
            self.first = b""
            if not self._reader.goes_on():
                self._reader = self._format.reader(self.path)
                again = (Restart(chunk.restarted),)
        self.first += chunk.data[: FIRST - len(self.first)]
        records = (*again, *self._reader.feed(chunk.data))
        return self.counted(records), chunk.more

    def finish(self) -> Records:
        """Return what only waits for its end."""
        return self.counted(self._reader.finish())

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        decoder = getattr(self._reader, "decoder", None)
        status = super().status()
        return status._replace(
            format=self._format.name,
            rank=self._format.rank,
            bytes_read=self._tail.offset,
            size=self._tail.size,
            modified=self._tail.modified,
            absolute=getattr(self._format, "absolute", False),
            program=getattr(decoder, "program", None),
            origin=self._known_by() if self._format.anchor else "",
            counts_steps=getattr(decoder, "counts_most", False),
            unread_form=getattr(decoder, "unread_form", ""),
            findings=getattr(self._reader, "findings", ()),
        )

    def _known_by(self) -> str:
        """Return what it is known by: its place, and of a log to which lines are appended the first
        one, once that is complete. Other files are rewritten as they grow, or are no text, or it is
        one of several runs in a file.
        """
        if self._origin:
            return self._origin
        is_text = self.path.suffix.lower() in _APPENDED and self._tail.path == self.path
        line, end, _ = self.first.partition(b"\n")
        whole = bool(end) or len(self.first) == FIRST
        line = line if is_text and whole else b""
        origin = digest(self._place, line.decode("latin-1"))
        self._origin = origin if whole or not is_text else ""
        return origin

    @property
    def _place(self) -> str:
        return os.path.realpath(self.path)

    def _next(self) -> Chunk:
        """Read the next bytes; raise OSError where that cannot be done."""
        return self._tail.read(self._chunk)
