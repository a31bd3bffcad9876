"""A run in MLflow's file store: `mlruns/<experiment>/<run>/meta.yaml`, beside it a file for each
metric, with `milliseconds value step` a line, and one for each parameter
(mlflow/store/tracking/file_store.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Record, Restart, Settings, Unreadable
from verl_tui.sources.fields.jsonl import integer, written_number
from verl_tui.sources.fields.row_batcher import MetricRow, RowBatcher
from verl_tui.sources.fields.setting_values import flatten_settings, scalar
from verl_tui.sources.files.paths import is_file, why
from verl_tui.sources.files.polled import PolledSource
from verl_tui.sources.files.tail import Tail, opened
from verl_tui.sources.formats import mlflow_files
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LONGEST = 8000
"""Bytes of a parameter, or of a line, that are read: MLflow allows 6,000 characters."""
_STATUS = pattern(rb"^status: (\d)", re.MULTILINE)
_ENDS = {
    b"3": (EventKind.EXITED, "MLflow: the run has finished"),
    b"4": (EventKind.FATAL, "MLflow: the run has failed"),
    b"5": (EventKind.STOPPED, "MLflow: the run was killed"),
}
"""By the number of the status (mlflow/entities/run_status.py)."""


class MlflowRun(PolledSource):
    """Follows the files of one run."""

    format = mlflow_files.name
    rank = mlflow_files.rank
    absolute = True

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        super().__init__(path, ordinal)
        self._metrics: dict[Path, _Metric] = {}
        self._batcher = RowBatcher()
        self._params: frozenset[Path] = frozenset()
        self._status = b""

    @property
    def note(self) -> str | None:
        """Return a note on replaced records."""
        return self._batcher.note

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return what the files say that is new, and whether more waits."""
        self._pending = 0
        try:
            self._batcher.add(self._settings())
            for file in _files(self.path.parent / "metrics"):
                self._batcher.add(self._rows(file))
            self._batcher.add(self._end())
            self._problem = None
        except OSError as error:
            self._problem = why(error)
        records = self._batcher.take()
        self._records += sum(len(getattr(record, "steps", (0,))) for record in records)
        self._bytes = sum(one.tail.offset for one in self._metrics.values())
        return records, self._pending > 0

    def _rows(self, file: Path) -> Iterator[MetricRow | Record]:
        """Yield the values that a file has got."""
        if file not in self._metrics:
            key = file.relative_to(self.path.parent / "metrics").as_posix()
            self._metrics[file] = _Metric(file, safe(key, 300))
        metric = self._metrics[file]
        for row in metric.rows():
            self._unreadable += isinstance(row, Unreadable)
            yield row
        self._pending += metric.tail.size - metric.tail.offset
        modified = metric.tail.modified or 0.0
        self._modified = max(self._modified or 0.0, modified) or None

    def _settings(self) -> Iterator[Settings]:
        """Yield the parameters, whenever there are others than before."""
        folder = self.path.parent / "params"
        found = frozenset(_files(folder))
        if found == self._params:
            return
        self._params = found
        values: dict[str, Any] = {}
        for file in sorted(found):
            with opened(file) as param:
                text = param.read(_LONGEST).decode("utf-8", "replace")
            value = scalar(text)
            if isinstance(value, str):  # YAML takes `1e-06` for a text
                value = written_number(value) or value
            values[file.relative_to(folder).as_posix().replace("/", ".")] = value
        yield Settings(flatten_settings(values), str(self.path))

    def _end(self) -> Iterator[Event]:
        """Yield how the run ended, once."""
        with opened(self.path) as file:
            found = _STATUS.search(file.read(_LONGEST))
        status = found[1] if found is not None else b""
        if status in _ENDS and status != self._status:
            yield Event(*_ENDS[status], 1)
        self._status = status


class _Metric:
    """The file of one metric, read as it grows."""

    def __init__(self, file: Path, key: str) -> None:
        self.tail = Tail(file)
        self._key = (key,)
        self._number = 0
        """Lines so far."""
        self._rest = b""
        """What was read of a last line without an end."""

    def rows(self) -> Iterator[MetricRow | Restart | Unreadable]:
        """Yield what has come."""
        chunk = self.tail.read()
        if chunk.restarted is not None:
            self._rest, self._number = b"", 0
            yield Restart(chunk.restarted)
        *lines, rest = (self._rest + chunk.data).split(b"\n")
        self._rest = rest[:_LONGEST]
        for line in lines:
            self._number += 1
            yield self._row(line)

    def _row(self, line: bytes) -> MetricRow | Unreadable:
        try:
            time, value, step = line.split()[:3]
            reached = integer(int(step))
            if reached is None:
                raise ValueError
            return MetricRow(reached, self._key, (float(value),), int(time) / 1000)
        except (ValueError, OverflowError):
            reason = f"{self._key[0]}: no time, value and step"
            text = one_line(line[:200].decode("utf-8", "replace"))
            return Unreadable(self._number, reason, text)


def _files(folder: Path) -> list[Path]:
    return sorted(filter(is_file, folder.rglob("*")))
