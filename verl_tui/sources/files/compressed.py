"""Reads gzip files as if they were not compressed: `train.log.gz`, `metrics.jsonl.gz`, and
`train.log` where its first bytes are those of gzip.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from verl_tui.sources.files.tail import CHUNK, Chunk, Follower, Tail, opened

if TYPE_CHECKING:
    from pathlib import Path

DEEPEST = 4 * 2**20
"""Bytes in which a console's first step is searched, validation samples may come before it; and
those read where one of the first records does not end before: five thousand metrics, a long chat.
"""
SUFFIX = ".gz"
MAGIC = b"\x1f\x8b"
"""The first bytes of gzip (RFC 1952)."""
_GZIP = zlib.MAX_WBITS | 16
_SLICE = 16 * 1024
"""Compressed bytes taken at once: what lies before damage among them is read again, byte by
byte.
"""


def uncompressed_name(path: Path) -> Path:
    """Return a file's name without the suffix of its compression."""
    if path.suffix.lower() != SUFFIX:
        return path
    return path.with_suffix("")


def is_compressed(path: Path) -> bool:
    """Return whether a file is compressed, by its name or its first bytes."""
    if path.suffix.lower() == SUFFIX:
        return True
    try:
        with opened(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def head(path: Path, limit: int) -> bytes:
    """Return the first bytes of a file, of a compressed one those that were compressed.

    Raises:
        OSError: The file cannot be read, or is no gzip file although it is called so.
    """
    if path.suffix.lower() != SUFFIX:
        with opened(path) as file:
            found = file.read(limit)
        if not found.startswith(MAGIC):
            return found
    tail = CompressedTail(path)
    found = b""
    chunk = Chunk(b"", more=True)
    while chunk.more and len(found) < limit:
        try:
            chunk = tail.read(limit - len(found))
        except OSError:
            if not found:
                raise
            break
        found += chunk.data
    return found


class CompressedTail:
    """Follows a gzip file as `Tail` follows any; of several members one after the other. Bounded
    whatever it holds.
    """

    def __init__(self, path: Path, tail: Follower | None = None) -> None:
        """Begin a file; `tail` gives its bytes, unless they are read from it."""
        self.path = path
        self._tail: Follower = tail or Tail(path)
        self._waiting = b""
        """Compressed bytes read and not yet taken."""
        self._member: zlib._Decompress | None = None
        """The member that has begun and not ended."""
        self._damage: str | None = None
        """Why the rest cannot be had."""

    @property
    def offset(self) -> int:
        """Compressed bytes taken so far; behind damage nothing is to be had."""
        if self._damage is not None:
            return self._tail.size
        return self._tail.offset - len(self._waiting)

    @property
    def size(self) -> int:
        """Size of the compressed file."""
        return self._tail.size

    @property
    def modified(self) -> float | None:
        """Time of the file's last change."""
        return self._tail.modified

    def read(self, limit: int = CHUNK) -> Chunk:
        """Return at most `limit` bytes of what was compressed.

        Raises:
            OSError: The file is gone, may not be read, or is damaged; what comes before the damage
                has been returned.
        """
        chunk = Chunk(b"", more=True)
        if not self._waiting:
            chunk = self._tail.read(_SLICE)
            self._waiting = chunk.data
        if chunk.restarted is not None:
            self._member = self._damage = None
        if self._damage is not None:
            self._waiting = b""  # what is appended behind damage mends nothing
            raise OSError(self._damage)
        data = self._take(limit)
        more = chunk.more or bool(self._waiting) or self._damage is not None
        return Chunk(data, chunk.restarted, more=more)

    def _take(self, limit: int) -> bytes:
        """Return what the waiting bytes hold, at most so much of it."""
        out = bytearray()
        while self._waiting and len(out) < limit:
            if self._member is None:
                self._waiting = self._waiting.lstrip(b"\0")  # padding is not a member
                if not self._waiting:
                    break
            member = self._member or zlib.decompressobj(_GZIP)
            before = member.copy()
            try:
                out += member.decompress(self._waiting, limit - len(out))
            except zlib.error as error:
                out += _salvaged(before, self._waiting)
                self._damage = f"damaged gzip data near byte {self.offset}: {error}"
                self._waiting = b""
                break
            self._waiting = member.unused_data or member.unconsumed_tail
            self._member = None if member.eof else member
        return bytes(out)


def _salvaged(member: zlib._Decompress, data: bytes) -> bytes:
    """Return what comes out of compressed bytes before those that are damaged."""
    out = bytearray()
    try:
        for at in range(len(data)):
            out += member.decompress(data[at : at + 1])
    except zlib.error:
        pass
    return bytes(out)
