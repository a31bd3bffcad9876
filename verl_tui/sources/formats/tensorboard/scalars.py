"""Reads those of TensorBoard's records that are a number of a tag seen before, which nearly all
are.

All records of one tag have the same bytes but for time, step and number. So the first one is
remembered by these bytes, and of others only what differs is read.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from operator import eq, gt
from struct import Struct
from typing import TYPE_CHECKING

from verl_tui.sources.fields.protobuf import signed_varint, varint

if TYPE_CHECKING:
    from collections.abc import Mapping

STEPS = 2**62
"""Steps beyond which no step is meant."""
_TIME, _STEP, _SUMMARY, _SIMPLE = 0x09, 0x10, 0x2A, 0x15
"""Tags of the fields of an event, which stand in this order, and of the number in its summary."""
_SECONDS, _NUMBER = Struct("<d").unpack_from, Struct("<f").unpack_from


class Scalars:
    """Steps, times and numbers of one tag, since they were last handed on."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.steps = array("q")
        self.times = array("d")
        self.values = array("d")
        self.newest: tuple[int, float] | None = None
        """Step and value of the last of those that were handed on."""

    def add(self, step: int, time: float, value: float) -> None:
        """Take in a number."""
        self.steps.append(step)
        self.times.append(time)
        self.values.append(value)

    def goes_back(self) -> bool:
        """Return whether new steps do not ascend from those before."""
        before = self.newest
        if before is not None and before[0] > self.steps[0]:
            return True
        return any(map(gt, self.steps, self.steps[1:]))

    def replaced(self) -> int:
        """Return how many new values have another value of the same step right before them; keep
        the last one.
        """
        steps = self.steps
        values = self.values
        first = steps[0], values[0]
        count = int(_replaces(self.newest, first))
        self.newest = steps[-1], values[-1]
        if any(map(eq, steps, steps[1:])):  # hardly ever, and quickly found out
            pairs = pairwise(zip(steps, values, strict=True))
            count += sum(_replaces(before, after) for before, after in pairs)
        return count


def _replaces(before: tuple[int, float] | None, after: tuple[int, float]) -> bool:
    """Return whether a step and its value have another value of the same step right before them."""
    return before is not None and before[0] == after[0] and before[1] != after[1]


class KnownTags:
    """Knows how the records of tags seen before are written."""

    def __init__(self) -> None:
        self._known: dict[bytes, Scalars] = {}
        """Scalars by the bytes between a step and the number."""

    def copied(
        self, own: Mapping[str, Scalars], others: Mapping[str, Scalars]
    ) -> KnownTags:
        """Return what is known, for other scalars of the same tags."""
        tags = {scalars: tag for tag, scalars in own.items()}
        copied = KnownTags()
        copied._known = {key: others[tags[one]] for key, one in self._known.items()}
        return copied

    def read(self, record: bytes) -> bool:
        """Read a record with its checksum; false where nothing is known of it."""
        step, end = _step(record)
        scalars = self._known.get(record[end:-8])
        if scalars is None or abs(step) >= STEPS:
            return False
        scalars.steps.append(step)
        scalars.times.extend(_SECONDS(record, 1))
        scalars.values.extend(_NUMBER(record, len(record) - 8))
        return True

    def learn(
        self, data: bytes, summary: bytes, number: bytes, scalars: Scalars
    ) -> None:
        """Remember how to read records like this one, if it is only a time, a step and one number.

        Args:
            data: The record without its checksum, of which nothing is known.
            summary: Its summary, of one value.
            number: The bytes of that.
            scalars: What is kept of its tag.
        """
        _, end = _step(data)
        before = data[end:-4]
        if before[:1] != bytes([_SUMMARY]) or before[-1] != _SIMPLE:
            return
        if before[varint(before, 1)[1] :] + number == summary:
            self._known[before] = scalars


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
