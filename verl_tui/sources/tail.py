"""Follows one growing file: reads appended bytes only, notices when the file starts anew."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PRINT = 256
"""Bytes compared at the head and before the offset: enough to tell a rewritten file from a grown one."""
CHUNK = 256 * 1024


@dataclass(slots=True)
class Chunk:
    """What one read found."""

    data: bytes
    """The next bytes."""
    restarted: str | None = None
    """Why they are a new beginning of the file."""
    more: bool = False
    """Whether further bytes wait to be read."""


class Tail:
    """Reads a file as it grows. Raises OSError where the file cannot be read; may be asked again later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """Bytes read so far."""
        self.size = 0
        self.modified: float | None = None
        self._identity: tuple[int, int] | None = None
        self._stamp: tuple[int, ...] = ()
        """What the file looked like when it was last opened."""
        self._head = b""
        self._before = b""

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` new bytes.

        Raises:
            OSError: The file is gone or may not be read.
        """
        stat = self.path.stat()
        self.size, self.modified = stat.st_size, stat.st_mtime
        identity = (stat.st_dev, stat.st_ino)
        # An inode may be used again at once, so the time belongs to what makes a file the same.
        stamp = (*identity, stat.st_size, stat.st_mtime_ns)
        if self._stamp == stamp and stat.st_size == self.offset:
            return Chunk(b"")
        self._stamp = stamp
        with self.path.open("rb", buffering=0) as file:
            restarted = self._check(file.fileno(), identity, stat.st_size)
            data = os.pread(file.fileno(), limit, self.offset)
        if not self.offset:
            self._head = data[:_PRINT]
        elif len(self._head) < _PRINT:
            self._head = (self._head + data)[:_PRINT] if self.offset == len(self._head) else self._head
        self._before = (self._before + data)[-_PRINT:]
        self.offset += len(data)
        return Chunk(data, restarted, more=bool(data) and self.offset < stat.st_size)

    def _check(self, descriptor: int, identity: tuple[int, int], size: int) -> str | None:
        """Return why the file is not the one we have been reading, and start over; None where it is."""
        reason = None
        if self._identity is not None and identity != self._identity:
            # Log shippers replace a file by a longer copy of itself: the same beginning is the same file.
            reason = None if self._same(descriptor) and size >= self.offset else "file was replaced"
        elif size < self.offset:
            reason = "file was truncated"
        elif self.offset and not self._same(descriptor):
            reason = "file was rewritten"
        self._identity = identity
        if reason is not None:
            self.offset = 0
            self._head = self._before = b""
        return reason

    def _same(self, descriptor: int) -> bool:
        before = os.pread(descriptor, len(self._before), self.offset - len(self._before))
        return before == self._before and os.pread(descriptor, len(self._head), 0) == self._head
