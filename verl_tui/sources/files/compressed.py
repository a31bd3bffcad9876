"""Reads gzip files as if they were not compressed: `train.log.gz`, `metrics.jsonl.gz`, and
`train.log` where its first bytes are those of gzip; says why other bytes are no text.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
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
PACKED = "compressed otherwise than by gzip: unpack it to have it read"
WIDE = "UTF-16, as PowerShell writes it: convert it to UTF-8 to have it read"
_UNREAD = {
    b"BZh": PACKED,  # bzip2
    b"\xfd7zXZ\0": PACKED,
    b"\x28\xb5\x2f\xfd": PACKED,  # zstd
    b"\x04\x22\x4d\x18": PACKED,  # lz4
    b"PK\x03\x04": PACKED,  # zip
    b"\xff\xfe": WIDE,
    b"\xfe\xff": WIDE,
}
"""How files begin that cannot be read as a text, and why."""
_TEXT = bytes({*b"\0\a\b\t\n\v\f\r\x1b", *range(0x20, 0x100)})
_LOOKED_AT = 4096
"""Bytes that tell: enough to hold what is between the names in a binary file."""


def why_unread(begin: bytes) -> str | None:
    """Return why a file that begins so cannot be read as a text, None where it may be one."""
    return next((why for sign, why in _UNREAD.items() if begin.startswith(sign)), None)


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file is that of no text.

    Zero bytes alone do not tell: a log that was emptied beneath its writer begins with as many as
    it had bytes, and a machine that has failed may leave some anywhere.
    """
    if why_unread(data) == WIDE:
        return True
    begin = data.lstrip(b"\0")[:_LOOKED_AT]
    odd = (
        begin.translate(None, delete=_TEXT) or b"ustar" in begin
    )  # an archive of texts
    return b"\0" in begin and bool(odd)


def uncompressed_name(path: Path) -> Path:
    """Return a file's name without the suffix of its compression."""
    return path.with_suffix("") if path.suffix.lower() == SUFFIX else path


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
    found, more = b"", True
    while more and len(found) < limit:
        try:
            chunk = tail.read(limit - len(found))
        except OSError:
            if not found:
                raise
            break
        found, more = found + chunk.data, chunk.more
    return found


class CompressedTail(Follower):
    """Follows a gzip file as `Tail` follows any; of several members one after the other. Bounded
    whatever it holds.
    """

    def __init__(
        self, path: Path, tail: Follower | None = None, waiting: bytes = b""
    ) -> None:
        """Begin a file; `tail` gives its bytes, behind those that wait, unless they are read from
        it.
        """
        super().__init__(path)
        self._tail: Follower = tail or Tail(path)
        self._waiting = waiting
        """Compressed bytes read and not yet taken."""
        self._member: zlib._Decompress | None = None
        """The member that has begun and not ended."""
        self._damage: str | None = None
        """Why the rest cannot be had."""

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
            self.size, self.modified = self._tail.size, self._tail.modified
        if chunk.restarted is not None:
            self._member = self._damage = None
        if self._damage is not None:
            self._waiting = b""  # what is appended behind damage mends nothing
            self.offset = self.size
            raise OSError(self._damage)
        data = self._take(limit)
        damaged = self._damage is not None
        self.offset = self.size if damaged else self._tail.offset - len(self._waiting)
        more = chunk.more or bool(self._waiting) or damaged
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
                near = self._tail.offset - len(self._waiting)
                self._damage = f"damaged gzip data near byte {near}: {error}"
                self._waiting = b""
                break
            self._waiting = member.unused_data or member.unconsumed_tail
            self._member = None if member.eof else member
        return bytes(out)


def _salvaged(member: zlib._Decompress, data: bytes) -> bytes:
    """Return what comes out of compressed bytes before those that are damaged."""
    out = bytearray()
    with suppress(zlib.error):
        for at in range(len(data)):
            out += member.decompress(data[at : at + 1])
    return bytes(out)
