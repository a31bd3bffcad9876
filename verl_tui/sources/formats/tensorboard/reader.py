"""TensorBoard's event files (`events.out.tfevents.…`) of torch, tensorboardX and TensorFlow.

Scalars become metrics, histograms metrics of their quantiles (`tag/p05` … `tag/p95`), text becomes
samples or settings. Pictures, sound and graphs are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import Histogram, Unreadable
from verl_tui.sources.fields.row_batcher import replaced_note
from verl_tui.sources.formats.format import Parts, Reader
from verl_tui.sources.formats.tensorboard.frames import (
    RecordSplitter,
    first_record,
    length,
    sound,
)
from verl_tui.sources.formats.tensorboard.scalars import (
    STEPS,
    KnownTags,
    Scalars,
    order_of,
)
from verl_tui.sources.formats.tensorboard.texts import read_texts
from verl_tui.sources.formats.tensorboard.values import (
    HISTOGRAM,
    SIMPLE,
    TAG,
    TENSOR,
    histogram_of,
    plugin_of,
    read_event,
    read_histogram,
    read_number,
    read_tensor,
)
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.distributions import Distribution
    from verl_tui.records import Record
    from verl_tui.sources.fields.protobuf import MessageFields
    from verl_tui.sources.formats.tensorboard.values import LoggedEvent

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
        values = event.values
        if len(values) == 1 and (number := values[0].part(SIMPLE)) is not None:
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
