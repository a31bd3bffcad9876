"""Decode what TensorBoard's events hold: tensorflow/core/util/event.proto,
framework/{summary,tensor,histogram}.proto.

Their numbers of fields and types have not changed since 2015, new ones are passed over.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.distributions import of_bins, of_limits
from verl_tui.sources.fields.protobuf import MessageFields, message

if TYPE_CHECKING:
    from verl_tui.distributions import Distribution

TAG, SIMPLE, HISTOGRAM, TENSOR = 1, 2, 5, 8
"""Fields of `Summary.Value`."""
_VERSION, _SUMMARY, _VALUES, _METADATA = 3, 5, 1, 9
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
        time, event.integer(2), event.text(_VERSION), event.part(_SUMMARY)
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
