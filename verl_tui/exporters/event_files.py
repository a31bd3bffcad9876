"""TensorBoard's event files: writes them, and reads back those written before.

The formats are those of `verl_tui.sources.formats.event_frames` (records) and
`verl_tui.sources.formats.tensorboard` (their content). All scalars of a step go into
one event: TensorBoard reads them as well, and a record's overhead is paid once a step instead of
once a metric.
"""

from __future__ import annotations

import os
import socket
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import compress, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from verl_tui.sources.fields.protobuf import BYTES, message
from verl_tui.sources.formats.event_frames import FrameCutter, Frames, checksum
from verl_tui.sources.formats.tensorboard import (
    SIMPLE,
    SUMMARY,
    TAG,
    read_number,
    values_of,
)

if TYPE_CHECKING:
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
EventFields: TypeAlias = "Mapping[int, Any]"
"""A message of protobuf: field -> double, integer, text, bytes or a message."""
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
        cutter = FrameCutter()
        with path.open("rb") as file:
            while data := file.read(_BLOCK):
                for frames in cutter.feed(data):
                    if isinstance(frames, Frames):
                        for begin, end in zip(frames.begins, frames.ends, strict=True):
                            _take(found, frames.data[begin:end])
    return found


def _take(found: WrittenEvents, data: bytes) -> None:
    """Add a record to the content."""
    event = message(data)
    step = event.integer(2)
    if SUMMARY not in event and data.endswith(_STARTED):
        found.drop(step)
    for value in values_of(event):
        simple = value.part(SIMPLE)
        if simple is not None:
            found.add(value.text(TAG), step, read_number(simple))
        else:
            found.note(value.text(TAG), step)


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
        self._held = bytearray()
        self._put({1: now, 3: _VERSION})

    def start(self, step: int, time: float) -> None:
        """Have readers drop what was written so far of this step and later ones."""
        self._put({1: time, 2: step, 7: {1: 1}})

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
        self._put({1: time, 2: step, 5: summary})

    def histogram(self, step: int, time: float, tag: str, bins: Bins) -> None:
        """Write a histogram; its sums are those of the bins' middles, which TensorBoard does not
        show.
        """
        limits = np.linspace(bins.low, bins.high, len(bins.counts) + 1)
        middles = (limits[1:] + limits[:-1]) / 2
        counts = np.array(bins.counts, np.float64)
        histogram = {
            1: bins.low,
            2: bins.high,
            3: float(counts.sum()),
            4: float(counts @ middles),
            5: float(counts @ middles**2),
            6: limits[1:].astype("<f8").tobytes(),
            7: counts.astype("<f8").tobytes(),
        }
        self._put({1: time, 2: step, 5: {1: {1: tag, 5: histogram}}})

    def text(self, step: int, time: float, tag: str, text: str) -> None:
        """Write a text, which TensorBoard takes as Markdown."""
        # A tensor of one string, as `torch.utils.tensorboard.summary.text` has it.
        tensor = {1: 7, 2: {2: {1: 1}}, 8: text}
        value = {1: tag + TEXT, 8: tensor, 9: {1: {1: "text"}}}
        self._put({1: time, 2: step, 5: {1: value}})

    def flush(self) -> None:
        """Write the buffered records, if any; the file is closed afterwards.

        Raises:
            OSError: It cannot be written.
        """
        with self._path.open("ab") as file:
            file.write(self._held)
        self._held.clear()

    def _put(self, event: EventFields) -> None:
        data = encoded(event)
        header = struct.pack("<Q", len(data))
        self._held += header + checksum(header) + data + checksum(data)
        if len(self._held) > _HOLD:
            self.flush()


def floats(values: Sequence[float]) -> bytes:
    """Return values in the form of event files, four bytes each; too large a value is infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values, "<f4").tobytes()


def encoded(message: EventFields) -> bytes:
    """Return a message of protobuf, given by the numbers of its fields."""
    out = bytearray()
    for field, value in message.items():
        if isinstance(value, float):
            out += bytes([field << 3 | 1]) + struct.pack("<d", value)
        elif isinstance(value, int):
            out += bytes([field << 3]) + _varint(value)
        else:
            data = value.encode("utf-8", "replace") if isinstance(value, str) else value
            data = encoded(data) if isinstance(data, dict) else data
            out += bytes([field << 3 | BYTES]) + _varint(len(data)) + data
    return bytes(out)


@cache
def _scalar(tag: str) -> bytes:
    """Return the encoding of a scalar without its number, the only part that differs."""
    name = encoded({1: tag}) + bytes([2 << 3 | 5])
    return bytes([1 << 3 | BYTES]) + _varint(len(name) + 4) + name


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
