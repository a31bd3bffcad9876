"""TensorBoard's event files (`events.out.tfevents.…`) of torch, tensorboardX and TensorFlow.

Scalars become metrics, histograms metrics of their quantiles (`tag/p05` … `tag/p95`), text becomes
samples or settings. Pictures, sound and graphs are passed over.

What events hold is stated in tensorflow/core/util/event.proto and
framework/{summary,tensor,histogram}.proto, whose fields have not changed since 2015; new ones are
passed over. All records of one tag that are a number, as nearly all are, have the same bytes but
for time, step and number. So the first one is remembered by these bytes, and of others only what
differs is read, of all in a block at once.
"""

from __future__ import annotations

import re
import struct
from array import array
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

from verl_tui.distributions import Distribution, of_bins, of_limits
from verl_tui.patterns import pattern
from verl_tui.records import Histogram, MetricRows, Record, Sample, Settings, Unreadable
from verl_tui.sources.fields.jsonl import Fields, loads, written_number
from verl_tui.sources.fields.protobuf import MessageFields, message, varint
from verl_tui.sources.fields.row_batcher import replaced_note
from verl_tui.sources.fields.sample import is_validation, read_sample
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.formats.event_frames import (
    FrameCutter,
    Frames,
    length,
    numbers_at,
)
from verl_tui.sources.formats.format import Reader
from verl_tui.text import decoded, one_line, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Columns = Sequence[NDArray[Any]]
    """Of numbers: tags, places among the records, steps, times, values."""

name = "tensorboard events"
rank = 5
anchor = True
absolute = True  # its records state seconds since the epoch

