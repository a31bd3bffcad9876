"""A source: where records of one run come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import Record, SourceStatus, Unreadable

if TYPE_CHECKING:
    from pathlib import Path


class Source:
    """Read by one thread, a bounded amount at a time. Keeps what it says of itself."""

    format = ""
    rank = 0
    absolute = False
    """True if its records state seconds since the epoch."""

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        self.path = path
        self.ordinal = ordinal
        self._records = self._unreadable = 0
        self._bytes = self._pending = 0
        """Bytes that have been read, and that wait."""
        self._modified: float | None = None
        """Seconds since the epoch."""
        self._problem: str | None = None
        """Why nothing can be read at present."""

    @property
    def note(self) -> str | None:
        """Return what is to be said of its figures."""
        return None

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the next records, and whether more wait to be read at once. Never raises for what
        a file holds.
        """
        raise NotImplementedError

    def finish(self) -> tuple[Record, ...]:
        """Return the record that only waits for a line end: this is the last read."""
        return ()

    def counted(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Count records that were read; return them."""
        self._unreadable += sum(isinstance(one, Unreadable) for one in records)
        self._records += sum(len(getattr(one, "steps", (0,))) for one in records)
        return records

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        return SourceStatus(
            str(self.path),
            self.format,
            self.rank,
            self.ordinal,
            self._records,
            self._unreadable,
            self._bytes,
            self._bytes + self._pending,
            self._modified,
            self._problem,
            self.note,
            self.absolute,
        )
