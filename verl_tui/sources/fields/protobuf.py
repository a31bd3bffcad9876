"""Walks the fields of a protobuf message without its schema:
https://protobuf.dev/programming-guides/encoding/.

The formats that need it use a handful of fields of messages that never change, which generated code
and its runtime would cost more than they save.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Encodings of a field's value; groups (3 and 4) have not been written for decades."""

_FIXED = {FIXED64: 8, FIXED32: 4}


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned number that begins at a place, and the place behind it.

    Raises:
        ValueError: The data end within it, or it has more than 64 bits.
    """
    if at < len(data) and data[at] < 0x80:  # most are that short
        return data[at], at + 1
    value = shift = 0
    for byte in data[at : at + 10]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if value >> 64:
                break
            return value, at + shift // 7
    raise ValueError("a varint without an end")


def signed_varint(value: int) -> int:
    """Return the int32 or int64 that was written as this varint."""
    if value >> 63:
        return value - (1 << 64)
    return value


def fields(
    data: bytes, start: int, stop: int
) -> Iterator[tuple[int, int, int | tuple[int, int]]]:
    """Yield number, wire type and value of each field between two places, in the order in which
    they stand.

    The value of a `VARINT` is a number, unsigned; that of any other is the places between which its
    bytes lie.

    Raises:
        ValueError: The bytes are no message.
    """
    if not 0 <= start <= stop <= len(data):
        raise ValueError("a message beyond its data")
    while start < stop:
        tag, start = varint(data, start)
        number = tag >> 3
        wire = tag & 7
        value: int | tuple[int, int]
        if wire == BYTES:
            size, start = varint(data, start)
            value = start, start + size
            start += size
        elif wire == VARINT:
            value, start = varint(data, start)
        elif wire in _FIXED:
            value = start, start + _FIXED[wire]
            start += _FIXED[wire]
        else:
            raise ValueError(f"wire type {wire} is unknown")
        if start > stop or not number:
            raise ValueError(
                "a field beyond its message" if number else "field number 0"
            )
        yield number, wire, value
