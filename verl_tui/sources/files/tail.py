"""Follows one growing file: reads appended bytes only, notices when the file starts anew."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from verl_tui.patterns import pattern
from verl_tui.sources.files.paths import is_file

if TYPE_CHECKING:
    from pathlib import Path

_PRINT = 256
"""Bytes compared at the head and before the offset: enough to tell a rewritten file from a grown
one.
"""
CHUNK = 256 * 1024
NEWEST = "checkpoint-*"
"""In a path: the newest checkpoint with this file in it."""
_CHECKPOINT = pattern(r"checkpoint-(\d{1,15})")


@dataclass(slots=True)
class Chunk:
    """The bytes of one read."""

    data: bytes
    """The next bytes."""
    restarted: str | None = None
    """Why they are a new beginning of the file."""
    more: bool = False
    """True if further bytes wait to be read."""


def opened(path: Path, buffering: int = 0) -> BinaryIO:
    """Open a file to be read. A pipe or a device would block, and bytes taken from it would be
    missing elsewhere.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError("not a file; `verl-tui -` reads pipes")
    return path.open("rb", buffering=buffering)


class Follower:
    """Gives the bytes of something that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """Bytes read so far."""
        self.size = 0
        """Bytes there are, counted alike."""
        self.modified: float | None = None
        """Time of the last change."""

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` new bytes; raise OSError where that cannot be done."""
        raise NotImplementedError


class Tail(Follower):
    """Reads a file as it grows. Raises OSError where the file cannot be read; may be asked again
    later.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.identity: tuple[int, int] | None = None
        """Device and inode of the file that was read last."""
        self._stamp: tuple[int, ...] = ()
        """Stamp of the file when it was last opened."""
        self.head = b""
        """The first bytes read."""
        self.last = b""
        """The last bytes read."""

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` new bytes.

        Raises:
            OSError: The file is gone or may not be read.
        """
        path = newest_checkpoint_file(self.path)
        known = path.stat()
        self.size = known.st_size
        self.modified = known.st_mtime
        identity = _identity(known)
        # An inode may be used again at once, so the time belongs to what makes a file the same.
        stamp = (*identity, known.st_size, known.st_mtime_ns)
        if self._stamp == stamp and known.st_size == self.offset:
            return Chunk(b"")
        self._stamp = stamp
        with opened(path) as file:
            why = self._check(file.fileno(), identity, known.st_size)
            if why is not None:
                return Chunk(b"", why, more=True)
            data = os.pread(file.fileno(), limit, self.offset)
        if self.offset == len(self.head):  # both 0 at the beginning
            self.head = (self.head + data)[:_PRINT]
        self.last = (self.last + data[-_PRINT:])[-_PRINT:]
        self.offset += len(data)
        return Chunk(data, more=bool(data) and self.offset < known.st_size)

    def _check(
        self, descriptor: int, identity: tuple[int, int], size: int
    ) -> str | None:
        """Return why the file is not the one we have been reading, and start over; None if it
        is. Log shippers replace a file by a longer copy of itself: that is the same.
        """
        before, self.identity = self.identity, identity
        shrunk = size < self.offset
        if before is None or (not shrunk and self._same(descriptor)):
            return None
        self.offset = 0
        self.head = self.last = b""
        if before != identity:
            return "file was replaced"
        return "file was truncated" if shrunk else "file was rewritten"

    def _same(self, descriptor: int) -> bool:
        before = os.pread(descriptor, len(self.last), self.offset - len(self.last))
        return (
            before == self.last and os.pread(descriptor, len(self.head), 0) == self.head
        )


def _identity(known: os.stat_result) -> tuple[int, int]:
    """Return the device and the inode of a file."""
    return known.st_dev, known.st_ino


def is_checkpoint(name: str) -> bool:
    """Return whether a directory is called as the trainer of Hugging Face calls its checkpoints."""
    return _CHECKPOINT.fullmatch(name) is not None


def newest_checkpoint_file(path: Path) -> Path:
    """Return the file of the newest checkpoint that a path with `checkpoint-*` in it stands for;
    any other path as it is.
    """
    home = path.parent
    if home.name != NEWEST:
        return path
    try:
        every = os.listdir(home.parent)  # noqa: PTH208 - names are enough
    except OSError:
        return path
    names = sorted(filter(is_checkpoint, every), key=lambda name: (len(name), name))
    files = (home.with_name(name) / path.name for name in reversed(names))
    return next(filter(is_file, files), path)
