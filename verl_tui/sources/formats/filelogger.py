"""verl's FileLogger: one JSON object a step, `{"step": N, "data": {...}}` (verl/utils/tracking.py,
v0.6 and later).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from verl_tui.sources.fields.jsonl import (
    Fields,
    first_object,
    flatten,
    integer,
    numbers_in,
    unquoted,
)
from verl_tui.sources.fields.row_batcher import (
    Item,
    MetricRow,
    metric_keys,
    packed,
)
from verl_tui.sources.fields.steps import whole
from verl_tui.sources.formats.lines import JsonDecoder, LineReader

name = "verl file logger"
rank = 6
anchor = True


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
    _names: Sequence[str] = ()
    """Of the metrics of the newest line, which the next one mostly has as well."""
    _keys: tuple[str, ...] = ()
    """Keys by these."""

    def read(self, record: Fields) -> Iterable[Item]:
        """Return the row of one object; of one as verl writes it, quickly."""
        step = integer(record.get("step"))
        data = record.get("data")
        if step is None or not isinstance(data, dict):
            whole(record.get("step"), "step")
            raise ValueError('no "step" with "data"')
        try:
            values = packed(data.values())
        except struct.error:  # one is no number
            return (MetricRow.of(step, numbers_in(unquoted(flatten(data)))),)
        names = [*data]
        if names != self._names:
            self._names, self._keys = names, metric_keys(tuple(names))
        return (MetricRow(step, self._keys, values),)
