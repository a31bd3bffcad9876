"""TensorBoard's event files: writes them, and reads back those written before.

The formats are those of `verl_tui.sources.formats.tensorboard.frames` (records) and
`verl_tui.sources.formats.tensorboard.values` (their content). All scalars of a step go into
one event: TensorBoard reads them as well, and a record's overhead is paid once a step instead of
once a metric.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from array import array
from contextlib import suppress
from functools import cache
from itertools import compress, count
from typing import TYPE_CHECKING

from verl_tui.sources.fields.protobuf import BYTES
from verl_tui.sources.formats.tensorboard.frames import RecordSplitter, checksum, sound
from verl_tui.sources.formats.tensorboard.values import (
    SIMPLE,
    TAG,
    read_event,
    read_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.distributions import Bins

SUFFIX = ".verl-tui"
"""Ending of the names of the files written here."""
TEXT = "/text_summary"
"""Ending that torch and tensorboardX append to the tag of a text."""
_NAME = "events.out.tfevents."
_VERSION = b"brain.Event:2"
_BLOCK = 2**20
_HOLD = 2**20
"""Bytes buffered before they are written."""
_STARTED = bytes([7 << 3 | BYTES, 2, 1 << 3, 1])
"""`Event.session_log.status = START`: drops this step and later ones of earlier files."""


class WrittenEvents:
    """The content of one directory's event files."""

    def __init__(self) -> None:
        self.scalars: dict[str, tuple[array[int], array[float]]] = {}
        """Steps and values by tag, in the order in which they were written."""
        self.last: dict[str, int] = {}
        """The newest step of each tag that has histograms or texts."""

    def add(self, tag: str, step: int, value: float) -> None:
        """Note a scalar."""
        steps, values = self.scalars.setdefault(tag, (array("q"), array("f")))
        steps.append(step)
        values.append(value)

    def note(self, tag: str, step: int) -> None:
        """Note a histogram or a text."""
        self.last[tag] = max(step, self.last.get(tag, step))

    def drop(self, first: int) -> None:
        """Forget a step and those after it."""
        for steps, values in self.scalars.values():
            kept = [step < first for step in steps]
            values[:] = array("f", compress(values, kept))
            steps[:] = array("q", compress(steps, kept))
        self.last = {tag: min(step, first - 1) for tag, step in self.last.items()}


def read_event_files(directory: Path) -> WrittenEvents:
    """Return the content of a directory's event files, oldest first, without a truncated record.

    Raises:
        OSError: One cannot be read.
        ValueError: One of them was not written here; the text is its name.
    """
    found = WrittenEvents()
    for path in sorted(directory.glob(f"*{_NAME}*"), key=lambda path: path.name):
        if not path.name.endswith(SUFFIX):
            raise ValueError(path.name)
        splitter = RecordSplitter(lambda record: _take(found, record))
        with path.open("rb") as file:
            while data := file.read(_BLOCK):
                splitter.feed(data)
    return found


def _take(found: WrittenEvents, record: bytes) -> bool:
    """Add a record to the content; return whether the checksum at its end is right."""
    if not sound(record):
        return False
    data = record[:-4]
    event = read_event(data)
    if event.summary is None:
        if data.endswith(_STARTED):
            found.drop(event.step)
        return True
    for value in event.values:
        simple = value.part(SIMPLE)
        if simple is not None:
            found.add(value.text(TAG), event.step, read_number(simple))
        else:
            found.note(value.text(TAG), event.step)
    return True


class EventFile:
    """An event file that is being written."""

    def __init__(self, directory: Path, now: float) -> None:
        """Begin a new file, which sorts after those in the directory.

        Args:
            directory: An existing directory.
            now: Seconds since the epoch.

        Raises:
            OSError: It cannot be made.
        """
        stem = f"{_NAME}{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        for number in count():
            self._path = directory / f"{stem}.{number}{SUFFIX}"
            with suppress(FileExistsError):
                self._path.open("xb").close()
                break
        self._held: list[bytes] = []
        self._size = 0
        self._put(_double(1, now) + _bytes(3, _VERSION))

    @property
    def holds(self) -> bool:
        """True if records are buffered."""
        return bool(self._held)

    def start(self, step: int, time: float) -> None:
        """Declare that this step and later ones written so far are to be dropped."""
        self._put(_head(step, time) + _STARTED)

    def scalars(
        self, step: int, time: float, values: Iterable[tuple[str, bytes]]
    ) -> None:
        """Write scalars of one step.

        Args:
            step: The trainer's step.
            time: Seconds since the epoch.
            values: Each tag with its value, in four bytes, see `floats`.
        """
        summary = b"".join([_scalar(tag) + value for tag, value in values])
        self._put(_head(step, time) + _bytes(5, summary))

    def histogram(self, step: int, time: float, tag: str, bins: Bins) -> None:
        """Write a histogram; its sums are those of the bins' middles, which TensorBoard does not
        show.
        """
        counts = bins.counts
        width = (bins.high - bins.low) / len(counts)
        limits = [bins.low + width * at for at in range(1, len(counts))] + [bins.high]
        middles = [limit - width / 2 for limit in limits]
        middles_and_counts = list(zip(middles, counts, strict=True))
        histogram = (
            _double(1, bins.low)
            + _double(2, bins.high)
            + _double(3, sum(counts))
            + _double(4, sum(middle * many for middle, many in middles_and_counts))
            + _double(5, sum(mid * mid * many for mid, many in middles_and_counts))
            + _bytes(6, _doubles(limits))
            + _bytes(7, _doubles(counts))
        )
        value = _bytes(1, tag.encode()) + _bytes(5, histogram)
        self._put(_head(step, time) + _bytes(5, _bytes(1, value)))

    def text(self, step: int, time: float, tag: str, text: str) -> None:
        """Write a text, which TensorBoard takes as Markdown."""
        # A tensor of one string, as `torch.utils.tensorboard.summary.text` has it.
        shape = _bytes(2, _bytes(2, bytes([1 << 3, 1])))
        tensor = bytes([1 << 3, 7]) + shape + _bytes(8, text.encode("utf-8", "replace"))
        metadata = _bytes(1, _bytes(1, b"text"))
        name = _bytes(1, (tag + TEXT).encode())
        value = name + _bytes(8, tensor) + _bytes(9, metadata)
        self._put(_head(step, time) + _bytes(5, _bytes(1, value)))

    def flush(self) -> None:
        """Write the buffered records; the file is closed afterwards.

        Raises:
            OSError: It cannot be written.
        """
        with self._path.open("ab") as file:
            file.write(b"".join(self._held))
        self._held.clear()
        self._size = 0

    def _put(self, data: bytes) -> None:
        header = struct.pack("<Q", len(data))
        record = header + checksum(header) + data + checksum(data)
        self._held.append(record)
        self._size += len(record)
        if self._size > _HOLD:
            self.flush()


def floats(values: Iterable[float]) -> bytes:
    """Return values in the form of event files, four bytes each; too large a value is infinite."""
    numbers = array("f", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _doubles(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def _head(step: int, time: float) -> bytes:
    return _double(1, time) + bytes([2 << 3]) + _varint(step)


@cache
def _scalar(tag: str) -> bytes:
    """Return the encoding of a scalar without its number, the only part that differs."""
    name = _bytes(1, tag.encode("utf-8", "replace")) + bytes([2 << 3 | 5])
    return bytes([1 << 3 | BYTES]) + _varint(len(name) + 4) + name


def _double(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | BYTES]) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
