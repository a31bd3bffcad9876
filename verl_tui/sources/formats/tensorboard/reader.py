"""TensorBoard's event files (`events.out.tfevents.…`) of torch, tensorboardX and TensorFlow.

Scalars become metrics, histograms metrics of their quantiles (`tag/p05` … `tag/p95`), text becomes
samples or settings. Pictures, sound and graphs are passed over.

What events hold is stated in tensorflow/core/util/event.proto and
framework/{summary,tensor,histogram}.proto, whose fields have not changed since 2015; new ones are
passed over. All records of one tag that are a number, as nearly all are, have the same bytes but
for time, step and number. So the first one is remembered by these bytes, and of others only what
differs is read.
"""

from __future__ import annotations

import math
import struct
from array import array
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import of_bins, of_limits
from verl_tui.records import Histogram, MetricRows, Unreadable
from verl_tui.sources.fields.protobuf import (
    MessageFields,
    message,
    signed_varint,
    varint,
)
from verl_tui.sources.fields.row_batcher import replaced_note
from verl_tui.sources.formats.format import Parts, Reader
from verl_tui.sources.formats.tensorboard.frames import (
    RecordSplitter,
    first_record,
    length,
    sound,
)
from verl_tui.sources.formats.tensorboard.texts import read_texts
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.distributions import Distribution
    from verl_tui.records import Record
    from verl_tui.sources.fields.protobuf import MessageFields


TAG, SIMPLE, HISTOGRAM, TENSOR = 1, 2, 5, 8
"""Fields of `Summary.Value`."""
_FILE_VERSION, _EVENT_SUMMARY, _VALUES, _METADATA = 3, 5, 1, 9
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_CODES = {1: ("f", 5), 2: ("d", 6)}
"""Type of a tensor -> code of its numbers for `struct`, field in which they stand where they are
not in `tensor_content`. Summaries of numbers are cast to one of these: to float those of scalars
(tensorboard/plugins/scalar/summary_v2.py), to double those of histograms.
"""
_MOST_NUMBERS = 2**16
"""Numbers of one tensor that are read: scalars have one, histograms hundreds."""


class LoggedEvent(NamedTuple):
    """What was logged at one moment."""

    time: float
    step: int
    version: str
    summary: bytes | None
    """Its values as they are written."""

    @property
    def values(self) -> list[MessageFields]:
        """The values of a summary.

        Raises:
            ValueError: It is none.
        """
        return list(map(message, message(self.summary or b"").parts(_VALUES)))


class TensorValue(NamedTuple):
    """A tensor of numbers or of texts."""

    shape: tuple[int, ...]
    numbers: tuple[float, ...]
    texts: tuple[str, ...]


def read_event(data: bytes) -> LoggedEvent:
    """Return the event that a record holds.

    Raises:
        ValueError: It holds none.
    """
    event = message(data)
    time = read_number(event.part(1), _DOUBLE)
    return LoggedEvent(
        time, event.integer(2), event.text(_FILE_VERSION), event.part(_EVENT_SUMMARY)
    )


def read_number(written: bytes | None, form: struct.Struct = _FLOAT) -> float:
    """Return a number written in full; protobuf leaves out what is 0.

    Raises:
        ValueError: It has another length.
    """
    if written is None:
        return 0.0
    if len(written) != form.size:
        raise ValueError(f"a number of {len(written):,} bytes")
    found: float = form.unpack(written)[0]
    return found


def plugin_of(value: MessageFields) -> str:
    """Return `SummaryMetadata.plugin_data.plugin_name` of a value."""
    metadata = message(value.part(_METADATA) or b"")
    return message(metadata.part(1) or b"").text(1)


def read_tensor(written: bytes) -> TensorValue:
    """Return the numbers and texts of a tensor; numbers of unsupported types are left out.

    Raises:
        ValueError: It is no tensor, or has too many numbers.
    """
    tensor = message(written)
    code, field = _CODES.get(tensor.integer(1), ("", 0))
    content = tensor.part(4) or b"".join(tensor.parts(field))
    numbers = _unpacked(code, content) if code else []
    shape = _shape(tensor.part(2) or b"")
    texts = [text.decode("utf-8", "replace") for text in tensor.parts(8)]
    return TensorValue(shape, _filled(numbers, math.prod(shape)), tuple(texts))