NAMED = "events.out.tfevents."
"""A part of the name of every event file."""
TAG, SIMPLE, HISTOGRAM, TENSOR = 1, 2, 5, 8
"""Fields of `Summary.Value`."""
_FILE_VERSION, SUMMARY, _VALUES, _METADATA = 3, 5, 1, 9
_TIME, _STEP, _SUMMARY, _SIMPLE = 0x09, 0x10, 0x2A, 0x15
"""Tags of the fields of an event, which stand in this order, and of the number in its summary."""
_CODES = {1: ("<f4", 5), 2: ("<f8", 6)}
"""Type of a tensor -> that of its numbers, field in which they stand where they are not in
`tensor_content`. Summaries of numbers are cast to one of these: to float those of scalars
(tensorboard/plugins/scalar/summary_v2.py), to double those of histograms.
"""
_MOST_NUMBERS = 2**16
"""Numbers of one tensor that are read: scalars have one, histograms hundreds."""
_STEPS = 2**62
"""Steps beyond which no step is meant."""
_DIGITS = 8
"""Bytes of the longest step that is read together with others."""
_LATEST = 2.0**40 / 100 - 1
"""Seconds since the epoch beyond which times make no order of rows any more."""
_VERSION = "brain.Event:"
_LONGEST_TAG = 1000


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file of that name begins with a record, or not at all yet."""
    return NAMED in path.name and (not head or length(head[:12]) is not None)


def values_of(event: MessageFields) -> list[MessageFields]:
    """Return the values that were logged at one moment."""
    return list(map(message, message(event.part(SUMMARY) or b"").parts(_VALUES)))


def read_number(written: bytes | None, form: str = "<f") -> float:
    """Return a number written in full; protobuf leaves out what is 0.

    Raises:
        ValueError: It has another length.
    """
    try:
        found: float = struct.unpack(form, written)[0] if written is not None else 0.0
    except struct.error as error:
        raise ValueError(str(error)) from None
    return found


def _numbers(content: bytes, form: str) -> list[float]:
    import numpy as np

    if len(content) > 8 * _MOST_NUMBERS or len(content) % int(form[-1]):
        raise ValueError(f"{len(content):,} bytes of numbers")
    numbers: list[float] = np.frombuffer(content, form).astype(np.float64).tolist()
    return numbers


def _tensor(tensor: MessageFields) -> list[float]:
    """Return the numbers of a tensor, none of an unsupported type.

    Raises:
        ValueError: It has too many.
    """
    form, field = _CODES.get(tensor.integer(1), ("", 0))
    content = tensor.part(4) or b"".join(tensor.parts(field))
    return _numbers(content, form) if form else []


def _histogram(found: MessageFields) -> Distribution | None:
    """Return the distribution of a histogram, None of an empty one."""
    low, high = (read_number(found.part(field), "<d") for field in (1, 2))
    limits, counts = (b"".join(found.parts(field)) for field in (6, 7))
    return of_limits(low, high, _numbers(limits, "<f8"), _numbers(counts, "<f8"))


def _binned(numbers: list[float]) -> Distribution | None:
    """Return the distribution of a histogram that TensorFlow 2 wrote: rows of left edge, right edge
    and count.

    The bins adjoin. Of equal values its bins reach beyond them, so minimum and maximum are not
    known.
    """
    if len(numbers) % 3:
        raise ValueError(f"a histogram of {len(numbers):,} numbers")
    lefts, limits, counts = (numbers[column::3] for column in range(3))
    return of_bins([lefts[0], *limits], counts) if lefts else None


class EventsReader(Reader):
    """Reads an event file: its scalars, histograms and texts."""

    def __init__(self, _path: object = None) -> None:
        """Begin to read a file."""
        self._cutter = FrameCutter()
        self._tags: dict[str, int] = {}
        """The number of each tag so far, in the order in which they were met."""
        self._known: dict[bytes, int] = {}
        """The number of a tag by the bytes between step and number in its records."""
        self._newest: dict[int, tuple[int, float]] = {}
        """Step and value of the last number of each tag."""
        self._plugins: dict[str, str] = {}
        """Plugin by tag, which only the tag's first record has to name."""
        self._replaced = 0
        """Values that had another value of the same step right before them."""
        self._single: list[tuple[int, int, int, float, float]] = []
        """Numbers that were read one by one: tag, place among the records that are read together,
        step, time and value.
        """
        self._out: list[Record] = []

    @property
    def note(self) -> str | None:
        """Return a note on values that were replaced by others of the same tag and step."""
        return replaced_note(self._replaced)

    def feed(self, data: bytes) -> Sequence[Record]:
        """Return the contents of the records that these bytes complete."""
        rows: list[Record] = []
        for one in self._cutter.feed(data):
            if isinstance(one, Frames):
                rows += self._rows(self._read(one))
            else:
                self._out.append(one)
        out, self._out = [*rows, *self._out], []
        return out

    def _read(self, frames: Frames) -> Columns:
        """Return the numbers in records; keep what else these say."""
        import numpy as np  # not before the first frame is drawn

        data, begins, ends, _ = frames
        starts, stops = np.array(begins), np.array(ends)
        steps, behind = _steps(data, starts)
        pairs = zip(behind.tolist(), ends, strict=True)
        names = [data[begin : end - 4] for begin, end in pairs]
        for place, name in enumerate(names):
            if name not in self._known:
                self._read_frame(frames, place, name)
        tags = np.array([*map(self._known.get, names, repeat(-1))])
        at = np.flatnonzero(tags >= 0)
        times = numbers_at(data, starts[at] + 1, "<f8")
        values = numbers_at(data, stops[at] - 4, "<f4").astype(np.float64)
        together = tags[at], at, steps[at], times, values
        single, self._single = np.array(self._single, float).reshape(-1, 5), []
        return [
            np.append(one, few.astype(one.dtype))
            for one, few in zip(together, single.T, strict=True)
        ]

    def _rows(self, columns: Columns) -> Iterator[MetricRows]:
        """Yield the rows of each tag.

        They are ordered by the hundredth of a second in which they were written: a resumed run
        writes a new file, and of two values for one step the later one wins.
        """
        import numpy as np

        by_tag = np.lexsort((columns[1], columns[0]))
        tags, _, steps, times, values = (one[by_tag] for one in columns)
        orders = (np.fmin(np.fmax(times, 0.0), _LATEST) * 100).astype(np.int64)
        again = (np.diff(tags) == 0) & (np.diff(steps) == 0)
        self._replaced += int((again & (values[1:] != values[:-1])).sum())
        begins = np.flatnonzero(np.diff(tags, prepend=-1)).tolist()
        keys = [safe(tag, _LONGEST_TAG) for tag in self._tags]
        for begin, end in pairwise((*begins, len(tags))):
            tag = int(tags[begin])
            step, value = self._newest.get(tag, (None, None))
            self._replaced += step == steps[begin] and value != values[begin]
            self._newest[tag] = int(steps[end - 1]), float(values[end - 1])
            forms = zip("qqdd", (steps, orders, times, values), strict=True)
            own = [
                array(code, one[begin:end].astype(code).tobytes())
                for code, one in forms
            ]
            yield MetricRows((keys[tag],), own[0], (own[3],), own[1], own[2])

    def _read_frame(self, frames: Frames, at: int, name: bytes) -> None:
        """Read one record, given the bytes between its step and its last number."""
        data = frames.data[frames.begins[at] : frames.ends[at]]
        number = frames.number + at
        try:
            event = _event(data, first=number == 1)
            step, time = event.integer(2), read_number(event.part(1), "<d")
            values = values_of(event)
        except ValueError as error:
            found = Unreadable(number, f"no event: {error}", data[:12].hex(" "))
            self._out.append(found)
            return
        if len(values) == 1 and _is_number(name, data, event, values[0]):
            self._known[name] = self._number_of(values[0].text(TAG))
            return
        for value in values:
            tag = value.text(TAG)
            try:
                numbers = self._numbers(tag, step, time, value)
            except ValueError as error:  # its neighbours are read
                self._out.append(Unreadable(number, str(error), one_line(tag, 100)))
                continue
            for key, one in numbers.items():
                self._single.append((self._number_of(key), at, step, time, one))

    def _numbers(
        self, tag: str, step: int, time: float, value: MessageFields
    ) -> Mapping[str, float]:
        """Return the numbers in one value of an event; keep what else it says."""
        if (simple := value.part(SIMPLE)) is not None:
            return {tag: read_number(simple)}
        if (histogram := value.part(HISTOGRAM)) is not None:
            return self._figures(tag, step, time, _histogram(message(histogram)))
        metadata = message(value.part(_METADATA) or b"")
        if plugin := message(metadata.part(1) or b"").text(1):
            self._plugins.setdefault(tag, plugin)
        if (tensor := value.part(TENSOR)) is not None:
            return self._of_tensor(tag, step, time, message(tensor))
        return {}

    def _of_tensor(
        self, tag: str, step: int, time: float, tensor: MessageFields
    ) -> Mapping[str, float]:
        plugin = self._plugins.get(tag)
        if plugin == "text":
            said = [decoded(text) for text in tensor.parts(8)]
            self._out += read_texts(tag, step, said)
        elif plugin == "histograms":
            return self._figures(tag, step, time, _binned(_tensor(tensor)))
        numbers = _tensor(tensor) if plugin == "scalars" else []
        return {tag: numbers[0]} if len(numbers) == 1 else {}

    def _figures(
        self, tag: str, step: int, time: float, found: Distribution | None
    ) -> Mapping[str, float]:
        """Return the figures of a histogram, and keep its bins."""
        if not found:
            raise ValueError("an empty histogram")
        order = int(min(max(0.0, time), _LATEST) * 100)
        self._out.append(Histogram(safe(tag, _LONGEST_TAG), step, *found.bins, order))
        return {f"{tag}/{figure}": one for figure, one in found.figures.items()}

    def _number_of(self, tag: str) -> int:
        return self._tags.setdefault(tag, len(self._tags))


