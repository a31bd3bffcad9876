"""The items of W&B's records: metrics, system figures and settings, each a name and its JSON."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import repeat
from operator import add
from typing import TYPE_CHECKING, Any

import orjson

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import loads
from verl_tui.sources.fields.lists import split
from verl_tui.sources.fields.protobuf import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.sources.fields.lists import FieldSplit

HISTORY_ITEM, STATS_ITEM = 1, 3
"""Fields of `HistoryRecord` and `StatsRecord` that hold items."""
_KEY, _NESTED_KEY, _VALUE = 1, 2, 16  # HistoryItem, StatsItem, ConfigItem
_WORDS = {
    b"true": 1.0,
    b"false": 0.0,
    b"null": math.nan,
    b'"NaN"': math.nan,
    b'"Infinity"': math.inf,
    b'"-Infinity"': -math.inf,
}
"""Values that are no numbers in JSON; Python parses bare `NaN` and `Infinity` itself."""
_PLAIN = {HISTORY_ITEM: (rb"\x0a", rb"[\x0a\x12]"), STATS_ITEM: (rb"\x1a", rb"\x0a")}
"""Tags of an item and of the name in it, by the field that holds it."""
_ITEM = (
    rb"%b([\x00-\x7f])%b([\x00-\x7f][ -~]{1,100})"
    rb"\x82\x01([\x00-\x7f])([-+.\dEINaefinty]{1,100})"
)
_ITEMS = {field: pattern(_ITEM % tags) for field, tags in _PLAIN.items()}
"""Patterns of an item of the usual form: its length, name (length, text), value (length,
number).
"""
_MOST_NAMES = 10_000
_DEEPEST = 40

Span = tuple[int, int]
"""Start and end of a message's bytes."""
NamePath = tuple[str, ...]
"""A name, and the names within it."""


class _Names(dict[bytes, str]):
    """Names by their bytes with the length before them: the same ones come with each record."""

    def __missing__(self, written: bytes) -> str:
        if written[0] != len(written) - 1:
            raise ValueError("a name of another length")
        name = written[1:].decode()
        if len(self) < _MOST_NAMES:
            self[written] = name
        return name


_NAMES = _Names()


def plain_items(
    data: bytes, span: Span, field: int
) -> tuple[dict[str, float], Sequence[bytes]]:
    """Return the items of the usual form by name, and the bytes between them that are still to be
    read.

    Nearly all items are such: a short name and a number. One by one they take eight times as long.
    """
    message = data[slice(*span)]
    parts = _ITEMS[field].split(message)
    sizes = parts[1::5]
    names = parts[2::5]
    number_sizes = parts[3::5]
    numbers = parts[4::5]
    lengths = map(len, map(add, names, numbers))
    if b"".join(sizes) != bytes(map(add, lengths, repeat(4))):
        return {}, (message,)
    if b"".join(number_sizes) != bytes(map(len, numbers)):
        return {}, (message,)
    try:
        known = map(_NAMES.__getitem__, names)
        values = dict(zip(known, _floats(numbers), strict=True))
    except ValueError:
        return {}, (message,)
    return values, list(filter(None, parts[::5]))


def _floats(numbers: Sequence[bytes]) -> Iterator[float]:
    """Return numbers that are written as in JSON, or as Python writes those that are not finite.

    Raises ValueError if one is not a number.
    """
    text = b",".join((*numbers, b""))
    if b"-0," not in text:  # which orjson takes for 0
        with suppress(orjson.JSONDecodeError):
            # Five times as fast as `float`, which all those take that it does not know.
            return map(float, orjson.loads(b"[%b]" % text[:-1]))
    return map(float, numbers)


def byte_fields(messages: Iterable[bytes]) -> Iterator[tuple[int, bytes, Span]]:
    """Yield number, message and span of each field that holds bytes."""
    for message in messages:
        for field, _, part in fields(message, 0, len(message)):
            if isinstance(part, tuple):
                yield field, message, part


def item_of(data: bytes, span: Span) -> tuple[NamePath, bytes]:
    """Return the path of a value's name, and the value as JSON."""
    path = []
    value = b""
    for field, _, part in fields(data, *span):
        if isinstance(part, tuple):
            if field in (_KEY, _NESTED_KEY):
                path.append(text_of(data, part))
            elif field == _VALUE:
                value = data[slice(*part)]
    return tuple(path) or ("",), value


def values_of(values: Mapping[NamePath, bytes]) -> tuple[dict[str, float], FieldSplit]:
    """Return a record's metrics and distributions by W&B's names: `a.b` for `b` within `a`."""
    numbers: dict[str, float] = {}
    objects: dict[str, Any] = {}
    for path, value in values.items():
        if len(path) > 1:
            _put(objects, path, _leaf(value))
        elif value[:1] in (b"{", b"["):
            objects[path[0]] = json_value(value)
        elif (known := number_of(value)) is not None:
            numbers[path[0]] = known
    members: dict[str, Any] = {}
    for name, value in objects.items():
        if isinstance(value, dict):
            members |= _members(name, value)
        else:
            members[name] = value
    parts = split(members, ".")
    return numbers | parts.numbers(), parts


def _put(objects: dict[str, Any], path: NamePath, value: object) -> None:
    """Put a value into nested objects, which W&B writes value by value."""
    for name in path[:-1]:
        inner = objects.get(name)
        if not isinstance(inner, dict):
            inner = objects[name] = {}
        objects = inner
    objects[path[-1]] = value


def _members(
    name: str, members: Mapping[str, Any], depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object, none if its `_type` is a picture, a table and the like."""
    if members.get("_type", "histogram") != "histogram" or depth > _DEEPEST:
        return
    for key, value in members.items():
        if isinstance(value, dict):
            yield from _members(f"{name}.{key}", value, depth + 1)
        else:
            yield f"{name}.{key}", value


def number_of(text: bytes) -> float | None:
    """Return a value as a number, None for one that is neither a number nor the name of one."""
    try:
        return float(text)
    except ValueError:
        return _WORDS.get(text)


def _leaf(text: bytes) -> Any:
    known = number_of(text)
    return json_value(text) if known is None else known


def json_value(text: bytes) -> Any:
    """Return a value that is written as JSON, None where it is broken."""
    try:
        return loads(text)
    except ValueError:
        return None


def text_of(data: bytes, span: Span) -> str:
    """Return a text, with what is no UTF-8 replaced."""
    return data[slice(*span)].decode("utf-8", "replace")