def _filled(numbers: list[float], size: int) -> tuple[float, ...]:
    """Return as many numbers as a tensor has: the last one written stands for all that follow."""
    if max(len(numbers), size) > _MOST_NUMBERS:
        raise ValueError(f"a tensor of {max(len(numbers), size):,} numbers")
    return (*numbers, *numbers[-1:] * (size - len(numbers)))


def _shape(written: bytes) -> tuple[int, ...]:
    sizes = [message(size).integer(1) for size in message(written).parts(2)]
    if any(size < 0 for size in sizes):
        raise ValueError("a tensor of unknown shape")
    return tuple(sizes)


def _unpacked(code: str, data: bytes) -> list[float]:
    if len(data) > 8 * _MOST_NUMBERS or len(data) % struct.calcsize(f"<{code}"):
        raise ValueError(f"{len(data):,} bytes of numbers")
    return [float(found) for (found,) in struct.iter_unpack(f"<{code}", data)]


def read_histogram(written: bytes) -> Distribution | None:
    """Return the distribution of a histogram, None of an empty one.

    Raises:
        ValueError: It is none.
    """
    found = message(written)
    low, high = (read_number(found.part(field), _DOUBLE) for field in (1, 2))
    limits, counts = (_unpacked("d", b"".join(found.parts(field))) for field in (6, 7))
    return of_limits(low, high, limits, counts)


def histogram_of(tensor: TensorValue) -> Distribution | None:
    """Return the distribution of a histogram that TensorFlow 2 wrote: rows of left edge, right edge
    and count.

    The bins adjoin. Of equal values its bins reach beyond them, so minimum and maximum are not
    known.

    Raises:
        ValueError: The tensor is none.
    """
    _, *columns = tensor.shape or (0,)
    if columns != [3] or len(tensor.numbers) != math.prod(tensor.shape):
        raise ValueError(f"a histogram of shape {tensor.shape}")
    lefts, limits, counts = (tensor.numbers[column::3] for column in range(3))
    return of_bins([lefts[0], *limits], counts) if lefts else None


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


name = "tensorboard events"
rank = 5
anchor = True
absolute = True  # its records state seconds since the epoch
# as many numbers as a quarter of that in text: each tag's are handed on together
chunk = 2**20

NAMED = "events.out.tfevents."
"""A part of the name of every event file."""

