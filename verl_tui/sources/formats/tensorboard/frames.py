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
    return ((crc >> 15 | crc << 17) + _SHIFT & 0xFFFFFFFF).to_bytes(4, "little")


def sound(data: bytes) -> bool:
    """Return True if the last four bytes are the checksum of those before."""
    return data.endswith(checksum(data[:-4]))


def length(header: bytes) -> int | None:
    """Return the length of the data behind a header, None if its checksum is wrong."""
    if len(header) == _HEADER and sound(header):
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
            if inside is None:
                continue
            record = read(at + begin + _HEADER, inside + 4)
            if len(record) == inside + 4 and sound(record):
                return at + begin
        if len(data) < _HEADER:
            break
        at += len(data) - _HEADER + 1
    return None


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
        self._data = b""
        """The bytes that are being cut, or wait for more."""
        self._place = at
        """Their place in the file."""
        self._skip = 0
        """Bytes to come that belong to a record that is not read."""
        self.number = 0
        """Number of the record that is being read, from 1."""
        self._lost = False
        self._out: list[Unreadable] = []

    def feed(self, data: bytes) -> list[Unreadable]:
        """Cut these next bytes; return what was wrong with them."""
        skipped = min(self._skip, len(data))
        self._data += data[skipped:]
        self._place += skipped
        at = self._cut(self._data)
        self._skip += max(0, at - len(self._data)) - skipped
        self._place += min(at, len(self._data))
        self._data = self._data[at:]
        out = self._out
        self._out = []
        return out

    def _cut(self, data: bytes) -> int:
        """Take every whole record; return where what is left begins, beyond the data where more is
        to be skipped.
        """
        at = 0
        while len(header := data[at : at + _HEADER]) == _HEADER:
            inside = length(header)
            if inside is None:
                self._lose(at, "the checksum of a record's length is wrong")
                at = _next_plausible(data, at + 1)
                continue
            stop = at + _HEADER + inside + 4
            if stop > len(data) and inside <= LARGEST:
                break
            self.number += 1
            if inside > LARGEST:
                self._note(at, f"a record of {stop - at:,} bytes is not read")
            elif not self._take(data[at + _HEADER : stop]):
                self.number -= 1
                self._lose(at, "the checksum of a record is wrong")
                at = _next_plausible(data, at + 1)
                continue
            self._lost = False
            at = stop
        return at

    def _lose(self, at: int, reason: str) -> None:
        if not self._lost:
            self.number += 1
            self._note(at, reason)
        self._lost = True

    def _note(self, at: int, reason: str) -> None:
        begin = self._data[at : at + _HEADER].hex(" ")
        where = f"{reason}, at byte {self._place + at:,}"
        self._out.append(Unreadable(self.number, where, begin))


def _next_plausible(data: bytes, at: int) -> int:
    """Return the next place at which a header may begin; where there is none, one that more bytes
    may show to be.
    """
    found = _PLAUSIBLE.search(data, at)
    return found.start() if found else max(at, len(data) - 7)
