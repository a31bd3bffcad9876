"""Cuts TensorBoard's files into records and checks their checksums.

A file is a sequence of records, each the length of its data (8 bytes), a checksum of that (4), the
data, a checksum of these (4): tensorflow/core/lib/io/record_writer.h. The checksum is CRC-32C (RFC
3720, appendix B.4), turned and shifted so that a checksum of data with checksums in them is none of
a kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google_crc32c import value as crc32c

from verl_tui.patterns import pattern
from verl_tui.records import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.sources.formats.format import ReadAt

LARGEST = 32 * 2**20
"""Largest record that is kept, in bytes: pictures may be larger, what is read is far smaller."""
_LARGEST_AFTER_LOSS = 4 * 2**20
"""The same while the beginning of a record is looked for in damaged data."""

_ALL = 0xFFFFFFFF
_SHIFT = 0xA282EAD8
"""Added to a checksum before it is written."""
_HEADER = 12
"""Bytes before the data of a record."""
_WINDOW = 16 * 1024
"""Bytes in which a record is looked for at once."""
_PLAUSIBLE = pattern(rb"(?!\0\0\0)(?=[\s\S]{2}[\0-\x3f]\0{5})")
"""Matches the length of a record that is neither empty nor too large."""


def checksum(data: bytes) -> bytes:
    """Return the checksum of bytes as it stands behind them in a file."""
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + _SHIFT & _ALL).to_bytes(4, "little")


def sound(data: bytes) -> bool:
    """Return True if the last four bytes are the checksum of those before."""
    return data.endswith(checksum(data[:-4]))


def length(header: bytes) -> int | None:
    """Return the length of the data behind a header, None if its checksum is wrong."""
    if len(header) == 12 and sound(header):
        return int.from_bytes(header[:8], "little")
    return None


def first_record(read: ReadAt, at: int, stop: int) -> int | None:
    """Return where the first record whose checksums are right begins.

    Args:
        read: Returns bytes of the file.
        at: The place from which on it may begin.
        stop: The place before which it has to begin.

    Returns:
        Its place; None where none is found.
    """
    while at < stop:
        data = read(at, min(_WINDOW, stop + _HEADER - 1 - at))
        for found in _PLAUSIBLE.finditer(data, 0, len(data)):
            begin = found.start()
            inside = length(data[begin : begin + _HEADER])
            if inside is not None and _holds(read, at + begin + _HEADER, inside):
                return at + begin
        if len(data) < _HEADER:
            break
        at += len(data) - _HEADER + 1
    return None


def _holds(read: ReadAt, at: int, inside: int) -> bool:
    """Return whether so many bytes and their checksum stand at a place."""
    record = read(at, inside + 4)
    return len(record) == inside + 4 and sound(record)


class RecordSplitter:
    """Splits a growing file into records; half a record waits for its rest.

    A wrong checksum is reported once; reading continues at the next complete record.
    """

    def __init__(self, take: Callable[[bytes], bool], at: int = 0) -> None:
        """Begin a file.

        Args:
            take: Takes the data of a record with their checksum at the end; false where that is
                wrong.
            at: The place in the file of the first byte that will be fed.
        """
        self._take = take
        self._waiting: list[bytes] = []
        self._size = 0
        self._wanted = 12
        """Bytes from which on there is something to be done."""
        self._skip = 0
        self._next = at
        """Place in the file of what waits, or is skipped next."""
        self._data = b""
        """The bytes that are being cut, or were cut last."""
        self._offset = 0
        """Its place in the file."""
        self.number = 0
        """Number of the record that is being read, from 1."""
        self._lost = False
        self._out: list[Unreadable] = []

    def feed(self, data: bytes) -> list[Unreadable]:
        """Cut these next bytes; return what was wrong with them."""
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._next += skipped
        self._waiting.append(data[skipped:])
        self._size += len(data) - skipped
        if self._size < self._wanted:
            return []
        self._data = b"".join(self._waiting)
        self._offset = self._next
        at = self._cut(self._data)
        rest = self._data[at:]
        self._waiting = [rest]
        self._size = len(rest)
        self._skip = max(0, at - len(self._data))
        self._next = self._offset + at - self._skip
        out = self._out
        self._out = []
        return out

    def _cut(self, data: bytes) -> int:
        """Take every whole record; return where what is left begins, beyond the data where more is
        to be skipped.
        """
        at = 0
        size = len(data)
        take = self._take
        self._wanted = 12
        while at < size:
            if self._lost:
                at = _next_plausible(data, at)
            header = data[at : at + 12]
            if len(header) < 12:
                break
            inside = self._length(header, at)
            if inside is None:
                at += 1
                continue
            stop = at + 16 + inside
            if stop > size and self._is_awaited(inside):
                self._wanted = stop - at
                break
            self.number += 1
            if stop <= size and inside <= LARGEST and take(data[at + 12 : stop]):
                self._lost = False
                at = stop
            else:
                at = self._pass_over(at, stop)
        return at

    def _is_awaited(self, inside: int) -> bool:
        """Return True if a record of so many bytes is small enough to wait for its end."""
        return inside <= (_LARGEST_AFTER_LOSS if self._lost else LARGEST)

    def _pass_over(self, at: int, stop: int) -> int:
        """Say why a record is not taken; return where to go on."""
        if stop - at > LARGEST and not self._lost:
            reason = f"a record of {stop - at:,} bytes is not read"
            self._out.append(self._unreadable(self.number, at, reason))
            return stop
        self.number -= 1
        self._lose(at, "the checksum of a record is wrong")
        return at + 1

    def _length(self, header: bytes, at: int) -> int | None:
        """Return the length of the data behind a header, None if its checksum is wrong."""
        found = length(header)
        if found is None:
            self._lose(at, "the checksum of a record's length is wrong")
        return found

    def _lose(self, at: int, reason: str) -> None:
        if not self._lost:
            self.number += 1
            self._out.append(self._unreadable(self.number, at, reason))
        self._lost = True

    def _unreadable(self, number: int, at: int, reason: str) -> Unreadable:
        return Unreadable(
            number,
            f"{reason}, at byte {self._offset + at:,}",
            self._data[at : at + 12].hex(" "),
        )


def _next_plausible(data: bytes, at: int) -> int:
    """Return the next place at which a header may begin; where there is none, one that more bytes
    may show to be.
    """
    found = _PLAUSIBLE.search(data, at)
    if found:
        return found.start()
    return max(at, len(data) - 7)
