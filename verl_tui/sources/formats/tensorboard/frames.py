"""Cuts TensorBoard's files into records and checks their checksums.

A file is a sequence of records, each the length of its data (8 bytes), a checksum of that (4), the
data, a checksum of these (4): tensorflow/core/lib/io/record_writer.h. The checksum is CRC-32C (RFC
3720, appendix B.4), turned and shifted so that a checksum of data with checksums in them is none of
a kind.

Python's standard library has no CRC-32C, and a loop over every byte is slow. But what a byte adds
to a checksum depends on nothing but the byte and how many bytes follow it, so a table for each of
these distances does it without a loop, and bytes that are known from a record before need not be
looked at again.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache, reduce
from itertools import chain
from operator import getitem, xor
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.sources.formats.format import ReadAt

REACH = 256
"""Bytes for which there are tables."""
LARGEST = 32 * 2**20
"""Largest record that is kept, in bytes: pictures may be larger, what is read is far smaller."""
_LARGEST_AFTER_LOSS = 4 * 2**20
"""The same while the beginning of a record is looked for in damaged data."""

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
SHIFT = 0xA282EAD8
"""Added to a checksum before it is written."""
_HEADER = 12
"""Bytes before the data of a record."""
_WINDOW = 16 * 1024
"""Bytes in which a record is looked for at once."""
_PLAUSIBLE = pattern(rb"(?!\0\0\0)(?=[\s\S]{2}[\0-\x3f]\0{5})")
"""Matches the length of a record that is neither empty nor too large."""


@cache
def checksum_tables(reach: int) -> list[list[int]]:
    """Return what each byte adds to the checksum, by the number of bytes that follow it, fewer than
    `reach`, and the byte.
    """
    first = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        first.append(crc)
    found = [first]
    while len(found) < reach:
        found.append([first[crc & 0xFF] ^ crc >> 8 for crc in found[-1]])
    return found


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of bytes."""
    # All tables take 10 ms: too long to see by a header what a file is.
    by_distance = checksum_tables(REACH if len(data) > _HEADER else _HEADER)
    crc = _ALL
    for at in range(0, len(data), REACH):
        block = data[at : at + REACH][::-1]
        size = len(block)
        carried = map(
            getitem,
            by_distance[max(0, size - 4) : size][::-1],
            crc.to_bytes(4, "little"),
        )
        crc = reduce(
            xor, chain(carried, map(getitem, by_distance, block)), crc >> 8 * size
        )
    return crc ^ _ALL


def turned(crc: int) -> int:
    """Return a checksum rotated as in the file, without `SHIFT`."""
    return crc >> 15 | crc << 17 & _ALL


def sound(data: bytes) -> bool:
    """Return True if the last four bytes are the checksum of those before."""
    return turned(crc32c(data[:-4])) + SHIFT & _ALL == int.from_bytes(
        data[-4:], "little"
    )


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


def whole_records(data: bytes) -> int:
    """Return how many of some bytes, from the beginning of a record on, are whole records, as their
    lengths say, which are not checked.
    """
    at = 0
    while at + _HEADER <= len(data):
        stop = at + _HEADER + int.from_bytes(data[at : at + 8], "little") + 4
        if stop > len(data):
            break
        at = stop
    return at


class RecordSplitter:
    """Splits a growing file into records; half a record waits for its rest.

    A wrong checksum is reported once; reading continues at the next complete record.
    """

    def __init__(
        self, hold: Callable[[bytes], bool], take: Callable[[bytes], bool], at: int = 0
    ) -> None:
        """Begin a file; what is called is given the data of a record with their checksum at the
        end.

        Args:
            hold: Takes a record whose checksum it will check before more is fed; false where it
                takes it not.
            take: Takes a record; false where its checksum is wrong.
            at: The place in the file of the first byte that will be fed.
        """
        self._hold = hold
        self._take = take
        self._lengths: dict[bytes, int] = {}
        """By header: a file has few that differ."""
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
        self._starts: list[int] = []
        """Places in it of its records, and of what should have been one."""
        self._before = 0
        """Records before it."""
        self._lost = False
        self._out: list[Unreadable] = []

    @property
    def number(self) -> int:
        """Number of the record that is being read, from 1."""
        return self._before + len(self._starts)

    def feed(self, data: bytes) -> list[Unreadable]:
        """Cut these next bytes; return what was wrong with them."""
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._next += skipped
        self._waiting.append(data[skipped:])
        self._size += len(data) - skipped
        if self._size < self._wanted:
            return []
        self._before += len(self._starts)
        self._starts = []
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

    def stands_at(self, place: int) -> bool:
        """Return whether all records before a place in the file have been cut, and none beyond."""
        return self._next == place and not (self._size or self._skip or self._lost)

    def go_on_with(self, later: RecordSplitter) -> None:
        """Go on behind the records that another one has cut."""
        self._before += len(self._starts) + later.number
        self._starts = []
        self._next = later._next

    def wrong(self, record: bytes) -> Unreadable:
        """Return the complaint about a record that was held and whose checksum is wrong."""
        at = self._data.find(record) - 12
        number = self._before + bisect_left(self._starts, at) + 1
        return self._unreadable(number, at, "the checksum of a record is wrong")

    def _cut(self, data: bytes) -> int:
        """Take every whole record; return where what is left begins, beyond the data where more is
        to be skipped.
        """
        at = 0
        size = len(data)
        lengths = self._lengths
        starts = self._starts
        hold = self._hold
        self._wanted = 12
        while at < size:
            if self._lost:
                at = _next_plausible(data, at)
            header = data[at : at + 12]
            inside = lengths.get(header)
            if inside is None:
                if at + 12 > size:
                    break
                inside = self._length(header, at)
                if inside is None:
                    at += 1
                    continue
            stop = at + 16 + inside
            if stop > size and self._is_awaited(inside):
                self._wanted = stop - at
                break
            starts.append(at)
            held = not self._lost and hold(data[at + 12 : stop])
            at = stop if held else self._take_or_lose(data, at, stop)
        return at

    def _is_awaited(self, inside: int) -> bool:
        """Return True if a record of so many bytes is small enough to wait for its end."""
        return inside <= (_LARGEST_AFTER_LOSS if self._lost else LARGEST)

    def _take_or_lose(self, data: bytes, at: int, stop: int) -> int:
        """Take a record that is not held; return where to go on."""
        if stop - at > LARGEST and not self._lost:
            self._out.append(
                self._unreadable(
                    self.number, at, f"a record of {stop - at:,} bytes is not read"
                )
            )
            return stop
        if stop <= len(data) and self._take(data[at + 12 : stop]):
            self._lost = False
            return stop
        self._starts.pop()
        self._lose(at, "the checksum of a record is wrong")
        return at + 1

    def _length(self, header: bytes, at: int) -> int | None:
        """Return the length of the data behind a new header, None if its checksum is wrong."""
        found = length(header)
        if found is None:
            self._lose(at, "the checksum of a record's length is wrong")
        else:
            if len(self._lengths) > 4096:
                self._lengths.clear()
            self._lengths[header] = found
        return found

    def _lose(self, at: int, reason: str) -> None:
        if not self._lost:
            self._starts.append(at)
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
