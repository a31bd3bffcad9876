"""Reads those of TensorBoard's records that are a number of a tag seen before, which nearly all
are.

All records of one tag have the same bytes but for time, step and number. So the first one is
remembered by these bytes, and of others only what differs is read.
"""

from __future__ import annotations

from array import array
from struct import Struct
from typing import TYPE_CHECKING

from verl_tui.sources.fields.protobuf import signed_varint, varint

if TYPE_CHECKING:
    from verl_tui.sources.formats.tensorboard.values import LoggedEvent, SummaryValue

STEPS = 2**62
"""Steps beyond which no step is meant."""
_TIME, _SUMMARY = 0x09, 0x2A
"""Tags of the fields of an event that begin it and end it; between them the step may stand."""
_SECONDS, _NUMBER = Struct("<d").unpack_from, Struct("<f").unpack_from


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


class KnownTags:
    """Knows how the records of tags seen before are written."""

    def __init__(self) -> None:
        self._known: dict[int, dict[bytes, Scalars]] = {}
        """Scalars by the end of the step and the bytes between it and the number."""
        self._step = 0
        """Of the last record."""
        self._written = b""
        """The bytes of that step with its tag; where protobuf left out a step of 0, the tag that
        follows.
        """
        self._end = 10
        """Index at which they end."""
        self._tags: dict[bytes, Scalars] = {}
        """Those for this end."""

    def read(self, record: bytes) -> bool:
        """Read a record with its checksum; false where nothing is known of it."""
        if record[9 : self._end] != self._written:
            self._turn_to(record)
        scalars = self._tags.get(record[self._end : -8])
        if scalars is None or record[0] != _TIME:
            return False
        scalars.steps.append(self._step)
        scalars.times.extend(_SECONDS(record, 1))
        scalars.values.extend(_NUMBER(record, len(record) - 8))
        return True

    def learn(
        self,
        data: bytes,
        event: LoggedEvent,
        value: SummaryValue,
        scalars: Scalars,
    ) -> None:
        """Remember how to read records like this one, if it is only a time, a step and one number.

        Args:
            data: The record without its checksum.
            event: Its content.
            value: The only value in it.
            scalars: What is kept of its tag.
        """
        self._turn_to(data)
        size = len(data)
        end = self._end
        summary = event.summary
        begin = 9 if end == 10 else end
        if value.simple is None or summary is None:
            return
        if (
            data[0] == _TIME
            and data[begin] == _SUMMARY
            and value.simple.stop == summary.stop == size
            and varint(data, begin + 1)[1] == summary.start
        ):
            self._tags[data[end:-4]] = scalars

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
        self._tags = (
            self._known.setdefault(self._end, {}) if abs(self._step) < STEPS else {}
        )
