"""Changes a file as a fuzzer does that knows what files are made of: parts are moved, taken from
other files and changed inside, values replaced by odd ones, names by those that the readers know.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import regex
from fuzz.damaged import damaged
from fuzz.parts_of_files import apart, is_binary, together
from wandb_writing import varint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

LONGEST = 6000
"""Bytes of a file at most."""
_ODD_NUMBERS = (
    "0", "-1", "1e999", "-1e308", "1e-320", "NaN", "Infinity", "-Infinity", "18446744073709551616",
    "4611686018427387904", "-9223372036854775809", "1.5", "00", "1_0", "٣", "253402300800", "true",
)  # fmt: skip
_ODD_VALUES: tuple[Any, ...] = (
    None, True, "", [], {}, [[]], {"": {}}, [None, 1], [1, 2, "a"], "NaN", "\x1b[2J\0", "é" * 40,
    1e308, -1, 0, 2**70, {"_type": "histogram", "bins": [0, 1], "values": [1]}, [{"role": "user"}],
    {"a": {"b": {"c": 1}}}, "\ud800", 1700000000, "2026-01-02T03:04:05", [0.5] * 9,
    {"columns": ["step", "input"], "data": [[1]], "_type": "table-file", "path": "../x"},
)  # fmt: skip
_NUMBER = regex.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ODD_FLOATS = (0.0, -0.0, 1e308, float("nan"), float("inf"), 5e-324, 1.7e9)
_ODD_INTEGERS = (0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, 253402300800)


class Mutator:
    """Changes files of one name."""

    def __init__(self, name: str, words: Sequence[bytes], random: Random) -> None:
        """Args:
        name: The files' name: it says how they are packed.
        words: What the readers' code looks for.
        random: Decides everything.
        """
        self._name, self._words, self._random = name, words, random

    def changed(self, data: bytes, others: Sequence[bytes]) -> bytes:
        """Return a file made of one, and of parts of others of its name."""
        try:
            parts = apart(self._name, data)
        except ValueError:
            parts = []
        if not parts or self._random.random() < 0.15:
            return damaged(data, self._random)[:LONGEST]
        for _ in range(self._random.choice((1, 1, 1, 2, 4))):
            self._change(parts, others)
        while len(parts) > 1 and sum(map(len, parts)) > LONGEST:
            parts.pop(self._random.randrange(len(parts)))
        return together(self._name, (part[:LONGEST] for part in parts if part))

    def _change(self, parts: list[bytes], others: Sequence[bytes]) -> None:
        random = self._random
        at = random.randrange(len(parts)) if parts else 0
        kind = random.randrange(10) if parts else 0
        if kind == 0:
            parts.insert(at, self._foreign(others))
        elif kind == 1:
            del parts[at : at + random.choice((1, 1, 3, 20))]
        elif kind == 2:
            parts.insert(random.randrange(len(parts) + 1), parts[at])
        elif kind == 3:
            other = random.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        else:
            parts[at] = self._inside(parts[at])

    def _foreign(self, others: Sequence[bytes]) -> bytes:
        try:
            return self._random.choice(
                apart(self._name, self._random.choice(others)) or [b"\n"]
            )
        except ValueError:
            return b"\n"

    def _inside(self, part: bytes) -> bytes:
        if is_binary(self._name):
            return self._message(part)
        ways = (
            self._number,
            self._word,
            self._value,
            self._value,
            self._piece,
            self._words_apart,
        )
        return self._random.choice(ways)(part)

    def _number(self, part: bytes) -> bytes:
        found = list(_NUMBER.finditer(part))
        if not found:
            return part
        one = self._random.choice(found)
        odd = self._random.choice(_ODD_NUMBERS).encode()
        return part[: one.start()] + odd + part[one.end() :]

    def _word(self, part: bytes) -> bytes:
        at = self._random.randint(0, len(part))
        gone = self._random.choice((0, 0, 1, 8))
        return part[:at] + self._random.choice(self._words) + part[at + gone :]

    def _words_apart(self, part: bytes) -> bytes:
        """Exchange a word of letters by one that the readers know."""
        found = list(regex.finditer(rb"[A-Za-z_/]{2,}", part))
        if not found:
            return part
        one = self._random.choice(found)
        return (
            part[: one.start()] + self._random.choice(self._words) + part[one.end() :]
        )

    def _piece(self, part: bytes) -> bytes:
        start, end = sorted(self._random.randint(0, len(part)) for _ in range(2))
        piece = part[start:end]
        return self._random.choice(
            (part[:start] + part[end:], part[:end] + piece + part[end:])
        )

    def _value(self, part: bytes) -> bytes:
        """Change something in a JSON document, if it is one."""
        try:
            document = json.loads(part)
        except (ValueError, RecursionError):
            return self._number(part)
        changed = json.dumps(self._document(document)).encode("utf-8", "surrogatepass")
        return changed + b"\n" * part.endswith(b"\n")

    def _document(self, value: Any) -> Any:
        random = self._random
        if isinstance(value, list) and value and random.random() < 0.85:
            at = random.randrange(len(value))
            return [*value[:at], self._document(value[at]), *value[at + 1 :]]
        if not isinstance(value, dict) or not value or random.random() < 0.15:
            return random.choice(_ODD_VALUES)
        key = random.choice(sorted(value))
        kind = random.randrange(5)
        if kind == 0:
            return {name: one for name, one in value.items() if name != key}
        if kind == 1:
            new = random.choice(self._words).decode("utf-8", "replace")
            return {new if name == key else name: one for name, one in value.items()}
        if kind == 2:
            new = random.choice(self._words).decode("utf-8", "replace")
            return {**value, new: random.choice((value[key], *_ODD_VALUES))}
        return {**value, key: self._document(value[key])}

    def _message(self, part: bytes) -> bytes:
        """Change a field of a message of Protocol Buffers, or of a message in it."""
        fields = _fields(part)
        if not fields or self._random.random() < 0.1:
            return (
                self._piece(part) if self._random.random() < 0.5 else self._number(part)
            )
        at = self._random.randrange(len(fields))
        number, kind, value = fields[at]
        way = self._random.randrange(8)
        if way == 0:
            del fields[at]
        elif way == 1:
            fields.insert(at, fields[at])
        elif way == 2:
            fields[at] = self._random.randint(1, 30), kind, value
        else:
            fields[at] = number, kind, self._field(kind, value)
        return b"".join(_written(*one) for one in fields)

    def _field(self, kind: int, value: bytes) -> bytes:
        if kind == 0:
            return varint(self._random.choice(_ODD_INTEGERS))
        if kind != 2:
            odd = self._random.choice(_ODD_FLOATS)
            return struct.pack(
                "<d" if kind == 1 else "<f", min(odd, 3e38) if kind == 5 else odd
            )
        if _fields(value) and self._random.random() < 0.8:
            return self._message(value)
        ways = (self._value, self._number, self._word, self._words_apart)
        return self._random.choice(ways)(value)


def _fields(data: bytes) -> list[tuple[int, int, bytes]]:
    """Return the fields of a message, each with its kind; none if it is no message."""
    found, at = [], 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind, start = tag & 7, at
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 2:
            size, start = _varint(data, at)
            at = start + size
        else:
            at += {1: 8, 5: 4}.get(kind, len(data))
        if at > len(data) or not tag >> 3:
            return []
        found.append((tag >> 3, kind, data[start:at]))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; behind the data where it has no end."""
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at
    return value, len(data) + 1


def _written(number: int, kind: int, value: bytes) -> bytes:
    return (
        varint(number << 3 | kind) + (varint(len(value)) if kind == 2 else b"") + value
    )
