"""The items of W&B's records: metrics, system figures and settings, each a name and its JSON."""

from __future__ import annotations

import math
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import loads, written_number
from verl_tui.sources.fields.lists import split
from verl_tui.sources.fields.protobuf import message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from verl_tui.sources.fields.lists import FieldSplit
    from verl_tui.sources.fields.protobuf import MessageFields

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
    rb"%b([\x00-\x7f])%b([\x00-\x7f])([ -~]{1,100})"
    rb"\x82\x01([\x00-\x7f])([-+.\dEINaefinty]{1,100})"
)
_ITEMS = {field: pattern(_ITEM % tags) for field, tags in _PLAIN.items()}
"""Patterns of an item of the usual form: its length, its name and value with their lengths."""
_TAGS = 5
"""Bytes of an item besides its name and its value."""
_DEEPEST = 40

NamePath = tuple[str, ...]
"""A name, and the names within it."""


class Items(NamedTuple):
    """What stands in a record of the history, or of system figures."""

    numbers: dict[str, float]
    """Items of the usual form by name."""
    others: dict[NamePath, bytes]
    """Further items, as JSON."""
    rest: list[MessageFields]
    """Where its other fields stand."""

    def other(self, field: int) -> bytes | None:
        """Return what stands in another field."""
        found = [part for one in self.rest for part in one.parts(field)]
        return found[-1] if found else None


def items_of(record: bytes, field: int) -> Items:
    """Return the items in a field of a record.

    Nearly all are a short name and a number. One by one they take eight times as long.

    Raises:
        ValueError: It is no record.
    """
    numbers, between = _plain_items(record, field)
    rest = list(map(message, between))
    others = dict(item_of(part) for one in rest for part in one.parts(field))
    return Items(numbers, others, rest)


def _plain_items(record: bytes, field: int) -> tuple[dict[str, float], Iterable[bytes]]:
    """Return the items of the usual form, and the bytes between them that are still to be read."""
    parts = _ITEMS[field].split(record)
    sizes, name_sizes, names, value_sizes, values = (parts[at::6] for at in range(1, 6))
    lengths = [*map(len, names)], [*map(len, values)]
    inside = map(_TAGS.__add__, map(add, *lengths))
    if b"".join((*sizes, *name_sizes, *value_sizes)) != bytes(chain(inside, *lengths)):
        return {}, (record,)
    known = b"\0".join(names).decode().split("\0") if names else []
    try:
        numbers = dict(zip(known, map(float, values), strict=True))
    except ValueError:
        return {}, (record,)
    return numbers, filter(None, parts[::6])


def item_of(item: bytes) -> tuple[NamePath, bytes]:
    """Return the path of a value's name, and the value as JSON."""
    found = message(item)
    names = [*found.parts(_KEY), *found.parts(_NESTED_KEY)]
    path = tuple([name.decode("utf-8", "replace") for name in names])
    return path or ("",), found.part(_VALUE) or b""


def values_of(values: Mapping[NamePath, bytes]) -> tuple[dict[str, float], FieldSplit]:
    """Return a record's metrics and distributions by W&B's names: `a.b` for `b` within `a`; nothing
    of objects whose `_type` is a picture, a table and the like.
    """
    numbers: dict[str, float] = {}
    members: dict[str, Any] = {}
    for path, value in values.items():
        known = number_of(value)
        if known is not None and len(path) == 1:
            numbers[path[0]] = known
        elif len(path) > 1 or value[:1] in (b"{", b"["):
            found = json_value(value) if known is None else known
            members |= _flat(".".join(path), found)
    parts = split(_measured(members), ".")
    return numbers | parts.numbers(), parts


def _measured(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of objects without those of pictures, tables and the like."""
    typed = (key for key in members if key.endswith("._type"))
    others = tuple(key[:-5] for key in typed if members[key] != "histogram")
    return {key: one for key, one in members.items() if not key.startswith(others)}


def _flat(name: str, value: object, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield what stands in an object by its names, any other value as such."""
    if not isinstance(value, dict):
        yield name, value
    elif depth < _DEEPEST:
        for key, one in value.items():
            yield from _flat(f"{name}.{key}", one, depth + 1)


def number_of(text: bytes) -> float | None:
    """Return a value as a number, None for one that is neither a number nor the name of one."""
    known = written_number(text)
    return _WORDS.get(text) if known is None else known


def json_value(text: bytes) -> Any:
    """Return a value that is written as JSON, None where it is broken."""
    try:
        return loads(text)
    except ValueError:
        return None