_VERSION = "brain.Event:"
_LONGEST_TAG = 1000


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file of that name begins with a record, or not at all yet."""
    return NAMED in path.name and (not head or length(head[:12]) is not None)


class EventsReader(Reader):
    """Reads an event file: its scalars, histograms and texts."""

    def __init__(self, path: Path | str = "", at: int = 0) -> None:
        """Begin to read a file at a place."""
        self._origin = str(path)
        self._begin(at)

    @property
    def note(self) -> str | None:
        """Return a note on values that were replaced by others of the same tag and step."""
        return replaced_note(sum(one.replaced for one in self._scalars.values()))

    @property
    def needs_beginning(self) -> bool:
        """True if a tensor was passed over that a record before its part may tell how to read, or
        a tag went back to earlier steps: then values of later ones may stand before the part.
        """
        went_back = any(one.went_back for one in self._scalars.values())
        return self._start > 0 and (self._unknown or went_back)

    def _begin(self, at: int = 0) -> None:
        self._start = at
        """The byte of the file at which it begins to read."""
        self._known = KnownTags()
        self._splitter = RecordSplitter(self._take, at)
        self._scalars: dict[str, Scalars] = {}
        self._plugins: dict[str, str] = {}
        """Plugin by tag, which only the tag's first record has to name."""
        self._unknown = False
        """True if there was a tensor whose tag no record so far gives a plugin."""
        self._out: list[Record] = []
        self._wrong: list[Unreadable] = []

    def feed(self, data: bytes) -> Sequence[Record]:
        """Return the contents of the records that these bytes complete."""
        self._wrong.extend(self._splitter.feed(data))
        rows = [one.rows() for one in self._scalars.values() if one.steps]
        wrong = sorted(self._wrong, key=lambda unreadable: unreadable.line)
        out, self._out, self._wrong = self._out, [], []
        return (*wrong, *rows, *out)

    def later(self, at: int) -> EventsReader:
        """Return a reader of the records from a later place in the file on, which knows the tags so
        far.
        """
        later = EventsReader(self._origin, at)
        later._plugins = self._plugins.copy()
        for tag, own in self._scalars.items():
            # their rows come in the order in which tags were met
            later._scalars_of(tag).went_back = own.went_back
        later._known.update(self._known)
        return later

    def restart(self, reason: str) -> Sequence[Record]:
        """Forget everything: the file starts again."""
        self._begin()
        return super().restart(reason)

    def _take(self, record: bytes) -> bool:
        """Take a record with its checksum; return False if that is wrong."""
        if not sound(record):
            return False
        if not self._known.read(record, self._scalars):
            try:
                self._read(record[:-4])
            except ValueError as error:
                self._complain(f"no event: {error}", record[:12].hex(" "))
        return True

    def _read(self, data: bytes) -> None:
        event = read_event(data)
        first = self._splitter.number == 1 and not self._start
        if first and not event.version.startswith(_VERSION):
            version = one_line(event.version or "missing", 40)
            raise ValueError(f"the version is {version}")
        if event.summary is None:
            return
        if abs(event.step) >= STEPS:
            raise ValueError(f"the step is {event.step}")
        self._add_all(data, event)

    def _add_all(self, data: bytes, event: LoggedEvent) -> None:
        values = event.values
        if (
            len(values) == 1
            and event.summary
            and (number := values[0].part(SIMPLE)) is not None
        ):
            self._known.learn(data, event.summary, number, values[0].text(TAG))
        for value in values:
            tag = value.text(TAG)
            try:
                self._add(event, tag, value)
            except ValueError as error:  # its neighbours are read
                self._complain(str(error), one_line(tag, 100))

    def _complain(self, reason: str, excerpt: str) -> None:
        self._wrong.append(Unreadable(self._splitter.number, reason, excerpt))

    def _add(self, event: LoggedEvent, tag: str, value: MessageFields) -> None:
        """Take one value of an event."""
        simple, histogram, tensor = map(value.part, (SIMPLE, HISTOGRAM, TENSOR))
        if plugin := plugin_of(value):
            self._plugins.setdefault(tag, plugin)
        plugin = self._plugins.get(tag, "")
        if simple is not None:
            self._scalars_of(tag).add(event.step, event.time, read_number(simple))
        elif histogram is not None:
            self._add_figures(event, tag, read_histogram(histogram))
        elif tensor is not None:
            self._unknown = self._unknown or not plugin
            if plugin == "text":
                texts = read_tensor(tensor).texts
                self._out.extend(read_texts(tag, event.step, texts, self._origin))
            elif plugin == "histograms":
                self._add_figures(event, tag, histogram_of(read_tensor(tensor)))
            elif plugin == "scalars" and len(one := read_tensor(tensor).numbers) == 1:
                self._scalars_of(tag).add(event.step, event.time, one[0])

    def _add_figures(
        self, event: LoggedEvent, tag: str, found: Distribution | None
    ) -> None:
        if found is None:
            raise ValueError("an empty histogram")
        for figure, value in found.figures.items():
            self._scalars_of(f"{tag}/{figure}").add(event.step, event.time, value)
        key = safe(tag, _LONGEST_TAG)
        order = order_of(event.time)
        self._out.append(Histogram(key, event.step, *found.bins, order))

    def _scalars_of(self, tag: str) -> Scalars:
        found = self._scalars.get(tag)
        if found is None:
            found = self._scalars[tag] = Scalars(safe(tag, _LONGEST_TAG))
        return found


reader = EventsReader
parts = Parts(first_record, EventsReader.later, cut=2, by_time=True)
"""In case one of the first records counts something else than the trainer's steps, two are cut.

Records state all that they say but for the plugins of tensors, which are those that the beginning
of the file names. The steps of a tag ascend, as writers begin another file when a run is resumed:
where they are seen to go back, the part needs what lies before it.
"""
