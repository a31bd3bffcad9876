"""Reads protobuf messages without their schema:
https://protobuf.dev/programming-guides/encoding/.

The formats that need it use a handful of fields of messages that never change, which generated code
and its runtime would cost more than they save.
"""

from __future__ import annotations

from verl_tui.text import decoded

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Encodings of a field's value; groups (3 and 4) have not been written for decades."""

_FIXED = {FIXED64: 8, FIXED32: 4}


class MessageFields(dict[int, "list[int | bytes]"]):
    """The values of each field by its number, in the order in which they stand: that of a varint is
    a number, unsigned, any other its bytes.
    """

    def parts(self, number: int) -> list[bytes]:
        """Return the values of a field that are bytes."""
        return [value for value in self.get(number, ()) if isinstance(value, bytes)]

    def part(self, number: int) -> bytes | None:
        """Return the last of them, which is the one that holds; None where there is none."""
        return next(reversed(self.parts(number)), None)

    def text(self, number: int) -> str:
        """Return it as text, with what is no UTF-8 replaced; nothing where there is none."""
        return decoded(self.part(number) or b"")

    def integer(self, number: int) -> int:
        """Return the int32 or int64 in a field; protobuf leaves out what is 0."""
        found = [value for value in self.get(number, ()) if isinstance(value, int)]
        value = found[-1] if found else 0
        return value - (1 << 64) if value >> 63 else value


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


def message(data: bytes) -> MessageFields:
    """Return the fields of a message.

    Raises:
        ValueError: The bytes are none.
    """
    found = MessageFields()
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == VARINT:
            value, at = varint(data, at)
        else:
            size, at = _size(data, at, wire)
            value = data[at : at + size]
            at += size
        if at > len(data) or not number:
            raise ValueError(
                "a field beyond its message" if number else "field number 0"
            )
        found.setdefault(number, []).append(value)
    return found


def _size(data: bytes, at: int, wire: int) -> tuple[int, int]:
    """Return how many bytes a value has, and where they begin."""
    if wire == BYTES:
        return varint(data, at)
    if wire not in _FIXED:
        raise ValueError(f"wire type {wire} is unknown")
    return _FIXED[wire], at


def seconds(timestamp: bytes) -> float:
    """Return the seconds since the epoch of a `google.protobuf.Timestamp`."""
    found = message(timestamp)
    return found.integer(1) + found.integer(2) / 1e9
