"""A source: where records of one run come from. Read by one thread, a bounded amount at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from verl_tui.records import Record, Restart, SourceStatus, Unreadable
from verl_tui.sources.figures import Figures
from verl_tui.sources.gather import Gather
from verl_tui.sources.tail import CHUNK, LONGEST_LINE, Tail

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.sources.format import Decoder, Format

_TOLD_UNREADABLE = 1000
"""Unreadable lines handed on one by one; further ones are only counted, a binary file has millions."""


class Source(Protocol):
    """Where records of one run come from."""

    path: Path

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait to be read at once. Never raises for what a file holds."""
        ...

    def finish(self) -> tuple[Record, ...]:
        """Return what only waits for a line end: nobody will look at this file again."""
        ...

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        ...


class LineSource:
    """A text file of one format, followed as it grows."""

    def __init__(self, path: Path, format: Format, ordinal: int = 0, chunk: int = CHUNK) -> None:
        self.path = path
        self.format = format
        self.ordinal = ordinal
        self._chunk = chunk
        self._tail = Tail(path)
        self._decoder: Decoder = format.decoder(path)
        self._gather = Gather()
        self._figures = Figures()
        self._records = 0
        self._unreadable = 0
        self._problem: str | None = None

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the records of the next lines, and whether more wait."""
        try:
            chunk = self._tail.read(self._chunk)
        except OSError as error:
            self._problem = os.strerror(error.errno).lower() if error.errno else str(error)
            return (), False
        self._problem = None
        if chunk.restarted is not None:
            self._gather.add(self._decoder.restart() or (Restart(chunk.restarted),))
        decode, add = self._decoder.decode, self._gather.add
        for number, line in enumerate(chunk.lines, chunk.first):
            add(decode(line, number))
        if chunk.overlong:
            add((Unreadable(chunk.overlong, f"no line end within {LONGEST_LINE >> 20} MiB", ""),))
        return self._counted(self._gather.take()), chunk.more

    def finish(self) -> tuple[Record, ...]:
        """Return the records of a last line without an end, where it is complete by itself."""
        partial = self._tail.partial
        if not partial.strip():
            return ()
        records = self._decoder.last(partial, self._tail.line + 1)
        if records is None:
            return ()
        self._tail.drop_partial()
        self._gather.add(records)
        return self._counted(self._gather.take())

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        return SourceStatus(
            path=str(self.path),
            format=self.format.name,
            rank=self.format.rank,
            ordinal=self.ordinal,
            records=self._records,
            unreadable=self._unreadable,
            bytes_read=self._tail.offset,
            size=self._tail.size,
            modified=self._tail.modified,
            problem=self._problem,
        )

    def _counted(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        kept = []
        for record in records:
            if isinstance(record, Unreadable):
                self._unreadable += 1
                if self._unreadable > _TOLD_UNREADABLE:
                    continue
            else:
                self._records += len(getattr(record, "steps", (0,)))
            kept.append(record)
        return self._figures.complete(kept)
