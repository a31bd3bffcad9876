"""verl's FileLogger: one JSON object a step, `{"step": N, "data": {...}}` (verl/utils/tracking.py,
v0.6 and later).
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields.columns import packed
from verl_tui.sources.fields.jsonl import (
    Flaw,
    JsonDecoder,
    first_object,
    flatten,
    integer,
)
from verl_tui.sources.fields.lists import histograms, split
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.lines import LineParts, LineReader
from verl_tui.text import safe

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable
    from pathlib import Path

    from verl_tui.records import Record

name = "verl file logger"
rank = 6
anchor = True

_LONGEST_NUMBER = 40
_MOST_NAMES = 100_000
"""Remembered names of metrics."""
_MOST_SCHEMAS = 1000
"""Remembered sets of keys: a log may have others in every line."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether the first object is a step with its data."""
    first = first_object(head)
    return first is not None and "step" in first and isinstance(first.get("data"), dict)


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(FileLoggerDecoder())


class FileLoggerDecoder(JsonDecoder):
    """Decodes the file logger's lines; keeps the names of the metrics seen, which hardly ever
    change.
    """

    def __init__(self) -> None:
        self._schemas: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Names of the metrics in a line, by its keys: most runs have two or three sets of them."""
        self._names: dict[str, str] = {}
        """Names of metrics by their keys, of those that stand for themselves."""
        self._newest: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
        """Keys of the last line, and the names of its metrics: most lines have those of the one
        before.
        """

    standing = ()
    """Nothing: each line says all of it."""

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record | Flaw]:
        """Return the row of one object."""
        step = integer(record.get("step"))
        data = record.get("data")
        if step is None or not isinstance(data, dict):
            raise ValueError('no "step" with "data"')
        known = self._known_names(tuple(data))
        values = _numbers(data)
        if known is not None and values is not None:
            return (MetricRow(step, known, values),)
        parts = split({key: _unquoted(value) for key, value in flatten(data).items()})
        kept = {safe(key): value for key, value in parts.numbers().items()}
        if values is not None and len(kept) == len(data) == len(parts.rest):
            self._names.update(zip(data, kept, strict=True))
            if len(self._names) > _MOST_NAMES:
                self._names.clear()
        return (
            MetricRow(step, tuple(kept), tuple(kept.values())),
            *histograms(parts.found, step),
            *parts.flaws,
        )

    def _known_names(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the names of a line's metrics by its keys, None where some have not been seen."""
        if keys == self._newest[0]:
            return self._newest[1]
        names = self._schemas.get(keys) or self._schema(keys)
        if names is not None:
            self._newest = keys, names
        return names

    def _schema(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the names of metrics that have all been seen, None where some have not."""
        try:
            names = tuple(map(self._names.__getitem__, keys))
        except KeyError:
            return None
        if len(set(names)) < len(names):
            return None
        if len(self._schemas) < _MOST_SCHEMAS:
            self._schemas[keys] = names
        return names


def _unquoted(value: object) -> object:
    """Return a number that was written as a text, anything else as it is."""
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        with suppress(ValueError):
            return float(value)
    return value


def _numbers(data: dict[str, Any]) -> array[float] | None:
    """Return values as numbers, None where not all of them are."""
    try:
        return packed(data.values())
    except (struct.error, OverflowError):
        return None


parts = LineParts(FileLoggerDecoder)
