"""verl's FileLogger: one JSON object a step, `{"step": N, "data": {...}}` (verl/utils/tracking.py,
v0.6 and later).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.sources.fields.jsonl import (
    Fields,
    first_object,
    flatten,
    integer,
    numbers_in,
    unquoted,
)
from verl_tui.sources.fields.row_batcher import Item, MetricRow, packed
from verl_tui.sources.formats.lines import JsonDecoder, LineReader
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


name = "verl file logger"
rank = 6
anchor = True

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
    """Decodes the file logger's lines."""

    parted = True
    _keys: Sequence[str] = ()
    """Of the newest line, which the next one mostly has as well."""
    _names: tuple[str, ...] = ()
    """Metrics by these keys; none where two become one."""

    def read(self, record: Fields) -> Iterable[Item]:
        """Return the row of one object; of one as verl writes it, quickly."""
        step = integer(record.get("step"))
        data = record.get("data")
        if step is None or not isinstance(data, dict):
            raise ValueError('no "step" with "data"')
        if [*data] != self._keys:
            self._keys, self._names = [*data], _names(tuple(data))
        try:
            if self._names:
                return (MetricRow(step, self._names, packed(data.values())),)
        except struct.error:  # one is no number
            pass
        numbers = numbers_in(unquoted(flatten(data)))
        kept = {safe(key): value for key, value in numbers.items()}
        return (MetricRow(step, tuple(kept), tuple(kept.values())),)


@lru_cache(_MOST_SCHEMAS)
def _names(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of metrics, none where two become one; they hardly ever change."""
    names = tuple(map(safe, keys))
    return names if len(set(names)) == len(keys) else ()
