"""Reads those of TensorBoard's records that are a number of a tag seen before, which nearly all
are.

All records of one tag have the same bytes but for time, step and number. So the first one is
remembered by these bytes, and of others only what differs is read.
"""

from __future__ import annotations

from array import array
from struct import Struct

from verl_tui.records import MetricRows
from verl_tui.sources.fields.protobuf import signed_varint, varint

STEPS = 2**62
"""Steps beyond which no step is meant."""
_TIME, _STEP, _SUMMARY, _SIMPLE = 0x09, 0x10, 0x2A, 0x15
"""Tags of the fields of an event, which stand in this order, and of the number in its summary."""
_SECONDS, _NUMBER = Struct("<d").unpack_from, Struct("<f").unpack_from
_LATEST = 2.0**40 / 100 - 1
"""Seconds since the epoch beyond which times make no order of rows any more."""


class Scalars:
    """Steps, times and numbers of one tag, since they were last handed on."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.steps = array("q")
        self.times = array("d")
        self.values = array("d")
        self.replaced = 0
        """Values that had another value of the same step right before them."""
        self.went_back = False
        """True if steps did not ascend."""
        self._newest: tuple[list[int], list[float]] = [], []
        """Step and value of the last of those that were handed on."""

    def add(self, step: int, time: float, value: float) -> None:
        """Take in a number."""
        self.steps.append(step)
        self.times.append(time)
        self.values.append(value)

    def rows(self) -> MetricRows:
        """Return the numbers as rows, and forget them.

        Rows are ordered by the hundredth of a second in which they were written: a resumed run
        writes a new file, and of two values for one step the later one wins.
        """
        import numpy as np  # not before the first frame is drawn

        steps, values, times = self.steps, self.values, self.times
        further = np.diff([*self._newest[0], *steps])
        others = np.concatenate((self._newest[1], values))
        self.went_back |= bool((further < 0).any())
        self.replaced += int(((further == 0) & (others[1:] != others[:-1])).sum())
        self._newest = [steps[-1]], [values[-1]]
        self.steps, self.values, self.times = array("q"), array("d"), array("d")
        hundredths = np.fmin(np.fmax(times, 0.0), _LATEST) * 100
        orders = array("q", hundredths.astype(np.int64).tobytes())
        return MetricRows((self.key,), steps, (values,), orders, times)


def order_of(time: float) -> int:
    """Return the place of what was written at a time among rows."""
    return int(min(max(0.0, time), _LATEST) * 100)


class KnownTags(dict[bytes, str]):
    """Tags seen before, by the bytes between a step and the number in their records."""

    def read(self, record: bytes, scalars: dict[str, Scalars]) -> bool:
        """Read a record with its checksum; false where nothing is known of it."""
        step, end = _step(record)
        tag = self.get(record[end:-8])
        if tag is None or abs(step) >= STEPS:
            return False
        own = scalars[tag]
        own.steps.append(step)
        own.times.extend(_SECONDS(record, 1))
        own.values.extend(_NUMBER(record, len(record) - 8))
        return True

    def learn(self, data: bytes, summary: bytes, number: bytes, tag: str) -> None:
        """Remember how to read records like this one, if it is only a time, a step and one number.

        Args:
            data: The record without its checksum, of which nothing is known.
            summary: Its summary, of one value.
            number: The bytes of that.
            tag: Its tag.
        """
        _, end = _step(data)
        before = data[end:-4]
        if before[:1] != bytes([_SUMMARY]) or before[-1] != _SIMPLE:
            return
        if before[varint(before, 1)[1] :] + number == summary:
            self[before] = tag


def _step(record: bytes) -> tuple[int, int]:
    """Return the step in a record of the usual form, and where it ends."""
    if len(record) < 10 or record[0] != _TIME:
        return 0, 0
    if record[9] != _STEP:
        return 0, 9
    try:
        step, end = varint(record, 10)
    except ValueError:
        return 0, 0
    return signed_varint(step), end
