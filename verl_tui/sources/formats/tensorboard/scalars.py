"""Reads those of TensorBoard's records that are a number of a tag seen before, which nearly all
are.

All records of one tag have the same bytes but for time, step and number. So the first one is
remembered by these bytes, and others are only gathered, to be checked and read together: a checksum
is the exclusive or of what each byte adds to it, and for one byte of many records that is a
translation of bytes.
"""

from __future__ import annotations

import struct
from array import array
from functools import cache
from typing import TYPE_CHECKING

from verl_tui.sources.fields.protobuf import signed_varint, varint
from verl_tui.sources.formats.tensorboard.frames import (
    REACH,
    SHIFT,
    checksum_tables,
    crc32c,
    sound,
    turned,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.sources.formats.tensorboard.values import LoggedEvent, SummaryValue

STEPS = 2**62
"""Steps beyond which no step is meant."""
_TIME, _SUMMARY = 0x09, 0x2A
"""Tags of the fields of an event that begin it and end it; between them the step may stand."""
_FEW = 4
"""Records that are checked one by one: together pays from so many on."""


class Scalars:
    """Steps, times and numbers of one tag, since they were last handed on."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.steps = array("q")
        self.times = array("d")
        self.values = array("d")

    def add(self, step: int, time: float, value: float) -> None:
        """Take in a number."""
        self.steps.append(step)
        self.times.append(time)
        self.values.append(value)


class _RecordLayout:
    """Records of one length whose steps end at one place: where in them stands what differs."""

    def __init__(self, size: int, end: int) -> None:
        """Begin a layout.

        Args:
            size: Bytes of a record with its checksum.
            end: Where the step ends.
        """
        self.size = size
        self.varying = (*range(end), *range(size - 8, size - 4))
        self.numbers = f"<xd{size - 17}xf4x"
        """Where the time and the number stand, for `struct`."""
        self.tracks: list[_TagRecords] = []

    def sort_out(self) -> Iterator[bytes]:
        """Yield the gathered records that are not sound, and forget them."""
        count = sum(len(track.records) for track in self.tracks)
        if count > _FEW and self._sound(count):
            return
        for track in self.tracks:
            gathered = list(zip(track.records, track.steps, strict=True))
            track.records = []
            track.steps = []
            for record, step in gathered:
                if record[0] == _TIME and sound(record):
                    track.records.append(record)
                    track.steps.append(step)
                else:
                    yield record

    def _sound(self, count: int) -> bool:
        """Return whether the checksums of all gathered records are right."""
        blob = b"".join([record for track in self.tracks for record in track.records])
        if blob[:: self.size].count(_TIME) < count:
            return False
        constants = b"".join(
            [track.constant * len(track.records) for track in self.tracks]
        )
        total = int.from_bytes(
            b"".join(constants[part::4] for part in range(4)), "little"
        )
        for at in self.varying:
            column = blob[at :: self.size]
            added = b"".join(
                [column.translate(table) for table in _translations(self.size - 5 - at)]
            )
            total ^= int.from_bytes(added, "little")
        found = bytearray(8 * count)
        stored = bytearray(8 * count)
        for part, column in enumerate(_quarters(total.to_bytes(4 * count, "little"))):
            found[part::8] = column
            stored[part::8] = blob[self.size - 4 + part :: self.size]
        shifted = int.from_bytes(found, "little") + int.from_bytes(
            SHIFT.to_bytes(8, "little") * count, "little"
        )
        return shifted & int.from_bytes(
            b"\xff\xff\xff\xff\0\0\0\0" * count, "little"
        ) == int.from_bytes(stored, "little")


def _quarters(data: bytes) -> Iterator[bytes]:
    quarter = len(data) // 4
    return (data[at : at + quarter] for at in range(0, len(data), quarter))


@cache
def _translations(distance: int) -> Sequence[bytes]:
    """Return what each byte adds to a checksum, as four tables, each for one byte of it."""
    added = b"".join(
        turned(crc).to_bytes(4, "little") for crc in checksum_tables(REACH)[distance]
    )
    return tuple(added[part::4] for part in range(4))


class _TagRecords:
    """The records of one tag and layout that wait to be passed on."""

    def __init__(self, layout: _RecordLayout, constant: int, scalars: Scalars) -> None:
        self.layout = layout
        self.constant = constant.to_bytes(4, "little")
        self.scalars = scalars
        self.records: list[bytes] = []
        self.steps: list[int] = []

    def keep(self) -> None:
        """Read what was gathered, which is sound."""
        if not self.records:
            return
        records = b"".join(self.records)
        times, values = zip(
            *struct.iter_unpack(self.layout.numbers, records), strict=True
        )
        self.scalars.steps.extend(self.steps)
        self.scalars.times.extend(times)
        self.scalars.values.extend(values)
        self.records = []
        self.steps = []


class ScalarBatcher:
    """Gathers the records of tags seen before."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int], _RecordLayout] = {}
        self._known: dict[int, dict[bytes, _TagRecords]] = {}
        """Tracks by the end of the step and the bytes between it and the number."""
        self._step = 0
        """Of the last record."""
        self._written = b""
        """The bytes of that step with its tag; where protobuf left out a step of 0, the tag that
        follows.
        """
        self._end = 10
        """Index at which they end."""
        self._tracks: dict[bytes, _TagRecords] = {}
        """Those for this end."""

    def hold(self, record: bytes) -> bool:
        """Gather a record, to be checked; false where nothing is known of it."""
        if record[9 : self._end] != self._written:
            self._turn_to(record)
        track = self._tracks.get(record[self._end : -8])
        if track is None:
            return False
        if not track.records:
            track.layout.tracks.append(track)
        track.records.append(record)
        track.steps.append(self._step)
        return True

    def learn(
        self,
        data: bytes,
        event: LoggedEvent,
        value: SummaryValue,
        scalars: Callable[[str], Scalars],
    ) -> bool:
        """Remember how to read records like this one; false where it is not only a time, a step and
        one number.

        Args:
            data: The record without its checksum.
            event: Its content.
            value: The only value in it.
            scalars: Gives what is kept of a tag.
        """
        self._turn_to(data)
        size = len(data)
        end = self._end
        summary = event.summary
        begin = 9 if end == 10 else end
        if value.simple is None or summary is None or size > REACH:
            return False
        if (
            data[0] != _TIME
            or data[begin] != _SUMMARY
            or not value.simple.stop == summary.stop == size
        ):
            return False
        if varint(data, begin + 1)[1] != summary.start:
            return False
        layout = self._layouts.setdefault((size, end), _RecordLayout(size + 4, end))
        constant = turned(crc32c(bytes(end) + data[end:-4] + bytes(4)))
        self._tracks[data[end:-4]] = _TagRecords(layout, constant, scalars(value.tag))
        return True

    def flush(self) -> Iterator[bytes]:
        """Read what was gathered into its scalars; yield the records with wrong checksums."""
        for layout in self._layouts.values():
            if layout.tracks:
                yield from layout.sort_out()
                for track in layout.tracks:
                    track.keep()
                layout.tracks = []

    def _turn_to(self, record: bytes) -> None:
        """Take another step as given."""
        self._step = 0
        self._end = 10
        if record[9:10] == b"\x10":
            try:
                step, self._end = varint(record, 10)
            except ValueError:
                step = STEPS
            self._step = signed_varint(step)
        self._written = record[9 : self._end]
        self._tracks = (
            self._known.setdefault(self._end, {}) if abs(self._step) < STEPS else {}
        )
