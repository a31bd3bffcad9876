"""Follows one growing file: reads appended bytes only, holds back half a line, notices when the file starts anew."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PRINT = 256
"""Bytes compared at the head and before the offset: enough to tell a rewritten file from a grown one."""
CHUNK = 256 * 1024
LONGEST_LINE = 32 * 2**20
"""Bytes after which a line without an end is given up: no format writes such, a broken file might."""


@dataclass(slots=True)
class Chunk:
    """What one read found."""

    lines: list[bytes]
    """Complete lines without their line end."""
    first: int
    """Number of the first of them, from 1."""
    restarted: str | None = None
    """Why everything from here on is a new beginning of the file."""
    more: bool = False
    """Whether further bytes wait to be read."""
    overlong: int = 0
    """Number of a line that was given up because of its length, 0 if none."""


class Tail:
    """Reads a file as it grows. Raises OSError where the file cannot be read; may be asked again later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """Bytes read so far."""
        self.size = 0
        self.modified: float | None = None
        self.line = 0
        """Complete lines read so far."""
        self._identity: tuple[int, int] | None = None
        self._stamp: tuple[int, ...] = ()
        """What the file looked like when it was last opened."""
        self._head = b""
        self._before = b""
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._skipping = False

    @property
    def partial(self) -> bytes:
        """The bytes after the last line end: half a line, or a last line that never got one."""
        return b"".join(self._partial)

    def drop_partial(self) -> None:
        """Forget the half line: its content has been taken as it stood, only what comes after it counts."""
        self._partial, self._partial_size = [], 0

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
            return Chunk([], self.line + 1)
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
        chunk = self._split(data)
        chunk.restarted = restarted
        chunk.more = bool(data) and self.offset < stat.st_size
        return chunk

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
            self.offset = self.line = 0
            self._head = self._before = b""
            self.drop_partial()
            self._skipping = False
        return reason

    def _same(self, descriptor: int) -> bool:
        before = os.pread(descriptor, len(self._before), self.offset - len(self._before))
        return before == self._before and os.pread(descriptor, len(self._head), 0) == self._head

    def _split(self, data: bytes) -> Chunk:
        first = self.line + 1
        *lines, rest = data.split(b"\n")
        overlong = 0
        if lines:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self.drop_partial()
            self.line += len(lines)
            if self._skipping:
                self._skipping = False
                del lines[0]
                first += 1
        if rest and not self._skipping:
            self._partial.append(rest)
            self._partial_size += len(rest)
            if self._partial_size > LONGEST_LINE:
                self._skipping = True
                self.drop_partial()
                overlong = self.line + 1
        return Chunk(lines, first, overlong=overlong)