reader = EventsReader


def _event(data: bytes, *, first: bool) -> MessageFields:
    """Return the fields of an event; the first one states a version.

    Raises:
        ValueError: It is none.
    """
    event = message(data)
    version = event.text(_FILE_VERSION)
    if first and not version.startswith(_VERSION):
        raise ValueError(f"the version is {one_line(version or 'missing', 40)}")
    if abs(step := event.integer(2)) >= _STEPS and SUMMARY in event:
        raise ValueError(f"the step is {step}")
    return event


def _is_number(
    name: bytes, data: bytes, event: MessageFields, value: MessageFields
) -> bool:
    """Return whether a record is only a time, a step and one number.

    Args:
        name: The bytes between step and number, nothing where the record is not of that form.
        data: The record.
        event: What it says.
        value: The only value of it.
    """
    if name[:1] != bytes([_SUMMARY]) or name[-1] != _SIMPLE:
        return False
    own = name[varint(name, 1)[1] :] + data[-4:]
    return own == event.part(SUMMARY) and value.part(SIMPLE) == data[-4:]


def _steps(data: bytes, starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return the steps of records that begin at places, and the places behind these: the end of the
    data where a record is not of the usual form.
    """
    import numpy as np

    places = starts[:, None] + np.arange(10 + _DIGITS)
    written = np.frombuffer(data, np.uint8).take(places, mode="clip")
    digits = written[:, 10:]
    stated = written[:, 9] == _STEP  # protobuf leaves out what is 0
    size = np.where(stated, (digits < 0x80).argmax(1) + 1, 0)
    at = np.arange(_DIGITS)
    parts = (digits & 0x7F).astype(np.int64) << 7 * at
    steps = np.where(at < size[:, None], parts, 0).sum(1)
    usual = (written[:, 0] == _TIME) & (~stated | (digits.min(1) < 0x80))
    return steps, np.where(usual, starts + 9 + stated + size, len(data))


# -- texts -----------------------------------------------------------------------------------------
# Hugging Face's trainers write their arguments and the model's as texts (`args`, `model_config`),
# others a table of hyperparameters; verl's `ValidationGenerationsLogger` (verl/utils/tracking.py,
# v0.9) many samples in one text, as `**Input:** …` and `**Output:** …`. A text of another form is a
# response.

_SUFFIX = "/text_summary"
"""Suffix that torch and tensorboardX append to the tag of a text."""
_GENERATIONS = "val/generations"
"""Tag under which verl writes samples of a validation."""
_SAMPLE = pattern(r"sample_?\d*$")
"""Tags of samples that add nothing; any other is kept with the sample."""
_SETTINGS = pattern(
    r"(?:.*/)?(?:args|arguments|training_args|model_config|config(?:uration)?|hparams?"
    r"|hyper_?parameters|hyperparams|settings"
    r"|command(?:_line)?|cmd|cli|git(?:_.*)?|description)",
    re.IGNORECASE,
)
"""Tags of texts that hold settings."""
_ARGUMENTS = {"args", "training_args", "arguments"}
"""Tags whose settings are the run's own, not those of a part of it."""
_FENCE = pattern(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)
_RULE = pattern(r"\s*:?-+:?\s*\|\s*:?-+:?\s*")
"""The line below the header of a Markdown table of two columns."""
_HEADING = pattern(r"### Sample \d{1,9}\n")
_WRITTEN = pattern(
    r"\**(?:prompt|input)\**:\**\s(?P<prompt>.*?)"
    r"\n\**(?:response|output)\**:\**\s(?P<response>.*?)"
    r"(?:\n\**(?:score|reward)\**:\**\s(?P<score>[^\n]*)\s*)?(?:\n---\s*)?\Z",
    re.DOTALL | re.IGNORECASE,
)
"""A sample with its parts, plain or bold."""


def read_texts(
    tag: str, step: int, texts: Iterable[str]
) -> Iterator[Sample | Settings]:
    """Yield the samples or settings in texts.

    Args:
        tag: Tag of the texts.
        step: Step of the texts.
        texts: The texts as written.
    """
    tag = tag.removesuffix(_SUFFIX)
    for text in texts:
        if tag == _GENERATIONS:
            for part in _HEADING.split(text)[1:]:
                yield from _samples(tag, step, part)
        elif _SETTINGS.fullmatch(tag):
            yield _settings(tag, text)
        else:
            yield from _samples(tag, step, text)


def _samples(tag: str, step: int, text: str) -> Iterator[Sample]:
    found = _WRITTEN.match(text)
    record: Fields = {"response": text}
    if found:
        record = {
            name: (part or "").strip() for name, part in found.groupdict().items()
        }
        record["score"] = written_number(record["score"])
    if tag != _GENERATIONS and not _SAMPLE.search(tag):
        record["tag"] = one_line(tag)
    yield from filter(None, [read_sample(record, step, validation=is_validation(tag))])


def _settings(tag: str, text: str) -> Settings:
    """Return the settings in a text: JSON, a table of names and values, or the text itself; without
    the code fence around it.
    """
    text = text.strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    try:
        values = loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        values = None
    if not isinstance(values, dict):
        values = _table(text)
    last = tag.rpartition("/")[2]
    if not values:
        return Settings({one_line(last, 100): one_line(text, 1000)})
    prefix = "" if last in _ARGUMENTS or len(tag) > 100 else one_line(last, 100)
    return Settings(flatten_settings({prefix: values} if prefix else values))


def _table(text: str) -> dict[str, str]:
    """Return the rows of a Markdown table of names and values, {} for another text."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not _RULE.fullmatch(lines[1]):
        return {}
    rows = (line.partition("|") for line in lines[2:])
    return {name.strip(): value.strip() for name, bar, value in rows if bar}
