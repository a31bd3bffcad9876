"""Decode TensorBoard's events: tensorflow/core/util/event.proto,
framework/{summary,tensor,histogram}.proto.

Their numbers of fields and types have not changed since 2015, new ones are passed over.
"""

from __future__ import annotations

import math
import struct
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import of_bins, of_limits
from verl_tui.sources.fields.protobuf import (
    BYTES,
    FIXED64,
    VARINT,
    fields,
    signed_varint,
    varint,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.distributions import Distribution

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
_CONTENTS = {
    1: "f",
    2: "d",
    3: "i",
    4: "B",
    5: "h",
    6: "b",
    9: "q",
    10: "?",
    17: "H",
    19: "e",
    22: "I",
    23: "Q",
}
"""Type of a tensor -> code of its numbers in `tensor_content`, for `struct`."""
_BFLOAT16, _HALF = 14, 19
_MOST_NUMBERS = 2**16
"""Numbers of one tensor that are read: scalars have one, histograms hundreds."""


class ByteSpan(NamedTuple):
    """A part of a record."""

    start: int
    stop: int


@dataclass(slots=True)
class SummaryValue:
    """One value of a summary; at most one of the last three is set."""

    tag: str = ""
    plugin: str = ""
    simple: ByteSpan | None = None
    histogram: ByteSpan | None = None
    tensor: ByteSpan | None = None


@dataclass(slots=True)
class LoggedEvent:
    """The values that were logged at one moment."""

    time: float = 0.0
    step: int = 0
    """Protobuf leaves out what is 0."""
    version: str | None = None
    summary: ByteSpan | None = None


@dataclass(slots=True)
class TensorValue:
    """A tensor of numbers or of texts."""

    shape: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()


def read_event(data: bytes) -> LoggedEvent:
    """Return the event that a record holds.

    Raises:
        ValueError: It holds none.
    """
    event = LoggedEvent()
    for number, wire, value in fields(data, 0, len(data)):
        match number, wire, value:
            case 1, 1, (start, _):
                (event.time,) = _DOUBLE.unpack_from(data, start)
            case 2, 0, int(step):
                event.step = signed_varint(step)
            case 3, 2, (start, stop):
                event.version = _text(data, start, stop)
            case 5, 2, (start, stop):
                event.summary = ByteSpan(start, stop)
    return event


def read_values(data: bytes, summary: ByteSpan) -> Iterator[SummaryValue]:
    """Yield the values of a summary.

    Raises:
        ValueError: It is none.
    """
    for number, wire, value in fields(data, *summary):
        if number == 1 and wire == BYTES and isinstance(value, tuple):
            yield _value(data, *value)


def _value(data: bytes, start: int, stop: int) -> SummaryValue:
    found = SummaryValue()
    for number, wire, value in fields(data, start, stop):
        match number, wire, value:
            case 1, 2, (start, stop):
                found.tag = _text(data, start, stop)
            case 2, 5, (start, stop):
                found.simple = ByteSpan(start, stop)
            case 5, 2, (start, stop):
                found.histogram = ByteSpan(start, stop)
            case 8, 2, (start, stop):
                found.tensor = ByteSpan(start, stop)
            case 9, 2, (start, stop):
                found.plugin = _plugin(data, start, stop)
    return found


def _plugin(data: bytes, start: int, stop: int) -> str:
    """Return what stands in `SummaryMetadata.plugin_data.plugin_name`: both are the first field of
    theirs.
    """
    for _ in range(2):
        inside = [
            value
            for number, wire, value in fields(data, start, stop)
            if (number, wire) == (1, BYTES)
        ]
        if not inside or not isinstance(inside[-1], tuple):
            return ""
        start, stop = inside[-1]
    return _text(data, start, stop)


def read_simple(data: bytes, span: ByteSpan) -> float:
    """Return a value written in full."""
    value: float = _FLOAT.unpack_from(data, span.start)[0]
    return value


def read_tensor(data: bytes, span: ByteSpan) -> TensorValue:
    """Return the numbers and texts of a tensor; numbers of unsupported types are left out.

    Raises:
        ValueError: It is no tensor, or has too many numbers.
    """
    kind = 0
    shape: tuple[int, ...] = ()
    numbers: list[float] = []
    texts: list[str] = []
    content = b""
    for number, wire, value in fields(data, *span):
        match number, wire, value:
            case 1, 0, int(kind):
                pass
            case 2, 2, (start, stop):
                shape = _shape(data, start, stop)
            case 4, 2, (start, stop):
                content = data[start:stop]
            case 8, 2, (start, stop):
                texts.append(_text(data, start, stop))
            case _ if number in _LISTS:
                numbers.extend(_listed(data, number, value))
    if content or kind in (_HALF, _BFLOAT16):
        numbers = _content(
            content or array("H", [int(bits) & 0xFFFF for bits in numbers]).tobytes(),
            kind,
        )
    return TensorValue(shape, _filled(numbers, math.prod(shape)), tuple(texts))


def _filled(numbers: list[float], size: int) -> tuple[float, ...]:
    """Return as many numbers as a tensor has: the last one written stands for all that follow."""
    if max(len(numbers), size) > _MOST_NUMBERS:
        raise ValueError(f"a tensor of {max(len(numbers), size):,} numbers")
    return (*numbers, *numbers[-1:] * (size - len(numbers)))


def _shape(data: bytes, start: int, stop: int) -> tuple[int, ...]:
    sizes = []
    for number, wire, value in fields(data, start, stop):
        if (number, wire) == (2, BYTES) and isinstance(value, tuple):
            inside = [
                size
                for n, w, size in fields(data, *value)
                if (n, w) == (1, VARINT) and isinstance(size, int)
            ]
            sizes.append(signed_varint(inside[-1]) if inside else 0)
    if any(size < 0 for size in sizes):
        raise ValueError("a tensor of unknown shape")
    return tuple(sizes)


_LISTS = {5: "f", 6: "d", 7: "", 10: "", 11: "", 13: "", 16: "", 17: ""}
"""Fields with the numbers of a tensor one by one: in full, or as varints; packed or each with a tag
of its own.
"""


def _listed(data: bytes, number: int, value: int | tuple[int, int]) -> Iterator[float]:
    if isinstance(value, int):
        yield signed_varint(value)
        return
    start, stop = value
    if code := _LISTS[number]:
        yield from _unpacked(code, data[start:stop])
        return
    while start < stop:
        found, start = varint(data, start)
        yield signed_varint(found) if number != 17 else found


def _content(content: bytes, kind: int) -> list[float]:
    if kind == _BFLOAT16:  # the upper half of a float
        content = b"".join(
            b"\0\0" + content[at : at + 2] for at in range(0, len(content), 2)
        )
        kind = 1
    code = _CONTENTS.get(kind)
    return _unpacked(code, content) if code else []


def _unpacked(code: str, data: bytes) -> list[float]:
    if len(data) > 8 * _MOST_NUMBERS or len(data) % struct.calcsize(f"<{code}"):
        raise ValueError(f"{len(data):,} bytes of numbers")
    return [float(found) for (found,) in struct.iter_unpack(f"<{code}", data)]


def read_histogram(data: bytes, span: ByteSpan) -> Distribution | None:
    """Return the distribution of a histogram, None of an empty one.

    Raises:
        ValueError: It is none.
    """
    ends: dict[int, float] = {1: 0.0, 2: 0.0}
    lists: dict[int, list[float]] = {6: [], 7: []}
    for number, wire, value in fields(data, *span):
        if not isinstance(value, tuple):
            continue
        if number in ends and wire == FIXED64:
            (ends[number],) = _DOUBLE.unpack_from(data, value[0])
        elif number in lists:
            lists[number].extend(_unpacked("d", data[slice(*value)]))
    return of_limits(ends[1], ends[2], lists[6], lists[7])


def histogram_of(tensor: TensorValue) -> Distribution | None:
    """Return the distribution of a histogram that TensorFlow 2 wrote: rows of left edge, right edge
    and count.

    The bins adjoin. Of equal values its bins reach beyond them, so minimum and maximum are not
    known.

    Raises:
        ValueError: The tensor is none.
    """
    if (
        len(tensor.shape) != 2
        or tensor.shape[1] != 3
        or len(tensor.numbers) != math.prod(tensor.shape)
    ):
        raise ValueError(f"a histogram of shape {tensor.shape}")
    rows = list(zip(*[iter(tensor.numbers)] * 3, strict=True))
    if not rows:
        return None
    _, limits, counts = zip(*rows, strict=True)
    return of_bins([rows[0][0], *limits], counts)


def _text(data: bytes, start: int, stop: int) -> str:
    return data[start:stop].decode("utf-8", "replace")
