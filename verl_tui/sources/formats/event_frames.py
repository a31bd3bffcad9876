"""Cuts TensorBoard's files into records and checks their checksums.

A file is a sequence of records, each the length of its data (8 bytes), a checksum of that (4), the
data, a checksum of these (4): tensorflow/core/lib/io/record_writer.h. The checksum is CRC-32C (RFC
3720, appendix B.4), turned and shifted so that a checksum of data with checksums in them is none of
a kind.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from google_crc32c import value as crc32c

from verl_tui.patterns import pattern
from verl_tui.records import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

_SHIFT = 0xA282EAD8
"""Added to a checksum before it is written."""
_HEADER = 12
"""Bytes before the data of a record."""
_PLAUSIBLE = pattern(rb"(?!\0\0\0)(?=[\s\S]{2}[\0-\x3f]\0{5})")
"""Matches the length of a record that is neither empty nor too large."""


class Frames(NamedTuple):
    """Records that lie one after the other."""

    data: bytes
    begins: Sequence[int]
    """Where in the data each one begins, without its length."""
    ends: Sequence[int]
    """Where each ends, without its checksum."""
    number: int = 0
    """That of the first one in the file, from 1."""


def checksum(data: bytes) -> bytes:
    """Return the checksum of bytes as it stands behind them in a file."""
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + _SHIFT & 0xFFFFFFFF).to_bytes(4, "little")


@lru_cache(4096)  # a file has few that differ
def length(header: bytes) -> int | None:
    """Return the length of the data after a header, None if its checksum is wrong."""
    if len(header) == _HEADER and header[8:] == checksum(header[:8]):
        return int.from_bytes(header[:8], "little")
    return None


class FrameCutter:
    """Cuts a growing file into records; half a record waits for its rest.

    Damage is reported once; reading continues at the next complete record.
    """

    def __init__(self) -> None:
        self._data = b""
        """Bytes that wait for more."""
        self._place = 0
        """Their place in the file."""
        self._number = 0
        """Records so far."""
        self._lost = False
        """True behind damage."""

    def feed(self, data: bytes) -> Iterator[Frames | Unreadable]:
        """Yield the records that these next bytes complete, and what was wrong with others."""
        data = self._data = self._data + data
        at = 0
        while at < len(data):
            frames = _cut(data, at)
            yield from self._sound(frames)
            at = frames.ends[-1] + 4 if frames.ends else at
            header = data[at : at + _HEADER]
            if len(header) < _HEADER or length(header) is not None:
                break
            # the record before may lack bytes
            behind = frames.begins[-1] if frames.begins and self._lost else at
            yield from self._lose(at, "the checksum of a record's length is wrong")
            found = _PLAUSIBLE.search(data, behind + 1)
            # with none, one that more bytes may show to be
            at = found.start() if found else max(at + 1, len(data) - 7)
        self._data = data[at:]
        self._place += at

    def _sound(self, frames: Frames) -> Iterator[Frames | Unreadable]:
        """Yield those records whose checksums are right, and what was wrong with others."""
        begin = 0
        data, begins, ends, _ = frames
        for end in (*_wrong(frames), len(begins)):
            if end > begin:
                yield Frames(data, begins[begin:end], ends[begin:end], self._number + 1)
                self._number += end - begin
                self._lost = False
            if end < len(begins):
                at = begins[end] - _HEADER
                yield from self._lose(at, "the checksum of a record is wrong")
            begin = end + 1

    def _lose(self, at: int, reason: str) -> Iterator[Unreadable]:
        if not self._lost:
            self._number += 1
            begin = self._data[at : at + _HEADER].hex(" ")
            where = f"{reason}, at byte {self._place + at:,}"
            yield Unreadable(self._number, where, begin)
        self._lost = True


def _cut(data: bytes, at: int) -> Frames:
    """Return the records from a place on as far as their lengths are right and they are all
    there.
    """
    begins, ends = [], []
    begin = at + _HEADER
    last = len(data) - 4
    while (inside := length(data[at:begin])) is not None:
        end = begin + inside
        if end > last:
            break
        begins.append(begin)
        ends.append(end)
        at = end + 4
        begin = at + _HEADER
    return Frames(data, begins, ends)


def _wrong(frames: Frames) -> Sequence[int]:
    """Return which of some records have wrong checksums; all are checked at once."""
    import numpy as np  # not before the first frame is drawn

    data, begins, ends, _ = frames
    crcs = [crc32c(data[at:end]) for at, end in zip(begins, ends, strict=True)]
    found = np.array(crcs, np.uint32)
    found = (found >> 15 | found << 17) + np.uint32(_SHIFT)
    stated = numbers_at(data, np.array(ends, np.int64), "<u4")
    wrong: list[int] = np.flatnonzero(found != stated).tolist()
    return wrong


def numbers_at(data: bytes, places: NDArray[np.int64], form: str) -> NDArray[Any]:
    """Return the numbers of a form that stand at places."""
    import numpy as np

    spots = places[:, None] + np.arange(int(form[-1]))
    return np.frombuffer(data, np.uint8).take(spots).view(form)[:, 0]
